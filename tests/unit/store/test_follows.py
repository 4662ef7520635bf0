"""The mark of a follow: who sees that one runs, and that none does after it ended, however."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tests.object_store import serving_objects
from toolkit.errors import InputError, StoreError
from toolkit.store.publish.destinations import place_of
from toolkit.store.writing.follows import (
    FollowMark,
    Lease,
    LeaseFile,
    follow_mark,
    holding,
    running_follow,
)

from .conftest import Child

HOLDS = """
import sys
from pathlib import Path
from toolkit.store.writing.follows import FollowMark
with FollowMark(Path(sys.argv[1])) as mark:
    mark.evaluated()
    print("holding", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("takes_over", [False, True])
def test_a_follow_of_another_process_is_known_and_gone_or_replaced_when_it_is_killed(
    child: Callable[..., Child], tmp_path: Path, *, takes_over: bool
) -> None:
    path = tmp_path / "rail.duckdb"
    other = child(HOLDS, path)
    assert other.hear() == "holding"
    assert running_follow(path) == (other.pid, follow_mark(path).stat().st_mtime)
    other.kill()
    if takes_over:
        with FollowMark(path):
            assert running_follow(path) == (os.getpid(), None)
            assert not follow_mark(path, 1).exists()
    assert running_follow(path) is None
    assert not follow_mark(path).exists()


def test_two_follows_of_one_store_are_one_until_both_have_ended(tmp_path: Path) -> None:
    path = tmp_path / "rail.duckdb"
    with FollowMark(path) as mine:
        with FollowMark(path) as second:
            second.evaluated()
            assert running_follow(path) == (os.getpid(), follow_mark(path, 1).stat().st_mtime)
        mine.evaluated()
        assert running_follow(path) == (os.getpid(), follow_mark(path).stat().st_mtime)
    assert running_follow(path) is None


def test_a_mark_of_one_store_is_none_of_the_store_beside_it(tmp_path: Path) -> None:
    with FollowMark(tmp_path / "rail.duckdb"):
        assert running_follow(tmp_path / "other.duckdb") is None


def test_a_store_in_a_folder_that_cannot_be_written_is_followed_without_a_mark(
    tmp_path: Path,
) -> None:
    path = tmp_path / "none" / "rail.duckdb"
    with FollowMark(path) as mark:
        mark.evaluated()
        assert running_follow(path) is None


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.slow)])
def where(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Where the lease is."""
    if request.param == "folder":
        yield str(tmp_path / "team" / "follow.lease")
        return
    with serving_objects() as objects:
        for name, value in objects.environment.items():
            monkeypatch.setenv(name, value)
        yield "s3://bucket/team/follow.lease"


def test_one_of_many_that_try_at_once_holds_it(where: str) -> None:
    leases = [Lease(where, holder=f"process {n}") for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(Lease.take, leases))
    assert found.count(None) == 1
    holder = leases[found.index(None)]
    for lease in leases:
        assert lease.take() == (None if lease is holder else holder.holder)
        assert lease.lasts == (lease is holder)


def test_it_is_free_after_a_release_and_after_its_length(where: str) -> None:
    one, two = Lease(where, holder="a"), Lease(where, holder="b")
    three = Lease(where, length_s=5.0, holder="c")  # it waits for a tenth of it after the other's
    assert one.take() is None
    one.release()
    assert two.take() is None
    one.release()  # it is not its own any more
    assert three.take() == "b"
    two.release()
    short = Lease(where, length_s=0.3, holder="d")
    assert short.take() is None
    time.sleep(0.9)
    assert not short.lasts
    assert three.take() is None
    assert short.take() == "c"


def test_the_next_goes_on_where_the_holder_ends(where: str) -> None:
    held, notes = threading.Event(), list[str]()
    stop = threading.Event()
    one, two = Lease(where, 3.0, holder="the first"), Lease(where, 3.0, holder="the second")

    def second() -> None:
        with holding(two, stop, notes.append):
            held.set()

    with holding(one, stop, notes.append):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert not held.wait(1.0)
    assert held.wait(30)
    waiting.join()
    assert notes == [f"{where} is held by the first: waiting"]


def test_who_loses_it_stops(where: str) -> None:
    stop, notes = threading.Event(), list[str]()
    other = LeaseFile("another", "1", time.time() + 600)
    with holding(Lease(where, 0.9), stop, notes.append) as held:
        assert held
        place = place_of(where.rpartition("/")[0])
        place.write("follow.lease", msgspec.json.encode(other))  # as only a wrong clock would
        assert stop.wait(30)
    assert len(notes) == 1
    assert "it is held by another: this one stops" in notes[0]
    assert Lease(where).take() == "another"


def test_waiting_ends_when_it_is_stopped(tmp_path: Path) -> None:
    where = str(tmp_path / "follow.lease")
    assert Lease(where).take() is None
    stop = threading.Event()
    stop.set()
    with holding(Lease(where), stop, print) as held, holding(None, stop, print) as free:
        assert (held, free) == (False, True)


def test_what_is_no_lease_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a user's own")
    with pytest.raises(StoreError, match="is not a lease; name another file"):
        Lease(str(tmp_path / "notes")).take()
    assert (tmp_path / "notes").read_text() == "a user's own"
    for where in ("", "folder/", "s3://bucket"):
        with pytest.raises(InputError, match="lease: "):
            Lease(where)
