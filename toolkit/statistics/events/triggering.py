"""Share of triggered events, and the length of their bursts.

Where each event triggers n others on average, after exponential times of mean tau, the Fano factor
of counts in buckets of w seconds is (Hawkes 1971)

    1 + (1 / (1 - n)^2 - 1) (1 - (1 - exp(-a w)) / (a w)),    a = (1 - n) / tau.

Short buckets cut bursts, so n and a are fitted to factors of buckets from a minute to 3 hours,
after removing what days have alike at an hour of the day, and hours of a day alike: season.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FINEST_S = 60
"""The width of the shortest bucket (s)."""

_WIDTHS = (1, 2, 5, 10, 20, 30, 60, 120, 180)
_DAY = 1_440
_FEWEST_DAYS, _FEWEST_CELLS = 3, 30
_SWEEPS = 20
_ERRORS = 3.0
"""Without bursts no factor is above 1 by so many errors."""
_LEAST_SEEN = 0.3
"""The share of the rise that the widest bucket must show."""

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def triggering(times: Counts, minutes: Counts) -> tuple[float, float] | None:
    """Estimate the triggered share n, and the time 1 / a in seconds over which bursts die out.

    ``times`` are those of openings (s), and ``minutes`` the numbers since 1970 of the fully covered
    minutes, sorted. Without bursts returns 0 and NaN. Returns None for fewer than 3 days, and if
    bursts last so long that buckets of 3 hours show less than a third of the rise.

    References
    ----------
    Hawkes, A. G. (1971), Spectra of some self-exciting and mutually exciting point processes,
    Biometrika 58.

    Examples
    --------
    Bursts of two events within a minute, at times apart from each other.

    >>> first = np.random.default_rng(1).integers(0, 14 * 86_400, 700)
    >>> share, _ = triggering(np.sort(np.r_[first, first + 20]), np.arange(14 * 1_440))
    >>> round(share, 1)
    0.3
    """
    minute = times // FINEST_S
    minute = minute[np.isin(minute, minutes)]
    if not minute.size:
        return None
    first = int(minutes[0]) // _DAY
    days = int(minutes[-1]) // _DAY - first + 1
    if days < _FEWEST_DAYS:
        return None
    counts = np.bincount(minute - first * _DAY, minlength=days * _DAY)
    held = np.bincount(minutes - first * _DAY, minlength=days * _DAY)
    found = [_factor(counts, held, width, days) for width in _WIDTHS]
    known = [(width, *each) for width, each in zip(_WIDTHS, found, strict=True) if each]
    if not known or known[-1][0] < _WIDTHS[-1] / 3:
        return None
    widths, factors, freedom = (np.array(each) for each in zip(*known, strict=True))
    chance = np.sqrt(2 / freedom + 1 / minute.size)
    if ((factors - 1) / chance).max() < _ERRORS:
        return 0.0, math.nan
    return _fitted(widths, factors, freedom)


def _factor(counts: Counts, held: Counts, width: int, days: int) -> tuple[float, float] | None:
    """Compute the Fano factor of buckets of so many minutes without season, and its freedom."""
    slots = _DAY // width
    table, whole = (each.reshape(days, slots, width).sum(axis=2) for each in (counts, held))
    there = whole == width
    there = there[there.any(axis=1)]
    table = np.where(whole == width, table, 0)[(whole == width).any(axis=1)].astype(np.float64)
    there = there[:, (used := there.any(axis=0))]
    table = table[:, used]
    freedom = there.sum() - sum(there.shape) + 1
    if len(there) < _FEWEST_DAYS or freedom < _FEWEST_CELLS or not table.any():
        return None
    rest, weight = table.copy(), there.astype(np.float64)
    for _ in range(1 if there.all() else _SWEEPS):
        for axis in (0, 1):
            mean = rest.sum(axis=axis, keepdims=True) / weight.sum(axis=axis, keepdims=True)
            rest -= mean * weight
    squares = float(np.square(rest).sum())
    return squares / table.sum() * there.sum() / freedom, float(freedom)


def _fitted(widths: Floats, factors: Floats, freedom: Floats) -> tuple[float, float] | None:
    """Fit the rise of the factor: its rate on a grid, and its height by least squares."""
    burst_s = np.geomspace(5, 50_000, 160)
    scaled = FINEST_S * widths / burst_s[:, None]
    rise = 1 + np.expm1(-scaled) / scaled
    weight = freedom / np.square(np.maximum(factors, 1))
    for _ in range(3):
        height = (weight * rise * (factors - 1)).sum(axis=1) / (weight * rise**2).sum(axis=1)
        height = np.maximum(height, 0.0)
        missed = (weight * np.square(factors - 1 - height[:, None] * rise)).sum(axis=1)
        best = int(missed.argmin())
        weight = freedom / np.square(1 + height[best] * rise[best])
    if rise[best, -1] < _LEAST_SEEN:
        return None
    return float(1 - 1 / np.sqrt(1 + height[best])), float(burst_s[best])
