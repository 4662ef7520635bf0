"""Settlements, their intervals and duplicates, by hand and by random legs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.errors import InputError
from toolkit.statistics import funding
from toolkit.statistics.funding.settlements import settlements

HOUR, DAY = 3600, 86400
START = 1_700_006_400  # a midnight, UTC
Leg = Sequence[tuple[float, float, int | None]]  # hours after START, rate, declared interval


def test_a_missed_settlement_is_no_longer_interval(joined, every):
    kept = [row for row in every(8, [1e-4] * 9) if row[0] != 32]
    for hours in (8, None):
        leg = [(at, rate, hours) for at, rate, _ in kept]
        found = funding.intervals(joined(leg, None))
        assert set(found["interval_hours"][1:]) == {8.0}
        after = found.filter(ts=START + 40 * HOUR)
        assert (after["missed"].item(), after["interval_flag"].item()) == (1, "missed")
        assert found["missed"].sum() == 1


def test_an_undeclared_interval_is_taken_over_when_it_lasts_and_not_before(joined):
    isolated = [(at, 1e-4, None) for at in (0, 8, 16, 20, 28, 36)]
    lasting = [(at, 1e-4, None) for at in (0, 8, 16, 20, 24, 32, 40)]
    found = funding.intervals(joined(None, isolated))
    assert found["interval_hours"].to_list() == [None, 8, 8, 8, 8, 8]
    assert found["interval_flag"].to_list() == [None, None, None, "early", None, None]
    assert funding.intervals(joined(None, lasting))["interval_hours"].to_list() == [
        *(None, 8, 8),
        *(4, 4, 8, 8),
    ]


def test_a_declaration_that_the_settlements_contradict_is_flagged_and_not_followed(joined):
    leg = [(8 * k - 24, 1e-4, 8) for k in range(4)] + [(4 * k, 1e-5 * k, 8) for k in range(1, 10)]
    found = funding.intervals(joined(None, leg))
    assert found["interval_hours"].to_list() == [8.0] * 4 + [4.0] * 9
    assert found["interval_flag"].to_list() == [None] * 4 + ["declared_differs"] * 9
    row = funding.summary(joined(None, leg), START, START + 36 * HOUR).row(0, named=True)
    assert (row["n_declared_differs"], row["coverage"]) == (9, 1.0)
    assert row["funding_bps"] == pytest.approx(4.5)


def test_a_declared_interval_off_the_usual_grid_is_believed_where_settlements_keep_it(
    joined, every
):
    found = funding.intervals(joined(None, every(6, [1e-4] * 5)))
    assert found["interval_hours"].to_list() == [6.0] * 5
    unknown = funding.intervals(joined(None, every(6, [1e-4, 2e-4, 3e-4, 4e-4, 5e-4], told=False)))
    assert unknown["interval_reason"].to_list() == ["too_few"] * 5
    assert unknown["rate_per_hour"].null_count() == 5


def test_rates_are_brought_to_the_hour_and_to_a_year_of_8760_hours(joined, every):
    found = funding.intervals(joined(every(8, [1e-4]), every(1, [1e-4])))
    assert found["leg"].to_list() == ["buy", "sell"]
    assert found["rate_per_hour"].to_list() == [1e-4 / 8, 1e-4]
    assert found["funding_apr_pct"].to_list() == pytest.approx([10.95, 87.6], rel=1e-14)


def test_settlements_some_seconds_late_are_those_of_the_minute(joined, every):
    leg = every(1, [1e-5, 2e-5, 3e-5, 4e-5])
    late = joined(leg, leg).with_columns(ts=pl.col("ts") + pl.Series([11, 0, -3, 29]))
    assert funding.summary(late, START, START + 3 * HOUR).equals(
        funding.summary(joined(leg, leg), START, START + 3 * HOUR)
    )


def test_intervals_equal_a_loop_over_the_rule(joined, read_off, some_leg):
    rng = np.random.default_rng(4)
    legs = [some_leg(rng) for _ in range(60)]
    rows = pl.concat(joined(None, leg, f"{run:02}") for run, leg in enumerate(legs))
    found = funding.intervals(rows).partition_by("trajectory", maintain_order=True)
    for leg, each in zip(legs, found, strict=True):
        assert each["interval_hours"].to_list() == read_off(leg), each["trajectory"][0]
    assert 10 < sum(each["declared_hours"].is_null().any() for each in found) < 50


def rate_at(leg: Leg | None, intervals: list[float | None], ts: int) -> float | None:
    """The rate per hour in force, by a loop over the settlements."""
    if leg is None:
        return 0.0
    past = [row for row in leg if START + round(HOUR * row[0]) <= ts]
    hours = intervals[len(past) - 1] if past else None
    if hours is None:
        return None
    at, rate, _ = past[-1]
    return rate / hours if ts < START + HOUR * (at + 2 * hours) else None


@pytest.mark.slow
def test_the_differential_equals_a_loop_over_the_settlements_at_any_time(
    joined, read_off, some_leg
):
    rng = np.random.default_rng(5)
    for run in range(40):
        buy, sell = some_leg(rng), None if run % 4 == 0 else some_leg(rng)
        steps = funding.differential(joined(buy, sell))
        for ts in rng.integers(START - DAY, START + 8 * DAY, 40).tolist():
            before = steps.filter(pl.col("ts") <= ts)
            got = before["differential_per_hour"][-1] if before.height else None
            rates = rate_at(sell, read_off(sell or []), ts), rate_at(buy, read_off(buy), ts)
            if None in rates:
                assert got is None
            else:
                assert got == pytest.approx(rates[0] - rates[1], abs=1e-18)


def test_a_step_that_is_null_says_why(joined, every):
    undeclared = [(8, 1e-4, None), (24, 1e-4, None)]
    steps = funding.differential(joined(every(8, [1e-4] * 4), undeclared))
    assert steps.select("ts", "differential_reason").rows() == [
        (START, "missing_leg"),
        (START + 8 * HOUR, "too_few"),
        (START + 16 * HOUR, "too_few"),
        (START + 24 * HOUR, "too_few"),
        (START + 40 * HOUR, "missing_leg"),
    ]
    known = funding.differential(joined(every(8, [1e-4] * 2), every(8, [2e-4] * 2)))
    reasons = known["differential_reason"].to_list()
    assert reasons == [None, None, "missing_leg"]
    assert known["differential_apr_pct"].to_list() == [pytest.approx(10.95)] * 2 + [None]


@pytest.mark.parametrize("hours", [0, -8])
def test_an_interval_that_is_no_length_is_refused(hours, joined, every):
    frame = joined(None, every(8, [1e-4])).with_columns(sell_interval_hours=pl.lit(hours))
    with pytest.raises(InputError, match="hours above 0, or null"):
        funding.intervals(frame)


def test_doubled_rows_and_two_settlements_in_one_minute_are_refused(joined, every):
    frame = joined(None, every(8, [1e-4, 1e-4]))
    with pytest.raises(InputError, match="one row per trajectory and ts"):
        funding.intervals(pl.concat([frame, frame]))
    near = pl.concat([frame, frame.with_columns(pl.col("ts") + 20, sell_rate=2e-4)])
    with pytest.raises(InputError, match="one row per trajectory and ts"):
        funding.summary(near, START, START + DAY)


HOUR, DAY = 3600, 86400
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


@pytest.mark.parametrize("told", [8.0, None])
def test_a_settlement_sent_again_counts_once_and_the_row_left_out_is_counted(told):
    plain, again, expected = [], [], {}
    for first, late_s in product((0, 4), (20, 90, 29 * 60, HOUR)):
        hours = [first + 8 * k for k in range(-1, 31)]
        name = pl.lit(f"{first} h, {late_s} s late").alias("trajectory")
        sent = sorted([*hours, hours[9] + late_s / HOUR])
        plain.append(rows_of(hours, told=told).with_columns(name))
        again.append(rows_of(sent, told=told).with_columns(name))
        expected[f"{first} h, {late_s} s late"] = [START + HOUR * at for at in hours]
    once = funding.summary(pl.concat(plain), *TEN_DAYS)
    summed = funding.summary(pl.concat(again), *TEN_DAYS)
    assert once["funding_bps"].to_list() == pytest.approx([30.0] * 8)
    assert set(summed["n_duplicates"]) == {1}
    assert_frame_equal(
        summed.with_columns(n_duplicates=pl.lit(0, pl.Int64)), once, check_exact=True
    )
    listed = funding.intervals(pl.concat(again))
    for name, ts in expected.items():
        rows = listed.filter(trajectory=name)
        assert rows["ts"].to_list() == ts, name
        assert rows.filter(n_duplicates=1)["ts"].to_list() == [ts[9]], name


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
    rows = rows_of(hours, 2e-4)
    cuts = range(0, len(hours) - 1440 // step_min, max(1, len(hours) // 50))
    begun = pl.concat(rows[cut:].with_columns(trajectory=pl.lit(cut)) for cut in cuts)
    found = dict(settlements(begun).rows.group_by("trajectory").agg("ts").iter_rows())
    assert found == {
        cut: [ts for ts in found[0] if ts >= START + round(HOUR * hours[cut])] for cut in cuts
    }


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
    found = settlements(pl.concat([frame, again]))
    left_out = found.duplicates.height
    assert again.height > 800
    assert left_out >= 0.999 * again.height
    assert found.rows.height == frame.height + again.height - left_out
