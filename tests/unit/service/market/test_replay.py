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

Make = Callable[..., pl.DataFrame]
Write = Callable[..., Path]
ROWS = {0: 1.5, 60: 2.5, 120: 3.5}
ALPHA = Leg.parse("ALPHA.spot")


def test_a_file_and_the_directory_that_holds_it_are_the_same(make_bars, written) -> None:
    path = written(make_bars("ALPHA", ROWS))
    assert Replay.read(path).id == Replay.read(path.parent).id == Replay.read(str(path)).id


def test_rows_of_any_order_become_ascending_series(make_bars: Make, written: Write) -> None:
    frames = make_bars("BETA", ROWS), make_bars("ALPHA", ROWS), make_bars("ALPHA", {30: 9.0})
    mixed = pl.concat(frames).sample(fraction=1.0, shuffle=True, seed=2)
    replay = Replay.read(written(mixed))
    assert replay.listing == {"BTC_USDT": (ALPHA, Leg.parse("BETA.spot"))}
    bars = replay.bars("BTC_USDT", ALPHA)
    assert bars.ts.tolist() == [0, 30, 60, 120]
    assert bars.price.tolist() == [1.5, 9.0, 2.5, 3.5]
    assert bars.interval_s == 60


def test_other_columns_and_narrower_types_make_no_difference(make_bars, written) -> None:
    frame = make_bars("ALPHA", ROWS)
    other = frame.with_columns(
        pl.col("symbol", "exchange", "dataset").cast(pl.Categorical),
        pl.col("ts").cast(pl.Int32),
        pl.col("interval_s").cast(pl.Int64),
        volume=1.0,
    )
    assert Replay.read(written(frame)).id == Replay.read(written(other)).id


def test_the_id_is_made_of_the_names_and_of_what_is_served(make_bars: Make, written: Write) -> None:
    one = make_bars("ALPHA", ROWS)
    again = Replay.read(written(one.reverse(), compression="snappy"))
    assert Replay.read(written(one)).id == again.id
    assert again.id.startswith("one-")
    others = [
        make_bars("ALPHA", ROWS | {60: 2.5000000000000004}),
        make_bars("ALPHA", ROWS | {61: 2.5}),
        make_bars("BETA", ROWS),
        make_bars("ALPHA", ROWS, market="futures"),
        make_bars("ALPHA", ROWS, symbol="ETH_USDT"),
        make_bars("ALPHA", ROWS, interval_s=30),
        make_bars("ALPHA", ROWS, dataset="two"),
    ]
    assert len({again.id, *(Replay.read(written(other)).id for other in others)}) == 8


def test_a_replay_calls_itself_a_replay_and_a_simulated_file_simulated(make_bars, written) -> None:
    frame = make_bars("ALPHA", ROWS)
    assert Replay.read(written(frame)).kind == "replay"
    marked = written(frame, metadata={"machine_rail.source_kind": "simulated"})
    assert Replay.read(marked).kind == "simulated"


def test_datasets_choose_what_is_served(make_bars: Make, written: Write) -> None:
    path = written(
        make_bars("ALPHA", ROWS, dataset="one"),
        make_bars("BETA", ROWS, dataset="two"),
        make_bars("GAMMA", ROWS, dataset="three"),
    )
    chosen = Replay.read(path, datasets=["three", "one"])
    assert chosen.id.startswith("one+three-")
    assert [leg.exchange for leg in chosen.listing["BTC_USDT"]] == ["ALPHA", "GAMMA"]
    assert chosen.id != Replay.read(path).id
    with pytest.raises(KeyError):
        chosen.bars("BTC_USDT", Leg.parse("BETA.spot"))


def test_an_unknown_dataset_is_refused_with_those_there_are(make_bars, written) -> None:
    path = written(make_bars("ALPHA", ROWS, dataset="two"), make_bars("BETA", ROWS, dataset="one"))
    with pytest.raises(InputError, match=r"'none' is not allowed; allowed: one, two$"):
        Replay.read(path, datasets=["one", "none"])


