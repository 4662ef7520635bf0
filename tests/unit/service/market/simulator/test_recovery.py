"""Our own statistics find in the data what was put into them, within their sampling error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from toolkit.market import Leg, Trajectory
from toolkit.service.market.simulator import Simulated
from toolkit.service.market.simulator.catalogue import SLOW_HALF_LIFE_S
from toolkit.service.market.simulator.processes import DAY_S, MINUTE_S, minute_ends
from toolkit.statistics import spread

from ...truth import Truth

pytestmark = pytest.mark.slow

SEEDS = range(20)
DAYS = 10
Undisturbed = Callable[[int, str, int], pl.DataFrame]

QUIET_PAIRS = [
    "BTC_USDT:AURORA.spot:CORONA.spot",
    "BTC_USDT:AURORA.spot:BOREAS.spot",
    "ETH_USDT:CORONA.futures:AURORA.spot",
    "LTC_USDT:AURORA.spot:CORONA.futures",
]


def law(key: str, seed: int = 0) -> tuple[float, float, float, float]:
    """Level and standard deviation (bps), noise share and half-life (s) of a spread."""
    asked = Trajectory.parse(key)
    truth = Truth(seed).spread(str(asked.symbol), asked.buy, asked.sell)
    assert truth.half_life_s is not None
    return truth.level_bps, truth.sd_bps, truth.noise_share, truth.half_life_s


@pytest.mark.parametrize("key", QUIET_PAIRS)
def test_half_life_level_and_deviation_are_recovered_in_20_seeds(undisturbed, first_day, key):
    level, sd, noise, half_life_s = law(key)
    assert noise <= 0.1
    frame = pl.concat([undisturbed(seed, key, DAYS) for seed in SEEDS])
    start, end = first_day * DAY_S, (first_day + DAYS) * DAY_S
    found = spread.half_life(frame, start, end, step_s=60)
    phi = 0.5 ** (60 / half_life_s)
    found_phi = found["half_life_phi"]
    assert abs(found_phi.mean() - phi) < 4 * found_phi.std() / len(SEEDS) ** 0.5
    hit = (found["half_life_lower_s"] < half_life_s) & (
        found["half_life_upper_s"].fill_null(math.inf) > half_life_s
    )
    assert hit.sum() >= 16  # 19 of 20 expected
    moments = spread.summary(frame, start, end, step_s=60)
    scatter = sd * (2 * half_life_s / math.log(2) / (DAYS * DAY_S)) ** 0.5
    means = moments["spread_mean_log_bps"]
    assert abs(means.mean() - level) < 4 * scatter / len(SEEDS) ** 0.5
    deviations = moments["spread_std_log_bps"]
    assert abs(deviations.mean() / sd - 1) < 4 * deviations.std() / sd / len(SEEDS) ** 0.5 + 0.02


@pytest.mark.parametrize(
    "key", ["ETH_USDT:AURORA.spot:DEX-SOLARIS.dex", "SOL_USDT:AURORA.spot:DEX-SOLARIS.dex"]
)
def test_a_noise_aware_estimate_finds_half_life_and_noise_share_in_20_seeds(
    undisturbed: Undisturbed, first_day: int, key: str
) -> None:
    level, sd, noise_share, half_life_s = law(key)
    phi, lag = 0.5 ** (60 / half_life_s), 10
    frames = [undisturbed(seed, key, DAYS) for seed in SEEDS]
    covariances = []
    for frame in frames:
        ts, x = frame["ts"].to_numpy(), (frame["spread_log_bps"].to_numpy() - level) / sd
        row = []
        for by in (0, 1, lag):
            near = ts[by:] - ts[: len(ts) - by] == 60 * by
            row.append((x[by:][near] * x[: len(x) - by][near]).mean())
        covariances.append(row)
    moments = np.array(covariances)
    expected = np.array([1.0, (1 - noise_share) * phi, (1 - noise_share) * phi**lag])
    errors = moments.std(axis=0, ddof=1) / len(SEEDS) ** 0.5
    assert (np.abs(moments.mean(axis=0) - expected) < 4 * errors).all()
    _, one, ten = moments.mean(axis=0)
    robust_phi = (ten / one) ** (1 / (lag - 1))
    assert abs(-60 * math.log(2) / math.log(robust_phi) / half_life_s - 1) < 0.15
    window = (first_day * DAY_S, (first_day + DAYS) * DAY_S)
    found = spread.half_life(pl.concat(frames), *window, step_s=60)
    assert 0.8 < found["half_life_s"].median() / half_life_s < 1.2
    assert found["half_life_ar1_s"].max() < 0.6 * half_life_s  # the trap: noise read as speed


@pytest.mark.parametrize(
    "key", ["BTC_USDT:AURORA.spot:AURORA.futures", "ETH_USDT:AURORA.spot:GALENE.futures"]
)
def test_two_speeds_and_noise_are_recovered_in_20_seeds(undisturbed: Undisturbed, key: str) -> None:
    asked, lags = Trajectory.parse(key), (0, 1, 10, 240, 1_440)
    truth = Truth(0).spread(str(asked.symbol), asked.buy, asked.sell)
    deviation = Truth(0).listing(str(asked.symbol), asked.sell).deviation
    assert deviation is not None
    fast = 1.0 - truth.noise_share - truth.slow_share
    expected = [
        (lag == 0) * truth.noise_share
        + fast * 0.5 ** (60 * lag / deviation.half_life_s)
        + truth.slow_share * 0.5 ** (60 * lag / SLOW_HALF_LIFE_S)
        for lag in lags
    ]
    moments = np.empty((len(SEEDS), len(lags)))
    for seed in SEEDS:
        frame = undisturbed(seed, key, DAYS)
        x = (frame["spread_log_bps"].to_numpy() - truth.level_bps) / truth.sd_bps
        ts = frame["ts"].to_numpy()
        for place, lag in enumerate(lags):
            _, later, earlier = np.intersect1d(ts, ts + 60 * lag, return_indices=True)
            moments[seed, place] = (x[later] * x[earlier]).mean()
    errors = moments.std(axis=0, ddof=1) / len(SEEDS) ** 0.5
    assert (np.abs(moments.mean(axis=0) - expected) < 4 * errors).all()
    assert truth.slow_share > 0.3


def minutes_of(
    simulator: Simulated, symbol: str, legs: Sequence[Leg], start: int, end: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The minutes' ends that lie in the window, and the prices of two legs there."""
    days = range(start // DAY_S, end // DAY_S + 1)
    ts = np.concatenate([minute_ends(day) for day in days])
    buy, sell = (
        np.concatenate([simulator.day(symbol, leg, day).price for day in days]) for leg in legs
    )
    inside = (ts >= start) & (ts < end)
    return ts[inside], buy[inside], sell[inside]


def test_planted_episodes_are_seen_when_they_happen_in_20_seeds(first_day: int) -> None:
    symbol, window = "LTC_USDT", (first_day * DAY_S, (first_day + DAYS) * DAY_S)
    seen = 0
    for seed in SEEDS:
        simulator, truth = Simulated(seed), Truth(seed)
        legs = [Leg.parse("AURORA.spot"), Leg.parse("CORONA.futures")][:: 1 if seed % 2 else -1]
        level, sd = (truth.spread(symbol, *legs).level_bps, truth.spread(symbol, *legs).sd_bps)
        alone = truth.leg_shocks(symbol, *legs, *window)
        for pulse in truth.episodes(symbol, *legs, *window):
            start, end = pulse.start - MINUTE_S, pulse.end + MINUTE_S
            shaken = any(shock.start < end and shock.end > start for shock in alone)
            if abs(pulse.peak_bps) < 100 or pulse.end - pulse.start > 1_800 or shaken:
                continue
            ends, buy, sell = minutes_of(simulator, symbol, legs, start, end)
            distance = 1e4 * np.log(sell / buy) - level
            assert (np.abs(distance - pulse.height_bps(ends)) < 5 * sd).all()
            seen += 1
    assert seen > 50


def test_episodes_last_from_tens_of_seconds_to_hours_and_never_overlap(first_day: int) -> None:
    lengths, aurora = [], Leg.parse("AURORA.spot")
    for seed in SEEDS:
        for leg in (Leg.parse("CORONA.futures"), Leg.parse("BOREAS.spot")):
            window = (first_day * DAY_S, (first_day + 30) * DAY_S)
            episodes = Truth(seed).episodes("LTC_USDT", aurora, leg, *window)
            gaps = [b.start - a.end for a, b in pairwise(episodes)]
            assert min(gaps) >= 0
            lengths += [pulse.end - pulse.start for pulse in episodes]
    short = np.array([length for length in lengths if length < 100])
    assert 20 < np.median(short) < 38  # 28.75 between real exchanges
    assert 0.45 < len(short) / len(lengths) < 0.75
    assert max(lengths) > 3 * 3_600


def test_a_shock_of_one_leg_opens_a_spread_and_a_common_one_does_not(first_day: int) -> None:
    symbol, aurora, corona = "LTC_USDT", Leg.parse("AURORA.spot"), Leg.parse("CORONA.futures")
    level, sd, _, _ = law("LTC_USDT:AURORA.spot:CORONA.futures")
    window = (first_day * DAY_S, (first_day + 20) * DAY_S)
    seen = {"all": 0, "asset": 0, "leg": 0}
    for seed in SEEDS:
        simulator, truth = Simulated(seed), Truth(seed)
        episodes = truth.episodes(symbol, aurora, corona, *window)
        alone = truth.leg_shocks(symbol, aurora, corona, *window)
        for shock in truth.shocks(symbol, corona, *window):
            at, start = shock.pulse.start + shock.pulse.rise_s, shock.pulse.start
            stretch = (start - MINUTE_S, at + MINUTE_S)
            others = [*episodes, *(each for each in alone if each != shock.pulse)]
            if start < window[0] or any(e.start < stretch[1] and e.end > start for e in others):
                continue
            ends, buy, sell = minutes_of(simulator, symbol, (aurora, corona), *stretch)
            height = shock.pulse.height_bps(ends) if shock.leg else 0.0
            assert (np.abs(1e4 * np.log(sell / buy) - level - height) < 5 * sd).all()
            assert np.sign(sell[-1] - sell[0]) == np.sign(shock.pulse.peak_bps)
            seen["leg" if shock.leg else "asset" if shock.asset else "all"] += 1
    assert min(seen.values()) > 20


def test_truth_claims_no_half_life_where_a_spread_reverts_at_more_speeds_than_one() -> None:
    truth = Truth(1)
    slow, fast = Leg.parse("GALENE.futures"), Leg.parse("CORONA.spot")
    assert truth.spread("BTC_USDT", slow, fast).half_life_s is None
    both, reference = Leg.parse("AURORA.futures"), Leg.parse("AURORA.spot")
    assert truth.spread("BTC_USDT", reference, both).half_life_s is None
    assert truth.spread("BTC_USDT", reference, Leg.parse("CORONA.futures")).half_life_s == 1_800


def test_half_lives_reach_from_minutes_to_hours() -> None:
    aurora, truth, simulator = Leg.parse("AURORA.spot"), Truth(1), Simulated(1)
    half_lives = {
        truth.spread(symbol, aurora, leg).half_life_s
        for symbol, legs in simulator.listing.items()
        for leg in legs
        if leg != aurora
    } - {None}
    assert min(half_lives) == 300
    assert max(half_lives) == 4_500
    assert len(half_lives) > 8
