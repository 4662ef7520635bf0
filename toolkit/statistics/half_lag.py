"""The lag at which an autocorrelation halves, which assumes nothing about how it decays."""

from __future__ import annotations

import numpy as np

from toolkit.statistics.lags import MIN_PAIRS, Floats, Observations

_LOW = 0.125


def half_lags(held: Observations, level: Floats) -> Floats:
    """Find the first lag, in steps, at which each autocorrelation is at or below half of a level.

    Each lag that is looked at is twice the one before. Between the two the logarithm of the
    autocorrelation is taken to be straight, as that of one speed is, or, where it falls further
    than that of one speed, the autocorrelation itself. Up to half of the span are looked at, as
    long as 100 pairs are so far apart. The result is infinite where none of them is low enough,
    and 0 where the first one is.
    """
    found = np.where(level > 0, np.inf, np.nan)
    before_lag, before = np.zeros(len(level)), level.copy()
    open_, lag = level > 0, 1
    spans = held.spans()
    while (open_ := open_ & (2 * lag <= spans)).any():
        with np.errstate(all="ignore"):
            pairs = held.pairs(held.later(lag))
            here = np.where(pairs.pairs >= MIN_PAIRS, pairs.correlation, np.nan)
            reached = open_ & (here <= level / 2)
            straight = np.log(before / (level / 2)) / np.log(before / here)
            part = np.where(here > _LOW * level, straight, (before - level / 2) / (before - here))
            at = before_lag + np.clip(part, 0, 1) * (lag - before_lag)
        found = np.where(reached, 0.0 if lag == 1 else at, found)
        known = open_ & ~np.isnan(here)
        before_lag, before = np.where(known, lag, before_lag), np.where(known, here, before)
        open_ &= ~reached
        lag *= 2
    return found
