"""The figures of a sample of holdings: how much they kept, how often, and how soon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from toolkit.statistics.carry_bootstrap import Band, Ranked, at_places, band, quantiles
from toolkit.statistics.carry_paths import TIE_BPS, Holding, Numbers, Times
from toolkit.statistics.contract import Reason
from toolkit.statistics.rates_in_force import HOURS_A_YEAR

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
"""The quantiles of what positions kept, by what the names of columns have for them."""
ENDS = ("mean_lower", "mean_upper", "median_lower", "median_upper")
"""The ends of their bands."""
FORMS = ("mean", *QUANTILES)
"""The mean, and those quantiles."""

_FALLS = {"drawdown_median_bps": 0.5, "drawdown_q95_bps": 0.95}
_SHARE_SLACK = 1e-12  # a count over a count misses a share by a few bits

SCHEMA: dict[str, Any] = (
    dict.fromkeys(
        ("horizon_s", "n_due", "n", "n_uncovered", "n_unpriced", "n_unknown_fee"), pl.Int64
    )
    | dict.fromkeys(("n_apart", "coverage"), pl.Float64)
    | dict.fromkeys(("t_first", "t_last"), pl.Int64)
    | {"entries_reason": pl.String}
    | dict.fromkeys(("funding_mean_bps", "basis_mean_bps"), pl.Float64)
    | dict.fromkeys((f"gross_{form}_bps" for form in FORMS), pl.Float64)
    | dict.fromkeys(("drawdown_median_bps", "drawdown_q95_bps"), pl.Float64)
    | {"gross_reason": pl.String}
    | dict.fromkeys((f"gross_{end}_bps" for end in ENDS), pl.Float64)
    | {"gross_band_reason": pl.String, "cost_mean_bps": pl.Float64}
    | dict.fromkeys((f"net_{form}_bps" for form in FORMS), pl.Float64)
    | dict.fromkeys((f"net_apr_{form}_pct" for form in FORMS), pl.Float64)
    | dict.fromkeys(("net_positive_share", "breakeven_share"), pl.Float64)
    | {"net_reason": pl.String}
    | dict.fromkeys((f"net_{end}_bps" for end in ENDS), pl.Float64)
    | {"net_band_reason": pl.String}
    | {
        f"breakeven_{name}_{part}": kind
        for name in ("q25", "median", "q75")
        for part, kind in (("h", pl.Float64), ("reason", pl.String))
    }
    | {"notional_basis": pl.String}
)
"""The columns that `figures` fills, and the basis of the notional."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The entries of one trajectory and horizon that count, and how many do not.

    ``why`` is the reason where none counts. A cost that is not known is NaN.
    """

    horizon_s: int
    every_s: int
    n_due: int
    n_uncovered: int
    ts: Times
    cost_bps: Numbers
    holding: Holding
    why: Reason


def figures(sample: Sample) -> dict[str, Any]:
    """Return the figures of a sample by the names of their columns: those left out are null.

    >>> kept = np.array([1.0, 3.0])
    >>> holding = Holding(kept, kept, np.zeros(2), np.array([np.inf, 1.0]))
    >>> found = figures(
    ...     Sample(3600, 3600, 4, 1, np.array([0, 3600]), kept - 1, holding, Reason.LOW_COVERAGE)
    ... )
    >>> found["n_unpriced"], found["net_mean_bps"], found["breakeven_median_h"]
    (1, 1.0, 1.0)
    """
    n, held = sample.ts.size, sample.holding
    why = None if n else (sample.why if sample.n_due else Reason.TOO_SHORT)
    unknown = int(np.count_nonzero(np.isnan(sample.cost_bps)))
    net_why = why or (Reason.UNKNOWN_FEE if unknown else None)
    found: dict[str, Any] = {
        "horizon_s": sample.horizon_s,
        "n_due": sample.n_due,
        "n": n,
        "n_uncovered": sample.n_uncovered,
        "n_unpriced": sample.n_due - sample.n_uncovered - n,
        "n_unknown_fee": unknown,
        "n_apart": n * min(1.0, sample.every_s / sample.horizon_s),
        "coverage": n / sample.n_due if sample.n_due else None,
        "entries_reason": why,
        "gross_reason": why,
        "gross_band_reason": why,
        "net_reason": net_why,
        "net_band_reason": net_why,
    }
    found |= _breakeven(held.breakeven_h, net_why)
    if why is not None:
        return found
    asked = (sample.horizon_s, sample.every_s)
    gross = Ranked.of(held.gross_bps)
    unpriced = held.funding_bps is held.gross_bps
    found |= {
        "t_first": int(sample.ts[0]),
        "t_last": int(sample.ts[-1]),
        "funding_mean_bps": gross.mean if unpriced else float(held.funding_bps.mean()),
        "basis_mean_bps": 0.0 if unpriced else float((held.gross_bps - held.funding_bps).mean()),
        **dict(zip(_FALLS, quantiles(held.drawdown_bps, *_FALLS.values()), strict=True)),
    }
    gross_band = band(sample.ts, gross, *asked)
    found |= _shape("gross", gross, gross_band)
    if net_why is not None:
        return found
    cost = float(sample.cost_bps[0])
    if np.all(sample.cost_bps == cost):
        net, net_band = gross.moved(-cost), gross_band and gross_band.moved(-cost)
    else:
        net = Ranked.of(held.gross_bps - sample.cost_bps)
        net_band = band(sample.ts, net, *asked)
    found |= _shape("net", net, net_band) | {
        "cost_mean_bps": float(sample.cost_bps.mean()),
        "net_positive_share": float((net.values > TIE_BPS).mean()),
        "breakeven_share": float(np.isfinite(held.breakeven_h).mean()),
    }
    yearly = 100 * HOURS_A_YEAR * 3600 / sample.horizon_s / 1e4
    return found | {f"net_apr_{form}_pct": yearly * found[f"net_{form}_bps"] for form in FORMS}


def _shape(name: str, kept: Ranked, of: Band | None) -> dict[str, Any]:
    """Return the mean and the quantiles of what was kept, with their bands."""
    figures = [kept.mean, *(kept.quantile(share) for share in QUANTILES.values())]
    found: dict[str, Any] = {
        f"{name}_{form}_bps": figure for form, figure in zip(FORMS, figures, strict=True)
    }
    if of is None:
        return found | {f"{name}_band_reason": Reason.TOO_FEW}
    ends = zip(ENDS, (*of.mean, *of.median), strict=True)
    return found | {f"{name}_{end}_bps": value for end, value in ends}


def _breakeven(hours: Numbers, why: Reason | None) -> dict[str, Any]:
    """Return by when a share of the entries had earned the cost, from the hours that each took.

    All of them are watched for one horizon, so that the estimate of Kaplan and Meier is one less
    the share that had.
    """
    names = ("q25", "median", "q75")
    if why is not None:
        return dict.fromkeys((f"breakeven_{name}_reason" for name in names), why)
    ranks = (math.ceil((QUANTILES[name] - _SHARE_SLACK) * hours.size) for name in names)
    found: dict[str, Any] = {}
    earned = at_places(hours, [max(rank - 1, 0) for rank in ranks])
    for name, by_h in zip(names, earned, strict=True):
        if math.isfinite(by_h):
            found[f"breakeven_{name}_h"] = by_h
        else:
            found[f"breakeven_{name}_reason"] = Reason.CENSORED
    return found
