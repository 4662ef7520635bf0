"""What `rail demo` refuses before it loads anything."""

from __future__ import annotations

from pathlib import Path

from toolkit.market import Source
from toolkit.store import Store, StoreWriter

from .conftest import Rail, refused


def test_a_store_of_another_source_is_refused_and_left_as_it_is(rail: Rail, workdir: Path) -> None:
    StoreWriter(Store(workdir / "mine.duckdb")).bind(Source("live", "rail"))

    line = refused(rail("demo", "--once", "--store", "mine.duckdb"))

    assert "never mixes sources" in line
    assert Store(workdir / "mine.duckdb").source == Source("live", "rail")


def test_symbols_without_exchanges_are_refused(rail: Rail) -> None:
    assert "one with --exchanges" in refused(rail("demo", "--symbols", "BTC_USDT"))
