"""How often an interval holds a true value that is known, and how wide it is."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl

NOMINAL = (0.92, 0.98)
"""Between which shares of the runs that have it an interval of 95 % has to hold the truth."""
REASONED = 0.9
"""In which share of the runs an interval has a reason in its place where its assumption fails."""
FULL_RUNS = 2000
FEWER_RUNS = 500
"""So many where a run takes more than 5 ms, and chance is far from the bound."""
_AT_ONCE = 50
_SEED = 20_261_124

Rng = np.random.Generator


class Ends(NamedTuple):
    """The ends of one interval: one row per run, with a column for each part of it, or none."""

    lower: np.ndarray
    upper: np.ndarray
    truth: np.ndarray | float


class Process(NamedTuple):
    """What is drawn, of values that are known, and the intervals that statistics give of it.

    ``draw`` takes a generator and how many runs. It returns the ends by the name of the statistic
    and the column of the lower end, or of the error or band. ``outside`` has the shares between
    which an interval was found that is not within `NOMINAL`, ``runs`` how many are drawn in full,
    ``given`` the least share of them in which each interval is given. Of a process that ``fails``
    what the intervals assume, a reason has to be given in their place.
    """

    words: str
    draw: Callable[[Rng, int], dict[str, Ends]]
    outside: Mapping[str, tuple[float, float]] = MappingProxyType({})
    runs: int = FULL_RUNS
    given: float = 0.99
    fails: bool = False


fewer = partial(Process, runs=FEWER_RUNS)


class Calibration(NamedTuple):
    """One interval on one process: how often it was given, held the truth, and its median width."""

    statistic: str
    column: str
    process: Process
    runs: int
    given: float
    held: float
    width: float

    @property
    def name(self) -> str:
        """The statistic and the column."""
        return f"{self.statistic} {self.column}"

    @property
    def fault(self) -> bool:
        """Whether it was given too seldom or too often, or held the truth so."""
        if self.process.fails:
            return not 1 - self.given >= REASONED - chance(REASONED, self.runs)
        least, most = within(self.process, self.name, round(self.runs * self.given))
        enough = self.process.given - chance(self.process.given, self.runs)
        return not (self.given >= enough and least <= self.held <= most)


def chance(share: float, runs: int) -> float:
    """By how much so few runs can miss a share, in 99 of 100 cases."""
    return 2.576 * math.sqrt(share * (1 - share) / max(runs, 1))


def within(process: Process, name: str, runs: int) -> tuple[float, float]:
    """The shares an interval may have: those it has to have, give or take chance."""
    least, most = process.outside.get(name, NOMINAL)
    return least - chance(least, runs), most + chance(most, runs)


def calibrated(process: Process, runs: int) -> Iterator[Calibration]:
    """Draw a process so many times, the same each time, and yield each interval of it."""
    rng = np.random.default_rng([_SEED, zlib.crc32(process.words.encode())])
    at_once = min(runs, _AT_ONCE)
    parts = [process.draw(rng, at_once) for _ in range(runs // at_once)]
    for name in parts[0]:
        of_runs = [part[name] for part in parts]
        truth = np.stack([np.broadcast_to(each.truth, each.lower.shape) for each in of_runs])
        lower, upper = (np.stack([each[end] for each in of_runs]) for end in (0, 1))
        given = ~np.isnan(lower) & ~np.isnan(upper)
        lower, upper, truth = lower[given], upper[given], truth[given]
        if process.fails:
            lower, upper, truth = (np.full(1, math.nan) for _ in range(3))
        held = (lower <= truth) & (truth <= upper) & np.isfinite(lower)
        width = np.subtract(
            upper, lower, out=np.full(upper.shape, math.inf), where=upper < math.inf
        )
        statistic, column = name.split(" ")
        figures = (float(each) for each in (given.mean(), held.mean(), np.median(width)))
        yield Calibration(statistic, column, process, runs, *figures)


def frame_of(
    ts: np.ndarray, kept: np.ndarray | None = None, **columns: np.ndarray | float
) -> pl.DataFrame:
    """Build the rows of many trajectories from tables with one run a row, where ``kept``."""
    tables = {"ts": ts, **columns}
    shape = next(np.shape(each) for each in tables.values() if np.ndim(each) == 2)
    kept = np.ones(shape, dtype=bool) if kept is None else np.broadcast_to(kept, shape)
    tables = {"trajectory": np.arange(shape[0])[:, None], **tables}
    return pl.DataFrame({name: np.broadcast_to(each, shape)[kept] for name, each in tables.items()})


def ends_of(
    found: pl.DataFrame, name: str, truth: np.ndarray | float, runs: int | None = None
) -> dict[str, Ends]:
    """Return the ends of a statistic and its lower column: infinite or 0 where a reason means that.

    With ``runs`` each run has as many rows, one for each part of a day, a week or a result.
    """
    ends, lower = [], name.split(" ")[1]
    for column in (lower, lower.replace("lower", "upper")):
        values, reason = pl.col(column), f"{column.removesuffix('_s')}_reason"
        if reason in found.columns:
            endless = pl.col(reason).is_in(["no_reversion", "censored", "tests_disagree"])
            below = pl.col(reason) == "below_step"
            values = pl.when(endless).then(math.inf).when(below).then(0.0).otherwise(values)
        numbers = found.select(values).to_series().to_numpy()
        ends.append(numbers if runs is None else numbers.reshape(runs, -1))
    return {name: Ends(*ends, truth)}
