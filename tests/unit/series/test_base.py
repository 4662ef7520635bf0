"""What every series has: its window, its two times, its forms, its file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.errors import InputError
from toolkit.series import FundingSeries, PriceSeries, Series, SpreadSeries
from toolkit.series.base import asked_of
from toolkit.show.result import Result
from toolkit.statistics import spread
from toolkit.workspace import Workspace

from .conftest import KEYS, NOW, PAIR, PRICE, WINDOW


@pytest.fixture(scope="module", params=KEYS)
def key(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def series(rail: Workspace, key: str) -> Series:
    return rail.series(key, "2026-11-01", NOW + 1)


def test_every_series_knows_stream_window_and_source_and_shows_them(
    rail: Workspace, key: str, series: Series
) -> None:
    assert (series.stream.key, series.window.end) == (key, NOW + 1)
    assert series.source == rail.store.source
    assert len(series) == series.df.height == len(list(series)) > 0
    for text in (repr(series), str(series.card)):
        assert key in text
        assert "SIMULATED market, seed-7-" in text
        assert "2026-11-01 00:00 UTC" in text
    assert set(series._repr_mimebundle_()) == {"text/plain", "text/html"}
    start, end = f"n = {len(series):,}, ", f"{series.window} of {series.source.label}"
    assert series.footnote.startswith(start)
    assert series.footnote.endswith(end)
    assert ("coverage" in series.footnote) == (key != "snapshot/spread")


def test_time_is_ts_in_utc_and_known_at_follows_it_by_the_bar_and_the_delay(
    key: str, series: Series
) -> None:
    frame = series.df
    assert frame.schema["time"] == frame.schema["known_at"] == pl.Datetime("us", "UTC")
    assert (frame["time"].dt.epoch("s") == frame["ts"]).all()
    bar_s = 60 if key in (PRICE, PAIR) else 0
    late_s = (frame["known_at"] - frame["time"]).dt.total_seconds().unique().to_list()
    assert (
        late_s == [bar_s + series.origin.delay_s] if series.origin.delay_s is not None else [None]
    )


def test_answers_of_python_are_results_and_a_method_remembers_what_was_asked(
    rail: Workspace, pair: SpreadSeries
) -> None:
    found = pair.summary()
    every = (found, rail.measure(spread.summary), rail.screen(), pair.half_life())
    assert {type(each) for each in every} == {Result}
    assert all(str(each).endswith(".frame has every one") for each in every)
    asked = asked_of(found)
    assert asked is not None
    assert asked.method == "summary"


def test_a_series_does_not_change(price: PriceSeries) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        price.rows = price.rows.clear()  # type: ignore[misc]  # what is refused
    assert price.df is price.df


def test_the_window_of_all_that_is_known_is_the_one_that_was_asked_for(
    rail: Workspace, rates: FundingSeries
) -> None:
    for key in (PRICE, PAIR):
        window = rail.series(key).window
        assert window.start == WINDOW[0]
        assert NOW - 300 <= window.end <= NOW
    settled = rates.df["ts"]
    assert rates.window == (settled.min() - 8 * 3_600, settled.max())


def test_the_frame_can_be_had_lazily_as_arrow_and_as_pandas_in_a_zone(price: PriceSeries) -> None:
    assert_frame_equal(price.lazy().collect(), price.df)
    assert price.arrow().num_rows == len(price)
    frame = price.pandas("Asia/Tokyo")
    assert str(frame.index.tz) == "Asia/Tokyo"
    assert frame.index[0].timestamp() == price.df["ts"][0]
    assert frame["price"].tolist() == price.df["price"].to_list()
    with pytest.raises(InputError, match="timezone: 'Mars'"):
        price.pandas("Mars")


def test_a_saved_series_has_what_it_is_in_its_file(tmp_path: Path, pair: SpreadSeries) -> None:
    path = pair.save(tmp_path / "x.parquet")
    assert_frame_equal(pl.read_parquet(path), pair.df)
    facts = json.loads(pl.read_parquet_metadata(path)["machine_rail"])
    assert facts["stream"] == PAIR
    assert facts["source"] == pair.source.label
    assert facts["data_hash"] == pair.data_hash
    assert facts["step_s"] == "60"


@pytest.mark.parametrize("name", ["x.csv", "x", "absent/x.parquet"])
def test_a_file_that_cannot_be_written_is_refused(
    tmp_path: Path, name: str, price: PriceSeries
) -> None:
    with pytest.raises(InputError, match="path"):
        price.save(tmp_path / name)


def test_the_hash_is_that_of_the_rows_alone(rail: Workspace) -> None:
    one, same = (rail.prices(PRICE, *WINDOW) for _ in range(2))
    part = rail.prices(PRICE, WINDOW[0], WINDOW[1] - 600)
    assert one.data_hash == same.data_hash != part.data_hash
    wider = rail.prices(PRICE, WINDOW[0] - 60, WINDOW[1])
    assert wider.data_hash == one.data_hash


def test_gaps_are_the_stretches_that_the_ledger_does_not_hold(
    rail: Workspace, pair: SpreadSeries
) -> None:
    window = (WINDOW[0] - 3_600, WINDOW[1])
    gaps = rail.spread(PAIR, *window).gaps()
    known = rail.store.coverage(pair.stream, rail.spread(PAIR, *window).window)
    expected = known.filter(pl.col("state") != "held")
    assert gaps["state"].to_list() == expected["state"].to_list()
    assert gaps["length_s"].sum() == (expected["end_ts"] - expected["start_ts"]).sum()
    assert gaps.row(0, named=True)["state"] == "missing"
    with pytest.raises(InputError, match="snapshot/spread"):
        rail.snapshots("spread").gaps()
