from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics import funding

from .conftest import only

HOUR, DAY = 3600, 86400
START = 1_700_006_400  # a midnight, UTC
Leg = Sequence[tuple[float, float, int | None]]  # hours after START, rate, declared interval


CHANGING = [(8, 1.3e-4)] * 2 + [(4, 1.38e-4)] * 8 + [(1, 5.267e-4)] * 20


def changing(*, told: bool) -> Leg:
    """8 h, then 4 h, then 1 h, as a venue shortens its interval while the rate runs up."""
    ends = np.cumsum([hours for hours, _ in CHANGING])
    before = [(-8.0, 9e-4, 8 if told else None), (0.0, 9e-4, 8 if told else None)]
    return before + [
        (float(at), rate, hours if told else None)
        for at, (hours, rate) in zip(ends, CHANGING, strict=True)
    ]


@pytest.mark.parametrize("told", [True, False])
def test_an_interval_that_changes_is_weighted_by_what_it_was_and_not_by_a_shortcut(told, joined):
    row = only(funding.summary(joined(None, changing(told=told)), START, START + 68 * HOUR))
    rates = np.array([rate for _, rate in CHANGING])
    hours = np.array([hours for hours, _ in CHANGING], dtype=float)
    shortcuts = [
        rates.mean() * 1095,
        (rates / hours).mean() * 8760,
        (rates / hours[-1]).mean() * 8760,
    ]
    assert [round(value, 3) for value in shortcuts] == [0.434, 3.166, 3.474]
    assert round(row["funding_apr_pct"] / 100, 3) == 1.533
    weighted = np.average(rates / hours, weights=hours) * 8760
    assert row["funding_apr_pct"] / 100 == pytest.approx(weighted, rel=1e-12)
    assert (row["n"], row["n_missed"], row["n_declared_differs"]) == (30, 0, 0)
    assert row["n_changed"] == 2


@pytest.mark.parametrize("told", [True, False])
def test_every_interval_of_a_changing_series_is_read_off_its_settlements(told, joined):
    found = funding.intervals(joined(None, changing(told=told)))
    read = found["interval_hours"].to_list()
    assert read[1:] == [8.0, *(float(hours) for hours, _ in CHANGING)]
    assert (read[0], found["interval_reason"][0]) == ((8.0, None) if told else (None, "too_few"))
    assert found["interval_flag"].null_count() == found.height == 32
    assert found.filter("changed")["interval_hours"].to_list() == [4.0, 1.0]


def test_a_settlement_at_the_start_is_not_received_and_one_at_the_end_is(joined, every):
    frame = joined(None, every(8, [5e-4, 1e-4, 2e-4, 7e-4]))
    whole = funding.carry(frame, START, START + 16 * HOUR)
    assert whole["ts"].to_list() == [START + 8 * HOUR, START + 16 * HOUR]
    assert whole["funding_bps"].to_list() == pytest.approx([1.0, 3.0], rel=1e-14)
    later = funding.carry(frame, START + 1, START + 16 * HOUR - 1)
    assert later["funding_bps"].to_list() == [1.0]


def test_the_position_receives_the_sell_rate_and_pays_the_buy_rate(joined, every):
    frame = joined(every(8, [1e-4, 1e-4]), every(8, [3e-4, -2e-4]))
    row = only(funding.summary(frame, START - 8 * HOUR, START + 8 * HOUR))
    assert row["buy_funding_bps"] == pytest.approx(-2.0)
    assert row["sell_funding_bps"] == pytest.approx(1.0)
    assert row["funding_bps"] == pytest.approx(-1.0)
    assert funding.carry(frame, START - 8 * HOUR, START + 8 * HOUR)[
        "payment_bps"
    ].to_list() == pytest.approx([2.0, -3.0])


def test_a_spot_leg_pays_nothing_and_has_no_settlements(joined, every):
    frame = joined(None, every(8, [1e-4, 2e-4, 3e-4]))
    row = only(funding.summary(frame, START - 8 * HOUR, START + 16 * HOUR))
    assert (row["buy_funding_bps"], row["n_buy"], row["buy_coverage"]) == (0.0, 0, 1.0)
    assert math.copysign(1, row["buy_funding_bps"]) == 1
    assert set(funding.intervals(frame)["leg"]) == {"sell"}
    assert set(funding.differential(frame)["buy_rate_per_hour"]) == {0.0}


def test_a_perpetual_that_settles_at_zero_is_no_spot_leg(joined, every):
    frame = joined(every(8, [0.0, 0.0]), every(8, [1e-4, 2e-4]))
    row = only(funding.summary(frame, START - 8 * HOUR, START + 8 * HOUR))
    assert (row["n_buy"], row["buy_funding_bps"]) == (2, 0.0)


