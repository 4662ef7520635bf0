"""Your own files and frames: columns by name or layout, numbers, and times in UTC."""

from __future__ import annotations

import codecs
import datetime as dt
import gzip
import hashlib
import io
import json
import re
import statistics
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo

import polars as pl
from polars.exceptions import PolarsError

from toolkit.cards import counted, duration
from toolkit.errors import InputError, nearest
from toolkit.market import Source, format_ts
from toolkit.statistics.core.contract import checked_frame

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types

Unit = Literal["s", "ms", "us", "ns"]
"""The unit of times that are numbers."""
Stamp = Literal["start", "end"]
"""The end of its bar that a row's time is."""

_NULL_WORDS = (
    *("", "NaN", "nan", "null", "NULL", "NA", "N/A", "n/a", "#N/A", "None", "none", "-", "--"),
)

_PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_FROM, _UNTIL = (int(dt.datetime(y, 1, 1, tzinfo=dt.UTC).timestamp()) for y in (2009, 2100))
_YEARS = "times of the years 2009 to 2099"
_NUMBER = r"^[+-]?\d+(\.\d*)?$"
_ZONED = r"(?:Z|[+-]\d\d:?\d\d)$"
_YEAR_FIRST = r"^(\d{4})[./](\d{1,2})[./](\d{1,2})"
_YEAR_LAST = r"^(\d{1,2})[./-](\d{1,2})[./-](\d{4})"


def moments(
    times: pl.Series, units: Sequence[Unit], timezone: str | None, form: str | None = None
) -> pl.Series:
    """Return times as whole microseconds of UTC, in the order given.

    Numbers are in the first of ``units`` that puts all into 2009 to 2099. Texts are read by
    ``form``, as of ``strptime``, else as ISO 8601, else with the year last if only one order of day
    and month fits. Times without a zone are in ``timezone``.
    """
    if form is not None:
        times = _by_form(times.cast(pl.String), form)
    elif times.dtype == pl.String:
        times = _of_texts(times)
    if missing := times.null_count():
        raise InputError("ts", counted(missing, "null"), "a time in each row")
    if times.dtype.is_numeric():
        return _of_numbers(times, units)
    if times.dtype == pl.Date:
        times = times.cast(pl.Datetime("us"))
    if not isinstance(times.dtype, pl.Datetime):
        raise InputError("ts", f"a column of {times.dtype}", "numbers, times or texts of times")
    zoned = times if times.dtype.time_zone else _localized(times, _zone(timezone))
    found = zoned.dt.convert_time_zone("UTC").dt.epoch("us")
    outside = found.filter(~_within(found, 10**6))
    if outside.len():
        advice = _made_of(times)
        first = f"the first {_shown(outside[0])}"
        raise InputError("ts", f"{counted(outside.len(), 'time')}, {first}", _YEARS, advice=advice)
    return found


def commonest_step(us: pl.Series) -> int | None:
    """Return the commonest difference (s) of sorted times, the smallest if tied, or None."""
    spacings = (us // 10**6).diff().drop_nulls()
    spacings = spacings.filter(spacings > 0)
    return None if spacings.is_empty() else int(spacings.mode().min())  # type: ignore[arg-type]  # whole numbers


def bar_starts(us: pl.Series, step_s: int | None, stamped: Stamp) -> tuple[pl.Series, list[str]]:
    """Return the starts (s) of the bars of sorted times, and notes.

    If most times are last moments of bars (last second of a minute, thousandth of a second), those
    are moved to the end of their bar, or refused if ``stamped`` is start. Times off the grid are
    kept and counted.
    """
    notes = []
    every, last = (60 * 10**6, 10**6) if step_s and step_s % 60 == 0 else (10**6, 10**3)
    left = every - us % every
    closing = left <= last
    if step_s is not None and 2 * int(closing.sum()) > us.len():
        if stamped == "start":
            given = f"{closing.sum():,} of {us.len():,} times, the first {_shown(us[0])}"
            advice = 'stamped="end", --stamped end on the command line'
            raise InputError("ts", given, "the start of a bar, not its last moment", advice=advice)
        us = us + left * closing.cast(pl.Int64)
        notes.append(
            f"{counted(int(closing.sum()), 'time')} moved from a bar's last moment to its end"
        )
    ts = us // 10**6
    if stamped == "end":
        if step_s is None:
            raise InputError("step_s", None, "seconds: one row alone does not show its length")
        ts = ts - step_s
    phase = ts % (step_s or 1)
    off = ts.filter(phase != phase.mode().min())
    if off.len():
        share = f"{off.len():,} of {ts.len():,} rows"
        grid = duration(step_s or 1)
        notes.append(f"{share} are off the grid of {grid}, the first at {format_ts(int(off[0]))}")
    return ts, notes


def _within(values: pl.Series, per_s: int) -> pl.Series:
    return values.is_between(_FROM * per_s, _UNTIL * per_s, closed="left")


def _shown(us: int) -> str:
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(us))  # noqa: DTZ001 - in UTC
    return f"{moment} UTC"