def test_two_datasets_of_one_trajectory_are_refused_by_name(make_bars, written) -> None:
    path = written(make_bars("ALPHA", ROWS), make_bars("ALPHA", {999: 1.0}, dataset="two"))
    with pytest.raises(InputError) as refusal:
        Replay.read(path)
    assert refusal.value.parameter == "dataset"
    for part in ("BTC_USDT:ALPHA.spot", "one and two", "choose with --dataset"):
        assert part in str(refusal.value)
    assert Replay.read(path, datasets=["two"]).bars("BTC_USDT", ALPHA).ts.tolist() == [999]


def test_a_second_interval_of_one_trajectory_is_refused(make_bars: Make, written: Write) -> None:
    path = written(make_bars("ALPHA", ROWS), make_bars("ALPHA", {600: 4.0}, interval_s=300))
    with pytest.raises(InputError) as refusal:
        Replay.read(path)
    assert refusal.value.parameter == "interval_s"
    for part in ("BTC_USDT:ALPHA.spot", "60 and 300", "choose with interval_s"):
        assert part in str(refusal.value)
    assert Replay.read(path, interval_s=300).bars("BTC_USDT", ALPHA).ts.tolist() == [600]
    with pytest.raises(InputError, match=r"61 is not allowed; allowed: 60, 300$"):
        Replay.read(path, interval_s=61)


def test_a_moment_that_comes_twice_is_refused(make_bars: Make, written: Write) -> None:
    path = written(make_bars("ALPHA", ROWS), make_bars("ALPHA", {60: 2.5}))
    with pytest.raises(InputError, match=r"BTC_USDT:ALPHA\.spot at ts 60 twice"):
        Replay.read(path)


@pytest.mark.parametrize("price", [None, float("nan"), float("inf"), 0.0, -1.0])
def test_a_price_that_is_none_is_refused(make_bars, written, price) -> None:
    frame = make_bars("ALPHA", ROWS | {180: price})
    with pytest.raises(InputError, match="finite price above 0") as refusal:
        Replay.read(written(frame))
    assert "180" in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ts": None}, "without nulls"),
        ({"dataset": None}, "without nulls"),
        ({"interval_s": -60}, "interval of 0 s or more"),
        ({"symbol": "BTCUSDT"}, "symbol"),
        ({"exchange": "alpha"}, "exchange"),
        ({"market": "perp"}, "market"),
    ],
)
def test_a_row_that_no_service_could_list_is_refused(make_bars, written, change, message) -> None:
    frame = make_bars("ALPHA", {0: 1.0})
    ((name, value),) = change.items()
    with pytest.raises(InputError, match=message):
        Replay.read(written(frame.with_columns(pl.lit(value, dtype=frame[name].dtype).alias(name))))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("ts", pl.from_epoch("ts")),
        ("ts", pl.col("ts").cast(pl.Float64)),
        ("price", pl.col("price").cast(pl.String)),
        ("symbol", pl.lit(7).alias("symbol")),
        ("interval_s", pl.lit("1m").alias("interval_s")),
    ],
)
def test_a_column_of_another_type_is_refused_rather_than_guessed(make_bars, written, name, column):
    path = written(make_bars("ALPHA", ROWS).with_columns(column))
    with pytest.raises(InputError, match=f"missing or of another type: {name}$"):
        Replay.read(path)


def test_a_missing_column_is_named(make_bars: Make, written: Write) -> None:
    path = written(make_bars("ALPHA", ROWS).drop("interval_s", "dataset"))
    with pytest.raises(InputError, match=r"of another type: dataset, interval_s$"):
        Replay.read(path)


