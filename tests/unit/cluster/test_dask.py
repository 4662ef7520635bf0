"""On a real scheduler with workers: equal to one process, whoever is killed meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from distributed import Client

from benchmarks._walks import START, fill_store, spread_rows
from tests.object_store import serving_objects
from toolkit.cluster import Cluster
from toolkit.errors import ClusterError, InputError
from toolkit.statistics import spread
from toolkit.statistics.passes import in_one_pass
from toolkit.store import Store
from toolkit.store.publish import PublishedRows, publish
from toolkit.workspace import Workspace

from .conftest import END, SPREADS
from .running import Scheduler, cluster, deadly, noted, notes

pytestmark = pytest.mark.slow

ROWS = int(os.environ.get("RAIL_CLUSTER_ROWS", "0"))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    with cluster(tmp_path_factory.mktemp("dask"), workers=2) as found:
        yield found


def rows_of(archive: Path | str) -> PublishedRows:
    """The spreads, two in a part."""
    return PublishedRows.of(str(archive), "spread", (START, END), rows=1_200)


def test_screens_are_those_of_this_process(rail: Workspace, running: Scheduler) -> None:
    assert rail.screen(cluster=running.address).equals(rail.screen())
    with Client(running.address) as client:
        found = rail.measure(spread.time_above, threshold_bps=1.0, cluster=client)
    assert found.equals(rail.measure(spread.time_above, threshold_bps=1.0))
    one = {"enter_bps": 1.0}
    found = rail.measure(spread.episodes, cluster=running.address, **one)
    assert found.equals(rail.measure(spread.episodes, **one))


def test_a_cluster_made_for_the_call_does_the_same(rail: Workspace) -> None:
    assert rail.screen(family="funding", cluster="local").equals(rail.screen(family="funding"))


@pytest.fixture(scope="module")
def many(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, int, int, float]:
    """A store, its end, how many rows to a part, and how long each takes besides (s).

    It is that of the other tests, or with RAIL_CLUSTER_ROWS one of so many spreads.
    """
    if ROWS == 0:
        return Store(archive.parent / "rail.duckdb"), END, 1_200, 0.6
    folder, minutes = tmp_path_factory.mktemp("many"), 40_000
    trajectories = -(-ROWS // minutes)
    blocks = (range(n, n + 50) for n in range(0, trajectories, 50))
    fill_store(folder, (spread_rows(block, minutes) for block in blocks))
    return Store(folder / "rail.duckdb"), START + 60 * minutes, 200_000, 0.0


def test_over_an_object_store_a_worker_is_killed_and_then_the_scheduler(
    many: tuple[Store, int, int, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, end, part_rows, pause_s = many
    log, results = tmp_path / "log", tmp_path / "results"
    slow = partial(noted, start=START, end=end, log=str(log), pause_s=pause_s)
    quick = partial(spread.summary, start=START, end=end)
    with serving_objects() as objects:
        for name, value in objects.environment.items():  # workers inherit the key
            monkeypatch.setenv(name, value)
        publish(store, "s3://bucket/rail")
        rows = PublishedRows.of("s3://bucket/rail", "spread", (START, end), rows=part_rows)
        parts = len(rows.parts)
        wanted = in_one_pass((part.read() for part in rows.parts), quick)[0]
        with cluster(tmp_path, workers=3) as running:
            with _killing(lambda: _first_worker(log, running), log, 1) as victim:
                whole = Cluster(running.address, tmp_path / "whole").in_one_pass(rows, slow)
            assert victim[0].wait() == -signal.SIGKILL
            assert len({process for process, _ in notes(log)}) == 3
            assert whole[0].equals(wanted)
            log.unlink()
            gone = rf"^the scheduler is gone; \d+ of {parts} parts are done and kept, the same call"
            with (
                _killing(lambda: running.process, log, parts // 2),
                pytest.raises(ClusterError, match=gone),
            ):
                Cluster(running.address, results).in_one_pass(rows, slow)
        kept, before = len(list(results.iterdir())), len(notes(log))
        assert 1 <= kept < parts
        with cluster(tmp_path, workers=2) as running:
            rest = Cluster(running.address, results).in_one_pass(rows, slow)
        assert len(notes(log)) == before + parts - kept
        assert rest[0].equals(wanted)


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


def test_nobody_there_is_one_line(archive, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("toolkit.cluster.placement._PATIENCE_S", 1)
    summary = partial(spread.summary, start=START, end=END)
    with pytest.raises(ClusterError, match=r"no scheduler answers at tcp://127.0.0.1:9: .*0 of 6"):
        Cluster("tcp://127.0.0.1:9", tmp_path).in_one_pass(rows_of(archive), summary)


def test_a_worker_that_never_comes_is_one_line(archive, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("toolkit.cluster.placement._NO_WORKER_S", 1)
    summary = partial(spread.summary, start=START, end=END)
    with (
        cluster(tmp_path, workers=0) as running,
        pytest.raises(ClusterError, match=r"^the scheduler has had no worker for 1 s: start some"),
    ):
        Cluster(running.address, tmp_path / "results").in_one_pass(rows_of(archive), summary)


def test_a_worker_without_the_toolkit_is_named_and_a_scheduler_needs_none(archive, tmp_path):
    absent = tmp_path / "absent.py"
    absent.write_text("import sys\nsys.modules['toolkit'] = None\n")
    summary = partial(spread.summary, start=START, end=END)
    with cluster(tmp_path, 0, "--preload", str(absent)) as running:
        there = Cluster(running.address, tmp_path / "results")
        without = running.add_worker("--preload", str(absent))
        with pytest.raises(ClusterError, match=r"a worker has no module toolkit\S*; install the"):
            there.in_one_pass(rows_of(archive), summary)
        without.kill()
        running.add_worker()
        assert there.in_one_pass(rows_of(archive), summary)[0].height == SPREADS


def test_between_machines_it_is_encrypted_and_both_sides_show_a_certificate(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, so no certificate can be made")
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=rail"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(made, check=True, capture_output=True)
    tls = ("--tls-ca-file", certificate, "--tls-cert", certificate, "--tls-key", key)
    settings = {"CA_FILE": certificate, "CLIENT__CERT": certificate, "CLIENT__KEY": key}
    environment = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": v for name, v in settings.items()}
    asked = [Path(sys.executable).with_name("rail"), "screen", "--store", archive]
    monkeypatch.setattr("toolkit.cluster.placement._PATIENCE_S", 1)
    summary = partial(spread.summary, start=START, end=END)
    with cluster(tmp_path, 1, *tls, protocol="tls") as running:
        asked += ["--cluster", running.address]
        there = subprocess.run(
            asked, capture_output=True, env=os.environ | environment, text=True, check=False
        )
        assert (there.returncode, there.stdout.count("ASSET")) == (0, SPREADS), there.stderr
        for address in (running.address, running.address.replace("tls", "tcp")):  # without one
            with pytest.raises(ClusterError, match=f"^no scheduler answers at {address}: "):
                Cluster(address, tmp_path / "results").in_one_pass(rows_of(archive), summary)


@pytest.mark.parametrize(
    "address",
    [
        "tcp://192.0.2.1:8786",
        "tcp://scheduler:8786",
        SimpleNamespace(scheduler=SimpleNamespace(address="tcp://192.0.2.1:8786")),
    ],
    ids=["number", "name", "client"],
)
def test_plain_text_to_another_machine_is_refused_without_being_asked_for(
    archive: Path, tmp_path: Path, address: object
) -> None:
    summary = partial(spread.summary, start=START, end=END)
    with pytest.raises(InputError, match="allowed: tls:// to another machine; a scheduler runs"):
        Cluster(address, tmp_path).in_one_pass(rows_of(archive), summary)


@contextlib.contextmanager
def _killing(
    find: Callable[[], subprocess.Popen[bytes]], log: Path, parts: int
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Kill a process once so many parts were computed within the block; yields what it killed."""
    killed: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        while len(notes(log)) < parts:
            time.sleep(0.02)
        killed.append(find())
        killed[0].kill()

    killer = Thread(target=kill)
    killer.start()
    yield killed
    killer.join()


def _first_worker(log: Path, running: Scheduler) -> subprocess.Popen[bytes]:
    """The worker that computed the first part, and is at another by now."""
    first = notes(log)[0][0]
    return next(process for process in running.processes if process.pid == first)


def _keep_workers(running: Scheduler, done: Event) -> None:
    """Start one worker after another, as each dies."""
    while not done.is_set():
        worker = running.add_worker()
        while worker.poll() is None and not done.wait(0.1):
            pass
