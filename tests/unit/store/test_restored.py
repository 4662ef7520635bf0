"""A copy put in the place of a store whose last commits are still in its log beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from toolkit.errors import StoreError
from toolkit.market import Source
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.file.schema import create_store

ORIGIN = LoadOrigin("http://127.0.0.1:8700", 10_000, None, "0.1.0")
LAST_COMMIT = (
    "INSERT INTO load (load_id, started_at, served_at, base_url, toolkit_version) "
    "SELECT 7, 0, 0, 'http://last', ''"
)
USES: dict[str, Callable[[Store], object]] = {
    "reading": Store.loads,
    "writing": lambda store: StoreWriter(store).start_load(ORIGIN),
}


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def kill_after_a_commit(path: Path) -> None:
    """Leave the files as they are when a process is killed right after its commit."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(LAST_COMMIT)
        left = {file: file.read_bytes() for file in (path, log_of(path))}
    for file, content in left.items():
        file.write_bytes(content)


def older_state(store: Store) -> bytes:
    content = store.path.read_bytes()
    StoreWriter(store).start_load(ORIGIN)
    return content


def newer_state(store: Store) -> bytes:
    copy = Store(store.path.with_name("copy"))
    copy.path.write_bytes(store.path.read_bytes())
    StoreWriter(copy).start_load(ORIGIN)
    content = copy.path.read_bytes()
    copy.path.unlink()
    return content


def another_store(store: Store) -> bytes:
    other = Store(store.path.with_name("other"))
    StoreWriter(other).bind(Source("replay", "example"))
    content = other.path.read_bytes()
    other.path.unlink()
    return content


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made", [older_state, newer_state, another_store])
def test_a_copy_beside_the_log_of_another_is_refused_with_what_to_do(
    store: Store, made: Callable[[Store], bytes], use: str
) -> None:
    writer = StoreWriter(store)
    writer.start_load(ORIGIN)
    copy = made(store)
    kill_after_a_commit(store.path)
    store.path.write_bytes(copy)
    log = log_of(store.path).read_bytes()
    with pytest.raises(StoreError, match=r"move rail\.duckdb\.wal away") as refused:
        USES[use](store)
    assert type(refused.value) is StoreError
    assert "\n" not in str(refused.value)
    assert refused.value.path == str(store.path)
    assert store.path.read_bytes() == copy
    assert log_of(store.path).read_bytes() == log

    log_of(store.path).rename(store.path.with_name("away"))
    assert "http://last" not in store.loads()["base_url"].to_list()
    assert writer.start_load(ORIGIN) < 7


@pytest.mark.parametrize("use", USES)
def test_a_log_that_belongs_to_the_file_is_still_read(store: Store, use: str) -> None:
    StoreWriter(store).start_load(ORIGIN)
    kill_after_a_commit(store.path)
    USES[use](store)
    assert store.loads()["base_url"].to_list()[-2:] == ["http://last", ORIGIN.base_url]


def test_a_store_made_anew_beside_an_old_log_is_refused_with_what_to_do(store: Store) -> None:
    kill_after_a_commit(store.path)
    store.path.unlink()
    create_store(store.path, Source("replay", "example"))  # no copy: DuckDB knows each by a number
    with pytest.raises(StoreError, match=r"move rail\.duckdb\.wal away"):
        StoreWriter(store).bind(Source("replay", "example"))
