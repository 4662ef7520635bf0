"""Comparison of a spread or differential with the same figure from the legs of its row.

Statistics use the legs, so a difference is only a finding.
"""

from __future__ import annotations

import polars as pl

from toolkit.market import Family
from toolkit.wire.findings import Finding
from toolkit.wire.profile.history_route import HistoryRoute

_EXACT = 1e-9
_ROUNDED_PRICE = 1e-4
_FEWEST_DECIMALS = {Family.SPREAD: 2, Family.FUNDING: 4}
_MOST_DECIMALS = 8
GIVEN = {Family.SPREAD: "spread_pct", Family.FUNDING: "differential_pct_8h"}
"""The column of a family that its legs give, too."""


def disagreements(route: HistoryRoute, frame: pl.DataFrame) -> list[Finding]:
    """Return a finding for rows whose figure has another sign, and one for another value.

    A spread is compared with 100 (sell / buy - 1), a differential with the row's rates, each per 8
    h. Rounding to the page's decimals, at least two of a spread and four of a differential, is
    allowed.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> rows = {"buy_price": [100.0], "sell_price": [101.0], "spread_pct": [-1.0], "ts": [60]}
    >>> disagreements(BUILT_IN.histories[Family.SPREAD], pl.DataFrame(rows))[0].kind
    'sign_disagrees'
    """
    if route.family not in GIVEN:
        return []
    rows = compared(route.family, frame)
    odd = rows.filter(pl.col("far") > pl.col("allowed"))
    opposite = pl.col("own") * pl.col("given") < 0
    rule = route.rule(GIVEN[route.family])
    where = f"{route.path}.{rule.wire if rule else GIVEN[route.family]}"
    return [
        Finding(kind, where, _words(found, rows.height))
        for kind, found in (
            ("sign_disagrees", odd.filter(opposite)),
            ("value_disagrees", odd.filter(~opposite)),
        )
        if found.height
    ]


def compared(family: Family, frame: pl.DataFrame) -> pl.DataFrame:
    """Return each row's figure beside that of its legs: ts, given, own, far and allowed.

    ``far`` is their distance, ``allowed`` what rounding explains. Rows with an unknown one are left
    out.

    >>> rows = {"buy_price": [100.0], "sell_price": [101.0], "spread_pct": [1.5], "ts": [60]}
    >>> compared(Family.SPREAD, pl.DataFrame(rows)).row(0)
    (60, 1.5, 1.0, 0.5, 0.0251...)
    """
    own, rounding = (_spread if family is Family.SPREAD else _differential)()
    given = pl.col(GIVEN[family])
    both = frame.with_columns(given=given, own=own, far=(own - given).abs(), allowed=_EXACT)
    if both.select((pl.col("far").is_finite() & (pl.col("far") > _EXACT)).any()).item():
        both = both.with_columns(allowed=rounding + _EXACT).filter(pl.col("far").is_finite())
        written = int(both.select(_decimals_of(pl.col("given"))).item())
        decimals = max(written, _FEWEST_DECIMALS[family])
        both = both.with_columns(pl.col("allowed") + 0.5001 * 10.0**-decimals)
    return both.select("ts", "given", "own", "far", "allowed").filter(pl.col("far").is_finite())


def _words(odd: pl.DataFrame, compared: int) -> str:
    row = odd.row(0, named=True)
    return (
        f"in {odd.height} of {compared} rows with both, e.g. {row['given']:.6g} where the legs "
        f"give {row['own']:.6g} at {row['ts']}; statistics use the legs"
    )


def _spread() -> tuple[pl.Expr, pl.Expr]:
    """Build the legs' spread (%), and how far rounding of prices may move it."""
    buy, sell = pl.col("buy_price"), pl.col("sell_price")
    own = pl.when((buy > 0) & (sell > 0)).then(100 * ((sell - buy) / buy))
    step = pl.min_horizontal(
        0.5 * 10.0 ** -pl.max_horizontal(*(_decimals_of(price) for price in (buy, sell))),
        _ROUNDED_PRICE * buy,
    )
    return own, 100 * step * (1 / buy + sell / buy**2)


def _differential() -> tuple[pl.Expr, pl.Expr]:
    """Build the legs' differential (% per 8 h). Rates are not rounded."""
    legs = []
    for leg in ("sell", "buy"):
        rate, hours = pl.col(f"{leg}_rate"), pl.col(f"{leg}_interval_hours")
        spot = (rate == 0) & hours.is_null()
        legs.append(pl.when(spot).then(0.0).when(hours > 0).then(100 * 8 * rate / hours))
    return legs[0] - legs[1], pl.lit(0.0)


def _decimals_of(column: pl.Expr) -> pl.Expr:
    """Count the decimals of a column as written."""
    fits = [
        ((column - column.round(n)).abs() <= 1e-12 * column.abs()).all()
        for n in range(_MOST_DECIMALS)
    ]
    return pl.coalesce(
        *(pl.when(fit).then(pl.lit(float(n))) for n, fit in enumerate(fits)),
        pl.lit(float(_MOST_DECIMALS)),
    )
