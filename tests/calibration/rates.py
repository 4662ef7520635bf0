"""Funding whose means and medians are known, and the intervals of its calendar and holdings."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import polars as pl

from toolkit.statistics import funding

from .form import FULL_RUNS, Ends, Process, Rng, ends_of, frame_of
from .spreads import MONDAY, WEEK, bursts, long_memory, reverting

HOUR, DAY = 3600, 86_400
MEAN_BPS = 2.2


def leg(ts: np.ndarray, rates: np.ndarray, interval_h: int) -> pl.DataFrame:
    """A leg against spot, one run a trajectory."""
    frame = frame_of(ts, buy_rate=0.0, sell_rate=rates, sell_interval_hours=interval_h)
    return frame.with_columns(buy_interval_hours=None)


def calendar(rng: Rng, runs: int) -> dict[str, Ends]:
    """Eight weeks of hourly rates."""
    shape = runs, 8 * 168
    season = 1e-5 * (np.sin(np.arange(168) / 24 * 2 * np.pi) + 2 * (np.arange(168) >= 120))
    rates = reverting(0.9, 1e-5 * bursts(rng, shape, 12), rng) + np.tile(season, 8)
    frame = leg(MONDAY + HOUR * (1 + np.arange(shape[1])), rates, 1)
    window, table = (MONDAY, MONDAY + 8 * WEEK), 876_000 * season.reshape(7, 24)
    hours, days = funding.by_hour(frame, *window), funding.by_weekday(frame, *window)
    return ends_of(hours, "funding.by_hour lower_apr_pct", table.mean(axis=0), runs) | ends_of(
        days, "funding.by_weekday lower_apr_pct", table.mean(axis=1), runs
    )


def of_weeks(of: Callable[[Rng, int, int], np.ndarray], rng: Rng, runs: int) -> dict[str, Ends]:
    """A quarter of rates of 8 h, around 0 and without a season."""
    rates = of(rng, runs, 13 * 21)
    frame = leg(MONDAY + 8 * HOUR * (1 + np.arange(13 * 21)), 1e-4 * rates, 8)
    window = MONDAY, MONDAY + 13 * WEEK
    hours, days = funding.by_hour(frame, *window), funding.by_weekday(frame, *window)
    return ends_of(hours, "funding.by_hour lower_apr_pct", 0.0, runs) | ends_of(
        days, "funding.by_weekday lower_apr_pct", 0.0, runs
    )


def averages(rng: Rng, runs: int, settlements: int, memory: int) -> np.ndarray:
    """Rates in bps: the mean, and the sum of the newest ``memory`` shocks of Laplace."""
    level = np.cumsum(rng.laplace(0.0, 1.0, (runs, settlements + memory)), axis=1)
    return MEAN_BPS + level[:, memory:] - level[:, :-memory]


def regimes(rng: Rng, runs: int, settlements: int, memory: int) -> np.ndarray:
    """Rates in bps: 1 and noise, and now and then a high level, drawn anew each time.

    It stays for ``memory`` settlements on average, and is absent for four times as long.
    """
    draws, levels = rng.random((settlements, runs)), rng.exponential(6.0, (settlements, runs))
    high = np.empty((settlements, runs))
    level = np.where(rng.random(runs) < 0.2, levels[0], 0.0)
    for at in range(settlements):
        begins = (level == 0) & (draws[at] < 0.25 / memory)
        ends = (level > 0) & (draws[at] < 1 / memory)
        level = np.where(begins, levels[at], np.where(ends, 0.0, level))
        high[at] = level
    return high.T + 1 + 0.5 * rng.standard_normal((runs, settlements))


def steady(phi: float, rng: Rng, runs: int, settlements: int) -> np.ndarray:
    """An AR(1) of variance 1."""
    return reverting(phi, math.sqrt(1 - phi**2) * rng.standard_normal((runs, settlements)), rng)


def drawn(
    of: Callable[[Rng, int, int], np.ndarray], rng: Rng, runs: int, settlements: int, _memory: int
) -> np.ndarray:
    """Rates in bps: the mean, and values around 0."""
    return MEAN_BPS + of(rng, runs, settlements)


def lognormal(phi: float, rng: Rng, runs: int, settlements: int) -> np.ndarray:
    """An AR(1) of logs with a deviation of 1, less its mean."""
    return np.exp(steady(phi, rng, runs, settlements)) - math.exp(0.5)


def daily(rng: Rng, runs: int, settlements: int) -> np.ndarray:
    """An AR(1) with a season of the day."""
    return steady(0.8, rng, runs, settlements) + np.resize([-1.0, 0.0, 1.0], settlements)


def two_speeds(rng: Rng, runs: int, settlements: int) -> np.ndarray:
    """Two AR(1), correlated 0.79, 0.68 and 0.44 after 1, 3 and 21 settlements, as real funding."""
    slow, fast = (steady(phi, rng, runs, settlements) for phi in (0.976, 0.3))
    return math.sqrt(0.73) * slow + math.sqrt(0.27) * fast


def remembering(order: float, rng: Rng, runs: int, settlements: int) -> np.ndarray:
    """A fractional difference of variance 1."""
    return long_memory(order, rng, (runs, settlements))


def shifted(rng: Rng, runs: int, settlements: int) -> np.ndarray:
    """An AR(1) whose level rises by two deviations within the middle half of the time."""
    at = rng.integers(settlements // 4, 3 * settlements // 4, (runs, 1))
    return steady(0.5, rng, runs, settlements) + 2.0 * (np.arange(settlements) >= at)


RATES: dict[str, Callable[..., np.ndarray]] = {
    "averages": averages,
    "regimes": regimes,
    "rates that are AR(1), half-life 1 d": partial(drawn, partial(steady, 0.8)),
    "lognormal rates, half-life 1 d": partial(drawn, partial(lognormal, 0.8)),
    "lognormal rates, half-life 2 d": partial(drawn, partial(lognormal, 0.9)),
    "rates with a season of the day": partial(drawn, daily),
    "rates of two speeds as real ones": partial(drawn, two_speeds),
    "rates with long memory of order 0.3": partial(drawn, partial(remembering, 0.3)),
    "rates with long memory of order 0.4": partial(drawn, partial(remembering, 0.4)),
    "rates with long memory of order 0.49": partial(drawn, partial(remembering, 0.49)),
    "rates whose level shifts by 2 deviations": partial(drawn, shifted),
}


@cache
def median_kept_bps(kind: str, memory: int, settlements: int) -> float:
    """Measure the median of what settlements in a row pay, over 2,000 long paths."""
    level = np.cumsum(RATES[kind](np.random.default_rng(7), 2000, 2000, memory), axis=1)
    return float(np.median(level[:, settlements:] - level[:, :-settlements]))


class Holding(NamedTuple):
    """Rates of a kind and a memory (in settlements of 8 h), and holdings over so many days."""

    kind: str
    memory: int
    days: int
    held_d: int

    def process(self, *, given: float = 0.9, fails: bool = False, runs: int = FULL_RUNS) -> Process:
        """Return the process of such holdings."""
        what = {
            "averages": "rates that are averages over {:g} d",
            "regimes": "rates that are high for {:g} d now and then",
        }
        of_rates = what.get(self.kind, self.kind).format(self.memory / 3)
        return Process(
            f"{of_rates}: {self.days} days, held {self.held_d} d",
            partial(kept, self, fails),
            runs=runs,
            given=given,
            fails=fails,
        )


def kept(asked: Holding, fails: bool, rng: Rng, runs: int) -> dict[str, Ends]:
    """Holdings of a leg that settles each 8 h."""
    kind, memory, days, held_d = asked
    rates = RATES[kind](rng, runs, 3 * days, memory)
    frame = leg(8 * HOUR * (1 + np.arange(3 * days)), 1e-4 * rates, 8)
    found = funding.holdings(
        frame, 0, days * DAY + 1, horizons=[f"{held_d}d"], every="4h", funding_only=True
    )
    median = 0.0 if fails else median_kept_bps(kind, memory, 3 * held_d)
    return ends_of(
        found, "funding.holdings funding_mean_lower_bps", 3 * held_d * MEAN_BPS
    ) | ends_of(found, "funding.holdings funding_median_lower_bps", median)


PROCESSES = [
    Process("8 weeks of hourly rates with a season and bursts", calendar),
    Process("13 weeks of AR(1) rates, half-life 2 d", partial(of_weeks, partial(steady, 0.9))),
    Process(
        "13 weeks of lognormal rates, half-life 1 d",
        partial(of_weeks, partial(lognormal, 0.8)),
        given=0.9,
    ),
    Process(
        "13 weeks of rates with long memory of order 0.3",
        partial(of_weeks, partial(remembering, 0.3)),
        fails=True,
    ),
    Process(
        "13 weeks of rates with long memory of order 0.4",
        partial(of_weeks, partial(remembering, 0.4)),
        fails=True,
    ),
    Holding("averages", 3, 90, 1).process(),
    Holding("averages", 9, 90, 1).process(),
    Holding("averages", 9, 365, 7).process(),
    Holding("averages", 30, 365, 7).process(),
    Holding("regimes", 3, 90, 1).process(),
    Holding("regimes", 3, 365, 1).process(),
    Holding("regimes", 9, 365, 1).process(),
    Holding("regimes", 9, 365, 7).process(),
    Holding("regimes", 30, 365, 7).process(),
    Holding("rates that are AR(1), half-life 1 d", 1, 90, 1).process(),
    Holding("lognormal rates, half-life 1 d", 1, 90, 1).process(),
    Holding("lognormal rates, half-life 2 d", 1, 365, 7).process(),
    Holding("rates with a season of the day", 1, 90, 1).process(),
    Holding("rates of two speeds as real ones", 1, 1095, 7).process(runs=500),
    Holding("rates with long memory of order 0.3", 1, 90, 1).process(fails=True),
    Holding("rates with long memory of order 0.4", 1, 90, 1).process(fails=True),
    Holding("rates with long memory of order 0.49", 1, 365, 7).process(fails=True),
    Holding("rates whose level shifts by 2 deviations", 1, 90, 1).process(fails=True),
]
