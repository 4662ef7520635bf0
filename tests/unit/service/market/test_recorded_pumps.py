"""Announced pumps that are replayed: what they become, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl
import pytest

from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Leg
from toolkit.service import Clock, Config, Replay, running
from toolkit.service.events.archive import EventArchive, EventFilters
from toolkit.statistics.events import event_lifecycles
from toolkit.store import Store, event_logs
from toolkit.workspace import Workspace

DAY_S = 86_400
DAY = 17_600  # 2018-03-10
HOUR = DAY * DAY_S + 17 * 3_600
ALPHA = Leg.parse("ALPHA.spot")


def pumps(*rows: tuple[int, str, str], dataset: str = "list", **more: object) -> pl.DataFrame:
    """Announcements: when, of which symbol, where."""
    frame = pl.DataFrame(rows, schema=["ts", "symbol", "exchange"], orient="row")
    return frame.with_columns(
        precision_s=pl.lit(60), dataset=pl.lit(dataset), group=pl.lit("a group")
    ).with_columns(**more)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a folder of a recording."""

    def write(announced: pl.DataFrame, prices: pl.DataFrame | None = None) -> Path:
        announced.write_parquet(tmp_path / "pumps.parquet")
        if prices is not None:
            prices.write_parquet(tmp_path / "prices.parquet")
        return tmp_path

    return write


def documents(replay: Replay, **filters: object) -> list[dict[str, object]]:
    """The splash log of two days."""
    window = (DAY * DAY_S, (DAY + 2) * DAY_S)
    archive, wanted = EventArchive(replay), EventFilters(**filters)
    found, _ = archive.page(
        EventFamily.SPLASH, *window, filters=wanted, limit=500, visible_until=window[1]
    )
    return [msgspec.json.decode(body) for body in found[::-1]]


def test_each_pump_is_one_document_of_its_time_and_of_no_size(folder: Callable[..., Path]) -> None:
    told = pumps((HOUR, "PPT_BTC", "BETA"), (HOUR - 60, "KMD_BTC", "ALPHA"))
    replay = Replay.read(folder(told))
    assert replay.listing == {"KMD_BTC": (ALPHA,), "PPT_BTC": (Leg.parse("BETA.spot"),)}
    assert len(replay.bars("KMD_BTC", ALPHA).ts) == 0
    first, second = documents(replay)
    assert (first["ts"], first["exchange"], first["market"]) == (HOUR - 60, "ALPHA", "spot")
    assert second["instrument"] == {"symbol": "PPT_BTC", "base": "PPT", "quote": "BTC"}
    for document in (first, second):
        assert document["event_type"] == "splash.pump"
        unknown = ("pct", "window_s", "start_price", "spot_price", "futures_price", "volume_24h")
        assert {document[name] for name in unknown} == {None}
    assert first["event_id"] != second["event_id"]


def test_what_several_groups_announce_is_one_pump_and_row_order_is_free(
    folder: Callable[..., Path],
) -> None:
    told = pumps(
        (HOUR, "PPT_BTC", "BETA"), (HOUR, "KMD_BTC", "BETA"), (HOUR - 60, "PPT_BTC", "BETA")
    )
    once = Replay.read(folder(told)).id
    again = Replay.read(folder(pl.concat([told.reverse(), told.with_columns(group=pl.lit("b"))])))
    assert again.id == once
    assert len(documents(again)) == 3
    fewer = Replay.read(folder(told.head(2)))
    assert fewer.id != once


def test_a_pump_is_never_open_and_no_pump_is_as_large_as_asked_for(
    folder: Callable[..., Path],
) -> None:
    replay = Replay.read(folder(pumps((HOUR, "PPT_BTC", "BETA"))))
    for ts in (HOUR, HOUR + 1, HOUR + 60, (DAY + 1) * DAY_S):
        assert EventArchive(replay).open_at(EventFamily.SPLASH, ts) == {}
    assert documents(replay, min_pct=0.0) == []
    assert len(documents(replay, symbol="PPT_BTC", lifecycle="open")) == 1


