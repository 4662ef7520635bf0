"""Figures of a sample of holdings: level, spread, bands, break-even."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toolkit.columns import schema_of
from toolkit.reasons import Reason
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY, TIE_BPS, Holding
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers
from toolkit.statistics.numeric.long_run import WAVES, Band, Memory, ends_of, slow_variance
from toolkit.statistics.numeric.tails import freedom_of, two_sided_95, two_sided_95_between

FEWEST_HORIZONS = 12
"""The fewest consecutive horizons of entries with a band."""

_FEWEST_ENTRIES = 24
_CELLS = 120
_CELLS_A_BLOCK = 12
_NORMAL = 1.959964


@dataclass(frozen=True)
class Ranked:
    """Values in the order of their times, and sorted."""

    values: Floats
    rising: Floats

    @cached_property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.values.mean())

    @classmethod
    def of(cls, values: Floats) -> Ranked:
        """Rank values without NaN."""
        return cls(values, np.sort(values))

    def moved(self, by: float) -> Ranked:
        """Return the values with ``by`` added."""
        return Ranked(self.values + by, self.rising + by)

    def quantile(self, share: float) -> float:
        """Return a quantile by linear interpolation."""
        below, above, part = _about(share, self.rising.size)
        return _between(float(self.rising[below]), float(self.rising[above]), part)


def quantiles(values: Floats, *shares: float) -> list[float]:
    """Return quantiles of unsorted values, as `Ranked` does."""
    about = [_about(share, values.size) for share in shares]
    places = sorted({place for *both, _ in about for place in both})
    found = dict(zip(places, at_places(values, places), strict=True))
    return [_between(found[below], found[above], part) for below, above, part in about]


def at_places(values: Floats, places: Iterable[int]) -> list[float]:
    """Return the values at rising places of the sorted order, by partial sorting."""
    left, since, found = values.copy(), 0, []
    for place in places:
        left.partition(place - since)
        left, since = left[place - since :], place
        found.append(float(left[0]))
    return found


def _about(share: float, size: int) -> tuple[int, int, float]:
    """Return the places around a quantile, and its position between them."""
    at = share * (size - 1)
    below = math.floor(at)
    return below, min(below + 1, size - 1), at - below


def _between(low: float, high: float, part: float) -> float:
    """Interpolate from the nearer end, as numpy does."""
    return low + part * (high - low) if part < 0.5 else high - (1 - part) * (high - low)


def band(ts: Integers, kept: Ranked, horizon_s: int, every_s: int, memory: Memory) -> Band | Reason:
    """Return the bands of values of windows that begin at ``ts``, or why there are none.

    ``ts`` (s) rises, ``every_s`` is the time between windows, and ``memory`` that of what they sum.
    There are too few if the windows span fewer than twelve horizons, miss more than half of that
    time, or are fewer than 24.
    """
    if ts.size < _FEWEST_ENTRIES:
        return Reason.TOO_FEW
    span_s = int(ts[-1] - ts[0]) + every_s
    observed_s = ts.size * every_s
    if observed_s < FEWEST_HORIZONS * horizon_s or 2 * observed_s < span_s:
        return Reason.TOO_FEW
    if memory.reason is not None:
        return memory.reason
    begins = np.searchsorted(ts, ts[0] - np.arange(_CELLS) * -span_s // _CELLS)
    mean, at_most = kept.mean, kept.values <= kept.quantile(0.5)
    # differences from the mean keep the digits of what varies
    apart = np.empty((2, ts.size + 1))
    np.subtract(kept.values, mean, out=apart[0, :-1])
    np.subtract(at_most, np.count_nonzero(at_most) / ts.size, out=apart[1, :-1])
    apart[:, -1] = 0.0
    of_cells = cell_sums(apart, begins)
    variance = memory.excess * slow_variance(of_cells, horizon_s / span_s)
    error, share_error = np.sqrt(variance) / ts.size
    skewness = skewness_of_sum(of_cells[0], _CELLS_A_BLOCK)
    far = two_sided_95(WAVES) * _few_cells(of_cells[0])
    lower, upper = ends_of(*(np.array([float(each)]) for each in (error, skewness, far)))
    reach = min(two_sided_95(WAVES) * float(share_error), 0.5)
    return Band(
        mean=(mean + float(lower[0]), mean + float(upper[0])),
        median=(kept.quantile(0.5 - reach), kept.quantile(0.5 + reach)),
    )


def cell_sums(values: Floats, begins: Integers) -> Floats:
    """Sum each row over cells that begin at these columns. The last column is in none."""
    sums: Floats = np.add.reduceat(values, begins, axis=1)
    empty = begins == np.append(begins[1:], values.shape[1] - 1)
    if empty.any():
        sums[:, empty] = 0.0
    return sums


def _few_cells(sums: Floats) -> float:
    """Return the factor of a band if few cells make up most of the variance."""
    freedom = freedom_of(np.square(sums))
    if math.isinf(freedom):
        return 1.0
    return float(two_sided_95_between(np.array([freedom]))[0]) / _NORMAL


def skewness_of_sum(of_cells: Floats, cells: int) -> float:
    """Compute the skewness of the sum over all cells, from blocks that begin at each and wrap."""
    around = np.concatenate([[0.0], of_cells, of_cells[:cells]]).cumsum()
    sums = around[cells : cells + of_cells.size] - around[: of_cells.size]
    sums -= sums.mean()
    blocks = of_cells.size / cells
    second, third = (float((sums**power).mean()) * blocks for power in (2, 3))
    return third / second**1.5 if second > 0 else 0.0


QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
"""The quantiles by their part of a column's name."""
ENDS = ("mean_lower", "mean_upper", "median_lower", "median_upper")
FORMS = ("mean", *QUANTILES)

