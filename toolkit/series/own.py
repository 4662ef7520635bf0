"""Rows of the analyst's own as a series: prices, spreads or funding of a frame or a file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import polars as pl
from polars.exceptions import PolarsError

from toolkit.cards import counted
from toolkit.errors import InputError, nearest
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory, format_ts
from toolkit.series.base import Origin
from toolkit.series.own_times import Stamp, Unit, bar_starts, commonest_step, moments
from toolkit.series.prices import PriceSeries
from toolkit.series.trajectories import FundingSeries, SpreadSeries
from toolkit.statistics.contract import checked_frame, whole_number
from toolkit.statistics.spread import with_spread
from toolkit.tables import SERIES

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types

Rates = Literal["fraction", "percent"]
"""What a funding rate of one's own is, per interval."""

_NEEDED = {
    Family.PRICE: ("price",),
    Family.SPREAD: ("buy_price", "sell_price"),
    Family.FUNDING: ("buy_rate", "sell_rate"),
}
_PRICES = ("price", "mark_price", "buy_price", "sell_price")
_RATES = ("buy_rate", "sell_rate")
_LARGE, _LARGE_MEDIAN = 0.05, 0.002
"""Beyond which a rate per interval, and their median, is a fraction only where that is said."""


def own_series(
    data: pl.DataFrame | pd.DataFrame | str | Path,
    key: str | Trajectory,
    *,
    columns: Mapping[str, str] | None = None,
    unit: Unit = "s",
    format: str | None = None,  # noqa: A002 - the word of the command line
    timezone: str | None = None,
    stamped: Stamp = "start",
    step_s: int | None = None,
    rates: Rates | None = None,
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
    buy_interval_hours and sell_interval_hours. Values that are null, NaN or infinite are kept as
    null. Rows may come in any order.

    A time is a number in ``unit`` since 1970, a Datetime, or text such as 2023-03-10 12:00:00, or
    as ``format`` says, a form of ``strptime`` (``"%d/%m/%Y %H:%M"``). One without a zone needs
    ``timezone``. All lie in the years 2009 to 2099. ``stamped`` is which end of its bar a row's
    time is: ``end`` moves it back by a step, as here ``ts`` is a bar's start. The last moment of a
    bar (12:00:59, 12:00:59.999) is its end. The step is ``step_s``, else the commonest difference
    of times. Settlements are moments, to the nearest second.

    ``rates`` says whether rates are fractions or percent per interval. They are taken for fractions
    where it does not, but for those beyond 5 %, or with a median beyond 0.2 %.

    The window is from the first row to the end of the last. The notes of the series have the times
    of both rows, and count the rows that were moved, or are off the grid of the step. Nothing is
    stored, and nothing is known of rows that are missing. ``name`` is the source of a frame in
    charts and tables. The source of a file is its own name with its hash.

    Raises
    ------
    InputError
        A file, key, column, unit or zone that is none. A time that is null, that cannot be read or
        can be in two ways (03/01/2023), or that lies in other years: the message names the unit
        that fits. Times of two units. The last moments of bars, stamped at their start. Rows that
        share a time. A price that is not above 0. Rates that are too large. No row. The message
        counts the rows, and names the first.

    Examples
    --------
    >>> frame = pl.DataFrame({"time": ["2023-03-10 00:01", "2023-03-10 00:02"], "close": [2.0, 3]})
    >>> mine = own_series(frame, "BTC_USD:VENDOR.spot", columns={"ts": "time", "price": "close"},
    ...     timezone="UTC", stamped="end")
    >>> mine.df.select("time", "price").row(0)
    (datetime.datetime(2023, 3, 10, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC')), 2.0)
    """
    stream = Trajectory.parse(key)
    options = (
        ("unit", unit, Unit),
        ("stamped", stamped, Stamp),
        ("rates", rates or "percent", Rates),
    )
    for option, value, allowed in options:
        if value not in get_args(allowed):
            raise InputError(option, value, get_args(allowed))
    frame, source, path = _read(data, name)
    rows = _renamed(frame, stream.family, columns or {})
    rows = rows.with_columns(moments(rows["ts"], [unit], timezone, format).alias("ts")).sort("ts")
    step = commonest_step(rows["ts"])
    step = step if step_s is None else whole_number("step_s", step_s, 1, "seconds")
    ts, notes = _starts(rows["ts"], step, stamped, stream.family)
    rows = rows.with_columns(ts.alias("ts"))
    _check_shared(ts)
    rows = _values(rows, stream)
    if stream.family is Family.FUNDING:
        rows, more = _fractions(rows, rates)
        notes += more
    first, last = int(ts[0]), int(ts[-1])
    window = Interval(first, last + (step or 1))
    notes = ["rows of one's own", f"first row {format_ts(first)}, last {format_ts(last)}", *notes]
    origin = Origin(source, path, step_s=step, delay_s=0, notes=tuple(notes))
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


def _starts(
    us: pl.Series, step: int | None, stamped: Stamp, family: Family
) -> tuple[pl.Series, list[str]]:
    """Return the times (s) of rows whose moments are sorted, and what to know of them."""
    if family is not Family.FUNDING:
        return bar_starts(us, step, stamped)
    if stamped == "end":
        raise InputError("stamped", stamped, "start: a settlement is a moment, and no bar")
    return (us + 500_000) // 10**6, []


def _check_shared(times: pl.Series) -> None:
    """Refuse sorted times that rows share."""
    shared = times.filter(times.is_duplicated())
    if shared.len():
        first = format_ts(int(shared[0]))
        raise InputError("ts", f"{shared.len():,} rows that share a time", f"one row at {first}")


def _fractions(rows: pl.DataFrame, rates: Rates | None) -> tuple[pl.DataFrame, list[str]]:
    """Return rates as fractions, with a line on large ones. Without ``rates`` those are refused."""
    if rates == "percent":
        rows = rows.with_columns(pl.col(_RATES) / 100)
    sizes = pl.concat([rows[name] for name in _RATES]).abs()
    sizes = sizes.filter(sizes > 0)
    large, median = sizes.filter(sizes > _LARGE).len(), sizes.median()
    if rates is None and median is not None and (large or median > _LARGE_MEDIAN):  # type: ignore[operator]  # a number
        given = f"{counted(large, 'rate')} beyond 5 % per interval, the median {median:.2%}"
        advice = 'rates="percent" or "fraction" says what they are, --rates on the command line'
        raise InputError("rates", given, "fractions of such a size only if said", advice=advice)
    return rows, [f"{counted(large, 'rate')} beyond 5 % per interval"] if large else []


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
