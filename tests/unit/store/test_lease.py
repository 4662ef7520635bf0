"""Of several processes one holds a lease at a time, in a folder as in an object store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tests.object_store import serving_objects
from toolkit.errors import InputError, StoreError
from toolkit.store.publish.places import place_of
from toolkit.store.writing.follows import Lease, LeaseFile, holding


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
