"""One settlement that is sent again counts once; of real settlements none is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics import funding
from toolkit.statistics.funding.settlements import settlements

HOUR, DAY = 3600, 86400
START = 1_700_006_400  # a midnight, UTC
TEN_DAYS = (START, START + 10 * DAY)
BASELINE = 1e-4


def rows_of(hours: Sequence[float], rates: object = BASELINE, told: object = 8.0) -> pl.DataFrame:
    """A spot leg bought, and a leg sold that settles so many hours after START."""
    count = len(hours)
    return pl.DataFrame(
        {
            "trajectory": ["a"] * count,
            "ts": [START + round(HOUR * at) for at in hours],
            "buy_rate": [0.0] * count,
            "sell_rate": rates if isinstance(rates, list) else [rates] * count,
            "buy_interval_hours": [None] * count,
            "sell_interval_hours": told if isinstance(told, list) else [told] * count,
        },
        schema_overrides={"buy_interval_hours": pl.Float64, "sell_interval_hours": pl.Float64},
    )


def measured(frame: pl.DataFrame) -> dict[str, object]:
    return funding.summary(frame, *TEN_DAYS).row(0, named=True)


@pytest.mark.parametrize("late_s", [20, 90, 29 * 60, HOUR])
@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.parametrize("told", [8.0, None])
def test_a_settlement_sent_again_counts_once_and_the_row_left_out_is_counted(late_s, first, told):
    hours = [first + 8 * k for k in range(-1, 31)]
    again = sorted([*hours, hours[9] + late_s / HOUR])
    row, plain = measured(rows_of(again, told=told)), measured(rows_of(hours, told=told))
    assert plain["funding_bps"] == pytest.approx(30.0)
    assert {**row, "n_duplicates": 0} == plain
    assert row["n_duplicates"] == 1
    listed = funding.intervals(rows_of(again, told=told))
    assert listed["ts"].to_list() == [START + HOUR * at for at in hours]
    assert listed.filter(pl.col("n_duplicates") == 1)["ts"].to_list() == [START + HOUR * hours[9]]


def test_every_settlement_sent_again_in_any_number_counts_once():
    hours = [8 * k for k in range(31)]
    again = sorted([*hours, *(at + 0.025 for at in hours[1:]), *(at + 1 for at in hours[1:])])
    row = measured(rows_of(again))
    assert (row["n"], row["n_in_force"]) == (30, 0)
    assert row["n_duplicates"] == 58  # those of the last one are after the window
    assert row["funding_bps"] == pytest.approx(30.0)
    assert funding.intervals(rows_of(again))["n_duplicates"].to_list() == [0] + [2] * 30


def test_a_settlement_also_sent_before_the_hour_is_kept_on_the_hour():
    hours = sorted([*(8 * k for k in range(31)), 71.75])
    found = funding.intervals(rows_of(hours))
    assert found["ts"].to_list() == [START + 8 * HOUR * k for k in range(31)]


@pytest.mark.parametrize("told", ["right", "one late", "one early", "lagging", "not at all"])
def test_an_interval_that_changes_at_the_baseline_merges_nothing(told):
    gaps = [8] * 9 + [1] * 40 + [4] * 6 + [1] * 7 + [8] * 6
    declared = {
        "right": list(map(float, gaps)),
        "one late": [8.0, *map(float, gaps[:-1])],
        "one early": [*map(float, gaps[1:]), 8.0],
        "lagging": 8.0,
        "not at all": None,
    }[told]
    hours = np.cumsum(gaps).tolist()
    found = settlements(rows_of(hours, told=declared))
    assert found.duplicates.is_empty()
    assert found.rows["ts"].to_list() == [START + HOUR * at for at in hours]


def test_another_rate_soon_after_counts_and_is_flagged_early():
    hours = sorted([*(8 * k for k in range(31)), 72.025])
    rates = [BASELINE] * 10 + [2e-4] + [BASELINE] * 21
    row = measured(rows_of(hours, rates))
    assert (row["n"], row["n_duplicates"], row["n_early"]) == (31, 0, 1)
    found = funding.intervals(rows_of(hours, rates))
    assert found["interval_flag"].drop_nulls().to_list() == ["early"]


def test_two_rates_in_one_minute_are_refused_and_one_rate_twice_is_merged():
    frame = rows_of([8 * k for k in range(4)])
    again = frame.with_columns(pl.col("ts") + 20)
    assert funding.intervals(pl.concat([frame, again]))["n_duplicates"].to_list() == [1] * 4
    other = again.with_columns(sell_rate=2e-4)
    with pytest.raises(InputError, match="one row per trajectory and ts"):
        funding.intervals(pl.concat([frame, other]))


@pytest.mark.parametrize("begin_min", [1, 17, 47, 60, 479])
def test_rows_of_a_rate_in_force_that_begin_between_settlements_settle_nothing_there(begin_min):
    minutes = np.arange(begin_min, 3 * 480 + 1) / 60
    found = settlements(rows_of(minutes.tolist(), 2e-4))
    assert found.rows["ts"].to_list() == [START + 8 * HOUR * k for k in (1, 2, 3)]
    assert found.duplicates.is_empty()


@pytest.mark.parametrize("step_min", [1, 7, 15, 60])
def test_where_a_frame_begins_changes_no_later_settlement(step_min):
    hours = (np.arange(5, 2 * 1440, step_min) / 60).tolist()
    whole = settlements(rows_of(hours, 2e-4)).rows["ts"].to_list()
    for cut in range(1, len(hours), max(1, len(hours) // 50)):
        begin = START + round(HOUR * hours[cut])
        found = settlements(rows_of(hours[cut:], 2e-4)).rows["ts"].to_list()
        if len(hours) - cut > 1440 // step_min:
            assert found == [ts for ts in whole if ts >= begin]


def real_legs(real_data: object) -> pl.DataFrame:
    """Each of the 33 series as a leg sold against spot."""
    return pl.read_parquet(f"{real_data}/funding.parquet").select(
        pl.concat_str("dataset", "exchange", "symbol", separator="/").alias("trajectory"),
        pl.col("ts").cast(pl.Int64),
        buy_rate=pl.lit(0.0),
        sell_rate=pl.col("rate").cast(pl.Float64),
        buy_interval_hours=pl.lit(None, pl.Float64),
        sell_interval_hours=pl.col("interval_hours").cast(pl.Float64),
    )


@pytest.mark.parametrize("told", [True, False])
def test_no_real_settlement_is_left_out(real_data, told):
    frame = real_legs(real_data)
    if not told:
        frame = frame.with_columns(sell_interval_hours=pl.lit(None, pl.Float64))
    for part in (frame, frame.filter(pl.col("ts").hash(7) % 10 > 1)):  # and with holes
        found = settlements(part)
        assert found.rows.height == part.height > 100_000
        assert found.duplicates.is_empty()
        assert found.in_force.is_empty()


@pytest.mark.parametrize("late_s", [90, 111, HOUR])
def test_real_settlements_of_which_some_are_sent_again_are_those_sent_once(real_data, late_s):
    frame = real_legs(real_data)
    if late_s == HOUR:
        # that late a settlement of one hour cannot be told from the next
        frame = frame.filter(pl.col("sell_interval_hours") > 1)
    again = frame.filter(pl.col("ts").hash(3) % 50 == 0).with_columns(pl.col("ts") + late_s)
    once, found = settlements(frame), settlements(pl.concat([frame, again]))
    left_out = found.duplicates.height
    kept = found.rows.drop("n_duplicates")
    assert again.height > 800
    assert left_out >= 0.999 * again.height
    assert kept.height == once.rows.height + again.height - left_out
