"""Student's distribution, of which intervals of a few numbers need the quantiles."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from toolkit.statistics.core.contract import whole_number
from toolkit.statistics.numeric.tails import beta_tails

_HALVINGS = 100

Numbers = npt.NDArray[np.float64]


@cache
def two_sided_95(freedom: int) -> float:
    """Return the 97.5 % point of Student's t, for a whole number of degrees of freedom from 1.

    >>> round(two_sided_95(3), 6)
    3.182446
    """
    whole_number("freedom", freedom, 1)
    below, above = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        if _inside(middle, freedom) < 0.95:
            below = middle
        else:
            above = middle
    return math.sqrt(freedom) * math.tan(below)


def two_sided_95_between(freedom: Numbers) -> Numbers:
    """Return these points for degrees of freedom that need not be whole, NaN for NaN.

    >>> two_sided_95_between(np.array([3.0, 3.5])).round(3).tolist()
    [3.182, 2.95]
    """
    known = {max(int(each), 1) for each in freedom.ravel().tolist() if not math.isnan(each)}
    if not known:
        return np.full(freedom.shape, np.nan)
    whole = sorted(known | {each + 1 for each in known})
    points = [two_sided_95(each) for each in whole]
    return np.interp(-1 / freedom, [-1 / each for each in whole], points)


def two_sided_chance(t: Numbers, freedom: Numbers) -> Numbers:
    """Return the chance that abs(Student's t) is at least that of each, for any freedom above 0.

    >>> two_sided_chance(np.array([2.0, 0.0]), np.array([5.0, 5.0])).round(4).tolist()
    [0.1019, 1.0]
    """
    return beta_tails(freedom / 2, np.full(t.shape, 0.5), freedom / (freedom + t * t))[0]


def freedom_of(squares: Numbers) -> float:
    """Return the degrees of freedom of a variance that is a sum of squares (Satterthwaite 1946).

    >>> freedom_of(np.array([1.0, 1.0, 1.0])), freedom_of(np.array([1.0, 0.0, 0.0]))
    (3.0, 1.0)
    """
    most = float(np.square(squares).sum())
    return float(squares.sum()) ** 2 / most if most else math.inf


def _inside(angle: float, freedom: int) -> float:
    """Sum the chance that abs(t) is below sqrt(freedom) tan(angle), by its finite series."""
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(2 + odd, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (power - 1) / power
        total += term
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share
