"""The placebo test: uniform p-values where nothing follows events, small ones where it does."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest
from scipy import stats

from toolkit.errors import InputError
from toolkit.statistics.events.study import placebo

SAMPLES = int(os.environ.get("RAIL_PLACEBOS", "300"))
"""How many samples have a p-value of their own; `make soak` draws 3,000."""


def walk(rng, jumps=(), steps=3_000):
    moves = rng.normal(0, 1e-3, steps)
    moves[[at // 60 + 3 for at in jumps]] += 0.003
    return pl.DataFrame(
        {"trajectory": "a", "ts": 60 * np.arange(steps), "price": np.exp(np.cumsum(moves))}
    )


def times(rng, count=60):
    return np.sort(rng.choice(np.arange(100, 2_900), count, replace=False)) * 60


def events_at(ts):
    return pl.DataFrame({"trajectory": "a", "ts": ts})


@pytest.mark.parametrize(
    ("from_detection", "mean_of"),
    [(False, "return_mean_log_bps"), (True, "return_from_detection_mean_log_bps")],
)
def test_the_means_are_those_of_events_moved_around_the_end_one_run_at_a_time(
    from_detection, mean_of
):
    rng = np.random.default_rng(21)
    ts, bars = 240 * np.sort(rng.choice(np.arange(30, 700), 60, replace=False)), walk(rng)
    options = {"horizons_s": [60, 120], "runs": 50, "from_detection": from_detection}
    found = placebo(events_at(ts), bars, **options)
    logs = np.log(bars["price"].to_numpy())

    def mean(at, ahead):
        bar = at // 60 - from_detection  # the first bar that ends then, or the last that has ended
        there = (bar >= 0) & (bar < 3_000)
        then = np.minimum(bar + ahead, 2_999)  # the last close is used for three minutes
        return (1e4 * (logs[then] - logs[bar]))[there].mean()

    first, length = 60, 3_000 * 60
    shifts = np.random.default_rng(20_261_123).integers(0, length, 50)
    drawn = [mean((ts - first + shift) % length + first, 1) for shift in shifts]
    row = found.filter(horizon_s=60).row(0, named=True)
    assert row["n_overlapping"] == 0
    assert row[mean_of] == pytest.approx(mean(ts, 1), abs=1e-9)
    assert row["placebo_mean"] == pytest.approx(np.mean(drawn), abs=1e-9)
    further = (np.abs(drawn) >= abs(mean(ts, 1))).sum()
    assert row["p_value"] == (1 + further) / 51


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"less": "past"},
        {"column": "spread_bps"},
        {"max_stale_s": 100},
        {"from_detection": True},
        {"from_detection": True, "column": "spread_bps"},
    ],
)
def test_a_trajectory_of_another_clock_changes_nothing_of_the_others(options):
    """Changes are computed once for each step of a common clock, and without one for each event."""
    rng = np.random.default_rng(23)
    bars = walk(rng).filter(rng.random(3_000) < 0.9).with_columns(spread_bps=pl.col("price") * 9)
    other = bars[100:130].with_columns(pl.col("ts") + 1, trajectory=pl.lit("b"))
    found, beside = (
        placebo(events_at(times(rng) + 17), values, horizons_s=[60, 300], runs=120, **options)
        for rng, values in (
            (np.random.default_rng(24), bars),
            (np.random.default_rng(24), pl.concat([bars, other])),
        )
    )
    assert found["runs"].to_list() == [120, 120]
    assert found.equals(beside)


def test_what_follows_is_found_and_the_move_by_which_events_were_detected_is_not_that():
    """A jump three minutes later, or in the bar of the detection, after which the price walks."""
    rng = np.random.default_rng(26)
    ts = times(rng)
    bars = walk(rng, jumps=ts - 180)
    after, since = (
        placebo(events_at(ts + 20), bars, horizons_s=[300], runs=199, from_detection=way)
        for way in (False, True)
    )
    assert after["p_value"].item() > 0.05
    assert since["p_value"].item() < 0.02
    follows = placebo(events_at(ts), walk(rng, jumps=ts), horizons_s=[300], runs=199)
    assert follows["p_value"].item() < 0.02


def test_few_events_have_no_p_value_and_none_no_mean():
    rng = np.random.default_rng(23)
    bars = walk(rng)
    few = placebo(events_at([60_000, 90_000]), bars, horizons_s=[300], runs=19)
    assert few.select("n", "p_value", "p_value_reason").row(0) == (2, None, "too_few")
    none = placebo(events_at([900_000]), bars, horizons_s=[300], runs=19)
    assert none.select("n", "path_reason", "p_value_reason").row(0) == (0, "empty", "empty")


@pytest.mark.parametrize(
    "options", [{"horizons_s": []}, {"horizons_s": [0]}, {"runs": 5}, {"less": "controls"}]
)
def test_options_that_cannot_be_are_refused(options):
    rng = np.random.default_rng(24)
    with pytest.raises(InputError) as caught:
        placebo(events_at([6_000]), walk(rng), **options)
    assert caught.value.parameter == next(iter(options))


@pytest.mark.slow
def test_p_values_are_uniform_where_nothing_follows():
    rng = np.random.default_rng(25)
    found = []
    for _ in range(SAMPLES):
        shown = placebo(events_at(times(rng, 40)), walk(rng), horizons_s=[300], runs=99)
        found.append(shown["p_value"].item())
    # a hundred values are possible: the test is of continuous ones
    spread = np.array(found) - rng.random(SAMPLES) / 100
    assert stats.kstest(spread, "uniform").pvalue > 0.01
