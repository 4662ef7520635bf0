"""The contract of every statistic: the question, the reasons, the column names.

A result row carries what it rests on (n, coverage, first and last time, segments, gaps), the window
it was asked for, and ``method`` with ``params_hash``, which two rows share exactly when they were
computed in the same way. A number that cannot be had is null, and the reason is in the first
``*_reason`` column to its right. That column is null where nothing is missing.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
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

    ``column`` None asks about the rows themselves, whatever they hold. ``step_s`` None takes each
    trajectory's own step, ``max_stale_s`` None three steps. Steps that are known of trajectories
    are their own, and so nothing that was asked. ``options`` is whatever else the method was given:
    names and values.

    >>> Question("quality.coverage/1", 0, 3600, step_s=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: step_s: 0 is not allowed; allowed: a whole number of seconds, ...
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
        """The first 16 hex digits of the SHA-256 over all that was asked except the window.

        >>> hour, day = (Question("quality.coverage/1", 0, end) for end in (3600, 86400))
        >>> hour.params_hash == day.params_hash
        True
        """
        return self.hash_of(None)

    def hash_of(self, pair_hash: str | None) -> str:
        """Return the hash of what is asked of a pair's rows, which were joined in their own way.

        ``pair_hash`` None is that of rows that were not joined.

        >>> asked = Question("quality.coverage/1", 0, 3600)
        >>> asked.hash_of(None) == asked.params_hash, asked.hash_of("a1") == asked.params_hash
        (True, False)
        """
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
    """Read rows into memory, each step in the order that the query states.

    Without this polars drops an order that no later step shows. A sum then depends on which row
    happened to come first: its last digits differ from run to run. With ``streaming`` steps take
    some rows at a time, which holds less. Its own sums differ from run to run, so it sums nothing.

    >>> collected(pl.LazyFrame({"ts": [0, 60]})).height
    2
    """
    engine: Literal["streaming", "in-memory"] = "streaming" if streaming else "in-memory"
    return rows.lazy().collect(engine=engine, optimizations=_keeps_order())


def collected_batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield rows some at a time, in the order that the query states.

    >>> [batch.height for batch in collected_batches(pl.LazyFrame({"ts": [0, 60]}))]
    [2]
    """
    return rows.collect_batches(engine="streaming", optimizations=_keeps_order(), lazy=True)


def _keeps_order() -> pl.QueryOptFlags:
    return pl.QueryOptFlags(check_order_observe=False)


def column_for(column: str, statistic: str) -> str:
    """Return the name of a statistic of a column, with the unit at its end.

    >>> column_for("spread_log_bps", "mean"), column_for("buy_price", "mean")
    ('spread_mean_log_bps', 'buy_price_mean')
    """
    for unit in _UNITS:
        if column.endswith(unit):
            return f"{column.removesuffix(unit)}_{statistic}{unit}"
    return f"{column}_{statistic}"


def beside(found: pl.DataFrame, other: pl.DataFrame, name: str) -> pl.DataFrame:
    """Put the figures of another statistic of the same trajectories after those found.

    Columns that both have are those of ``found``. How the others were computed is in
    ``NAME_method`` and ``NAME_params_hash``.

    >>> found = pl.DataFrame({"trajectory": ["a"], "n": [3], "method": ["gross/1"]})
    >>> net = pl.DataFrame({"trajectory": ["a"], "n": [3], "net": [2.0], "method": ["net/1"]})
    >>> beside(found, net, "net").row(0, named=True)
    {'trajectory': 'a', 'n': 3, 'method': 'gross/1', 'net': 2.0, 'net_method': 'net/1'}
    """
    own = {each: f"{name}_{each}" for each in ("method", "params_hash")}
    added = other.rename(own, strict=False).select("trajectory", pl.exclude(found.columns))
    return found.join(added, on="trajectory", how="left", maintain_order="left")


def unfolded(found: pl.DataFrame, lists: Sequence[str], length: int, place: str) -> pl.DataFrame:
    """Give each item of lists a row of its own, with its place in its list, from 0.

    All lists have ``length`` items. A null counts as a list of nulls.

    >>> found = pl.DataFrame({"trajectory": ["a", "b"], "mean": [[1.0, 2.0], None]})
    >>> unfolded(found, ["mean"], 2, "hour").rows()
    [('a', 1.0, 0), ('a', 2.0, 1), ('b', None, 0), ('b', None, 1)]
    """
    schema = found.schema
    filled = [
        pl.col(name).fill_null(pl.lit(None, schema[name].inner).repeat_by(length))  # type: ignore[attr-defined]  # of a list
        for name in lists
    ]
    return found.with_columns(*filled, pl.int_ranges(length).alias(place)).explode(*lists, place)


