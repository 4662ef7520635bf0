"""Places: stores and files that are not there, are something else, or cannot be written."""

from __future__ import annotations

from typing import Any

import pytest

import toolkit as tk
from toolkit.errors import (
    InputError,
    NotAStoreError,
    RailError,
    StoreError,
    StoreSourceError,
)
from toolkit.workspace import Workspace

from .conftest import PRICE
from .judged import Row, fault, fault_of

MISTAKES: list[Row] = [
    ("tk.open('none.duckdb').prices(PRICE)",
     StoreError, ("no store at", "none.duckdb", "rail sync")),
    ("tk.open('nowhere/none.duckdb').prices(PRICE)", StoreError, ("no store at", "nowhere")),
    ("tk.Store('none.duckdb').catalogue()", StoreError, ("no store at", "rail sync")),
    ("tk.open('prices.csv').prices(PRICE)", NotAStoreError, ("prices.csv", "not a store")),
    ("tk.open('prices.csv', base_url=service, api_key='demo-pro').sync(PRICE, '1h')",
     NotAStoreError, ("prices.csv", "not a store")),
    ("tk.open('folder').prices(PRICE)", NotAStoreError, ("is a directory", "name a file")),
    ("tk.open('folder', base_url=service).sync(PRICE, '1h')", NotAStoreError, ("is a directory",)),
    ("tk.open('/dev/null').prices(PRICE)", NotAStoreError, ("name a file",)),
    ("tk.open('prices.csv/x.duckdb', base_url=service).sync(PRICE, '1h')", StoreError,
     ("prices.csv",)),
    ("tk.open('new/x.duckdb', base_url=service).sync(PRICE, '1h')", StoreError,
     ("new is not a directory", "make it first")),
    ("tk.open('/proc/x.duckdb', base_url=service).sync(PRICE, '1h')", StoreError,
     ("/proc/x.duckdb",)),
    ("tk.open('a\\0b').prices(PRICE)", InputError, ("store", "a path")),
    ("tk.open(5)", InputError, ("store: 5", "a path")),
    ("tk.Store(None)", InputError, ("store: nothing is given", "a path")),
    ("tk.open(rail)", InputError, ("store", "a path")),
    ("tk.open('replay.duckdb').sync(PRICE, '1h')", InputError, ("base_url", "replay.duckdb")),
    ("tk.open('replay.duckdb', base_url=service).sync(PRICE, '1h')", StoreSourceError,
     ("iaqf-77aa", "never mixes sources")),
    ("tk.open('replay.duckdb').prices(PRICE)", RailError, (PRICE, "is not held", "rail sync")),
    ("price.save('x.csv')", InputError, ("'x.csv'", ".parquet")),
    ("price.save('nowhere/x.parquet')", InputError, ("nowhere/x.parquet", "can be written")),
    ("price.save('prices.csv/x.parquet')", InputError, ("prices.csv/x.parquet", "can be written")),
    ("price.save('/proc/x.parquet')", InputError, ("/proc/x.parquet", "can be written")),
    ("price.save(5)", InputError, ("path: 5", ".parquet")),
    ("price.save('a\\0b.parquet')", InputError, ("path", "can be written")),
    ("fees.read('none.toml')", InputError, ("none.toml", "TOML")),
    ("fees.read('folder')", InputError, ("folder", "TOML")),
    ("fees.read(5)", InputError, ("fees: 5", "TOML")),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "kind", "words"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_wrong_place_is_one_line_that_names_it(
    ground: dict[str, Any], typed: str, kind: type[RailError], words: tuple[str, ...]
) -> None:
    assert fault(typed, ground, kind, words) == ""


def test_a_closed_workspace_loads_nothing_and_still_reads(rail: Workspace, service: str) -> None:
    closed = tk.open(rail.store.path, base_url=service, api_key="demo-pro")
    closed.close()
    for ask in (lambda: closed.sync(PRICE, "1h"), closed.symbols, lambda: closed.client):
        with pytest.raises(RailError, match=r"closed; tk.open\(\) opens another") as refused:
            ask()
        assert fault_of(refused.value) == ""
    assert len(closed.prices(PRICE)) == len(rail.prices(PRICE))


def test_two_opens_of_one_store_both_read(rail: Workspace, service: str) -> None:
    other = tk.open(rail.store.path, base_url=service, api_key="demo-pro")
    with rail.store.reading():
        assert other.prices(PRICE).data_hash == rail.prices(PRICE).data_hash
