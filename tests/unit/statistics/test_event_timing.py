"""Bursts and hours of openings, against loops and processes whose parameters are known."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import polars as pl
import pytest
from scipy import stats

from toolkit.errors import InputError
from toolkit.statistics.events import clustering, rates_by_hour
from toolkit.statistics.events.timing import drawn_squares, pairs_chance, triggering
from toolkit.statistics.spread import hour_of_week

from .event_lives import openings

HOUR, WEEK = 3_600, 604_800


def test_the_fano_factor_is_that_of_the_counts_in_whole_buckets():
    times = np.random.default_rng(1).integers(0, 40_000, 300)
    held = pl.DataFrame(
        {"family": ["spread"] * 2, "start_ts": [100, 20_000], "end_ts": [15_000, 40_000]}
    )
    row = clustering(openings(times, 0, 40_000), held=held).row(0, named=True)
    starts = [*range(300, 15_000 - 300 + 1, 300), *range(20_100, 40_000 - 300 + 1, 300)]
    counts = np.array([((times >= at) & (times < at + 300)).sum() for at in starts])
    assert (row["n_buckets"], row["n"]) == (len(starts), counts.sum())
    assert row["fano"] == pytest.approx(counts.var(ddof=1) / counts.mean(), rel=1e-12)
    assert 0.002 <= row["p_value"] <= 1


def test_draws_keep_the_hour_of_the_week_and_are_the_same_each_time():
    """All events of an hour in one bucket of each of 4 weeks: apart they are rare together."""
    times = [WEEK * week + 7 * HOUR + k for week in range(4) for k in range(8)]
    lives = openings(times, 0, 4 * WEEK)
    row = clustering(lives).row(0, named=True)
    buckets = 4 * WEEK // 300
    # 32 events in the 48 buckets of that hour: the mean sum of squares is 32 + 32 * 31 / 48
    apart = (32 + 32 * 31 / 48 - 32**2 / buckets) / (buckets - 1) / (32 / buckets)
    assert row["fano_apart"] == pytest.approx(apart, rel=0.02)
    assert (row["p_value"], row["clustering_reason"]) == (1 / 500, None)
    assert clustering(lives.reverse()).equals(clustering(lives))
    both = pl.concat([lives, lives.with_columns(family=pl.lit("splash"))])
    assert clustering(both).filter(family="spread").equals(clustering(lives))


def test_too_few_events_and_hours_of_one_bucket_have_a_reason():
    few = clustering(openings(range(19), 0, HOUR)).row(0, named=True)
    assert (few["fano"], few["clustering_reason"]) == (None, "too_few")
    single = clustering(openings(range(30), 0, HOUR), bucket_s=HOUR).row(0, named=True)
    assert single["clustering_reason"] == "degenerate"
    held = pl.DataFrame({"family": ["spread"], "start_ts": [-9], "end_ts": [0]})
    none = clustering(openings(range(30), 0, HOUR), held=held).row(0, named=True)
    assert (none["n_buckets"], none["clustering_reason"]) == (0, "empty")
    with pytest.raises(InputError, match="divide an hour"):
        clustering(openings([1], 0, HOUR), bucket_s=7 * 60)
    with pytest.raises(InputError, match="draws"):
        clustering(openings([1], 0, HOUR), draws=10)


def self_exciting(rng: np.random.Generator, length_s: int, per_h: float, part: float) -> np.ndarray:
    """Times of a Hawkes process: each event triggers so many others on average, 60 s later."""
    parents = rng.uniform(0, length_s, rng.poisson(per_h * (1 - part) * length_s / HOUR))
    found = [parents]
    while len(parents):
        parents = np.repeat(parents, rng.poisson(part, len(parents)))
        parents = parents + rng.exponential(60, len(parents))
        found.append(parents)
    times = np.concatenate(found)
    return times[times < length_s].astype(int)


@pytest.mark.parametrize(("part", "weeks"), [(0.0, 2), (0.5, 1), (0.5, 4), (0.8, 4)])
def test_the_share_of_triggered_events_and_their_bursts_are_found_beside_a_season(part, weeks):
    rng = np.random.default_rng(3)
    times = self_exciting(rng, weeks * WEEK, 30, part)
    busy = 1 + np.sin(times / 86_400 * 2 * np.pi) / 2
    if not part:  # of others thinning would cut bursts as well
        times = times[rng.random(times.size) < busy / 1.5]
    held = pl.DataFrame(
        {"family": ["spread"] * 2, "start_ts": [0, 130_000], "end_ts": [129_960, weeks * WEEK]}
    )
    row = clustering(openings(times, 0, weeks * WEEK), held=held).row(0, named=True)
    assert row["triggered_share"] == pytest.approx(part, abs=0.05)
    if part:
        assert row["burst_s"] == pytest.approx(60 / (1 - part), rel=0.3)
    else:
        assert (row["burst_s"], row["triggered_reason"]) == (None, "degenerate")


def test_the_fano_factor_of_each_width_is_the_one_the_process_has_by_its_formula():
    """A long log, in which the share that each width alone would show is far below the true one."""
    times = self_exciting(np.random.default_rng(5), 26 * WEEK, 20, 0.5)
    share, burst_s = triggering(times, np.arange(26 * WEEK // 60))
    counts = np.bincount(times // 300)
    fano = counts.var(ddof=1) / counts.mean()
    scaled = 300 / burst_s
    rise = 1 + np.expm1(-scaled) / scaled
    assert fano == pytest.approx(1 + (1 / (1 - share) ** 2 - 1) * rise, rel=0.03)
    assert 1 - fano**-0.5 < share - 0.04


def test_less_than_three_days_and_bursts_of_many_hours_have_no_triggered_share():
    rng = np.random.default_rng(1)
    short = clustering(openings(self_exciting(rng, 2 * 86_400, 30, 0.5), 0, 2 * 86_400))
    assert short.select("triggered_share", "triggered_reason").row(0) == (None, "too_short")
    starts = rng.integers(0, 4 * WEEK - 86_400, 60)
    times = np.sort((starts[:, None] + rng.integers(0, 86_400, (60, 30))).ravel())
    long = clustering(openings(times, 0, 4 * WEEK)).row(0, named=True)
    assert (long["triggered_share"], long["triggered_reason"]) == (None, "too_short")


@pytest.mark.slow
def test_p_values_of_events_that_open_apart_are_uniform_with_a_season():
    """1,000 logs of four days, in which every second hour is three times as busy."""
    rng = np.random.default_rng(20261123)
    hours = np.tile([5.0, 15.0], 48)
    parts = []
    for run in range(1_000):
        counts = rng.poisson(hours)
        times = np.repeat(np.arange(96) * HOUR, counts) + rng.integers(0, HOUR, counts.sum())
        parts.append(openings(times, 0, 96 * HOUR, run=[run] * len(times)))
    found = clustering(pl.concat(parts), ["run"], draws=199)["p_value"]
    sys.stdout.write(f"\nmean {found.mean():.3f}, below 0.05: {(found <= 0.05).mean():.3f}\n")
    assert (found <= 0.05).mean() < 0.065
    assert found.mean() == pytest.approx(0.5, abs=0.06)
    assert stats.kstest(found, "uniform").statistic < 0.08


def test_the_hours_of_the_week_are_those_of_the_counts_with_quiet_hours_as_zero():
    rng = np.random.default_rng(5)
    times = rng.integers(0, 6 * WEEK, 9_000)
    names = ["A_B" if k % 2 else "C_D" for k in range(9_000)]
    lives = openings(times, 0, 6 * WEEK, symbol=names)
    found = rates_by_hour(lives, ["symbol"])
    assert found.height == 2 * 168
    counts = np.bincount(times[np.array(names) == "A_B"] // HOUR, minlength=6 * 168).astype(float)
    frame = pl.DataFrame(
        {"trajectory": "a", "ts": np.arange(6 * 168) * HOUR, "events_per_h": counts}
    )
    expected = hour_of_week(frame, 0, 6 * WEEK, column="events_per_h", step_s=HOUR)
    own = found.filter(symbol="A_B")
    asked = ("method", "params_hash")
    same = [name for name in expected.columns if name in own.columns and name not in asked]
    assert own.select(same).equals(expected.select(same))
    assert (own["n"] == 6 * 168).all()
    assert own["events_per_h_mean"].mean() == pytest.approx(counts.mean())


def test_hours_of_few_events_differ_by_chance_no_more_often_than_one_in_twenty():
    rng = np.random.default_rng(8)
    weeks, runs = 8, 20
    for each_hour in (0.1, 0.5):
        times = rng.integers(0, weeks * WEEK, round(runs * each_hour * weeks * 168))
        lives = openings(times, 0, weeks * WEEK, run=rng.integers(0, runs, times.size))
        found = rates_by_hour(lives, ["run"])
        bounds = found.drop_nulls("events_per_h_mean_lower")
        known = pl.lit(each_hour).is_between("events_per_h_mean_lower", "events_per_h_mean_upper")
        assert bounds.select(known).to_series().mean() > 0.97
        assert found["differs"].mean() < 0.05


def test_an_hour_that_is_partly_held_is_left_out_and_not_taken_for_quiet():
    held = pl.DataFrame(
        {"family": ["spread"] * 2, "start_ts": [0, 2 * HOUR + 600], "end_ts": [HOUR, 5 * HOUR]}
    )
    found = rates_by_hour(openings([10, 20, 9_000, 10_900], 0, 6 * HOUR), held=held)
    known = found.filter(pl.col("weeks") > 0).select("hour", "events_per_h_mean")
    assert known.rows() == [(0, 2.0), (3, 1.0), (4, 0.0)]
    none = rates_by_hour(openings([10], 0, HOUR), held=held.with_columns(family=pl.lit("splash")))
    assert none.height == 168
    assert set(none["mean_reason"]) == {"empty"}
    assert rates_by_hour(openings([], 0, HOUR)).is_empty()


@pytest.mark.parametrize(("count", "places"), [(2, 2), (5, 3), (7, 3), (4, 8)])
def test_the_chances_are_those_of_all_ways_to_place_the_events(count, places):
    ways = np.array(list(itertools.product(range(places), repeat=count)))
    held = np.stack([(ways == each).sum(axis=1) for each in range(places)])
    pairs = (held * (held - 1) // 2).sum(axis=0)
    chance = np.bincount(pairs, minlength=count * (count - 1) // 2 + 1).cumsum() / places**count
    found = pairs_chance(0, places)[count]
    np.testing.assert_allclose(found[: chance.size], chance, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("count", "places"), [(2, 5_000), (16, 2), (31, 4), (96, 48), (111, 14), (256, 32), (255, 900)]
)
def test_the_pairs_have_the_moments_of_events_that_are_placed_apart(count, places):
    """Two pairs do not depend on each other, even where they have an event in common."""
    chance = np.diff(pairs_chance(count // 16, places)[count % 16], prepend=0)
    pairs = np.arange(chance.size)
    mean = count * (count - 1) / 2 / places
    assert chance.sum() == pytest.approx(1, abs=1e-11)
    assert (chance * pairs).sum() == pytest.approx(mean, rel=1e-9, abs=1e-7)
    variance = (chance * (pairs - mean) ** 2).sum()
    assert variance == pytest.approx(mean * (1 - 1 / places), rel=1e-9, abs=1e-7)


def test_sums_of_squares_are_those_of_events_that_are_placed_one_by_one():
    events, places = np.array([0, 1, 40, 40, 90, 300, 50]), np.array([9, 9, 48, 48, 24, 48, 1])
    found = drawn_squares(events, places, 20_000)
    assert (found >= events.sum()).all()
    assert found.mean() == pytest.approx((events + events * (events - 1) / places).sum(), rel=1e-3)
    pairs = events * (events - 1) / 2 / places
    assert found.var() == pytest.approx((4 * pairs * (1 - 1 / places)).sum(), rel=0.05)
    assert (found == drawn_squares(events, places, 20_000)).all()
