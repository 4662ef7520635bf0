"""The contract of all statistics: the question, the reasons, the column names.

A result row has what it rests on (n, coverage, first and last time, segments, gaps), its window,
and ``method`` with ``params_hash``, which rows share only if computed in the same way. A null
number has its reason in the first ``*_reason`` column to its right, which is null otherwise.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from toolkit.errors import InputError, nearest
from toolkit.intervals import Interval
from toolkit.market import Step, parse_ts
from toolkit.reasons import Reason

Frame = pl.DataFrame | pl.LazyFrame
"""What a statistic reads."""

_TOO_LARGE = 2**60  # so that three times as many seconds stay within 64 bits
_UNITS = ("_log_bps", "_bps", "_pct")
_KEY_TYPES = {"trajectory": "String or integer", "ts": "Int64"}
_FAMILIES: dict[str, Callable[[pl.DataType], bool]] = {
    "String or integer": lambda found: found == pl.String or found.is_integer(),
    "integer": lambda found: found.is_integer(),
    "number or null": lambda found: found.is_numeric() or found == pl.Null,
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: which method, over which window ``[start, end)``, of which column.

    ``column`` None asks about the rows themselves. ``step_s`` None takes each trajectory's own
    step, ``max_stale_s`` None three steps. A mapping of known steps does not change the hash.
    ``options`` are the other arguments of the method.
    """

    method: str
    start: int
    end: int
    column: str | None = None
    step_s: Step = None
    max_stale_s: int | None = None
    options: tuple[tuple[str, str | float | None], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.column, str | None):
            raise InputError("column", self.column, "the name of a column")
        for name in ("start", "end"):
            whole_number(name, getattr(self, name), -(2**62), "Unix seconds")
        for name in ("step_s", "max_stale_s"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                checked = whole_number(name, value, 1, "seconds, at least 1, or None")
                object.__setattr__(self, name, checked)
        Interval.checked(self.start, self.end)

    @property
    def params_hash(self) -> str:
        """The first 16 hex digits of the SHA-256 over all that was asked except the window."""
        return self.hash_of(None)

    def hash_of(self, pair_hash: str | None) -> str:
        """Return the hash for rows of a pair, joined as ``pair_hash`` says (None: not joined)."""
        step_s = None if isinstance(self.step_s, Mapping) else self.step_s
        asked = [self.method, self.column, step_s, self.max_stale_s, *self.options]
        asked += [] if pair_hash is None else [pair_hash]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]

    @property
    def columns(self) -> list[pl.Expr]:
        """The last columns of each result: the window, the method and the hash."""
        return [
            pl.lit(self.start, pl.Int64).alias("window_start"),
            pl.lit(self.end, pl.Int64).alias("window_end"),
            pl.lit(self.method).alias("method"),
            pl.lit(self.params_hash).alias("params_hash"),
        ]


def collected(rows: Frame, *, streaming: bool = False) -> pl.DataFrame:
    """Read rows into memory, in the order that the query states.

    Otherwise polars drops an order that no later step shows, and sums differ from run to run. So do
    the sums of ``streaming``, which saves memory.
    """
    engine: Literal["streaming", "in-memory"] = "streaming" if streaming else "in-memory"
    return rows.lazy().collect(engine=engine, optimizations=_keeps_order())


