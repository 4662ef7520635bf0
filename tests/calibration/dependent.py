"""Events that depend on each other, tails of no power law, and prices that bounce."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import polars as pl
from scipy import stats
from scipy.special import ndtr

from tests.unit.statistics.event_lives import lives, openings
from toolkit.statistics.events import (
    hazard_ratios,
    rate_changes,
    rates,
    rates_by_hour,
    survival,
    survival_curve,
)

from .form import Ends, Process, Rng, ends_of, fewer, frame_of
from .spreads import MONDAY, WEEK, bands_of, ends_of_tails, loudness, reverting

DAY, MEDIAN_LIFE_S = 86_400, 600.0


def triggered(rng: Rng, length_s: int, mean: float, share: float, later_s: float) -> np.ndarray:
    """Times of a Hawkes process: each event triggers so many others, so much later on average."""
    before_s = 20 * later_s / (1 - share)
    whole_s = length_s + before_s
    count = rng.poisson(mean / length_s * (1 - share) * whole_s)
    parents = rng.uniform(-before_s, length_s, count)
    found = [parents]
    while parents.size:
        parents = np.repeat(parents, rng.poisson(share, parents.size))
        parents = parents + rng.exponential(later_s, parents.size)
        found.append(parents)
    times = np.concatenate(found)
    return times[(times >= 0) & (times < length_s)].astype(int)


def of_runs(draws: list[np.ndarray], start: int, end: int) -> pl.DataFrame:
    run = np.repeat(np.arange(len(draws)), [each.size for each in draws])
    return openings(start + np.concatenate(draws), start, end, run=run)


def in_bursts(later_s: float, rng: Rng, runs: int) -> dict[str, Ends]:
    """100 openings a day on average for two weeks, of which half are triggered by others."""
    draws = [triggered(rng, 2 * WEEK, 1_400, 0.5, later_s) for _ in range(runs)]
    frame = of_runs(draws, 0, 2 * WEEK)
    day = of_runs([each[each < DAY] for each in draws], 0, DAY)
    of_day, of_weeks = rates(day, ["run"]).sort("run"), rate_changes(frame, ["run"]).sort("run")
    return ends_of(of_day, "events.rates rate_lower_per_day", 100.0) | ends_of(
        of_weeks, "events.rate_changes ratio_lower", 1.0
    )


def hours_in_bursts(rng: Rng, runs: int) -> dict[str, Ends]:
    """Eight weeks with 4 openings in an hour on average, of which half are triggered by others."""
    length_s = 8 * WEEK
    draws = [triggered(rng, length_s, 4 * 8 * 168, 0.5, 300) for _ in range(runs)]
    found = rates_by_hour(of_runs(draws, MONDAY, MONDAY + length_s), ["run"])
    found = found.sort("run", "weekday", "hour")
    name = "events.rates_by_hour events_per_h_{}_lower".format
    return ends_of(found, name("mean"), 4.0, runs) | ends_of(found, name("deviation"), 0.0, runs)


def one_burst(rng: Rng, runs: int) -> dict[str, Ends]:
    """A week of which all openings are in one burst or in two."""
    draws = []
    for _ in range(runs):
        first = rng.uniform(0, WEEK - 3_600, rng.integers(1, 3))
        draws.append((first[:, None] + rng.uniform(0, 3_600, (first.size, 60))).ravel().astype(int))
    found = rates(of_runs(draws, 0, WEEK), ["run"]).sort("run")
    return ends_of(found, "events.rates rate_lower_per_day", 90 / 7)


def alike(rng: Rng, symbols: int, size: int) -> pl.DataFrame:
    """Lognormal lives, of which those of a symbol share a level. Nothing depends on the size."""
    of = np.repeat(np.arange(symbols), rng.poisson(size, symbols) + 1)
    level = 0.6 * rng.standard_normal(symbols)[of]
    ends = np.ceil(MEDIAN_LIFE_S * np.exp(level + rng.standard_normal(of.size)))
    seen = np.ceil(rng.uniform(0, 8_000, of.size))
    return lives(
        np.minimum(ends, seen),
        ends <= seen,
        opened=rng.integers(0, 30 * DAY, of.size),
        symbol=[f"S{each:02}" for each in of],
        legs=["X.spot"] * of.size,
        size=rng.standard_normal(of.size),
        reach=rng.standard_normal(symbols)[of],
    )


def lasting_alike(symbols: int, size: int, rng: Rng, runs: int) -> dict[str, Ends]:
    """Median lives, the share that lives on at the median, and ratios of what does nothing."""
    parts, ratios = [], []
    for run in range(runs):
        frame = alike(rng, symbols, size)
        parts.append(frame.with_columns(run=pl.lit(run)))
        ratios.append(hazard_ratios(frame, ["size", "reach"]))
    frame = pl.concat(parts)
    found = survival(frame, ["run"]).sort("run")
    curve = survival_curve(frame, ["run"]).filter(pl.col("life_s") <= MEDIAN_LIFE_S)
    half = curve.group_by("run", maintain_order=True).last().sort("run")
    return (
        ends_of(found, "events.survival median_life_lower_s", MEDIAN_LIFE_S)
        | ends_of(half, "events.survival_curve survival_lower", 0.5)
        | ends_of(pl.concat(ratios), "events.hazard_ratios hazard_ratio_lower", 1.0, runs)
    )


def few_alike(rng: Rng, runs: int) -> dict[str, Ends]:
    """The same of 4 symbols, by the median life alone."""
    frames = [alike(rng, 4, 150).with_columns(run=pl.lit(run)) for run in range(runs)]
    found = survival(pl.concat(frames), ["run"]).sort("run")
    return ends_of(found, "events.survival median_life_lower_s", MEDIAN_LIFE_S)


def bent_tails(kind: str, half_life_h: int, rng: Rng, runs: int) -> dict[str, Ends]:
    """Sizes of Student's t with 3 degrees of freedom, or lognormal ones, of 60 days."""
    shape = runs, 60 * 96
    ranks = rng.standard_normal(shape)
    if half_life_h:
        phi = 0.5 ** (1 / (4 * half_life_h))
        ranks = reverting(phi, ranks * math.sqrt(1 - phi**2), rng)
    sizes = np.exp(ranks) if kind == "lognormal" else stats.t.ppf(ndtr(ranks), 3)
    return ends_of_tails(sizes, math.inf if kind == "lognormal" else 3.0)