def test_a_leg_of_which_nothing_is_known_leaves_the_carry_unknown(joined, every):
    other = [(at, 1e-4, 8) for at in (800, 808)]
    row = only(funding.summary(joined(every(8, [1e-4] * 4), other), START, START + DAY))
    assert (row["n_buy"], row["n_sell"], row["coverage"]) == (3, 0, 0.0)
    assert (row["funding_bps"], row["funding_reason"]) == (None, "missing_leg")
    assert (row["buy_funding_bps"], row["buy_coverage"]) == (None, 1.0)
    path = funding.carry(joined(every(8, [1e-4] * 4), other), START, START + DAY)
    assert path["funding_bps"].null_count() == path.height == 3
    assert set(path["funding_reason"]) == {"missing_leg"}


def test_a_leg_that_settles_only_after_the_window_paid_nothing_in_it(joined, every):
    frame = joined(None, every(24, [1e-4, 1e-4]))
    row = only(funding.summary(frame, START + 6 * HOUR, START + 12 * HOUR))
    assert (row["n"], row["settlements_reason"]) == (0, "empty")
    assert (row["funding_bps"], row["coverage"], row["funding_reason"]) == (0.0, 1.0, None)
    assert (row["funding_apr_pct"], row["funding_apr_reason"]) == (None, "empty")


def test_a_window_without_anything_is_empty(joined, every):
    row = only(funding.summary(joined(every(8, [1e-4]), every(8, [1e-4])), 0, DAY))
    assert (row["n"], row["funding_bps"], row["funding_reason"]) == (0, None, "empty")
    assert row["buy_coverage"] == row["sell_coverage"] == 0.0


def hours_paid_for(leg: Leg, intervals: list[float | None]) -> dict[int, tuple[float, float]]:
    """Each hour that a settlement paid for, counted back: its settlement and its part of the rate.

    No outer rule of the toolkit is used: an hour belongs to the first settlement at or after it.
    """
    paid: dict[int, tuple[float, float]] = {}
    before = -math.inf
    for (at, rate, _), hours in zip(leg, intervals, strict=True):
        if hours is not None:
            for hour in range(round(at - hours), round(at)):
                if hour >= before:
                    paid[hour] = (at, rate / hours)
        before = at
    return paid


def figures_by_hand(
    buy: dict[int, tuple[float, float]], sell: dict[int, tuple[float, float]], hours: range
) -> tuple[float, float]:
    """The part of the hours that both legs cover, and the yearly rate in them."""
    both = [hour for hour in hours if hour in buy and hour in sell]
    difference = math.fsum(sell[hour][1] - buy[hour][1] for hour in both)
    return len(both) / len(hours), 876_000 * difference / max(1, len(both))


@pytest.mark.slow
def test_carry_and_coverage_equal_a_count_by_hand(joined, read_off, some_leg):
    rng = np.random.default_rng(3)
    for _ in range(40):
        legs = {"buy": some_leg(rng), "sell": some_leg(rng)}
        first, last = (int(at) for at in sorted(rng.choice(170, 2, replace=False)))
        window = START + first * HOUR, START + last * HOUR
        row = only(funding.summary(joined(*legs.values()), *window, min_coverage=0))
        paid = {name: hours_paid_for(leg, read_off(leg)) for name, leg in legs.items()}
        for name, leg in legs.items():
            assert row[f"n_{name}"] == sum(first < at <= last for at, *_ in leg)
            covered = [hour for hour in range(first, last) if hour in paid[name]]
            assert row[f"{name}_coverage"] == pytest.approx(len(covered) / (last - first))
        coverage, apr = figures_by_hand(paid["buy"], paid["sell"], range(first, last))
        assert row["coverage"] == pytest.approx(coverage, abs=1e-12)
        assert (row["funding_bps"] is None) == (coverage == 0)
        if coverage == 0:
            continue
        if row["n"]:
            assert row["funding_apr_pct"] == pytest.approx(apr, rel=1e-10, abs=1e-10)
        expected = 0.0
        for name, other, sign in (("buy", "sell", -1), ("sell", "buy", 1)):
            for at, rate, _ in legs[name]:
                own = [hour for hour in range(first, last) if paid[name].get(hour, "-")[0] == at]
                both = [hour for hour in own if hour in paid[other]]
                if first < at <= last and own:
                    expected += sign * 1e4 * rate * len(both) / len(own)
        assert row["funding_bps"] == pytest.approx(expected, rel=1e-10, abs=1e-10)
        path = funding.carry(joined(*legs.values()), *window, min_coverage=0)
        assert path.height == row["n"]
        assert path["payment_bps"].sum() == pytest.approx(expected, abs=1e-9)