def collected_batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield rows in batches, in the order that the query states."""
    return rows.collect_batches(engine="streaming", optimizations=_keeps_order(), lazy=True)


def _keeps_order() -> pl.QueryOptFlags:
    return pl.QueryOptFlags(check_order_observe=False)


def column_for(column: str, statistic: str) -> str:
    """Return the name of a statistic of a column, with the unit at its end."""
    for unit in _UNITS:
        if column.endswith(unit):
            return f"{column.removesuffix(unit)}_{statistic}{unit}"
    return f"{column}_{statistic}"


def beside(found: pl.DataFrame, other: pl.DataFrame, name: str) -> pl.DataFrame:
    """Put figures of the same trajectories after those found, with ``NAME_method`` and its hash."""
    own = {each: f"{name}_{each}" for each in ("method", "params_hash")}
    added = other.rename(own, strict=False).select("trajectory", pl.exclude(found.columns))
    return found.join(added, on="trajectory", how="left", maintain_order="left")


def unfolded(found: pl.DataFrame, lists: Sequence[str], length: int, place: str) -> pl.DataFrame:
    """Give each item of lists of ``length`` items (null: nulls) its own row and place, from 0."""
    schema = found.schema
    filled = [
        pl.col(name).fill_null(pl.lit(None, schema[name].inner).repeat_by(length))  # type: ignore[attr-defined]  # of a list
        for name in lists
    ]
    return found.with_columns(*filled, pl.int_ranges(length).alias(place)).explode(*lists, place)


def first_reason(cases: Mapping[Reason, pl.Expr]) -> pl.Expr:
    """Build the first reason whose condition is true, null if none is."""
    return pl.coalesce(
        pl.when(condition).then(pl.lit(reason.value)).otherwise(pl.lit(None, pl.String))
        for reason, condition in cases.items()
    )


def whole_number(name: str, value: Any, least: int, of: str = "") -> int:
    """Return a whole number of Python's or numpy's, or raise `InputError` if it is out of range."""
    kind: Any = type(value)
    if kind is not bool and issubclass(kind, numbers.Integral) and least <= value < _TOO_LARGE:
        return int(value)
    raise InputError(
        name, value, f"a whole number of {of}" if of else f"a whole number from {least}"
    )


def real_number(
    name: str, value: Any, allowed: str, *, above: float = -math.inf, least: float = -math.inf
) -> float:
    """Return a finite number of Python's or numpy's, or raise `InputError`."""
    if issubclass(type(value), numbers.Real) and type(value) is not bool:
        number = float(value)
        if math.isfinite(number) and number > above and number >= least:
            return number
    raise InputError(name, value, allowed)


def checked_frame(frame: object, parameter: str = "frame") -> None:
    """Raise `InputError` for anything but a polars frame, with advice on how to make one."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return
    made_by = {"pandas": "pl.from_pandas(...)", "pyarrow": "pl.from_arrow(...)"}
    advice = "give its .df" if hasattr(frame, "df") else ""
    if (module := type(frame).__module__.partition(".")[0]) in made_by:
        advice = f"{made_by[module]} makes one of it"
    raise InputError(parameter, frame, "a polars frame", advice=advice)


def checked_column(frame: Frame, column: object) -> None:
    """Raise `InputError` for a name that is not a column of the frame."""
    checked_frame(frame)
    schema = frame.collect_schema()
    if not isinstance(column, str) or column not in schema:
        numbers_of = [name for name, found in schema.items() if found == pl.Float64]
        raise InputError(
            "column", column, numbers_of or "a column of Float64, of which it has none"
        )


def checked_columns(frame: Frame, *values: str, keyed: bool = True) -> None:
    """Raise `InputError` unless the frame has the key and the Float64 columns ``values``.

    The key (unless ``keyed`` is False) is ``trajectory``, a String or integer, and ``ts``, Int64
    Unix seconds UTC.
    """
    checked_types(frame, (_KEY_TYPES if keyed else {}) | dict.fromkeys(values, "Float64"))


def checked_types(frame: Frame, expected: Mapping[str, str], *, parameter: str = "frame") -> None:
    """Raise `InputError` unless the frame has the columns, each of the type or kind named."""
    checked_frame(frame, parameter)
    schema = frame.collect_schema()
    wrong = []
    for name, allowed in expected.items():
        found = schema.get(name)
        if found is None:
            near = nearest(name, schema)
            wrong.append(f"no {name} (it has {near[0]})" if near else f"no {name}")
        elif not (_FAMILIES[allowed](found) if allowed in _FAMILIES else str(found) == allowed):
            wrong.append(f"{name} is {found}")
    if wrong:
        columns = ", ".join(f"{name} ({allowed})" for name, allowed in expected.items())
        dated = isinstance(schema.get("ts"), pl.Datetime) and "ts" in expected
        advice = "pl.col('ts').dt.epoch('s') gives seconds" if dated else ""
        raise InputError(parameter, ", ".join(wrong), f"columns {columns}", advice=advice)


def checked_names(parameter: str, given: str | Sequence[str], columns: Iterable[str]) -> list[str]:
    """Return the names of some columns, also of one alone, or raise `InputError`."""
    names, known = [given] if isinstance(given, str) else list(given), list(columns)
    for name in names:
        if name not in known:
            raise InputError(parameter, name, known)
    return names


def checked_times(frame: pl.DataFrame) -> None:
    """Raise `InputError` if ``ts`` cannot be seconds, as a count of milliseconds cannot."""
    for edge in (frame["ts"].min(), frame["ts"].max()):
        if edge is not None:
            parse_ts(edge, parameter="ts")  # type: ignore[arg-type]  # an integer column
