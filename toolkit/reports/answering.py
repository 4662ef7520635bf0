"""Parts of a report: result, chart, and the hashes by which both are compared."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

import polars as pl

from toolkit import charts
from toolkit.charts import Figure, symbol_chart
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import Family, Market, Trajectory
from toolkit.reports.recipe import Part, PartResult, Value
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
from toolkit.workspace.events.event_selection import AROUND

On = Mapping[str, Any]
"""``cluster`` and ``plain_text`` of `Workspace.measure`, for many streams."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A result and its chart. Over many streams ``n`` is summed, ``coverage`` averaged."""

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
class ScreenPart:
    """The figures of series beside each other, the largest of one column first."""

    family: Family
    figures: Callable[..., pl.DataFrame]
    order: str

    def __call__(self, workspace: Workspace, part: Part, on: On) -> Computed:
        """Measure the series of a part."""
        asked: dict[str, Any] = {"family": self.family, "streams": part.streams, **on}
        costs = asked if workspace.fees is None else {**asked, "fees": workspace.fees}
        result = workspace.measure(self.figures, *part.window, **costs)
        order_by = self.order.removeprefix("-")
        result = result.with_columns(pl.col("trajectory").cast(pl.String)).sort(
            [order_by, "trajectory"], descending=[True, False], nulls_last=True
        )
        return _screened(workspace, part, result, asked)


def _ranked(workspace: Workspace, part: Part, on: On) -> Computed:
    """Rank all stored series of a kind by a figure.

    The figures are those of the method's statistic.
    """
    for name in part.options:
        if name not in _RANKED_BY:
            raise InputError("option of screen", name, list(_RANKED_BY))
    options: dict[str, Any] = {**part.options, **on}
    result = workspace.screen(*part.window, **options)
    streams = result["trajectory"].cast(pl.String).to_list()
    asked = {"family": options.get("family", Family.SPREAD), "streams": streams, **on}
    return _screened(workspace, part, result, asked)


_RANKED_BY = (
    *("family", "symbols", "exchanges", "types", "exclude_symbols", "where", "sort", "top"),
    *("exclude_flags", "notional", "style"),
)
"""Options of a screen in a report."""


def _screened(
    workspace: Workspace, part: Part, result: pl.DataFrame, asked: dict[str, Any]
) -> Computed:
    hashes = workspace.measure(row_hashes, *part.window, **asked)
    named = hashes.with_columns(pl.col("trajectory").cast(pl.String)).sort("trajectory")
    digest = hashlib.sha256(named.write_ndjson().encode()).hexdigest()
    return Computed(result, None, int(result["n"].sum()), mean_of(result["coverage"]), digest)


def _symbol(workspace: Workspace, part: Part, _on: On) -> Computed:
    """Draw the prices of a symbol's legs, their funding and the symbol's events on one axis.

    The result has what each stream has. One without a row is not drawn.
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
    rows = [(key, *_held_of(each)) for key, each in held.items()]
    result = pl.DataFrame(rows, schema=_BASIS, orient="row")
    digest = hashlib.sha256("".join(each.data_hash for each in series).encode()).hexdigest()
    return Computed(result, chart, int(result["n"].sum()), mean_of(result["coverage"]), digest)


def _held(workspace: Workspace, key: str, part: Part) -> Series | None:
    try:
        return workspace.series(key, *part.window)
    except EmptyWindowError:
        return None


def _held_of(series: Series | None) -> tuple[int, float | None]:
    if series is None or not len(series):
        return 0, None
    coverage = getattr(series, "coverage", None)
    return len(series), None if coverage is None else coverage()["coverage"][0]


def mean_of(values: pl.Series) -> float | None:
    """Return the mean of shares, None without any."""
    known = values.drop_nulls().to_list()
    return sum(known) / len(known) if known else None


def _prices(series: PriceSeries) -> pl.DataFrame:
    leg = str(Trajectory.parse(series.stream.key).legs[0])
    return series.df.select(pl.lit(leg).alias("leg"), "ts", "price")


def _rates(series: FundingSeries) -> Iterator[pl.DataFrame]:
    """Yield the rates of the legs with funding, in percent a year from each settlement on."""
    steps = differential(series.rows)
    for side, leg in Trajectory.parse(series.stream.key).sides.items():
        if leg.market is not Market.SPOT:
            rate = 100 * HOURS_A_YEAR * pl.col(f"{side}_rate_per_hour")
            yield steps.select(pl.lit(str(leg)).alias("leg"), "ts", apr_pct=rate)


_PRICES = {"leg": pl.String, "ts": pl.Int64, "price": pl.Float64}
_BASIS = {"stream": pl.String, "n": pl.Int64, "coverage": pl.Float64}
_RATES = {"leg": pl.String, "ts": pl.Int64, "apr_pct": pl.Float64}
_LIVES = schema_of(
    also=("family", "symbol", "legs", "t_open", "t_close", "duration_s", "kind", "peak", "event_id")
)

SCREENS = {
    "screen_spreads": ScreenPart(Family.SPREAD, spread_figures, SPREAD_ORDER),
    "screen_funding": ScreenPart(Family.FUNDING, funding_figures, FUNDING_ORDER),
}
"""The screens of some series, by name."""

OF_MANY: dict[str, Callable[[Workspace, Part, On], Computed]] = {
    **SCREENS,
    "screen": _ranked,
    "symbol": _symbol,
}
"""Parts over several streams, by name."""


SHOWN_ROWS = 20
"""The number of rows of a result in the file. The hash is of all."""

_LONGEST_CELL = 200


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """A part with its answer, and its chart where it has one."""

    part: Part
    answer: PartResult
    chart: Figure | None


Read = Callable[[str, int, int], Series]
"""Reads a stream's series of a window, by its key."""