def test_recorded_pumps_stand_in_place_of_those_in_the_bars(
    folder: Callable[..., Path], make_bars: Callable[..., pl.DataFrame]
) -> None:
    minutes = {HOUR + 60 * minute: 1.0 if minute < 30 else 1.2 for minute in range(60)}
    bars = make_bars("ALPHA", minutes, symbol="PPT_BTC")
    told = pumps((HOUR, "PPT_BTC", "ALPHA"), dataset="list")
    both = folder(told, bars)
    assert [each["ts"] for each in documents(Replay.read(both))] == [HOUR]
    found = documents(Replay.read(both, datasets=["one"]))
    assert {each["event_type"] for each in found} == {"splash.pump", "splash.faded"}
    assert found[0]["pct"] == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ts": None}, "without nulls"),
        ({"precision_s": 0}, "precision of 1 s or more"),
        ({"symbol": "PPTBTC"}, "symbol"),
        ({"exchange": "GATE.IO"}, "exchange"),
    ],
)
def test_a_row_that_is_no_announcement_is_refused(
    folder: Callable[..., Path], change: dict[str, object], message: str
) -> None:
    ((name, value),) = change.items()
    told = pumps((HOUR, "PPT_BTC", "BETA"))
    path = folder(told.with_columns(pl.lit(value, dtype=told[name].dtype).alias(name)))
    with pytest.raises(InputError, match=message):
        Replay.read(path)


def test_two_lists_of_one_leg_are_refused_by_name(folder: Callable[..., Path]) -> None:
    one, two = (pumps((HOUR, "PPT_BTC", "BETA"), dataset=name) for name in ("one", "two"))
    path = folder(pl.concat([one, two]))
    with pytest.raises(InputError, match=r"PPT_BTC:BETA of pumps in one and two"):
        Replay.read(path)
    assert len(documents(Replay.read(path, datasets=["two"]))) == 1


def test_a_store_holds_replayed_pumps_without_a_size(folder: Callable[..., Path]) -> None:
    told = pumps((HOUR, "PPT_BTC", "BETA"), (HOUR + 3_600, "KMD_BTC", "BETA"))
    path = folder(told)
    window = Interval(DAY * DAY_S, (DAY + 1) * DAY_S)
    config = Config(
        Replay.read(path), port=0, clock=Clock(fixed_at=window.end + 600), retention_s=10**9
    )
    with running(config) as service:
        store = Store(path / "rail.duckdb")
        with Workspace(Client(service.base_url, "demo-pro"), store) as workspace:
            workspace.sync([EventLog(EventFamily.SPLASH)], *window)
    rows = store.events(EventFamily.SPLASH, window).sort("ts")
    assert rows["symbol"].to_list() == ["PPT_BTC", "KMD_BTC"]
    assert rows["ts"].to_list() == [HOUR, HOUR + 3_600]
    assert rows["magnitude_pct"].to_list() == [None, None]
    logs = event_logs(store.catalogue())
    found = event_lifecycles(rows, *window, logs=logs)
    assert found["t_open"].sort().to_list() == [HOUR, HOUR + 3_600]


def test_every_real_announcement_is_replayed_once(real_data: Path) -> None:
    replay = Replay.read(real_data, datasets=["sapienza"])
    told = pl.read_parquet(real_data / "pumps.parquet").filter(dataset="sapienza")
    expected = told.select("ts", "symbol", "exchange").unique().sort("ts", "symbol", "exchange")
    start, end = expected["ts"].min(), expected["ts"].max() + 1
    found = EventArchive(replay).documents(EventFamily.SPLASH, start, end)
    assert len(found) == expected.height > 900
    seen = [msgspec.json.decode(body) for _, body in found]
    rows = sorted((each["ts"], each["instrument"]["symbol"], each["exchange"]) for each in seen)
    assert rows == sorted(expected.iter_rows())
