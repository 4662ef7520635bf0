"""Columns of one's own under our names, and their numbers, whoever wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl

from toolkit.cards import counted
from toolkit.errors import InputError, nearest
from toolkit.series.own_times import NULL_WORDS

Decimal = Literal[".", ","]
"""The mark of decimals in texts."""


def columns_of(
    frame: pl.DataFrame, ours: Sequence[str], needed: Sequence[str], named: Mapping[str, str]
) -> pl.DataFrame:
    """Return ``ts`` and those of our columns that a frame has, under our names.

    ``named`` has the frame's name of a column, its place from 1, or several joined by +, whose
    texts are put side by side.

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
    """Return a column as floats. Texts that stand for no value are null, others are refused.

    ``decimal`` is the mark of decimals, the other one is between thousands. Without it a comma is
    the mark where no text has a dot and not all have three digits after it.

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
    """Return the mark of decimals of texts. Refuse those in which it may be either."""
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
    """Return how to name the columns of a file without a header, "" for one with names."""
    if frame.columns != [str(place) for place in range(1, frame.width + 1)]:
        return ""
    return "there is no header: columns=(1, 5) are the places of ts and price, --columns 1,5"