LEAST_PRICED = 0.9
"""The least share of covered entries with every price, for figures with prices."""

_BREAKEVEN = ("q25", "median", "q75")
_FALLS = {"drawdown_median_bps": 0.5, "drawdown_q95_bps": 0.95}
_OF_PRICES = ("n_unpriced", "basis_", "gross_", "drawdown_", "prices_")
_SHARE_SLACK = 1e-12  # a count over a count misses a share by a few bits


def schema(*, funding_only: bool) -> dict[str, Any]:
    """Return the columns of `figures`, the basis of the notional, and the missing prices."""
    declared = dict([*schema_of("funding.holdings").items()][1:-6])
    if not funding_only:
        return declared
    found: dict[str, Any] = {}
    for name, kind in declared.items():
        if name == "funding_reason":
            found |= {f"{FUNDING_ONLY}{fall}": declared[fall] for fall in _FALLS}
        if name.startswith(("net_", "breakeven_")):
            found[f"{FUNDING_ONLY}{name}"] = kind
        elif not name.startswith(_OF_PRICES):
            found[name] = kind
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """The entries of one trajectory and horizon that count, and how many do not.

    ``ts`` and ``funding_bps`` are of covered entries, and ``holding`` of the ``priced``, those with
    every price (None: all, without prices). ``why`` is the reason if none counts. An unknown cost
    is NaN.
    """

    horizon_s: int
    every_s: int
    n_due: int
    n_uncovered: int
    ts: Integers
    funding_bps: Floats
    cost_bps: Floats
    priced: Flags | None
    holding: Holding
    why: Reason
    memory: Memory

    @property
    def lacks_prices(self) -> bool:
        """Whether prices are wanted and too few entries have every one."""
        if self.priced is None:
            return False
        return bool(np.count_nonzero(self.priced) < LEAST_PRICED * self.ts.size)


def figures(sample: Sample) -> dict[str, Any]:
    """Return the figures of a sample by column, without nulls."""
    n = sample.ts.size
    why = None if n else (sample.why if sample.n_due else Reason.TOO_SHORT)
    unknown = int(np.count_nonzero(np.isnan(sample.cost_bps)))
    found: dict[str, Any] = {
        "horizon_s": sample.horizon_s,
        "n_due": sample.n_due,
        "n": n,
        "n_uncovered": sample.n_uncovered,
        "n_unknown_fee": unknown,
        "n_apart": n * min(1.0, sample.every_s / sample.horizon_s),
        "coverage": n / sample.n_due if sample.n_due else None,
        "entries_reason": why,
        "funding_reason": why,
        "funding_band_reason": why,
    }
    funding = None
    if why is None:
        found |= {"t_first": int(sample.ts[0]), "t_last": int(sample.ts[-1])}
        funding = _ranked("funding", sample.funding_bps, sample)
        found |= funding.found
    if sample.priced is None:
        return found | _kept(sample, why, unknown, funding, FUNDING_ONLY)
    found["n_unpriced"] = n - int(np.count_nonzero(sample.priced))
    kept_why = why or (Reason.MISSING_PRICE if sample.lacks_prices else None)
    found |= {"gross_reason": kept_why, "gross_band_reason": kept_why}
    gross = None
    if kept_why is None:
        gross = _ranked("gross", sample.holding.gross_bps, sample)
        held = sample.holding
        found |= gross.found
        found["basis_mean_bps"] = float((held.gross_bps - held.funding_bps).mean())
    return found | _kept(sample, kept_why, unknown, gross, "")


