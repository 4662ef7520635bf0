"""Student's distribution, of which intervals of a few numbers need the quantiles."""

from __future__ import annotations

import math
from functools import cache

from toolkit.statistics.contract import whole_number

_HALVINGS = 100


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
