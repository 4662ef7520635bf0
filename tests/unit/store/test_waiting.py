"""Who waits for a store: in which order they are served, and what is left of who is gone."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from toolkit.market import Source
from toolkit.store import Store, StoreWriter
from toolkit.store.file.connection import Place, queue_folder

from .conftest import HOLDS_THE_FILE, ORIGIN, writer_of

USES = """
import sys
from toolkit.store import LoadOrigin, Store, StoreWriter
store = Store(sys.argv[1], wait_s=600)
print("ready", flush=True)
sys.stdin.readline()
if sys.argv[2] == "writing":
    print(StoreWriter(store).start_load(LoadOrigin("http://other", 0, None, "0")), flush=True)
else:
    print(store.loads().height, flush=True)
"""
NEVER_PAUSES = """
import sys
from toolkit.store import LoadOrigin, Store, StoreWriter
name, most = sys.argv[2], int(sys.argv[3])
store = Store(sys.argv[1], wait_s=600)
writer = StoreWriter(store)
print("ready", flush=True)
sys.stdin.readline()
uses = loads = 0
while loads < most:
    if name == "reader":
        loads = store.loads().height
    else:
        loads = writer.start_load(LoadOrigin(name, 0, None, "0"))
    uses += 1
print(uses, flush=True)
"""


def await_waiting(path: Path, number: int) -> None:
    """Return once so many uses wait for a store."""
    folder = queue_folder(path)
    while len(list(folder.glob("*"))) != number:
        time.sleep(0.001)


@pytest.fixture
def waiting(tmp_path: Path) -> Callable[[str], Place]:
    """Takes a place at one file, to read or to write."""

    def take(use: str) -> Place:
        place = Place(tmp_path / "rail.duckdb", writable=use == "write")
        place.keep()
        return place

    return take


def served(places: dict[int, Place]) -> list[list[int]]:
    """Who goes together with whom, one group after the other."""
    groups = []
    while places:
        group = [name for name, place in places.items() if place.may_go()]
        assert group
        for name in group:
            places.pop(name).close()
        groups.append(group)
    return groups


@pytest.mark.parametrize(
    ("uses", "order"),
    [
        (["write"] * 3, [[0], [1], [2]]),
        (["write", "write", "write", "read", "read"], [[0], [3, 4], [1], [2]]),
        (["read", "write", "read"], [[0], [1], [2]]),
    ],
    ids=["writers", "readers together after the first writer", "a reader that came first"],
)
def test_who_waits_is_served_in_turn(
    waiting: Callable, uses: list[str], order: list[list[int]]
) -> None:
    assert served({name: waiting(use) for name, use in enumerate(uses)}) == order


def test_who_did_not_wait_yet_lets_the_waiting_go_first(waiting: Callable, tmp_path: Path) -> None:
    path = tmp_path / "rail.duckdb"
    reads, writes = Place(path, writable=False), Place(path, writable=True)
    first = waiting("read")
    assert (reads.may_go(), writes.may_go()) == (True, False)
    first.close()
    first = waiting("write")
    assert (reads.may_go(), writes.may_go()) == (False, False)
    first.close()
    assert reads.may_go()
    assert writes.may_go()


def test_places_are_this_users_alone_and_leave_nothing(waiting: Callable, tmp_path: Path) -> None:
    first, second = waiting("write"), waiting("read")
    folder = queue_folder(tmp_path / "rail.duckdb")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600] * 2
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ago_s", [60, -60])
def test_a_place_that_nobody_keeps_is_passed_and_removed(
    waiting: Callable, tmp_path: Path, ago_s: int
) -> None:
    waiting("write")
    folder = queue_folder(tmp_path / "rail.duckdb")
    (gone,) = folder.iterdir()
    os.utime(gone, (0, time.time() - ago_s))
    assert Place(tmp_path / "rail.duckdb", writable=True).may_go()
    assert list(tmp_path.iterdir()) == []


def test_who_was_passed_while_suspended_keeps_its_number(waiting: Callable, tmp_path: Path) -> None:
    suspended, follower = waiting("write"), waiting("write")
    folder = queue_folder(tmp_path / "rail.duckdb")
    os.utime(min(folder.iterdir()), (0, 0))
    assert follower.may_go()
    suspended.keep()
    assert suspended.may_go()
    assert not follower.may_go()


def test_files_of_others_in_the_folder_are_left(waiting: Callable, tmp_path: Path) -> None:
    folder = queue_folder(tmp_path / "rail.duckdb")
    folder.mkdir()
    (folder / "notes.txt").touch()
    os.utime(folder / "notes.txt", (0, 0))
    place = waiting("write")
    assert place.may_go()
    place.close()
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["rail.duckdb", "x" * 250])
def test_where_no_folder_can_be_made_nobody_waits_for_a_turn(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if len(name) < 200:
        queue_folder(path).touch()
    first, second = Place(path, writable=True), Place(path, writable=True)
    first.keep()
    second.keep()
    assert first.may_go()
    assert second.may_go()
    second.close()
    assert [file.name for file in tmp_path.iterdir()] in ([".rail.duckdb.queue"], [])


def test_a_reader_of_another_process_lets_a_writer_that_waits_go_first(
    store: Store, child: Callable
) -> None:
    reader = child(USES, store.path, "reading")
    holder = child(HOLDS_THE_FILE, store.path, "reading")
    assert (reader.hear(), holder.hear()) == ("ready", "holding")
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(writer_of(store).start_load, ORIGIN)
        await_waiting(store.path, 1)
        reader.tell()
        await_waiting(store.path, 2)
        holder.tell()
        assert reader.hear() == "1"
        assert started.result() == 1
    assert list(store.path.parent.iterdir()) == [store.path]


@pytest.mark.slow
def test_a_writer_killed_while_it_waits_holds_nobody_up(store: Store, child: Callable) -> None:
    writer, holder = (
        child(USES, store.path, "writing"),
        child(HOLDS_THE_FILE, store.path, "reading"),
    )
    assert (writer.hear(), holder.hear()) == ("ready", "holding")
    writer.tell()
    await_waiting(store.path, 1)
    writer.kill()
    assert store.loads().height == 0
    holder.tell()
    assert writer_of(store).start_load(ORIGIN) == 1
    assert list(store.path.parent.iterdir()) == [store.path]


def test_a_thread_that_uses_another_store_does_not_wait_for_its_turn(
    store: Store, child: Callable, tmp_path: Path
) -> None:
    other = Store(tmp_path / "other.duckdb")
    StoreWriter(other).bind(Source("replay", "other"))
    writer, holder = (
        child(USES, store.path, "writing"),
        child(HOLDS_THE_FILE, store.path, "reading"),
    )
    assert (writer.hear(), holder.hear()) == ("ready", "holding")
    writer.tell()
    await_waiting(store.path, 1)
    endless = Store(store.path, wait_s=10**9)
    with other.reading():
        assert endless.loads().height == 0
    holder.tell()
    assert writer.hear() == "1"


@pytest.mark.slow
def test_writers_and_readers_that_never_pause_each_get_their_share(
    store: Store, child: Callable
) -> None:
    names, most = ["one", "two", "three", "reader", "reader"], 36
    processes = [child(NEVER_PAUSES, store.path, name, most) for name in names]
    assert [process.hear() for process in processes] == ["ready"] * len(names)
    with ExitStack() as all_of_them:
        for process in processes:
            all_of_them.callback(process.tell)
    uses = [int(process.hear()) for process in processes]
    assert [process.end() for process in processes] == [0] * len(names)
    writers = store.loads().tail(most)["base_url"].to_list()
    assert min(Counter(writers)[name] for name in names[:3]) >= most / 6
    assert min(uses[3:]) >= most / 6
    assert list(store.path.parent.iterdir()) == [store.path]
