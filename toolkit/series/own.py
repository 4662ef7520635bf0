"""Rows of the analyst's own as a series: prices, spreads or funding of a frame or a file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args
from zoneinfo import ZoneInfo

import polars as pl
from polars.exceptions import PolarsError

from toolkit.cards import counted
from toolkit.errors import InputError, nearest
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory, format_ts, parse_ts
from toolkit.series.base import Origin
from toolkit.series.prices import PriceSeries
from toolkit.series.trajectories import FundingSeries, SpreadSeries
from toolkit.statistics.contract import checked_frame, whole_number
from toolkit.statistics.spread import with_spread
from toolkit.tables import SERIES

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types

Unit = Literal["s", "ms", "us", "ns"]
"""Of a time that is a number."""
Stamp = Literal["start", "end"]
"""Which end of its bar a row's time is."""

_PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NEEDED = {
    Family.PRICE: ("price",),
    Family.SPREAD: ("buy_price", "sell_price"),
    Family.FUNDING: ("buy_rate", "sell_rate"),
}
_PRICES = ("price", "mark_price", "buy_price", "sell_price")


def own_series(
    data: pl.DataFrame | pd.DataFrame | str | Path,
    key: str | Trajectory,
    *,
    columns: Mapping[str, str] | None = None,
    unit: Unit = "s",
    timezone: str | None = None,
    stamped: Stamp = "start",
    step_s: int | None = None,
    name: str = "a frame",
) -> PriceSeries | SpreadSeries | FundingSeries:
    """Make a series of one's own rows, to be measured and compared like any other.

    ``data`` is a frame of polars or pandas, or a file that ends in .csv or .parquet. The index of a
    frame of pandas is read where it is of times, as ``ts`` where it has no name. A column of its
    name goes before it. ``key`` names what the rows are, with an exchange of one's own choice:
    ``BTC_USD:VENDOR.spot``, two legs for a spread, ``funding/`` before them for settled rates.
    ``columns`` has the file's name for each of ours that it names otherwise:
    ``{"ts": "time", "price": "close"}``. Ours are ``ts`` and those of the table in docs/store.md:
    price, mark_price and volume; buy_price, sell_price and spread_pct; buy_rate, sell_rate,
    buy_interval_hours and sell_interval_hours, rates as fractions.

    A time is a number in ``unit`` since 1970, a Datetime, or text such as 2023-03-10 12:00:00. One
    without a zone needs ``timezone``. ``stamped`` is which end of its bar a row's time is: ``end``
    moves it back by a step, as here ``ts`` is a bar's start. The step is ``step_s``, else the
    commonest difference of times. Values that are null, NaN or infinite are kept as null. Rows may
    come in any order. The window is from the first row to the end of the last. Nothing is stored,
    and nothing is known of rows that are missing. ``name`` is the source of a frame in charts and
    tables. The source of a file is its own name with its hash.

    Raises
    ------
    InputError
        A file, key, column, unit or zone that is none. A time that is null, cannot be read, or lies
        in no year there is (as milliseconds taken for seconds do). Rows that share a time. A price
        that is not above 0. No row. The message counts the rows, and names the first.

    Examples
    --------
    >>> frame = pl.DataFrame({"time": ["2023-03-10 00:01", "2023-03-10 00:02"], "close": [2.0, 3]})
    >>> mine = own_series(frame, "BTC_USD:VENDOR.spot", columns={"ts": "time", "price": "close"},
    ...     timezone="UTC", stamped="end")
    >>> mine.df.select("time", "price").row(0)
    (datetime.datetime(2023, 3, 10, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC')), 2.0)
    """
    stream = Trajectory.parse(key)
    for option, value, allowed in (("unit", unit, Unit), ("stamped", stamped, Stamp)):
        if value not in get_args(allowed):
            raise InputError(option, value, get_args(allowed))
    frame, source, path = _read(data, name)
    rows = _renamed(frame, stream.family, columns or {})
    times = _seconds(rows["ts"], unit, timezone)
    rows = rows.with_columns(times.alias("ts")).sort("ts")
    _check_times(rows["ts"])
    step = _step(rows["ts"]) if step_s is None else whole_number("step_s", step_s, 1, "seconds")
    if stamped == "end":
        if stream.family is Family.FUNDING:
            raise InputError("stamped", stamped, "start: a settlement is a moment, and no bar")
        if step is None:
            raise InputError("step_s", None, "seconds: one row alone does not show its length")
        rows = rows.with_columns(pl.col("ts") - step)
    rows = _values(rows, stream)
    last = int(rows["ts"][-1]) + (step or 1)
    window = Interval(int(rows["ts"][0]), last)
    origin = Origin(source, path, step_s=step, delay_s=0, notes=("rows of one's own",))
    if stream.family is Family.PRICE:
        return PriceSeries(stream, window, origin, rows)
    if stream.family is Family.SPREAD:
        return SpreadSeries(stream, window, origin, with_spread(rows))
    return FundingSeries(stream, window, origin, rows)


def _read(
    data: pl.DataFrame | pd.DataFrame | str | Path, name: str
) -> tuple[pl.DataFrame, Source, Path]:
    """Return the rows, their source and where they were. ``name`` is that of a frame."""
    if not isinstance(data, str | Path):
        if type(data).__module__.partition(".")[0] == "pandas":
            data = _of_pandas(data)
        checked_frame(data, "data")
        frame = data.lazy().collect()
        return frame, Source("own", name), Path(name)
    path = Path(data)
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(
            "data", str(data), "a frame of polars or pandas, or a file .csv or .parquet"
        )
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        frame = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    except (OSError, PolarsError) as error:
        why = str(error).splitlines()[0]
        raise InputError("data", str(data), "a file that can be read", advice=why) from None
    return frame, Source("own", f"{path.name} {digest}"), path


