"""On a real scheduler with workers: equal to one process, whoever is killed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from benchmarks._walks import START
from tests.object_store import serving_objects
from toolkit.cluster import Cluster
from toolkit.errors import ClusterError, InputError
from toolkit.statistics import spread
from toolkit.statistics.passes import in_one_pass
from toolkit.store import Store
from toolkit.store.publish import PublishedRows, publish
from toolkit.workspace import Workspace

from .conftest import END
from .running import Scheduler, cluster, deadly, noted, notes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    with cluster(tmp_path_factory.mktemp("dask"), workers=2) as found:
        yield found


def rows_of(archive: Path | str) -> PublishedRows:
    """The spreads, two in a part."""
    return PublishedRows.of(str(archive), "spread", (START, END), rows=1_200)


def test_screens_are_those_of_this_process(rail: Workspace, running: Scheduler) -> None:
    assert rail.screen(cluster=running.address).equals(rail.screen())
    one = {"enter_bps": 1.0}
    found = rail.measure(spread.episodes, cluster=running.address, **one)
    assert found.equals(rail.measure(spread.episodes, **one))


def test_a_cluster_made_for_the_call_does_the_same(rail: Workspace) -> None:
    assert rail.screen(family="funding", cluster="local").equals(rail.screen(family="funding"))


def test_workers_read_from_an_object_store(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_objects() as objects:
        for name, value in objects.environment.items():
            monkeypatch.setenv(name, value)
        publish(Store(archive.parent / "rail.duckdb"), "s3://bucket/rail")
        summary = partial(spread.summary, start=START, end=END)
        with cluster(tmp_path, workers=1) as started:  # it has the key in its environment
            there = Cluster(started.address, tmp_path / "results").in_one_pass(
                rows_of("s3://bucket/rail"), summary
            )
    here = in_one_pass((part.read() for part in rows_of(archive).parts), summary)
    assert there[0].equals(here[0])


def test_a_worker_that_is_killed_changes_nothing(archive: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    slow = partial(noted, start=START, end=END, log=str(log), pause_s=0.5)
    with cluster(tmp_path, workers=2) as running:
        victim = running.add_worker()
        killer = Thread(target=_kill_after, args=(victim.kill, log, 1))
        killer.start()
        found = Cluster(running.address, tmp_path / "results").in_one_pass(rows_of(archive), slow)
        killer.join()
        assert victim.wait() != 0
    quick = partial(spread.summary, start=START, end=END)
    wanted = in_one_pass((part.read() for part in rows_of(archive).parts), quick)
    assert found[0].equals(wanted[0])


def test_after_a_scheduler_is_killed_the_same_call_does_only_the_rest(
    archive: Path, tmp_path: Path
) -> None:
    log, results = tmp_path / "log", tmp_path / "results"
    slow = partial(noted, start=START, end=END, log=str(log), pause_s=0.7)
    with cluster(tmp_path, workers=1) as running:
        killer = Thread(target=_kill_after, args=(running.process.kill, log, 3))
        killer.start()
        with pytest.raises(ClusterError, match=r"the scheduler is gone; [1-5] of 6 parts are done"):
            Cluster(running.address, results).in_one_pass(rows_of(archive), slow)
        killer.join()
    kept = len(list(results.iterdir()))
    assert 1 <= kept < 6
    before = len(notes(log))
    with cluster(tmp_path, workers=1) as running:
        found = Cluster(running.address, results).in_one_pass(rows_of(archive), slow)
    assert len(notes(log)) == before + 6 - kept
    quick = partial(spread.summary, start=START, end=END)
    wanted = in_one_pass((part.read() for part in rows_of(archive).parts), quick)
    assert found[0].equals(wanted[0])


def test_a_part_that_kills_its_workers_is_named(archive: Path, tmp_path: Path) -> None:
    with cluster(tmp_path, workers=0) as running:
        done = Event()
        workers = Thread(target=_keep_workers, args=(running, done))
        workers.start()
        rows = PublishedRows.of(str(archive), "spread", (START, END))
        with pytest.raises(ClusterError, match=r"12 trajectories, .* each worker that took it was"):
            Cluster(running.address, tmp_path / "results").in_one_pass(rows, deadly)
        done.set()
        workers.join()


def test_nobody_there_is_one_line(archive: Path, tmp_path: Path) -> None:
    summary = partial(spread.summary, start=START, end=END)
    with pytest.raises(ClusterError, match=r"no scheduler answers at tcp://127.0.0.1:9: .*0 of 6"):
        Cluster("tcp://127.0.0.1:9", tmp_path).in_one_pass(rows_of(archive), summary)


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:8786", "tcp://scheduler:8786"])
def test_plain_text_to_another_machine_is_refused_without_being_asked_for(
    archive: Path, tmp_path: Path, address: str
) -> None:
    summary = partial(spread.summary, start=START, end=END)
    with pytest.raises(InputError, match="allowed: tls:// to another machine; a scheduler runs"):
        Cluster(address, tmp_path).in_one_pass(rows_of(archive), summary)


def _kill_after(kill: object, log: Path, parts: int) -> None:
    while len(notes(log)) < parts:
        time.sleep(0.02)
    assert callable(kill)
    kill()


def _keep_workers(running: Scheduler, done: Event) -> None:
    """Start one worker after another, as each dies."""
    while not done.is_set():
        worker = running.add_worker()
        while worker.poll() is None and not done.wait(0.1):
            pass
