"""kill -9 of a load of event logs, and of the service under it: every document once, none more.

The short form loads a few days. With RAIL_KILLS=50 (`make kill-loop`) it loads 30 days under
Builder's quota, which the loads together exceed.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import polars as pl
import pytest

from tests.adversary import FaultyArchive
from tests.forked import PYTHON
from tests.listening import free_port
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, format_ts
from toolkit.service import Simulated
from toolkit.store import Store

from . import crowded_service
from .kill_loop import KILLS, Loads, check_same

DAYS = 30 if KILLS >= 50 else 2
END = crowded_service.NOW
START = END - DAYS * 86_400
FAMILIES = [EventLog(family).key for family in EventFamily]
LOADING = ["sync", *FAMILIES, "--start", format_ts(START), "--end", format_ts(END)]


class Service:
    """The crowded service in a process of its own, at the same address in every life."""

    def __init__(self) -> None:
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def kill_and_restart(self) -> None:
        self._kill()
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [PYTHON, crowded_service.__file__, str(self.port)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().decode().strip() == self.base_url

    def _kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


def content(store: Path) -> dict[str, pl.DataFrame]:
    """Everything a store knows of the event logs, but not by which load it came to know it."""
    with Store(store).reading() as connection:
        documents: pl.DataFrame = connection.sql(
            "SELECT * EXCLUDE (load_id, committed_at) FROM event "
            "ORDER BY family, ts_ms, event_id, event_type, revision"
        ).pl()
    ledger = {stream.key: str(known.answered) for stream, known in Store(store).ledger().items()}
    return {"documents": documents, "ledger": pl.DataFrame(sorted(ledger.items()), orient="row")}


def archived() -> list[tuple[str, str]]:
    """Family and bytes of every document of the window, read from the archive itself, sorted."""
    archive = FaultyArchive(Simulated(crowded_service.SEED), crowded_service.SETTINGS)
    found: list[tuple[str, str]] = []
    for family in EventFamily:
        bodies, _ = archive.page(family, START, END, limit=10**9, visible_until=END)
        found += [(family.value, body.decode()) for body in bodies]
    return sorted(found)


def written_at(store: Path) -> list[int]:
    """When the store's files were last written, which a load does when it begins."""
    files = (store, store.with_name(f"{store.name}.wal"))
    return [path.stat().st_mtime_ns for path in files if path.exists()]


@dataclass
class Storm:
    """Loads into one store after another, which are killed and whose service is restarted."""

    loads: Loads
    service: Service
    idle_s: float
    busy_s: float
    moments: random.Random = field(default_factory=lambda: random.Random(20_261_121))
    outcomes: Counter[str] = field(default_factory=Counter)

    def kill(self, store: Path) -> None:
        """Kill a load at any moment of its beginning and of the first fifth of its work."""
        after_s = self.moments.uniform(0.7 * self.idle_s, self.idle_s + 0.2 * self.busy_s)
        self._count(self.loads.kill(store, after_s), store)

    def restart_and_kill(self, store: Path) -> None:
        """The service dies in the middle of a load and comes back; then the load dies as well."""
        process, _ = self._restarted_under(store)
        time.sleep(self.moments.uniform(0, 0.6) * self.busy_s)
        process.kill()
        self._count(process.wait() != 0, store)

    def restart(self, store: Path) -> None:
        """The service dies under a load and comes back; the load goes on, or ends in one line."""
        process, at_work = self._restarted_under(store)
        if process.wait(900) == 0:
            self.outcomes["went on after a restart"] += at_work
            return
        said = store.with_suffix(".err").read_text()
        assert process.returncode == 1, said
        waits = r"(http://\S+ is asked again in \d+ s: [^\n]*\n)*"  # those of 5 s and more
        assert re.fullmatch(
            waits + r"rail: no answer from http://\S+ after \d tries [^\n]*\n", said
        ), said
        self.outcomes["ended in one line"] += 1

    def _restarted_under(self, store: Path) -> tuple[subprocess.Popen[bytes], bool]:
        """A load whose service died, and whether it was at work then."""
        self.service.kill_and_restart()  # it has all its events to detect again: a longer load
        before = written_at(store)
        process = self.loads.start(store)
        while process.poll() is None and written_at(store) == before:
            time.sleep(0.02)
        time.sleep(self.moments.uniform(0, 0.1) * self.busy_s)
        at_work = process.poll() is None
        self.service.kill_and_restart()
        self.outcomes["restarts in the middle"] += at_work
        return process, at_work

    def _count(self, killed: bool, store: Path) -> None:
        self.outcomes["killed"] += killed
        if killed and store.exists() and Store(store).counts(Interval(START, END)):
            self.outcomes["killed after a first commit"] += 1


def test_event_logs_loaded_under_kills_equal_the_archive(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"RAIL_BASE_URL": service.base_url, "RAIL_API_KEY": "demo-builder"}
    loads = Loads(LOADING, settings)
    whole = tmp_path / "whole.duckdb"
    whole_s = loads.finish(whole)
    pages = re.search(r"([\d,]+) pages", whole.with_suffix(".out").read_text())
    assert pages is not None
    wanted = content(whole)
    assert set(wanted["documents"]["revision"]) == {0}
    assert sorted(wanted["documents"].select("family", "document").rows()) == archived()
    idle_s = loads.finish(whole)
    storm, stores = Storm(loads, service, idle_s, whole_s - idle_s), 0
    while storm.outcomes["killed"] < KILLS or not storm.outcomes["restarts in the middle"]:
        store = tmp_path / f"killed-{stores}.duckdb"
        stores += 1
        storm.restart_and_kill(store)
        for _ in range(min(storm.moments.randint(2, 7), KILLS - storm.outcomes["killed"])):
            storm.kill(store)
        storm.restart(store)
        for _ in range(2):
            loads.finish(store)
            check_same(wanted, content(store))
    with capsys.disabled():
        told = ", ".join(f"{number} {what}" for what, number in sorted(storm.outcomes.items()))
        size = f"{wanted['documents'].height:,} documents on {pages[1]} pages, {whole_s:.0f} s"
        sys.stdout.write(f"\n{DAYS} days: {size}; {told}, {stores} stores\n")
