"""A store is read part by part, as it was at one moment, whatever is committed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from toolkit.errors import StoreError
from toolkit.market import Family, Source
from toolkit.store import Store, StoreWriter
from toolkit.store.reading import moment as moments
from toolkit.store.reading.moment import BOOKS, GROWING, RowRange, StoreState, row_order
from toolkit.tables import SERIES, Field, Table

from .conftest import FIRST, JANUARY, everything, minutes

PRICE = SERIES[Family.PRICE]


@pytest.mark.parametrize("unit", ["month", "day"])
def test_all_parts_together_are_the_store_each_sorted(full: Store, unit: str) -> None:
    moment, held = StoreState.now(full), everything(full)
    for table in GROWING:
        parts = [moment.rows(table, part) for part in moment.parts(table, unit=unit)]
        none = held[table.name].clear()
        assert pl.concat([none, *parts]).sort(pl.all()).equals(held[table.name])
        for part in parts:
            assert part.equals(part.sort(row_order(table)))
    for table in BOOKS:
        assert moment.books[table.name].sort(pl.all()).equals(held[table.name])


def test_what_is_committed_later_belongs_to_a_later_moment(full: Store, commit: Callable) -> None:
    before, moment = everything(full), StoreState.now(full)
    commit(FIRST, minutes(JANUARY + 100_000, 5, 9.0))
    rows = pl.concat(moment.rows(PRICE, part) for part in moment.parts(PRICE))
    assert rows.sort(pl.all()).equals(before[PRICE.name])
    later = StoreState.now(full)
    start = moment.ends[PRICE.name]
    fresh = [later.rows(PRICE, part, start) for part in later.parts(PRICE, start)]
    assert pl.concat(fresh)["price"].to_list() == [9.0, 9.01, 9.02, 9.03, 9.04]


def test_a_file_put_in_its_place_meanwhile_is_refused(full: Store) -> None:
    moment = StoreState.now(full)
    other = Store(full.path.with_name("other"))
    StoreWriter(other).bind(Source("replay", "example"))
    other.path.replace(full.path)
    with pytest.raises(StoreError, match="replaced by another file"):
        list(moment.parts(PRICE))


def test_small_streams_are_read_together_and_a_large_one_in_pieces() -> None:
    million = moments.PART_ROWS
    counts = pl.DataFrame(
        [
            (1, 0, 10, 5),
            (2, 0, 10, 5),
            (3, 0, 10, million // 2),
            (3, 10, 20, million // 2),
            (3, 20, 30, million // 2),
            (4, 0, 10, 5),
            (4, 10, 20, 5),
        ],
        schema=["owner", "low", "high", "rows"],
        orient="row",
    )
    assert list(moments._parts(counts)) == [
        RowRange((1, 2), 0, 10),
        RowRange((3,), 0, 20),
        RowRange((3,), 20, 30),
        RowRange((4,), 0, 20),
    ]
    assert list(moments._parts(counts.clear())) == []


def test_rows_that_share_a_key_are_always_in_one_order() -> None:
    columns = (Field("ts", "BIGINT", "s", ""), Field("document", "VARCHAR", "", ""))
    table = Table("answers", "", columns, key=("ts",))
    rows = pl.DataFrame([(0, text) for text in "cab"], table.schema, orient="row")
    for each in (rows, rows.reverse()):
        assert moments.sorted_rows(table, each)["document"].to_list() == ["a", "b", "c"]