def reader(workspace: Workspace) -> Read:
    """Return a reader of series for parts, which reads one for consecutive parts once."""
    return lru_cache(maxsize=1)(workspace.series)


def answered(workspace: Workspace, part: Part, read: Read | None = None, **on: Any) -> MeasuredPart:
    """Compute a part over a workspace.

    ``read`` is the workspace's `reader`, to share series between parts. ``on`` has ``cluster`` and
    ``plain_text`` as in `toolkit.workspace.Workspace.measure`, for parts of many streams.

    Raises `InputError` for an unknown method, and the errors of reading and of the method.
    """
    if part.stream:
        series = (read or reader(workspace))(part.stream, *part.window)
        return _of_series(part, series, partial(workspace.around, cast("EventSeries", series)))
    if part.what not in OF_MANY:
        raise InputError("part", part.what, list(OF_MANY))
    return _answered(part, OF_MANY[part.what](workspace, part, on))


def method_of(series: Series, name: str, options: Any) -> Callable[..., Any]:
    """Return the method of a series with a name. Raises `InputError` for an unknown one."""
    every = {each: getattr(type(series), each) for each in dir(type(series))}
    known = {each: method.options for each, method in every.items() if hasattr(method, "options")}
    if name not in known:
        raise InputError("part", name, list(known))
    for option in options:
        if option not in known[name]:
            raise InputError(f"option of {name}", option, known[name] or "none")
    found: Callable[..., Any] = getattr(series, name)
    return found


def _of_series(part: Part, series: Series, around: Callable[..., pl.LazyFrame]) -> MeasuredPart:
    method = method_of(series, part.what, part.options)
    on = {"on": part.options["on"]} if "on" in part.options else {}
    rows = {name: around(**on) for name in AROUND if name in cast("Any", method).options}
    found = method(**rows, **part.options)
    result, chart = pl.DataFrame(), found
    if isinstance(found, pl.DataFrame):
        result, chart = found, _chart(series, found, part)
    elif not isinstance(found, Figure):
        raise InputError("part", part.what, "what gives a result or a chart")
    n, coverage = len(series), None
    if hasattr(series, "coverage") and n:
        n, coverage = series.coverage().select("n", "coverage").row(0)
    return _answered(part, Computed(result, chart, n, coverage, series.data_hash))


_LINES = {"survival": "survival_curve"}
"""Methods whose chart draws the rows of another with the same options."""


def _chart(series: Series, result: pl.DataFrame, part: Part) -> Figure | None:
    analysis = part.analysis
    if analysis is None or not analysis.chart:
        return None
    rows = result
    if part.what in _LINES:
        rows = method_of(series, _LINES[part.what], part.options)(**part.options)
    drawn: Figure = getattr(charts, analysis.chart)(rows, source=series.source)
    return drawn


def _answered(part: Part, found: Computed) -> MeasuredPart:
    result, chart = found.result, found.chart
    drawn = "" if chart is None else hashlib.sha256(chart.to_json().encode()).hexdigest()
    method = str(result["method"][0]) if "method" in result.columns and result.height else ""
    shown = [
        {name: _value(value) for name, value in row.items()}
        for row in result.head(SHOWN_ROWS).iter_rows(named=True)
    ]
    basis = found.n, found.coverage, found.data_hash
    answer = PartResult(*basis, result_hash(result), drawn, result.height, method, shown)
    return MeasuredPart(part, answer, chart)


def result_hash(result: pl.DataFrame) -> str:
    """Return the SHA-256 of a result: its columns, and its rows as lines of JSON.

    >>> result_hash(pl.DataFrame({"n": [1]}))[:8] == result_hash(pl.DataFrame({"m": [1]}))[:8]
    False
    """
    columns = json.dumps([(name, str(kind)) for name, kind in result.schema.items()])
    return hashlib.sha256(f"{columns}\n{result.write_ndjson()}".encode()).hexdigest()


def _value(value: object) -> Value:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value[:_LONGEST_CELL] if isinstance(value, str) else value
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return str(value)[:_LONGEST_CELL]
