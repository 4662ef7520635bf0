"""Which venue's news makes the common price of two: the shares of discovery, at steps of seconds.

The log prices of both legs follow an error correction towards their difference z = buy - sell, with
ten lags of both returns: dx(t) = c + a z(t - 1) + lagged returns + e(t). The leg that corrects less
leads. The share of Gonzalo and Granger of the buy leg is a_sell / (a_sell - a_buy). The information
share of Hasbrouck is the part of the variance of the common price that the buy leg's shocks make.
Shocks at the same time belong to neither, so that it has bounds: with the buy leg's shock first and
last. At steps of minutes almost all shocks are at the same time, and the bounds are nearly 0 and 1.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from toolkit.statistics.lags import Floats

MOST_STEP_S = 2
"""The longest step for which shares are computed."""
SHARES = ("gonzalo_granger_share", "hasbrouck_lower_share", "hasbrouck_upper_share")
"""The columns of the shares, all of the buy leg."""

_LAGS = 10
_LEAST_ROWS = 300


def discovery_shares(rows: pl.DataFrame, sell: str) -> pl.DataFrame:
    """Compute the shares of the buy leg over each trajectory's longest run one step apart.

    ``rows`` are observations of the buy leg's log price as ``value`` with ``number``, ``ts`` and
    ``step_s``, and the sell leg's in the column ``sell``. A run has at least 300 of them. The
    columns are number and `SHARES` (null for a short run, NaN where there is no correction).

    References
    ----------
    Gonzalo, J. and Granger, C. (1995), Estimation of common long-memory components in cointegrated
    systems, Journal of Business and Economic Statistics 13.
    Hasbrouck, J. (1995), One security, many markets: determining the contributions to price
    discovery, Journal of Finance 50.

    >>> rows = pl.DataFrame({"number": [0], "ts": [0], "step_s": [60], "value": [1.0], "s": [1.0]})
    >>> discovery_shares(rows, "s").is_empty()
    True
    """
    found = []
    fine = rows.filter(pl.col("step_s") <= MOST_STEP_S)
    for part in fine.partition_by("number", maintain_order=True):
        apart = np.diff(part["ts"].to_numpy()) != part["step_s"][0]
        edges = np.concatenate([[0], np.flatnonzero(apart) + 1, [part.height]])
        longest = int(np.diff(edges).argmax())
        run = part[int(edges[longest]) : int(edges[longest + 1])]
        if run.height >= _LEAST_ROWS:
            legs = np.column_stack([run["value"].to_numpy(), run[sell].to_numpy()])
            found.append((part["number"][0], *_shares(legs)))
    schema = {"number": pl.UInt32, **dict.fromkeys(SHARES, pl.Float64)}
    return pl.DataFrame(found, schema=schema, orient="row")


def _shares(legs: Floats) -> tuple[float, float, float]:
    """Fit the error correction to log prices, a column a leg, and compute the three shares."""
    legs = legs - legs[0]
    change = np.diff(legs, axis=0)
    count = len(change) - _LAGS
    gap = (legs[:, 0] - legs[:, 1])[_LAGS:-1]
    lagged = [change[_LAGS - lag : _LAGS - lag + count] for lag in range(1, _LAGS + 1)]
    known = np.column_stack([np.ones(count), gap, *lagged])
    fit, _, rank, _ = np.linalg.lstsq(known, change[_LAGS:], rcond=None)
    none = (math.nan, math.nan, math.nan)
    if rank < known.shape[1]:
        return none
    error = change[_LAGS:] - known @ fit
    covariance = error.T @ error / (count - known.shape[1])
    to_buy, to_sell = fit[1]
    if to_sell == to_buy:
        return none
    weight = np.array([to_sell, -to_buy])
    total = float(weight @ covariance @ weight)
    if total <= 0:
        return none
    # what the shocks of one leg make, with those at the same time counted as its own
    first = (weight @ covariance) ** 2 / np.diag(covariance) / total
    bounds = sorted((float(first[0]), float(1 - first[1])))
    return float(to_sell / (to_sell - to_buy)), bounds[0], bounds[1]
