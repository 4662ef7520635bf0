"""Funding whose means and medians are known, and the intervals of its calendar and holdings."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np
import polars as pl

from toolkit.statistics import funding

from .form import Ends, Process, Rng, cells_of, frame_of
from .spreads import MONDAY, WEEK, bursts, reverting

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
    columns = "lower_apr_pct", "upper_apr_pct"
    hours, days = funding.by_hour(frame, *window), funding.by_weekday(frame, *window)
    return {
        "funding.by_hour lower_apr_pct": cells_of(hours, *columns, table.mean(axis=0), runs),
        "funding.by_weekday lower_apr_pct": cells_of(days, *columns, table.mean(axis=1), runs),
    }


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


RATES = {"averages": averages, "regimes": regimes}


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

    def process(self) -> Process:
        """Return the process of such holdings."""
        what = {
            "averages": "rates that are averages over {:g} d",
            "regimes": "rates that are high for {:g} d now and then",
        }
        of_rates = what[self.kind].format(self.memory / 3)
        return Process(
            f"{of_rates}: {self.days} days, held {self.held_d} d",
            partial(kept, self),
        )


def kept(asked: Holding, rng: Rng, runs: int) -> dict[str, Ends]:
    """Holdings of a leg that settles each 8 h."""
    kind, memory, days, held_d = asked
    rates = RATES[kind](rng, runs, 3 * days, memory)
    frame = leg(8 * HOUR * (1 + np.arange(3 * days)), 1e-4 * rates, 8)
    found = funding.holdings(
        frame, 0, days * DAY + 1, horizons=[f"{held_d}d"], every="4h", funding_only=True
    )
    median = median_kept_bps(kind, memory, 3 * held_d)
    ends = {}
    for name, truth in (("mean", 3 * held_d * MEAN_BPS), ("median", median)):
        both = (found[f"funding_{name}_{end}_bps"].to_numpy() for end in ("lower", "upper"))
        ends[f"funding.holdings funding_{name}_lower_bps"] = Ends(*both, truth)
    return ends


PROCESSES = [
    Process("8 weeks of hourly rates with a season and bursts", calendar),
    Holding("averages", 3, 90, 1).process(),
    Holding("averages", 9, 90, 1).process(),
    Holding("averages", 9, 365, 7).process(),
    Holding("averages", 30, 365, 7).process(),
    Holding("regimes", 3, 90, 1).process(),
    Holding("regimes", 3, 365, 1).process(),
    Holding("regimes", 9, 365, 1).process(),
    Holding("regimes", 9, 365, 7).process(),
    Holding("regimes", 30, 365, 7).process(),
]
