from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics import funding

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
    undeclared = 0
    for _ in range(60):
        leg = some_leg(rng)
        found = funding.intervals(joined(None, leg))
        assert found["interval_hours"].to_list() == read_off(leg)
        undeclared += found["declared_hours"].is_null().any()
    assert 10 < undeclared < 50


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
