"""Files and frames of one's own, and which of their columns are ours: by name or by layout."""

from __future__ import annotations

import codecs
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

import polars as pl
from polars.exceptions import PolarsError

from toolkit.cards import counted
from toolkit.errors import InputError, nearest
from toolkit.market import Source
from toolkit.series.own_times import NULL_WORDS, Unit
from toolkit.statistics.core.contract import checked_frame

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types


@dataclass(frozen=True, slots=True)
class Layout:
    """A producer's columns of prices, by name or by place from 1.

    Times are the start of a bar, in the first of ``units`` that fits all. ``width`` is the number
    of columns, None where it varies. ``{quote}`` is the quote of the key. Volumes in base are left
    out, as ours are in quote. ``what`` describes the file for a reader.
    """

    columns: Mapping[str, str]
    units: tuple[Unit, ...]
    width: int | None
    what: str


_BARS = {"ts": "1", "price": "5"}
LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "binance-klines": Layout(
            _BARS | {"volume": "8"},
            ("ms", "us"),
            12,
            "bars of Binance's archive or REST API: 12 columns, with or without a header",
        ),
        "coinbase-candles": Layout(
            _BARS, ("s",), 6, "candles of Coinbase Exchange: time, low, high, open, close, volume"
        ),
        "kraken-ohlcvt": Layout(
            _BARS, ("s",), 7, "Kraken's downloads: time, open, high, low, close, volume, trades"
        ),
        "tardis-derivative-ticker": Layout(
            {"ts": "timestamp", "price": "last_price", "mark_price": "mark_price"},
            ("us",),
            None,
            "Tardis' derivative_ticker: several rows a second, so that `shared` is needed",
        ),
        "ccxt-ohlcv": Layout(
            _BARS, ("ms",), 6, "ccxt's fetch_ohlcv: time, open, high, low, close, volume"
        ),
        "cryptodatadownload": Layout(
            {"ts": "1", "price": "7", "volume": "Volume {quote}"},
            ("s", "ms"),
            None,
            "CryptoDataDownload: an address, then unix, date, symbol, open, high, low, close, ...",
        ),
    }
)
"""The layouts that are known by name."""


Decimal = Literal[".", ","]
"""The mark of decimals in texts."""


def columns_of(
    frame: pl.DataFrame, ours: Sequence[str], needed: Sequence[str], named: Mapping[str, str]
) -> pl.DataFrame:
    """Return ``ts`` and our other columns in a frame, under our names.

    ``named`` has the frame's name of a column, its place from 1, or several joined by +.

    >>> frame = pl.DataFrame({"Date": ["2023-03-10"], "Time": ["12:00"], "Close": ["1.5"]})
    >>> columns_of(frame, ["price"], ["price"], {"ts": "Date+Time", "price": "3"}).row(0)
    ('2023-03-10 12:00', '1.5')
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

    ``decimal`` is the decimal mark, the other one separates thousands. By default a comma is the
    mark where no text has a dot and not all have three digits after it.

    >>> number(pl.Series("price", ["1,5", "NA", "1,25"]), None).to_list()
    [1.5, None, 1.25]
    """
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        return column.cast(pl.Float64)
    if column.dtype != pl.String:
        raise InputError("columns", f"{column.name} is {column.dtype}", "numbers")
    texts = column.str.strip_chars()
    texts = texts.set(texts.is_in(NULL_WORDS), None)
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
    """Return whether a file's name is one of rows. A .json file may be a manifest.

    >>> is_rows_file("bars.csv.gz"), is_rows_file("archive/manifest.json")
    (True, False)
    """
    return _kind(path) in (*_TEXTS, ".parquet")


def read_rows(
    data: pl.DataFrame | pd.DataFrame | pd.Series | str | Path, name: str, named: Collection[str]
) -> tuple[pl.DataFrame, Source, Path]:
    """Return the rows, their source and their path. ``name`` is that of a frame.

    Texts stay texts. Columns without a header are named by their places from 1. The index of a
    pandas frame is a column if it is of times, one of ``named``, or no other column has times.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "bars.csv"
    ...     _ = path.write_text("1700000000;1,5")
    ...     read_rows(path, "", ())[0].rows(named=True)
    [{'1': '1700000000', '2': '1,5'}]
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
    """Drop the levels of an index that say the same of all rows or columns: the one symbol."""
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
