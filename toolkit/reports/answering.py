"""Computing a part of a report: result and chart, and the hashes by which both are compared."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

import polars as pl

from toolkit import charts
from toolkit.charts import Figure
from toolkit.errors import InputError
from toolkit.reports.many import OF_MANY
from toolkit.reports.recipe import Part, PartResult, Value
from toolkit.series import EventSeries, Series
from toolkit.workspace import Workspace
from toolkit.workspace.events.event_rows import AROUND

SHOWN_ROWS = 20
"""Rows of a result in the file, the first ones. The hash is of all."""

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
    """Return a reader of series for parts. Consecutive parts of one series read it once."""
    return lru_cache(maxsize=1)(workspace.series)


def answered(workspace: Workspace, part: Part, read: Read | None = None, **on: Any) -> MeasuredPart:
    """Compute a part over a workspace.

    ``read`` is the workspace's `reader`, to share series between parts. ``on`` has ``cluster`` and
    ``plain_text`` as in `toolkit.workspace.Workspace.measure`, for parts of many streams.

    Raises `InputError` for an unknown method, and what reading and the method raise.
    """
    if part.stream:
        series = (read or reader(workspace))(part.stream, *part.window)
        return _of_series(part, series, partial(workspace.around, cast("EventSeries", series)))
    if part.what not in OF_MANY:
        raise InputError("part", part.what, list(OF_MANY))
    found = OF_MANY[part.what](workspace, part, on)
    basis = (found.n, found.coverage, found.data_hash)
    return _answered(part, found.result, found.chart, basis)


def method_of(series: Series, name: str, options: Any) -> Callable[..., Any]:
    """Return the method of a series with a name. Raises `InputError` for an unknown one."""
    method = getattr(type(series), name, None) if name.isidentifier() else None
    taken = None if name.startswith("_") else getattr(method, "options", None)
    if method is None or taken is None:
        known = [each for each in dir(type(series)) if hasattr(getattr(type(series), each), _TAKES)]
        raise InputError("part", name, known)
    for option in options:
        if option not in taken:
            raise InputError(f"option of {name}", option, taken or "none")
    found: Callable[..., Any] = getattr(series, name)
    return found


_TAKES = "options"


def _of_series(part: Part, series: Series, around: Callable[..., pl.LazyFrame]) -> MeasuredPart:
    method = method_of(series, part.what, part.options)
    on = {"on": part.options["on"]} if "on" in part.options else {}
    rows = {name: around(**on) for name in AROUND if name in cast("Any", method).options}
    found = method(**rows, **part.options)
    basis = _basis(series)
    if isinstance(found, Figure):
        return _answered(part, pl.DataFrame(), found, basis)
    if not isinstance(found, pl.DataFrame):
        raise InputError("part", part.what, "what gives a result or a chart")
    return _answered(part, found, _chart(series, found, part), basis)


def _basis(series: Series) -> tuple[int | None, float | None, str]:
    n, coverage = len(series), None
    if hasattr(series, "coverage") and n:
        row = series.coverage().row(0, named=True)
        n, coverage = row["n"], row["coverage"]
    return n, coverage, series.data_hash


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


def _answered(
    part: Part,
    result: pl.DataFrame,
    chart: Figure | None,
    basis: tuple[int | None, float | None, str],
) -> MeasuredPart:
    n, coverage, data_hash = basis
    drawn = "" if chart is None else hashlib.sha256(chart.to_json().encode()).hexdigest()
    method = str(result["method"][0]) if "method" in result.columns and result.height else ""
    shown = [
        {name: _value(value) for name, value in row.items()}
        for row in result.head(SHOWN_ROWS).iter_rows(named=True)
    ]
    answer = PartResult(
        n, coverage, data_hash, result_hash(result), drawn, result.height, method, shown
    )
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