def _of_pandas(data: pd.DataFrame) -> pl.DataFrame:
    """Return a frame of pandas with its index of times as a column, ``ts`` where it has no name."""
    name = data.index.name or "ts"
    if data.index.dtype.kind == "M" and name not in data.columns:
        data = data.rename_axis(index=name).reset_index()
    return pl.from_pandas(data)


def _renamed(frame: pl.DataFrame, family: Family, columns: Mapping[str, str]) -> pl.DataFrame:
    """Return the columns of a family that the frame has, under our names."""
    ours = ["ts", *(column.name for column in SERIES[family].values if column.name != "extra")]
    for name, theirs in columns.items():
        if name not in ours:
            raise InputError("columns", name, ", ".join(ours))
        if theirs not in frame.columns:
            near = nearest(theirs, frame.columns)
            advice = f"nearest: {near[0]}" if near else ""
            raise InputError("columns", theirs, ", ".join(frame.columns), advice=advice)
    found = {name: columns.get(name, name) for name in ours}
    held = {name: theirs for name, theirs in found.items() if theirs in frame.columns}
    for name in ("ts", *_NEEDED[family]):
        if name not in held:
            advice = f'columns={{"{name}": ...}} names it, --map {name}=... on the command line'
            raise InputError("columns", ", ".join(frame.columns), f"one for {name}", advice=advice)
    if frame.is_empty():
        raise InputError("data", "no row", "rows")
    return frame.select(pl.col(theirs).alias(name) for name, theirs in held.items())


def _seconds(times: pl.Series, unit: Unit, timezone: str | None) -> pl.Series:
    """Return times as seconds of UTC."""
    missing = times.null_count()
    if times.dtype == pl.String:
        zoned = times.str.contains(r"(?:Z|[+-]\d\d:?\d\d)$").all()
        times = _parsed(times, "UTC" if zoned else None)
        if bad := times.null_count() - missing:
            raise InputError("ts", f"{counted(bad, 'text')}", "times such as 2023-03-10 12:00:00")
    if missing:
        raise InputError("ts", counted(missing, "null"), "a time in each row")
    if times.dtype.is_integer():
        return times.cast(pl.Int64) // _PER_S[unit]
    if isinstance(times.dtype, pl.Datetime):
        if times.dtype.time_zone is None:
            times = _localized(times, _zone(timezone))
        return times.dt.convert_time_zone("UTC").dt.epoch("s")
    raise InputError("ts", f"a column of {times.dtype}", "whole numbers, times or texts of times")


def _parsed(texts: pl.Series, zone: str | None) -> pl.Series:
    """Read texts as times. What cannot be read is null."""
    try:
        return texts.str.to_datetime(strict=False, time_zone=zone)
    except PolarsError:  # it finds no form for any of them
        return pl.Series(texts.name, [None] * texts.len(), pl.Datetime("us"))


def _localized(times: pl.Series, zone: str) -> pl.Series:
    """Read times by a zone's clock. Where clocks change, some are not there and some are twice."""
    found = times.dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
    if bad := found.null_count():
        first = times.filter(found.is_null())[0]
        given = f"{counted(bad, 'time')}, the first {first}"
        raise InputError("ts", given, f"times that {zone} has once", advice="times in UTC are")
    return found


def _zone(timezone: str | None) -> str:
    if timezone is None:
        advice = 'timezone="UTC" where they are UTC, --timezone UTC on the command line'
        raise InputError("timezone", None, "that of times without one", advice=advice)
    try:
        return ZoneInfo(timezone).key
    except (KeyError, ValueError, OSError):
        raise InputError("timezone", timezone, "a name such as UTC or Europe/Berlin") from None


def _check_times(times: pl.Series) -> None:
    """Refuse times of no year there is, and times that rows share. They are sorted."""
    for edge in (times.min(), times.max()):
        parse_ts(edge, parameter="ts")  # type: ignore[arg-type]  # an integer column
    shared = times.filter(times.is_duplicated())
    if shared.len():
        first = format_ts(int(shared[0]))
        raise InputError("ts", f"{shared.len():,} rows that share a time", f"one row at {first}")


def _step(times: pl.Series) -> int | None:
    """Return the commonest difference of sorted times, the smallest of several, None of one."""
    spacings = times.diff().drop_nulls()
    return None if spacings.is_empty() else int(spacings.mode().min())  # type: ignore[arg-type]  # whole numbers


def _values(rows: pl.DataFrame, stream: Trajectory) -> pl.DataFrame:
    """Return the rows as a store has them. Refuse a price that is not above 0."""
    table = SERIES[stream.family]
    names = [column.name for column in table.values if column.name != "extra"]
    for name in [name for name in names if name in rows.columns]:
        if not rows.schema[name].is_numeric() and rows.schema[name] != pl.Null:
            raise InputError("columns", f"{name} is {rows.schema[name]}", "numbers")
    values = [
        pl.col(name).cast(pl.Float64) if name in rows.columns else pl.lit(None, pl.Float64)
        for name in names
    ]
    finite = [
        pl.when(value.is_finite()).then(value).alias(name)
        for name, value in zip(names, values, strict=True)
    ]
    found = rows.select(pl.lit(stream.key).alias("trajectory"), "ts", *finite)
    for name in [name for name in _PRICES if name in names]:
        bad = found.filter(pl.col(name) <= 0)
        if bad.height:
            first = format_ts(int(bad["ts"][0]))
            given = f"{counted(bad.height, 'value')} of {name}, the first at {first}"
            raise InputError("columns", given, "prices above 0")
    return found