def test_a_file_without_rows_is_refused(make_bars: Make, written: Write) -> None:
    with pytest.raises(InputError, match="'no rows' is not allowed"):
        Replay.read(written(make_bars("ALPHA", ROWS).clear()))


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        Replay.read(tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        Replay.read(tmp_path / "prices.parquet")
    (tmp_path / "prices.parquet").write_text("ts,price\n0,1\n")
    with pytest.raises(InputError, match="reading it: "):
        Replay.read(tmp_path)


def test_the_real_files_colliding_datasets_are_named(real_data: Path) -> None:
    with pytest.raises(InputError, match="cdd_robineriksson and iaqf_dhruvk1432"):
        Replay.read(real_data)
    with pytest.raises(InputError, match=r"BTC_KRW:UPBIT\.spot in 60 and 300"):
        Replay.read(real_data, datasets=["kimchi_vsun410"])


def test_every_bar_of_a_real_dataset_is_held_unchanged(real_data: Path) -> None:
    replay = Replay.read(real_data, datasets=["iaqf_dhruvk1432"])
    frame = pl.read_parquet(real_data / "prices.parquet").filter(
        pl.col("dataset") == "iaqf_dhruvk1432"
    )
    legs = [(symbol, leg) for symbol, legs in replay.listing.items() for leg in legs]
    assert len(legs) == 11
    assert sum(len(replay.bars(*leg).ts) for leg in legs) == len(frame)
    for symbol, leg in legs:
        rows = frame.filter(
            (pl.col("symbol") == symbol)
            & (pl.col("exchange") == leg.exchange)
            & (pl.col("market") == leg.market.value)
        ).sort("ts")
        bars = replay.bars(symbol, leg)
        assert bars.ts.tolist() == rows["ts"].to_list()
        assert bars.price.tolist() == rows["price"].to_list()


def test_a_symbol_served_under_another_name_joins_legs_and_shows_in_the_id(make_bars, written):
    path = written(pl.concat([make_bars("ALPHA", ROWS), make_bars("BETA", ROWS, symbol="BTC_USD")]))
    replay = Replay.read(path, renamed={"BTC_USD": "BTC_USDT"})
    assert replay.listing == {"BTC_USDT": (ALPHA, Leg.parse("BETA.spot"))}
    assert replay.id.startswith("one+BTC_USD=BTC_USDT-")
    assert replay.id.rpartition("-")[2] != Replay.read(path).id.rpartition("-")[2]


@pytest.mark.parametrize(
    ("renamed", "says"),
    [
        ({"ETH_USD": "ETH_USDT"}, "renamed: 'ETH_USD' is not allowed; allowed: BTC_USD, BTC_USDT"),
        ({"BTC_USD": "btc"}, "symbol"),
        ({"BTC_USD": "BTC_USDT"}, "BTC_USDT:ALPHA.spot at ts 0 twice"),
    ],
)
def test_a_name_that_makes_no_trajectory_is_refused(make_bars, written, renamed, says) -> None:
    rows = [make_bars("ALPHA", ROWS), make_bars("ALPHA", ROWS, symbol="BTC_USD")]
    with pytest.raises(InputError) as caught:
        Replay.read(written(pl.concat(rows)), renamed=renamed)
    assert says in str(caught.value)


DAY_S = 86_400
DAY = 17_600  # 2018-03-10
HOUR = DAY * DAY_S + 17 * 3_600


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


def test_what_several_groups_announce_is_one_pump_and_row_order_is_free(folder) -> None:
    told = pumps(
        (HOUR, "PPT_BTC", "BETA"), (HOUR, "KMD_BTC", "BETA"), (HOUR - 60, "PPT_BTC", "BETA")
    )
    once = Replay.read(folder(told)).id
    again = Replay.read(folder(pl.concat([told.reverse(), told.with_columns(group=pl.lit("b"))])))
    assert again.id == once
    assert len(documents(again)) == 3
    fewer = Replay.read(folder(told.head(2)))
    assert fewer.id != once


def test_a_pump_is_never_open_and_no_pump_is_as_large_as_asked_for(folder) -> None:
    replay = Replay.read(folder(pumps((HOUR, "PPT_BTC", "BETA"))))
    for ts in (HOUR, HOUR + 1, HOUR + 60, (DAY + 1) * DAY_S):
        assert EventArchive(replay).open_at(EventFamily.SPLASH, ts) == {}
    assert documents(replay, min_pct=0.0) == []
    assert len(documents(replay, symbol="PPT_BTC", lifecycle="open")) == 1


def test_recorded_pumps_stand_in_place_of_those_in_the_bars(folder, make_bars) -> None:
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
def test_a_row_that_is_no_announcement_is_refused(folder, change, message) -> None:
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