def test_only_time_that_both_legs_cover_counts(joined, every):
    buy = every(8, [1e-4] * 4)  # to 24 h
    sell = every(8, [3e-4] * 3 + [30e-4] * 6)  # to 64 h, dear once the other has ended
    row = only(funding.summary(joined(buy, sell), START, START + 64 * HOUR, min_coverage=0.3))
    assert (row["buy_coverage"], row["sell_coverage"]) == (0.375, 1.0)
    assert row["coverage"] == 0.375
    assert row["sell_funding_bps"] == pytest.approx(3 + 3 + 30)
    assert row["funding_bps"] == pytest.approx(3 + 3 + 30 - 3)
    assert row["funding_apr_pct"] == pytest.approx(876_000 * 33e-4 / 24)
    path = funding.carry(joined(buy, sell), START, START + 64 * HOUR, min_coverage=0.3)
    assert path["funding_bps"].to_list()[2:] == pytest.approx([33.0] * 6)


def test_a_settlement_that_the_other_leg_covers_in_part_counts_in_part(joined, every):
    hourly = [row for row in every(1, [1e-5] * 25) if row[0] not in {3, 4}]
    row = only(funding.summary(joined(hourly, every(8, [8e-4] * 4)), START, START + DAY))
    assert row["coverage"] == pytest.approx(22 / 24)
    assert row["sell_funding_bps"] == pytest.approx(8 * 6 / 8 + 8 + 8)
    assert row["funding_apr_pct"] == pytest.approx(876_000 * (1e-4 - 1e-5))


@pytest.mark.parametrize("function", [funding.summary, funding.carry])
def test_less_common_time_than_asked_leaves_the_figures_null(function, joined, every):
    frame = joined(every(8, [1e-4] * 10), every(8, [1e-4] * 9))
    for least, reason in ((0.89, "low_coverage"), (0.88, None)):
        rows = function(frame, START, START + 72 * HOUR, min_coverage=least)
        assert set(rows["funding_reason"]) == {reason if least > 8 / 9 else None}
    rows = function(frame, START, START + 72 * HOUR)
    assert set(rows["funding_reason"]) == {"low_coverage"}
    assert rows["funding_bps"].null_count() == rows.height
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="a part of the window, 0 to 1"):
            function(frame, START, START + DAY, min_coverage=wrong)


def test_a_window_that_cuts_an_interval_counts_the_rate_by_the_hour_and_the_cash_whole(
    joined, every
):
    frame = joined(every(1, [1e-5] * 30), every(8, [8e-4] * 4))
    row = only(funding.summary(frame, START + 5 * HOUR, START + 13 * HOUR))
    assert row["funding_bps"] == pytest.approx(8 - 0.8)
    assert row["funding_apr_pct"] == pytest.approx(876_000 * (1e-4 - 1e-5))


def test_missing_settlements_are_counted_inside_the_window_alone(joined, every):
    leg = [row for row in every(1, [1e-5] * 48) if not 10 <= row[0] < 20]
    frame = joined(None, leg)
    for start, end, missing in [(0, 47, 10), (12, 47, 7), (0, 14, 5), (12, 15, 3), (20, 47, 0)]:
        row = only(funding.summary(frame, START + start * HOUR, START + end * HOUR))
        assert row["n_missed"] == missing
        assert row["sell_coverage"] == pytest.approx(1 - missing / (end - start), rel=1e-12)


def test_every_null_of_the_summary_has_a_reason(joined, every):
    parts = [
        joined(every(8, [1e-4] * 9), every(1, [1e-4] * 70), "whole"),
        joined(every(8, [1e-4]), None, "spot"),
        joined([(900, 1e-4, 8)], every(8, [1e-4] * 9), "one leg"),
        joined([(900, 1e-4, 8)], [(900, 1e-4, 8)], "none"),
        joined([(8, math.nan, 8)], [(8, math.inf, 8)], "no number"),
    ]
    result = funding.summary(pl.concat(parts), START, START + 64 * HOUR)
    assert dict(result.select("trajectory", "funding_reason").rows()) == {
        "whole": None,
        "spot": "missing_leg",
        "one leg": "missing_leg",
        "none": "empty",
        "no number": "empty",
    }
    for row in result.rows(named=True):
        missing = False
        for name, value in row.items():
            if name.endswith("_reason"):
                assert (value is not None) == missing, (row["trajectory"], name)
                missing = False
            else:
                missing = missing or value is None


def test_a_window_or_a_column_that_is_wrong_is_refused(joined, every):
    frame = joined(None, every(8, [1e-4, 1e-4]))
    with pytest.raises(InputError, match="a start before its end"):
        funding.carry(frame, START, START)
    with pytest.raises(InputError, match="no sell_rate"):
        funding.intervals(frame.drop("sell_rate"))
    with pytest.raises(InputError, match="buy_interval_hours is String"):
        funding.differential(frame.with_columns(pl.col("buy_interval_hours").cast(pl.String)))
