"""Files and frames of one's own as a frame of polars, every column as it is or as text."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import re
import statistics
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.exceptions import PolarsError

from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.core.contract import checked_frame

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types

_TEXTS, _PACKED = (".csv", ".tsv", ".txt"), (".gz", ".zst")
_ALLOWED = (
    "a frame of polars or pandas, or a file .csv, .tsv, .txt or .json (.gz, .zst) or .parquet"
)
_VALUE = re.compile(r"\"?[+-]?\d[\d.,:/ TZe+-]*\"?")


def is_rows_file(path: str) -> bool:
    """Return whether a file's name says that it has rows. That of .json may be a manifest.

    >>> is_rows_file("bars.csv.gz"), is_rows_file("archive/manifest.json")
    (True, False)
    """
    return _kind(path) in (*_TEXTS, ".parquet")


def read_rows(
    data: pl.DataFrame | pd.DataFrame | pd.Series | str | Path, name: str, named: Collection[str]
) -> tuple[pl.DataFrame, Source, Path]:
    """Return the rows, their source and where they were. ``name`` is that of a frame.

    Texts are read as texts. Where a file has no header, the columns are called by their places from
    1. Of a frame of pandas the index is a column, where it is of times, is one of ``named`` or no
    other column has times.

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
    """Return the ending of a file's name, without that of a packed one."""
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
    """Read separated text. Find its separator, where it begins, and whether it has a header."""
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
    """Read the first list of lists or of objects, at the top or within objects."""
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
    """Return a frame or series of pandas, its index as a column, ``ts`` where it has no name."""
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
