"""Rows read and sorted with words as categories, without two copies of all of them in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

import polars as pl
from polars import selectors

from toolkit.statistics.core.contract import Frame, collected, collected_batches

_AT_ONCE = 32_768


def with_categories(rows: Frame, but: Sequence[str] = ()) -> pl.DataFrame:
    """Read rows into memory in their order, with words as categories: a quarter of the memory.

    Categories compare as numbers. Columns ``but`` keep their words, which seldom repeat.
    """
    found = collected(_with_categories(rows, but), streaming=True)
    # column by column, so that no two copies of all of them are there at once
    return pl.DataFrame([found.drop_in_place(name).rechunk() for name in found.columns])


def batches_with_categories(rows: Frame, but: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
    """Yield the rows of `with_categories` in batches, the first of them empty, for its columns."""
    found = _with_categories(rows, but)
    yield pl.DataFrame(schema=found.collect_schema())
    yield from collected_batches(found)


def _with_categories(rows: Frame, but: Sequence[str]) -> pl.LazyFrame:
    words = selectors.string() - selectors.by_name(*but, require_all=False)
    return rows.lazy().with_columns(words.cast(pl.Categorical))


def in_order(
    rows: pl.DataFrame, descending: Mapping[str, bool], *, as_words: bool = False
) -> pl.DataFrame:
    """Sort rows stably, as words or categories, and empty the frame given to save memory."""
    down, names = list(descending.values()), rows.columns
    copies = _drop_copies(rows, descending) if as_words else {}
    alike = [
        rows.drop_in_place(name).head(1)
        for name in rows.columns
        if name not in descending and _is_alike(rows[name])
    ]
    order = pl.arg_sort_by(*descending, descending=down, maintain_order=True).alias("")
    found, place = (ordered := rows.select(order)), ordered.to_series()
    # words last, as they take four times the memory of their categories
    for name in sorted(rows.columns, key=lambda each: rows[each].dtype == pl.Categorical):
        column = rows.drop_in_place(name).rechunk()
        found = found.with_columns(_worded(column, place) if as_words else column.gather(place))
    found = found.with_columns(pl.lit(one.first(), one.dtype).alias(one.name) for one in alike)
    found = found.with_columns(found[one].alias(name) for name, one in copies.items()).select(names)
    return found.with_columns(pl.col(pl.Categorical).cast(pl.String)) if as_words else found


def _is_alike(column: pl.Series) -> bool:
    return not column.dtype.is_float() and bool(column.eq_missing(column.head(1)).all())


def _drop_copies(rows: pl.DataFrame, but: Collection[str]) -> dict[str, str]:
    """Drop columns equal to an earlier column of words, and return which, a slice at a time."""
    words = [name for name, kind in rows.schema.items() if kind == pl.String]
    found = {
        name: one
        for one, name in reversed([*combinations(words, 2)])
        if name not in but
        and all(part[one].equals(part[name]) for part in rows.iter_slices(_AT_ONCE))
    }
    for name in found:
        rows.drop_in_place(name)
    return found


def in_words(column: pl.Series) -> pl.Series:
    """Turn categories into words, each kept once."""
    return _by_code(column).gather(column.to_physical())


def _by_code(column: pl.Series) -> pl.Series:
    words = column.unique().drop_nulls()
    codes, none = words.to_physical(), pl.Series(column.name, [None], pl.String)
    return none.new_from_index(0, 1 + max(codes, default=0)).scatter(codes, words.cast(pl.String))


def _worded(column: pl.Series, place: pl.Series) -> pl.Series:
    """Put a column in order, categories as words, a slice at a time to reuse freed memory."""
    starts = range(0, max(1, place.len()), _AT_ONCE)
    parts = (column.gather(place.slice(at, _AT_ONCE)) for at in starts)
    if column.dtype != pl.Categorical:
        return pl.concat(parts)
    by_code = _by_code(column)
    return pl.concat(by_code.gather(part.to_physical()) for part in parts)
