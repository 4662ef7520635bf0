"""A list of one's own events is a log: each row an event, studied where it names a leg or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import toolkit as tk
from tests.unit.store.conftest import faults_of
from toolkit.errors import InputError
from toolkit.series import EventSeries, own_series
from toolkit.store import Store
from toolkit.workspace.loading import keep_own

START = 1_704_067_200  # 2024-01-01
LISTED = {"ts": [START + 3_600, START + 7_200], "symbol": ["BTC_USDT"] * 2}
KEY = "BTC_USDT:VENDOR.spot"


def log_of(**columns: object) -> EventSeries:
    found = own_series(pl.DataFrame(LISTED | columns), "events/splash")
    assert isinstance(found, EventSeries)
    return found


def prices() -> pl.DataFrame:
    """A step up by 1 % at the first event, and one down at the second."""
    price = [100.0] * 60 + [101.0] * 60 + [100.0] * 60
    return pl.DataFrame({"ts": range(START, START + 10_800, 60), "price": price})


def test_a_row_opens_an_event_with_its_kind_its_size_and_its_leg() -> None:
    venue = {"exchange": ["BINANCE"] * 2, "market": ["spot"] * 2}
    log = log_of(kind=["listing", "dump"], size=[3.0, 5.0], **venue)
    assert log.detections().select("trajectory", "ts", "direction", "size").rows() == [
        ("BTC_USDT:BINANCE.spot", START + 3_600, 1.0, 3.0),
        ("BTC_USDT:BINANCE.spot", START + 7_200, -1.0, 5.0),
    ]
    assert log.df["event_type"].to_list() == ["splash.listing.opened", "splash.dump"]
    assert log.rates()["n"].item() == 2
    assert log.survival()["open"][0] == 2


def test_events_of_no_leg_are_studied_on_one() -> None:
    log = log_of(kind=["pump", "dump"])
    assert log.detections().is_empty()
    rows = own_series(prices(), KEY).rows
    found = log.study(rows, on=KEY, before_s=600, after_s=600, from_detection=True)
    assert found["n"].to_list() == [2] * found.height
    last = found.filter(offset_s=600).row(0, named=True)
    assert last["return_from_detection_mean_log_bps"] == pytest.approx(99.5033, abs=1e-3)


def test_a_log_of_ones_own_is_kept_beside_prices_and_studied_from_the_store(tmp_path: Path) -> None:
    path = tmp_path / "own.duckdb"
    log = log_of(kind=["pump", "dump"])
    assert [keep_own(log, path).new, keep_own(log, path).repeated] == [2, 2]
    keep_own(own_series(prices(), KEY), path)
    assert faults_of(Store(path)) == []
    with tk.open(store=path) as rail:
        held = rail.events("splash")
        assert held.df.drop("known_at").equals(log.df.drop("known_at"))
        found = held.study(rail.around(held, on=KEY), on=KEY, before_s=600, after_s=600)
        assert found["n_events"][0] == 2


@pytest.mark.parametrize(
    ("columns", "key", "says"),
    [
        ({}, "events/splash", "one for kind"),
        ({"kind": ["pump", None]}, "events/splash", "1 null of kind"),
        ({"kind": ["pump"] * 2}, "events/spread", "events/splash: rows of one's own"),
        ({"kind": ["pump"] * 2, "symbol": ["BTCUSDT"] * 2}, "events/splash", "BASE_QUOTE"),
        ({"kind": ["pump"] * 2, "exchange": ["X"] * 2}, "events/splash", "exchange and market"),
        ({"kind": ["pump"] * 2, "size": ["big"] * 2}, "events/splash", "2 texts of size"),
    ],
)
def test_a_list_that_is_no_log_is_refused(columns: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        own_series(pl.DataFrame(LISTED | columns), key)