def bouncing(bounce: float, rng: Rng, runs: int) -> dict[str, Ends]:
    """1,500 minutes of two walks, of which each is seen at its bid or its ask, as it happens."""
    shape = runs, 1500
    common = loudness(rng, shape, 120)
    legs = [
        np.cumsum(1e-4 * common * rng.standard_normal(shape), axis=1)
        + bounce * rng.choice([-1, 1], shape)
        for _ in range(2)
    ]
    buy, sell = map(np.exp, legs)
    return bands_of(frame_of(60 * np.arange(shape[1]), buy_price=buy, sell_price=sell))


PROCESSES = [
    Process(
        "openings of which others trigger half, 5 min later", partial(in_bursts, 300), given=0.95
    ),
    Process(
        "openings of which others trigger half, 30 s later", partial(in_bursts, 30), given=0.95
    ),
    fewer("8 weeks of openings of which others trigger half", hours_in_bursts, given=0.95),
    Process("a week of openings in one burst or two", one_burst, fails=True),
    fewer("12 symbols with lives that are alike", partial(lasting_alike, 12, 20), given=0.9),
    fewer("4 symbols with lives that are alike", few_alike, fails=True),
    fewer("Student's t of 3, without memory", partial(bent_tails, "student", 0), fails=True),
    fewer("Student's t of 3, half-life 4 h", partial(bent_tails, "student", 4), fails=True),
    fewer("lognormal sizes, half-life 4 h", partial(bent_tails, "lognormal", 4), fails=True),
    fewer("two walks that bounce by a step of theirs", partial(bouncing, 1e-4)),
    fewer("two walks that bounce by three steps of theirs", partial(bouncing, 3e-4)),
]