@dataclass(frozen=True, slots=True)
class _Of:
    """The values, their band, and both as columns."""

    kept: Ranked
    band: Band | Reason
    found: dict[str, Any]


def _ranked(name: str, values: Floats, sample: Sample) -> _Of:
    kept = Ranked.of(values)
    ts = sample.ts if values.size == sample.ts.size else sample.ts[sample.priced]
    of = band(ts, kept, sample.horizon_s, sample.every_s, sample.memory)
    return _Of(kept, of, _shape(name, kept, of))


def _kept(
    sample: Sample, why: Reason | None, unknown: int, gross: _Of | None, only: str
) -> dict[str, Any]:
    net_why = why or (Reason.UNKNOWN_FEE if unknown else None)
    found: dict[str, Any] = {f"{only}net_reason": net_why, f"{only}net_band_reason": net_why}
    held = sample.holding
    found |= _breakeven(held.breakeven_h, net_why, only)
    if gross is None:
        return found
    falls = quantiles(held.drawdown_bps, *_FALLS.values())
    found |= {f"{only}{name}": fall for name, fall in zip(_FALLS, falls, strict=True)}
    if net_why is not None:
        return found
    costs = sample.cost_bps if sample.priced is None else sample.cost_bps[sample.priced]
    cost, name = float(costs[0]), f"{only}net"
    if np.all(costs == cost):
        net, net_band = gross.kept.moved(-cost), gross.band
        if isinstance(net_band, Band):
            net_band = net_band.moved(-cost)
        found |= _shape(name, net, net_band)
    else:
        of = _ranked(name, held.gross_bps - costs, sample)
        net, found = of.kept, found | of.found
    found |= {
        "cost_mean_bps": float(costs.mean()),
        f"{name}_positive_share": float((net.values > TIE_BPS).mean()),
        f"{only}breakeven_share": float(np.isfinite(held.breakeven_h).mean()),
    }
    yearly = 100 * HOURS_A_YEAR * 3600 / sample.horizon_s / 1e4
    return found | {
        f"{name}_apr_{form}_pct": yearly * found[f"{name}_{form}_bps"] for form in FORMS
    }


def _shape(name: str, kept: Ranked, of: Band | Reason) -> dict[str, Any]:
    figures = [kept.mean, *(kept.quantile(share) for share in QUANTILES.values())]
    found: dict[str, Any] = {
        f"{name}_{form}_bps": figure for form, figure in zip(FORMS, figures, strict=True)
    }
    if isinstance(of, Reason):
        return found | {f"{name}_band_reason": of}
    ends = zip(ENDS, (*of.mean, *of.median), strict=True)
    return found | {f"{name}_{end}_bps": value for end, value in ends}


def _breakeven(hours: Floats, why: Reason | None, only: str) -> dict[str, Any]:
    """Return by when a share of entries had earned the cost, from the hours of each."""
    if why is not None:
        return dict.fromkeys((f"{only}breakeven_{name}_reason" for name in _BREAKEVEN), why)
    ranks = (math.ceil((QUANTILES[name] - _SHARE_SLACK) * hours.size) for name in _BREAKEVEN)
    found: dict[str, Any] = {}
    earned = at_places(hours, [max(rank - 1, 0) for rank in ranks])
    for name, by_h in zip(_BREAKEVEN, earned, strict=True):
        if math.isfinite(by_h):
            found[f"{only}breakeven_{name}_h"] = by_h
        else:
            found[f"{only}breakeven_{name}_reason"] = Reason.CENSORED
    return found
