"""Parts of a report over many streams: screens of spreads and funding, and a symbol's legs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit.charts import Figure, symbol_chart
from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import Family, Market, Trajectory
from toolkit.reports.recipe import Part
from toolkit.series import EventSeries, FundingSeries, PriceSeries, Series
from toolkit.statistics.funding import differential
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.statistics.screening import (
    FUNDING_ORDER,
    SPREAD_ORDER,
    funding_figures,
    spread_figures,
)
from toolkit.workspace import Workspace

On = Mapping[str, Any]
"""Where many streams are computed: ``cluster`` and ``plain_text`` of `Workspace.measure`."""


@dataclass(frozen=True, slots=True)
class OfMany:
    """The result of many streams and its chart. ``n`` is their sum, ``coverage`` their mean."""

    result: pl.DataFrame
    chart: Figure | None
    n: int | None
    coverage: float | None
    data_hash: str


def row_hashes(rows: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """Return the SHA-256 of each trajectory's rows: trajectory, n, data_hash.

    The rows are those of the window already.

    >>> rows = pl.DataFrame({"trajectory": ["a", "a"], "ts": [0, 60], "price": [1.0, None]})
    >>> row_hashes(rows, 0, 120).select("trajectory", "n").row(0)
    ('a', 2)
    """
    del start, end
    found = []
    for part in rows.partition_by("trajectory", maintain_order=True):
        digest = hashlib.sha256()
        for column in part.drop("trajectory").iter_columns():
            digest.update(f"{column.name} {column.dtype}\n".encode())
            if column.dtype.is_numeric():
                digest.update(column.is_null().to_numpy().tobytes())
                digest.update(column.fill_null(0).to_numpy().tobytes())
            else:
                digest.update(pl.DataFrame(column).write_ndjson().encode())
        key = str(part["trajectory"][0])
        found.append({"trajectory": key, "n": part.height, "data_hash": digest.hexdigest()})
    schema: Any = {"trajectory": pl.String, "n": pl.Int64, "data_hash": pl.String}
    return pl.DataFrame(found, schema=schema)


@dataclass(frozen=True, slots=True)
class Screen:
    """The figures of series beside each other, the largest of one column first."""

    family: Family
    figures: Callable[..., pl.DataFrame]
    order: str

    def __call__(self, workspace: Workspace, part: Part, on: On) -> OfMany:
        """Measure the series of a part."""
        asked: dict[str, Any] = {"family": self.family, "streams": part.streams, **on}
        costs = asked if workspace.fees is None else {**asked, "fees": workspace.fees}
        result = workspace.measure(self.figures, *part.window, **costs)
        order_by = self.order.removeprefix("-")
        result = result.with_columns(pl.col("trajectory").cast(pl.String)).sort(
            [order_by, "trajectory"], descending=[True, False], nulls_last=True
        )
        hashes = workspace.measure(row_hashes, *part.window, **asked)
        n, coverage = int(result["n"].sum()), mean_of(result["coverage"])
        return OfMany(result, None, n, coverage, _hash_of(hashes))


def _ranked(workspace: Workspace, part: Part, on: On) -> OfMany:
    """Rank all series of a kind that are held by a figure.

    The figures are those of the statistic that is named as the method.
    """
    for name in part.options:
        if name not in _RANKED_BY:
            raise InputError("option of screen", name, list(_RANKED_BY))
    options: dict[str, Any] = {**part.options, **on}
    result = workspace.screen(*part.window, **options)
    asked: dict[str, Any] = {"family": options.get("family", Family.SPREAD), **on}
    streams = result["trajectory"].cast(pl.String).to_list()
    hashes = workspace.measure(row_hashes, *part.window, streams=streams, **asked)
    n, coverage = int(result["n"].sum()), mean_of(result["coverage"])
    return OfMany(result, None, n, coverage, _hash_of(hashes))


_RANKED_BY = (
    *("family", "symbols", "exchanges", "types", "exclude_symbols", "where", "sort", "top"),
    *("exclude_flags", "notional", "style"),
)
"""Options of a screen that a report can have."""


def _hash_of(hashes: pl.DataFrame) -> str:
    named = hashes.with_columns(pl.col("trajectory").cast(pl.String)).sort("trajectory")
    return hashlib.sha256(named.write_ndjson().encode()).hexdigest()


def _symbol(workspace: Workspace, part: Part, _on: On) -> OfMany:
    """Draw the prices of a symbol's legs, their funding and the symbol's events on one axis.

    The result has what each stream has in the window. One without a row is not drawn.
    """
    symbol = str(part.options["symbol"])
    held = {key: _held(workspace, key, part) for key in part.streams}
    series = [each for each in held.values() if each is not None]
    prices = [_prices(each) for each in series if isinstance(each, PriceSeries)]
    rates = [side for each in series if isinstance(each, FundingSeries) for side in _rates(each)]
    lives = [each.lifecycles() for each in series if isinstance(each, EventSeries)]
    chart = symbol_chart(
        pl.concat([pl.DataFrame(schema=_PRICES), *prices]),
        pl.concat([pl.DataFrame(schema=_RATES), *rates]).unique(["leg", "ts"], keep="first"),
        pl.concat([pl.DataFrame(schema=_LIVES), *(each.select(*_LIVES) for each in lives)]).filter(
            symbol=symbol
        ),
        symbol=symbol,
        start=part.start,
        end=part.end,
        source=workspace.store.source,
    )
    rows = [(key, *_basis(each)) for key, each in held.items()]
    result = pl.DataFrame(rows, schema=_BASIS, orient="row")
    digest = hashlib.sha256("".join(each.data_hash for each in series).encode()).hexdigest()
    return OfMany(result, chart, int(result["n"].sum()), mean_of(result["coverage"]), digest)


def _held(workspace: Workspace, key: str, part: Part) -> Series | None:
    try:
        return workspace.series(key, *part.window)
    except EmptyWindowError:
        return None


def _basis(series: Series | None) -> tuple[int, float | None]:
    if series is None or not len(series):
        return 0, None
    coverage = getattr(series, "coverage", None)
    return len(series), None if coverage is None else coverage()["coverage"][0]


def mean_of(values: pl.Series) -> float | None:
    """Return the mean of shares, None without any.

    >>> mean_of(pl.Series([0.5, 1.0, None]))
    0.75
    """
    known = values.drop_nulls().to_list()
    return sum(known) / len(known) if known else None


def _prices(series: PriceSeries) -> pl.DataFrame:
    leg = str(Trajectory.parse(series.stream.key).legs[0])
    return series.df.select(pl.lit(leg).alias("leg"), "ts", "price")


def _rates(series: FundingSeries) -> Iterator[pl.DataFrame]:
    """Yield the rates of the legs that have funding, in percent a year from each settlement on."""
    steps = differential(series.rows)
    for side, leg in Trajectory.parse(series.stream.key).sides.items():
        if leg.market is not Market.SPOT:
            rate = 100 * HOURS_A_YEAR * pl.col(f"{side}_rate_per_hour")
            yield steps.select(pl.lit(str(leg)).alias("leg"), "ts", apr_pct=rate)


_PRICES = {"leg": pl.String, "ts": pl.Int64, "price": pl.Float64}
_BASIS = {"stream": pl.String, "n": pl.Int64, "coverage": pl.Float64}
_RATES = {"leg": pl.String, "ts": pl.Int64, "apr_pct": pl.Float64}
_LIVES: dict[str, Any] = {
    **dict.fromkeys(("family", "symbol", "legs"), pl.String),
    **dict.fromkeys(("t_open", "t_close"), pl.Int64),
    "duration_s": pl.Float64,
    "kind": pl.String,
    "peak": pl.Float64,
    "event_id": pl.String,
}

SCREENS = {
    "screen_spreads": Screen(Family.SPREAD, spread_figures, SPREAD_ORDER),
    "screen_funding": Screen(Family.FUNDING, funding_figures, FUNDING_ORDER),
}
"""The screens of some series, by name."""

OF_MANY: dict[str, Callable[[Workspace, Part, On], OfMany]] = {
    **SCREENS,
    "screen": _ranked,
    "symbol": _symbol,
}
"""What can be asked over several streams, by name."""