def _of_numbers(times: pl.Series, units: Sequence[Unit]) -> pl.Series:
    if times.dtype.is_integer():
        times = times.cast(pl.Int64, strict=False)
    fits = {unit: _within(times, per_s).fill_null(value=False) for unit, per_s in _PER_S.items()}
    for unit in units:
        if fits[unit].all():
            return _microseconds(times, unit)
    some = {unit: int(held.sum()) for unit, held in fits.items() if held.any()}
    whole = next((unit for unit, count in some.items() if count == times.len()), None)
    if whole is not None:
        advice = f'unit="{whole}", --unit {whole} on the command line'
        allowed = f"{whole}, as these are {_WORDS[whole]}"
        raise InputError("unit", units[0], allowed, advice=advice)
    if len(some) > 1:
        usual = max(some, key=some.__getitem__)
        other = int((~fits[usual]).arg_max())  # type: ignore[arg-type]  # there is one
        given = " and ".join(f"{count:,} in {_WORDS[unit]}" for unit, count in some.items())
        advice = f"row {other + 1:,} is the first that differs: {times[other]}"
        raise InputError("ts", given, "times of one unit", advice=advice)
    bad = times.filter(~fits[units[0]])
    given = f"{counted(bad.len(), 'number')}, the first {bad[0]}"
    raise InputError("ts", given, f"{_YEARS}, in {_WORDS[units[0]]} since 1970")