def first_reason(cases: Mapping[Reason, pl.Expr]) -> pl.Expr:
    """Build the expression of the first reason with a true condition, null where none is.

    >>> frame = pl.DataFrame({"n": [0, 1, 2]})
    >>> n = pl.col("n")
    >>> reason = first_reason({Reason.EMPTY: n == 0, Reason.TOO_FEW: n < 2})
    >>> frame.select(reason).to_series().to_list()
    ['empty', 'too_few', None]
    """
    return pl.coalesce(
        pl.when(condition).then(pl.lit(reason.value)).otherwise(pl.lit(None, pl.String))
        for reason, condition in cases.items()
    )


def whole_number(name: str, value: Any, least: int, of: str = "") -> int:
    """Return a whole number of Python's or numpy's, or raise `InputError` where it is out of range.

    >>> whole_number("points", 8.5, 5)
    Traceback (most recent call last):
    toolkit.errors.InputError: points: 8.5 is not allowed; allowed: a whole number from 5
    """
    kind: Any = type(value)
    if kind is not bool and issubclass(kind, numbers.Integral) and least <= value < _TOO_LARGE:
        return int(value)
    raise InputError(
        name, value, f"a whole number of {of}" if of else f"a whole number from {least}"
    )


def real_number(name: str, value: Any, allowed: str, *, above: float = -math.inf) -> float:
    """Return a finite number of Python's or numpy's, or raise `InputError`.

    >>> real_number("threshold_bps", 25, "basis points above 0", above=0)
    25.0
    """
    if issubclass(type(value), numbers.Real) and type(value) is not bool:
        number = float(value)
        if math.isfinite(number) and number > above:
            return number
    raise InputError(name, value, allowed)


def checked_frame(frame: object, parameter: str = "frame") -> None:
    """Raise an `InputError` for anything but a frame of polars: it names how to make one of it.

    >>> checked_frame([1.0])
    Traceback (most recent call last):
    toolkit.errors.InputError: frame: [1.0] is not allowed; allowed: a polars frame
    """
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return
    made_by = {"pandas": "pl.from_pandas(...)", "pyarrow": "pl.from_arrow(...)"}
    advice = "give its .df" if hasattr(frame, "df") else ""
    if (module := type(frame).__module__.partition(".")[0]) in made_by:
        advice = f"{made_by[module]} makes one of it"
    raise InputError(parameter, frame, "a polars frame", advice=advice)


def checked_column(frame: Frame, column: object) -> None:
    """Raise an `InputError` for the name of a column that the frame has not.

    >>> checked_column(pl.DataFrame({"spread_bps": [1.0]}), "spred_bps")
    Traceback (most recent call last):
    toolkit.errors.InputError: column: 'spred_bps' is not allowed; allowed: spread_bps; nearest: ...
    """
    checked_frame(frame)
    schema = frame.collect_schema()
    if not isinstance(column, str) or column not in schema:
        numbers_of = [name for name, found in schema.items() if found == pl.Float64]
        raise InputError(
            "column", column, numbers_of or "a column of Float64, of which it has none"
        )


def checked_columns(frame: Frame, *values: str, keyed: bool = True) -> None:
    """Raise an `InputError` unless the frame has the key and the value columns, in their types.

    ``values`` are Float64. The key (left out where ``keyed`` is False) is ``trajectory``, a String
    or an integer, and ``ts``, Int64 Unix seconds UTC.

    >>> checked_columns(pl.DataFrame({"trajectory": ["a"], "ts": [0.5]}))
    Traceback (most recent call last):
    toolkit.errors.InputError: frame: 'ts is Float64' is not allowed; allowed: columns trajectory
    (String or integer), ts (Int64)
    """
    checked_types(frame, (_KEY_TYPES if keyed else {}) | dict.fromkeys(values, "Float64"))


def checked_types(frame: Frame, expected: Mapping[str, str], *, parameter: str = "frame") -> None:
    """Raise an `InputError` unless the frame has the columns, each of the type or kind named.

    >>> checked_types(pl.DataFrame({"hours": [8]}), {"hours": "number or null"})
    >>> checked_types(pl.DataFrame({"hours": ["8"]}), {"hours": "Float64"})
    Traceback (most recent call last):
    toolkit.errors.InputError: frame: 'hours is String' is not allowed; allowed: columns hours
    (Float64)
    """
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


def checked_times(frame: pl.DataFrame) -> None:
    """Raise an `InputError` where ``ts`` cannot be seconds, as a count of milliseconds cannot.

    >>> checked_times(pl.DataFrame({"ts": [1700000000000]}))
    Traceback (most recent call last):
    toolkit.errors.InputError: ts: 1700000000000 is not allowed; ... milliseconds: divide by 1,000
    """
    for edge in (frame["ts"].min(), frame["ts"].max()):
        if edge is not None:
            parse_ts(edge, parameter="ts")  # type: ignore[arg-type]  # an integer column
