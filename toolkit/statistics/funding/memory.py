"""Memory of the funding of positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.statistics.core.contract import Question
from toolkit.statistics.funding.settlements import LEGS, LegSettlements
from toolkit.statistics.numeric.long_run import MOST_POINTS, Memory, Numbers, memories

_USUAL = 0.9
_HOUR_S, _DAY_S = 3_600, 86_400
_STEPS_S = [_HOUR_S * hours for hours in (1, 2, 3, 4, 6, 8, 12, 24)]
_FEWEST_DAYS = 8


def funding_memories(found: LegSettlements, question: Question) -> dict[Any, Memory]:
    """Judge the memory of what each position is paid per hour, settlement by settlement.

    Steps are parts of a day or whole days, at least the interval that 90 % of a leg's settlements
    do not exceed. The daily season is removed. ``found`` needs leg_number, ts, rate and
    interval_hours. See `toolkit.statistics.numeric.long_run.memories`.

    >>> from toolkit.statistics.funding.settlements import settlements
    >>> import polars as pl
    >>> frame = pl.DataFrame({"trajectory": ["a"], "ts": [28800], "buy_rate": [0.0],
    ...     "sell_rate": [1e-4], "buy_interval_hours": [None], "sell_interval_hours": [8]})
    >>> funding_memories(settlements(frame), Question("rows/1", 0, 28800))["a"].reason
    <Reason.TOO_FEW: 'too_few'>
    """
    number, ts, rate, hours = (
        found.rows[name].to_numpy() for name in ("leg_number", "ts", "rate", "interval_hours")
    )
    since = np.searchsorted(number, np.arange(len(LEGS) * found.trajectories.height + 1))
    series = []
    for place, (_, *spots) in enumerate(found.trajectories.iter_rows()):
        legs: list[tuple[Numbers, Numbers, Numbers] | None] = []
        for leg, is_spot in enumerate(spots, len(LEGS) * place):
            rows = slice(since[leg], since[leg + 1])
            legs.append(None if is_spot else (ts[rows], rate[rows], hours[rows]))
        series.append(_paid(legs, question))
    return dict(zip(found.trajectories["trajectory"], memories(series), strict=True))


def _paid(legs: list[tuple[Numbers, Numbers, Numbers] | None], question: Question) -> Numbers:
    """Compute sell less buy per hour at equal steps, NaN if a leg did not settle."""
    inside = []
    for leg in legs:
        known = None
        if leg is not None:
            ts, _, hours = leg
            kept = (ts > question.start) & (ts <= question.end) & (hours > 0)
            known = tuple(column[kept] for column in leg)
        inside.append(known)
    usual = [np.quantile(known[2], _USUAL) for known in inside if known and known[2].size]
    window_s = question.end - question.start
    step_s = _step_s(max(_HOUR_S * max(usual, default=1.0), window_s / MOST_POINTS))
    steps = -(-window_s // step_s)
    sides = []
    for known in inside:
        if known is None:
            sides.append(np.zeros(steps))
            continue
        ts, rate, hours = known
        step = (ts.astype(np.int64) - question.start - 1) // step_s
        paid, over = (np.bincount(step, each, steps) for each in (rate, hours))
        sides.append(np.divide(paid, over, out=np.full(steps, np.nan), where=over > 0))
    buy, sell = sides
    return _without_season(sell - buy, step_s)


def _step_s(least_s: float) -> int:
    """Return the shortest part of a day, or number of days, that is at least so long."""
    part = next((each for each in _STEPS_S if each >= least_s), None)
    return part or _DAY_S * math.ceil(least_s / _DAY_S)


def _without_season(paid: Numbers, step_s: int) -> Numbers:
    """Subtract the mean of each time of the day, given eight days or more."""
    a_day = _DAY_S // step_s
    if a_day < 2 or paid.size < _FEWEST_DAYS * a_day:
        return paid
    days = np.append(paid, np.full(-paid.size % a_day, np.nan)).reshape(-1, a_day)
    known = ~np.isnan(days)
    means = np.where(known, days, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.asarray((days - means).ravel()[: paid.size])