def _microseconds(times: pl.Series, unit: Unit) -> pl.Series:
    per_s = _PER_S[unit]
    if times.dtype.is_integer():
        return times * (10**6 // per_s) if per_s <= 10**6 else times // (per_s // 10**6)
    return (times.cast(pl.Float64) * (10**6 / per_s)).round().cast(pl.Int64)


def _made_of(times: pl.Series) -> str:
    """Return advice on the true unit of numbers that gave times outside all years, or ""."""
    taken = times.dtype.time_unit  # type: ignore[attr-defined]  # it is a Datetime
    numbers = times.to_physical()
    for unit, per_s in _PER_S.items():
        if unit != taken and _within(numbers, per_s).all():
            return f"they were made of {_WORDS[unit]} taken for {_WORDS[taken]}"
    return ""


def _of_texts(texts: pl.Series) -> pl.Series:
    texts = texts.str.strip_chars()
    texts = texts.set(texts.is_in(_NULL_WORDS), None)
    given = texts.drop_nulls()
    if given.str.contains(_NUMBER).all():
        whole = not given.str.contains(".", literal=True).any()
        return texts.cast(pl.Int64 if whole else pl.Float64, strict=False)
    texts = texts.str.replace(_YEAR_FIRST, "$1-$2-$3").str.replace(r" ?UTC$", "Z")
    if given.str.contains(_YEAR_LAST).all():
        texts = _year_first(texts, given)
    zoned = texts.drop_nulls().str.contains(_ZONED).all()
    try:
        found = texts.str.to_datetime(strict=False, time_zone="UTC" if zoned else None)
    except PolarsError:  # it finds no form for any of them
        found = pl.Series(texts.name, [None] * texts.len(), pl.Datetime("us"))
    if bad := found.null_count() - texts.null_count():
        first = texts.filter(found.is_null() & texts.is_not_null())[0]
        advice = 'format="%d %b %Y %H:%M" says how they are written, --format on the command line'
        allowed = "times such as 2023-03-10 12:00:00"
        raise InputError("ts", f"{counted(bad, 'text')}, the first {first}", allowed, advice=advice)
    return found


def _year_first(texts: pl.Series, given: pl.Series) -> pl.Series:
    parts = given.str.extract_groups(_YEAR_LAST).struct.unnest()
    first, second = (max(map(int, parts[name])) for name in parts.columns[:2])
    if max(first, second) <= 12:
        rest = re.sub(r"\d{1,2}:\d\d:\d\d", "%H:%M:%S", re.sub(_YEAR_LAST, "", given[0]))
        rest = re.sub(r"\d{1,2}:\d\d", "%H:%M", rest)
        if rest.endswith("M") and rest[-2:] != "%M":
            rest = f"{rest[:-2]}%p".replace("%H", "%I")
        mark = re.sub(r"\d", "", given[0])[0]
        month, day = (
            f'"{mark.join(order)}{rest}"' for order in (("%m", "%d", "%Y"), ("%d", "%m", "%Y"))
        )
        advice = (
            f"format={month} reads the month first, {day} the day; --format on the command line"
        )
        shown = f"{given[0]} to {given[-1]}"
        raise InputError("ts", shown, "dates that can be read in one way", advice=advice)
    return texts.str.replace(_YEAR_LAST, "$3-$1-$2" if second > 12 else "$3-$2-$1")


def _by_form(texts: pl.Series, form: str) -> pl.Series:
    texts = texts.str.strip_chars()
    zone = "UTC" if "%z" in form else None
    try:
        found = texts.str.to_datetime(form, strict=False, time_zone=zone)
    except PolarsError as error:
        why = str(error).splitlines()[0]
        raise InputError("format", form, 'a form such as "%d/%m/%Y %H:%M"', advice=why) from None
    bad = texts.filter(found.is_null() & texts.is_not_null())
    if bad.len():
        given = f"{counted(bad.len(), 'text')}, the first {bad[0]}"
        raise InputError("ts", given, f"times as {form} writes them")
    return found


def _localized(times: pl.Series, zone: str) -> pl.Series:
    """Read times by a zone's clock, on which some times do not exist and some are ambiguous."""
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


@dataclass(frozen=True, slots=True)
class FileLayout:
    """A producer's columns of prices, by name or by place from 1.

    Times are bar starts, in the first of ``units`` that fits all. ``width`` is the number of
    columns, None if it varies. ``{quote}`` is the key's. Volumes in base are left out.
    """

    columns: Mapping[str, str]
    units: tuple[Unit, ...]
    width: int | None
    what: str


_BARS = {"ts": "1", "price": "5"}
LAYOUTS: Mapping[str, FileLayout] = MappingProxyType(
    {
        "binance-klines": FileLayout(
            _BARS | {"volume": "8"},
            ("ms", "us"),
            12,
            "bars of Binance's archive or REST API: 12 columns, with or without a header",
        ),
        "coinbase-candles": FileLayout(
            _BARS, ("s",), 6, "candles of Coinbase Exchange: time, low, high, open, close, volume"
        ),
        "kraken-ohlcvt": FileLayout(
            _BARS, ("s",), 7, "Kraken's downloads: time, open, high, low, close, volume, trades"
        ),
        "tardis-derivative-ticker": FileLayout(
            {"ts": "timestamp", "price": "last_price", "mark_price": "mark_price"},
            ("us",),
            None,
            "Tardis' derivative_ticker: several rows a second, so that `shared` is needed",
        ),
        "ccxt-ohlcv": FileLayout(
            _BARS, ("ms",), 6, "ccxt's fetch_ohlcv: time, open, high, low, close, volume"
        ),
        "cryptodatadownload": FileLayout(
            {"ts": "1", "price": "7", "volume": "Volume {quote}"},
            ("s", "ms"),
            None,
            "CryptoDataDownload: an address, then unix, date, symbol, open, high, low, close, ...",
        ),
    }
)
"""The known layouts by name."""

Decimal = Literal[".", ","]
"""The decimal mark in texts."""


def columns_of(
    frame: pl.DataFrame, ours: Sequence[str], needed: Sequence[str], named: Mapping[str, str]
) -> pl.DataFrame:
    """Return ``ts`` and our other columns of a frame, under our names.

    ``named`` has a column's name in the frame, its place from 1, or several joined by +.
    """
    known = ["ts", *ours]
    for name in named:
        if name not in known:
            raise InputError("columns", name, ", ".join(known))
    if frame.is_empty():
        raise InputError("data", "no row", "rows")
    found = {name: _column(frame, theirs, ours=name) for name, theirs in named.items()}
    found |= {name: pl.col(name) for name in known if name not in named and name in frame.columns}
    for name in ("ts", *needed):
        if name not in found:
            advice = f'columns={{"{name}": ...}} names it, --map {name}=... on the command line'
            raise InputError(
                "columns", _names(frame), f"one for {name}", advice=_header_advice(frame) or advice
            )
    return frame.select(found[name].alias(name) for name in known if name in found)


def number(column: pl.Series, decimal: Decimal | None) -> pl.Series:
    """Return a column as floats. Words for no value are null, other texts are refused.

    ``decimal`` is the decimal mark. By default it is a comma if no text has a dot and not all have
    three digits after it.
    """
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        return column.cast(pl.Float64)
    if column.dtype != pl.String:
        raise InputError("columns", f"{column.name} is {column.dtype}", "numbers")
    texts = column.str.strip_chars()
    texts = texts.set(texts.is_in(_NULL_WORDS), None)
    mark = decimal or _mark(texts)
    plain = texts.str.replace_all("." if mark == "," else ",", "", literal=True)
    found = plain.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    bad = texts.filter(found.is_null() & texts.is_not_null())
    if bad.len():
        given = f"{counted(bad.len(), 'text')} of {column.name}, the first {bad[0]}"
        raise InputError("columns", given, "numbers, or words for none such as NaN, null, NA, -")
    return found


def _mark(texts: pl.Series) -> Decimal:
    commas = texts.filter(texts.str.contains(",", literal=True))
    if commas.is_empty():
        return "."
    dots = texts.str.contains(".", literal=True).any()
    if dots or commas.str.contains(r",\d{3}$").all():
        advice = 'decimal="," or "." says which, --decimal on the command line'
        allowed = "numbers with one mark of decimals"
        raise InputError("columns", f"{texts.name} such as {commas[0]}", allowed, advice=advice)
    return ","


def _column(frame: pl.DataFrame, theirs: str, *, ours: str) -> pl.Expr:
    if theirs in frame.columns:
        return pl.col(theirs)
    if theirs.isdecimal() and 1 <= int(theirs) <= frame.width:
        return pl.col(frame.columns[int(theirs) - 1])
    if ours == "ts" and "+" in theirs:
        parts = [_column(frame, part.strip(), ours="") for part in theirs.split("+")]
        return pl.concat_str([part.cast(pl.String) for part in parts], separator=" ")
    near = nearest(theirs, frame.columns)
    advice = f"nearest: {near[0]}" if near else _header_advice(frame)
    raise InputError("columns", theirs, _names(frame), advice=advice)


def _names(frame: pl.DataFrame) -> str:
    if not _header_advice(frame):
        return ", ".join(frame.columns)
    return f"places 1 to {frame.width}, as in {', '.join(map(str, frame.row(0)))}"


def _header_advice(frame: pl.DataFrame) -> str:
    if frame.columns != [str(place) for place in range(1, frame.width + 1)]:
        return ""
    return "there is no header: columns=(1, 5) are the places of ts and price, --columns 1,5"


_TEXTS, _PACKED = (".csv", ".tsv", ".txt"), (".gz", ".zst")
_ALLOWED = (
    "a frame of polars or pandas, or a file .csv, .tsv, .txt or .json (.gz, .zst) or .parquet"
)
_VALUE = re.compile(r"\"?[+-]?\d[\d.,:/ TZe+-]*\"?")


def is_rows_file(path: str) -> bool:
    """Return whether a file has rows by its name. A .json file may be a manifest."""
    return _kind(path) in (*_TEXTS, ".parquet")


def read_rows(
    data: pl.DataFrame | pd.DataFrame | pd.Series | str | Path, name: str, named: Collection[str]
) -> tuple[pl.DataFrame, Source, Path]:
    """Return the rows, their source and their path. ``name`` is that of a frame.

    Texts stay texts. Columns without a header are named by place from 1. A pandas index is a column
    if it has times, its name is in ``named``, or no column has times.
    """
    if not isinstance(data, str | Path):
        if type(data).__module__.partition(".")[0] == "pandas":
            data = _of_pandas(data, named)
        checked_frame(data, "data")
        return data.lazy().collect(), Source("own", name), Path(name)
    path = Path(data)
    if not is_rows_file(str(path)) and _kind(str(path)) != ".json":
        raise InputError("data", str(data), _ALLOWED)
    try:
        packed = path.read_bytes()
        frame = _parsed(_unpacked(packed), _kind(str(path)))
    except (OSError, EOFError, ValueError, PolarsError, zlib.error) as error:
        why = (str(error) or "it ends too soon").splitlines()[0]
        raise InputError("data", str(data), "a file that can be read", advice=why) from None
    digest = hashlib.sha256(packed).hexdigest()[:16]
    return frame, Source("own", f"{path.name} {digest}"), path


def _kind(path: str) -> str:
    suffixes = [each.lower() for each in Path(path).suffixes]
    return next((each for each in reversed(suffixes) if each not in _PACKED), "")


def _unpacked(data: bytes) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return "\n".join(pl.read_lines(io.BytesIO(data))["line"]).encode()
    return data


def _parsed(data: bytes, kind: str) -> pl.DataFrame:
    if kind == ".parquet":
        frame = pl.read_parquet(io.BytesIO(data))
        unnamed = {} if "ts" in frame.columns else {"__index_level_0__": "ts"}  # pandas' index
        return frame.rename(unnamed, strict=False)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16").encode()
    data = data.removeprefix(codecs.BOM_UTF8)
    return _of_json(json.loads(data)) if kind == ".json" else _of_text(data)


def _of_text(data: bytes) -> pl.DataFrame:
    head = data[:100_000].decode(errors="replace").splitlines()[:50]
    told = ("sep=", "#")  # Excel's word for the separator, and remarks
    lines = {n: line for n, line in enumerate(head) if line.strip() and not line.startswith(told)}
    lines = lines or {0: ""}
    bare = {number: re.sub(r'"[^"]*"', '""', line) for number, line in lines.items()}
    usual = {mark: statistics.mode(line.count(mark) for line in bare.values()) for mark in ";\t|,"}
    separator = next((mark for mark, count in usual.items() if count), ",")
    first = next(n for n, line in bare.items() if line.count(separator) == usual[separator])
    fields = [each.strip() for each in lines[first].split(separator)]
    header = not fields[0] or not any(map(_VALUE.fullmatch, fields))  # pandas' index has no name
    frame = pl.read_csv(
        data,
        separator=separator,
        has_header=header,
        skip_lines=first,
        infer_schema=False,
        encoding="utf8-lossy",
    )
    return frame.rename(str.strip) if header else _by_place(frame)


def _by_place(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.rename(dict(zip(frame.columns, map(str, range(1, frame.width + 1)), strict=True)))


def _of_json(document: Any) -> pl.DataFrame:
    while isinstance(document, dict):
        inner = [each for each in document.values() if isinstance(each, list | dict)]
        document = next((each for each in inner if each), [])
    if not document or not isinstance(document[0], list | dict):
        raise ValueError("a list of rows is needed")
    by_place = isinstance(document[0], list)
    frame = pl.DataFrame(
        document, orient="row" if by_place else None, infer_schema_length=None, strict=False
    )
    return _by_place(frame) if by_place else frame


def _of_pandas(data: Any, named: Collection[str]) -> pl.DataFrame:
    if data.ndim == 1:
        data = data.to_frame(data.name if data.name in named else "price")
    for axis in (0, 1):
        data = _one_level(data, axis)
    if type(data.columns).__name__ == "RangeIndex":
        data = data.set_axis(range(1, data.shape[1] + 1), axis=1)
    data = data.rename(columns=str)
    if type(data.index).__name__ == "PeriodIndex":
        data = data.set_axis(data.index.to_timestamp(), axis=0)
    name = str(data.index.name or "ts")
    if data.index.dtype.kind == "M" and name not in named and "ts" not in data.columns:
        name = "ts"  # the index of times of a series' own `pandas`, and of most others
    counts = type(data.index).__name__ == "RangeIndex"
    wanted = name in named or (name == "ts" and not counts)
    if (data.index.dtype.kind == "M" or wanted) and name not in data.columns:
        data = data.rename_axis(index=name).reset_index()
    try:
        return pl.from_pandas(data)
    except (TypeError, ValueError) as error:  # columns of mixed objects
        why = str(error).splitlines()[0]
        raise InputError("data", "a frame of pandas", "columns of one type", advice=why) from None


def _one_level(data: Any, axis: int) -> Any:
    """Drop the levels of an index with one value, such as the symbol."""
    levels = data.axes[axis]
    while levels.nlevels > 1:
        same = [
            level
            for level in range(levels.nlevels)
            if levels.get_level_values(level).nunique() == 1
            and levels.get_level_values(level).dtype.kind != "M"
        ]
        if not same:
            raise InputError("data", f"{levels.nlevels} levels of an index", "rows of one symbol")
        data = data.droplevel(same[0], axis=axis)
        levels = data.axes[axis]
    return data
