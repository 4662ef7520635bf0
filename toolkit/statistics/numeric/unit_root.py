"""The test of Dickey and Fuller: its t-statistic, and its p-value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from toolkit.reasons import Reason
from toolkit.statistics.core.contract import first_reason
from toolkit.statistics.core.kernel import Statistic
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers
from toolkit.statistics.numeric.lags import Observations, parts

CRITICAL = {
    "1pct": (-3.43035, -6.5393, -16.786, -79.433),
    "5pct": (-2.86154, -2.8903, -4.234, -40.040),
    "10pct": (-2.56677, -1.5384, -2.809, 0.0),
}
"""By MacKinnon (2010): c + c1 / T + c2 / T^2 + c3 / T^3, with an intercept and no trend."""

_COLLINEAR = 1e-12
_ROUNDING = 1e-13
_LOWEST, _BEND, _HIGHEST = -18.83, -1.61, 2.74
_BELOW_BEND = (2.1659, 1.4412, 0.038269)
_ABOVE_BEND = (1.7339, 0.93202, -0.12745, -0.010368)
"""By MacKinnon (1994), of one variable with an intercept: powers of t, from the 0th on."""


class UnitRoot(NamedTuple):
    """The observations and lags of a test, and its t: infinite for too few, NaN for no residual."""

    n: int
    lags: int
    t: float

    @property
    def rejected(self) -> bool:
        """Whether t is below the critical value at 5 %."""
        return math.isfinite(self.t) and self.t < critical("5pct", self.observations)

    @property
    def observations(self) -> int:
        """The rows of the regression."""
        return self.n - self.lags - 1


def unit_root_test(finish: Callable[[str], list[pl.Expr]], lags: int | None = None) -> Statistic:
    """Make the statistic of each trajectory's test, on the longest run without a gap.

    ``finish`` sees ``adf_n``, ``adf_lags``, ``adf_t`` and, NaN without a test, ``adf_chance`` and
    ``adf_critical_1pct``, ``5pct`` and ``10pct``. See `why_no_test`.
    """

    def fit(rows: pl.DataFrame) -> pl.DataFrame:
        found = []
        for part in parts(rows):
            held = Observations.of(part)
            tests = [each for each in of_longest_runs(held, None, lags) if each]
            figures = [
                (number, *_figures(test))
                for number, test in zip(held.numbers.tolist(), tests, strict=True)
            ]
            found.append(pl.DataFrame(figures, schema=_SCHEMA, orient="row"))
        return pl.concat(found)

    return Statistic(lambda _column: [], finish, fit)


def why_no_test() -> pl.Expr:
    """Build the reason for which a trajectory has no test."""
    t = pl.col("adf_t")
    return first_reason(
        {
            Reason.EMPTY: pl.col("n") == 0,
            Reason.TOO_FEW: t.is_infinite() | t.is_null(),
            Reason.DEGENERATE: t.is_nan(),
        }
    )


_LEVELS = [f"adf_critical_{level}" for level in CRITICAL]
_SCHEMA = dict.fromkeys(("number", "adf_n", "adf_lags"), pl.Int64) | dict.fromkeys(
    ("adf_t", "adf_chance", *_LEVELS), pl.Float64
)


def _figures(test: UnitRoot) -> tuple[float, ...]:
    if not math.isfinite(test.t):
        return (test.n, test.lags, test.t, *[math.nan] * (1 + len(_LEVELS)))
    points = (critical(level, test.observations) for level in CRITICAL)
    return (test.n, test.lags, test.t, chance_below(test.t), *points)


def critical(level: str, observations: int) -> float:
    """Return the critical value at a level of `CRITICAL` for so many rows of the regression."""
    return math.fsum(c / observations**power for power, c in enumerate(CRITICAL[level]))


def chance_below(t: float) -> float:
    """Return the p-value of a t under a unit root, in a long series (MacKinnon 1994)."""
    if not _LOWEST <= t <= _HIGHEST:
        return float(t > _HIGHEST)
    powers = _BELOW_BEND if t <= _BEND else _ABOVE_BEND
    return math.erfc(-sum(c * t**power for power, c in enumerate(powers)) / math.sqrt(2)) / 2


def of_longest_runs(
    held: Observations, asked: Flags | None = None, lags: int | None = None
) -> Iterator[UnitRoot | None]:
    """Test the longest run without a gap of each trajectory, None for those not ``asked``."""
    for place, (first, last) in enumerate(zip(held.begins, held.begins[1:], strict=False)):
        if asked is not None and not asked[place]:
            yield None
        else:
            since_steps = held.since_s[first:last] / held.step_s[place]
            yield unit_root(_longest_run(held.value[first:last], since_steps), lags)


def _longest_run(values: Floats, since_steps: Floats) -> Floats:
    """Return the longest run of values exactly one step apart, the first of equal ones."""
    edges = run_edges(since_steps)
    longest = int(np.diff(edges).argmax())
    return values[edges[longest] : edges[longest + 1]]


def run_edges(since_steps: Floats) -> Integers:
    """Return where each run without a gap begins, and the number of values."""
    cuts = np.flatnonzero(np.diff(since_steps) != 1) + 1
    return np.concatenate([[0], cuts, [len(since_steps)]])


def unit_root(run: Floats, lags: int | None = None) -> UnitRoot:
    """Regress the change on an intercept, the level before it and ``lags`` changes before it.

    ``lags`` None is floor(12 (n / 100)^(1/4)). The products of lagged changes follow from each
    other by what enters and leaves at the ends.
    """
    n = len(run)
    if lags is None:
        lags = math.floor(12 * (n / 100) ** 0.25)
    if n < 10 * (lags + 2):
        return UnitRoot(n, lags, math.inf)
    change = np.diff(run)
    products = _products(run[lags:-1] - run[lags:-1].mean(), change - change.mean(), lags)
    sizes = np.sqrt(np.diag(products))
    least = _ROUNDING * np.abs(run).max() * math.sqrt(n)
    if not (sizes > least).all():
        return UnitRoot(n, lags, math.nan)
    triangle = _triangle(products / sizes / sizes[:, None])
    if triangle is None:
        return UnitRoot(n, lags, math.nan)
    freedom = len(change) - 2 * lags - 2
    return UnitRoot(n, lags, float(triangle[-1, -2] * math.sqrt(freedom) / triangle[-1, -1]))


def _products(level: Floats, change: Floats, lags: int) -> Floats:
    """Sum the products about their means of the lagged changes, the level and the change."""
    count = len(level)
    sides = [change[lags - lag : lags - lag + count] for lag in range(1, lags + 1)]
    sides += [level, change[lags:]]
    size = lags + 2
    found = np.empty((size, size))
    for row in range(size):
        # each with itself and those after it, where both are not a step later than known ones
        for column in range(row, size):
            both_lagged = row > 0 and column < lags
            if both_lagged:
                known = found[row - 1, column - 1]
                entered = change[lags - row - 1] * change[lags - column - 1]
                left = change[lags - row - 1 + count] * change[lags - column - 1 + count]
                found[row, column] = known + entered - left
            else:
                found[row, column] = (sides[row] * sides[column]).sum()
    means = np.array([side.mean() for side in sides])
    found = np.triu(found) + np.triu(found, 1).T
    return np.asarray(found - count * np.outer(means, means))


def _triangle(correlations: Floats) -> Floats | None:
    """Decompose by Cholesky, None if a side is nearly a combination of those before it."""
    try:
        found = np.asarray(np.linalg.cholesky(correlations), np.float64)
    except np.linalg.LinAlgError:
        return None
    return found if (np.square(np.diag(found)) > _COLLINEAR).all() else None
