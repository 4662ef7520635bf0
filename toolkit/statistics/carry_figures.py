"""The figures of a sample of holdings: how much they kept, how often, and how soon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from toolkit.statistics.carry_bootstrap import band
from toolkit.statistics.carry_paths import TIE_BPS, Numbers, Times
from toolkit.statistics.contract import Reason
from toolkit.statistics.rates_in_force import HOURS_A_YEAR

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
"""The quantiles of what positions kept, by what the names of columns have for them."""
ENDS = ("mean_lower", "mean_upper", "median_lower", "median_upper")
"""The ends of their bands."""
FORMS = ("mean", *QUANTILES)
"""The mean, and those quantiles."""

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

    ``why`` is the reason where none counts. A cost that is not known is NaN. ``breakeven_h`` is
    infinite where the cost was not earned within the horizon.
    """

    horizon_s: int
    every_s: int
    n_due: int
    n_uncovered: int
    ts: Times
    cost_bps: Numbers
    gross_bps: Numbers
    funding_bps: Numbers
    drawdown_bps: Numbers
    breakeven_h: Numbers
    why: Reason


def figures(sample: Sample) -> dict[str, Any]:
    """Return the figures of a sample by the names of their columns: those left out are null.

    >>> kept = np.array([1.0, 3.0])
    >>> found = figures(Sample(3600, 3600, 4, 1, np.array([0, 3600]), kept - 1, kept, kept,
    ...     np.zeros(2), np.array([np.inf, 1.0]), Reason.LOW_COVERAGE))
    >>> found["n_unpriced"], found["net_mean_bps"], found["breakeven_median_h"]
    (1, 1.0, 1.0)
    """
    n = sample.ts.size
    why = None if n else (sample.why if sample.n_due else Reason.EMPTY)
    unknown = int(np.isnan(sample.cost_bps).sum())
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
        "net_reason": net_why,
    }
    found |= _breakeven(sample, net_why)
    if why is None:
        found |= {
            "t_first": int(sample.ts[0]),
            "t_last": int(sample.ts[-1]),
            "funding_mean_bps": float(sample.funding_bps.mean()),
            "basis_mean_bps": float((sample.gross_bps - sample.funding_bps).mean()),
            "drawdown_median_bps": float(np.median(sample.drawdown_bps)),
            "drawdown_q95_bps": float(np.quantile(sample.drawdown_bps, 0.95)),
        }
        found |= _spread_of("gross", sample.gross_bps)
    if net_why is None:
        net = sample.gross_bps - sample.cost_bps
        found |= {
            "cost_mean_bps": float(sample.cost_bps.mean()),
            "net_positive_share": float((net > TIE_BPS).mean()),
            "breakeven_share": float(np.isfinite(sample.breakeven_h).mean()),
        }
        found |= _spread_of("net", net)
        yearly = 100 * HOURS_A_YEAR * 3600 / sample.horizon_s / 1e4
        found |= {f"net_apr_{form}_pct": yearly * found[f"net_{form}_bps"] for form in FORMS}
    return found | _bands(sample, why, net_why)


def _spread_of(name: str, values: Numbers) -> dict[str, float]:
    """Return the mean and the quantiles of what was kept."""
    quantiles = np.quantile(values, list(QUANTILES.values())).tolist()
    return dict(
        zip(
            (f"{name}_{form}_bps" for form in FORMS),
            [float(values.mean()), *quantiles],
            strict=True,
        )
    )


def _bands(sample: Sample, why: Reason | None, net_why: Reason | None) -> dict[str, Any]:
    """Return the bands of the mean and the median, gross and net, or why there are none."""
    found: dict[str, Any] = {}
    asked = (sample.horizon_s, sample.every_s)
    gross = None if why else band(sample.ts, sample.gross_bps, *asked)
    net = None
    if gross and not net_why:
        cost = float(sample.cost_bps[0])
        if bool(np.all(sample.cost_bps == cost)):
            net = gross.moved(-cost)
        else:
            net = band(sample.ts, sample.gross_bps - sample.cost_bps, *asked)
    for name, of, reason in (("gross", gross, why), ("net", net, net_why)):
        if of is None:
            found[f"{name}_band_reason"] = reason or Reason.TOO_FEW
        else:
            ends = (f"{name}_{end}_bps" for end in ENDS)
            found |= dict(zip(ends, (*of.mean, *of.median), strict=True))
    return found


def _breakeven(sample: Sample, why: Reason | None) -> dict[str, Any]:
    """Return by when a share of the entries had earned the cost.

    All of them are watched for one horizon, so that the estimate of Kaplan and Meier is one less
    the share that had.
    """
    found: dict[str, Any] = {}
    hours = np.sort(sample.breakeven_h)
    for name in ("q25", "median", "q75"):
        if why is None:
            at = max(math.ceil(QUANTILES[name] * hours.size - _SHARE_SLACK * hours.size) - 1, 0)
            if math.isfinite(hours[at]):
                found[f"breakeven_{name}_h"] = float(hours[at])
                continue
        found[f"breakeven_{name}_reason"] = why or Reason.CENSORED
    return found
