"""A dashboard, two notebooks, two syncs, a follow and webhooks use one store at once, no error.

RAIL_TOGETHER_S says for how long; `make soak` sets 150 s.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import httpx
import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.listening import free_port
from toolkit.client import Client
from toolkit.dashboard.link import PAGES
from toolkit.intervals import Interval, split
from toolkit.market import EventFamily, EventLog, Family, Trajectory
from toolkit.service import Simulated
from toolkit.service.events.archive import EventArchive
from toolkit.service.transports.courier import WebhookMessage, new_secret, signed_headers
from toolkit.store import Store, read_deliveries
from toolkit.tables import ROWS

from .conftest import RAIL, serving
from .dashboard_process import App, app_over, faults, properties
from .test_webhooks import receiving

SECONDS = float(os.environ.get("RAIL_TOGETHER_S", "3"))
SENT_DAYS = 5 if SECONDS > 60 else 1
"""Days whose events are delivered: to detect one takes a second."""
LEAST = 2
"""Rounds that each of the three does, however slow the machine is."""

NOW = 1_795_132_800
BEGIN = NOW - 25 * 86_400
STEP_S = 900
"""Each sync asks for the next quarter of an hour, so that each has something to write."""
WEBHOOKS_PER_S = 20 if SECONDS > 60 else 5
"""Each waits for its turn at the store, as all others do for theirs."""
LEG = Trajectory.parse("BTC_USDT:AURORA.spot")
OTHER_LEG = Trajectory.parse("ETH_USDT:AURORA.spot")
PAIR = Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures")
RATE = Trajectory.parse("BTC_USDT:AURORA.futures:CORONA.futures", Family.FUNDING)

IMPORTS = f"""
import json
import toolkit as tk
from toolkit.intervals import Interval
from toolkit.market import EventFamily
store = tk.Store("rail.duckdb")
pair = tk.Trajectory.parse("{PAIR}")
window = Interval({BEGIN}, {NOW})
"""
READS = """
with store.reading():
    rows, coverage = store.series(pair, window), store.coverage(pair, window)
    logs = [store.events(family, window) for family in EventFamily]
measured = tk.statistics.spread.summary(tk.statistics.spread.with_spread(rows), *window)
held = coverage.filter(state="held")
print(json.dumps({
    "rows": rows.height,
    "documents": sum(log.height for log in logs),
    "measured": measured["n"].sum() + measured["n_null"].sum(),
    "held_s": (held["end_ts"] - held["start_ts"]).sum(),
}))
"""


class Together:
    """The rounds of all who take part; they go on until time is up and each has done a few."""

    def __init__(self, *names: str) -> None:
        self.taken_s: dict[str, list[float]] = {name: [] for name in names}
        self._until = time.monotonic() + SECONDS
        self._ended = threading.Event()

    def go_on(self, name: str, once: Callable[[], object]) -> None:
        """One round after the other; who ends, by an error too, ends it for all.

        Once time is up, who has done enough rests after each round: the others come to theirs.
        """
        taken_s = self.taken_s[name]
        try:
            while not self._ended.is_set() and not self._is_over():
                began = time.monotonic()
                once()
                taken_s.append(time.monotonic() - began)
                if time.monotonic() >= self._until and len(taken_s) >= LEAST:
                    self._ended.wait(5 * taken_s[-1])
        finally:
            self._ended.set()

    def _is_over(self) -> bool:
        return time.monotonic() >= self._until and min(map(len, self.taken_s.values())) >= LEAST


class Syncs:
    """`rail sync` of one quarter of an hour after the other."""

    def __init__(self, store: Path, base_url: str, *wanted: str) -> None:
        self._wanted = wanted
        self._where = ("--store", str(store), "--base-url", base_url)
        self._start = BEGIN

    @property
    def window(self) -> Interval:
        """What has been asked for so far."""
        return Interval(BEGIN, self._start)

    def once(self, *more: str) -> None:
        start, end = (
            time.strftime("%Y-%m-%dT%XZ", time.gmtime(ts))
            for ts in (self._start, self._start + STEP_S)
        )
        done = subprocess.run(
            [RAIL, "sync", *self._wanted, *more, "--start", start, "--end", end, *self._where],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        self._start += STEP_S


class Visitor:
    """Somebody who opens the six pages in turn, again and again."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._names = cycle(PAGES)

    def once(self) -> None:
        assert faults(self._app.page(next(self._names))) == []

    def rows(self) -> str:
        """How many rows the page of data health speaks of."""
        metrics = properties(self._app.page("health"), "metric")
        return next(str(metric["value"]) for metric in metrics if metric["label"] == "rows")


class Reader:
    """A notebook whose cell is run again and again in a kernel of its own."""

    def __init__(self, client: NotebookClient) -> None:
        self._client = client
        self.said: list[dict[str, float]] = []

    def once(self) -> None:
        self.said.append(json.loads(self._run(1)))

    def _run(self, number: int) -> str:
        """Run a cell; what it printed, which may come in parts."""
        cell = self._client.nb.cells[number]
        outputs: list[NotebookNode] = self._client.execute_cell(cell, number).outputs
        assert [output for output in outputs if output.get("name") != "stdout"] == []
        return "".join(output.text for output in outputs)

    @classmethod
    @contextmanager
    def in_kernel(cls, folder: Path) -> Iterator[Reader]:
        cells = [nbformat.v4.new_code_cell(text) for text in (IMPORTS, READS)]
        client = NotebookClient(
            nbformat.v4.new_notebook(cells=cells),
            timeout=600,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        )
        with client.setup_kernel():
            reader = cls(client)
            reader._run(0)
            yield reader


class Sender:
    """Somebody who delivers the events of days before the window, so many per second."""

    def __init__(self, url: str, secret: str) -> None:
        archive = EventArchive(Simulated(7))
        days = Interval(BEGIN - 5 * 86_400, BEGIN - (5 - SENT_DAYS) * 86_400)
        self.bodies = [
            body for family in EventFamily for _, body in archive.documents(family, *days)
        ]
        self._sent = 0
        self._url, self._secret = url, secret
        self._began = time.monotonic()

    def once(self) -> None:
        """Deliver a second's worth at once; after the last, the first again."""
        sent = self._sent
        time.sleep(max(0.0, self._began + sent / WEBHOOKS_PER_S - time.monotonic()))
        bodies = [self.bodies[n % len(self.bodies)] for n in range(sent, sent + WEBHOOKS_PER_S)]
        with ThreadPoolExecutor(WEBHOOKS_PER_S) as pool:
            self._sent += len(list(pool.map(self._deliver, bodies)))

    def _deliver(self, body: bytes) -> None:
        message = WebhookMessage.of("demo-pro", body)
        signed = signed_headers(self._secret, message.identity, int(time.time()), body)
        answer = httpx.post(self._url, content=body, headers=signed, timeout=300)
        assert answer.is_success, answer.text

    @property
    def delivered(self) -> int:
        """How many different documents were delivered."""
        return min(self._sent, len(self.bodies))


@contextmanager
def streaming(*arguments: str | Path) -> Iterator[None]:
    """A `rail follow` that goes on for as long as the block, and ends well on Ctrl-C."""
    process = subprocess.Popen(
        [RAIL, "follow", *arguments, "--since", "1h"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 130, output
    assert "Traceback" not in output


def check_held(store: Store, client: Client, window: Interval) -> None:
    """The store holds what the service answers for the window, no row more."""
    for trajectory in (LEG, PAIR, RATE):
        answered = client.history(trajectory, *window).drop("extra")
        assert store.series(trajectory).equals(answered), trajectory
        assert answered.height
    for family in EventFamily:
        pages = (
            page for part in split(window, 86_400) for page in client.event_pages(family, part)
        )
        answered = pl.concat([page.frame["document"] for page in pages])
        held = store.events(family, Interval(*window))["document"]
        assert held.sort().equals(answered.sort()), family


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder; what Jupyter keeps of its own goes beside it."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    (tmp_path / "reader").mkdir()
    return tmp_path / "reader"


def test_all_who_may_use_one_store_at_once_do_so_without_an_error(folder: Path) -> None:
    store, secret, port = Store(folder / "rail.duckdb"), new_secret(), free_port()
    logs = [EventLog(family).key for family in EventFamily]
    with serving("--seed", "7", "--now", "2026-11-20") as base_url:
        syncs = Syncs(store.path, base_url, LEG.key, PAIR.key, RATE.key, *logs)
        others = Syncs(store.path, base_url, OTHER_LEG.key)
        syncs.once("snapshot/spread", "snapshot/funding")
        source = ("--store", store.path, "--base-url", base_url)
        with (
            app_over(store.path, folder) as app,
            Reader.in_kernel(folder) as reader,
            Reader.in_kernel(folder) as second,
            receiving(store.path, secret, port),
        ):
            visitor, sender = Visitor(app), Sender(f"http://127.0.0.1:{port}/", secret)
            takers = {
                "page": visitor.once,
                "sync": syncs.once,
                "other sync": others.once,
                "second cell": second.once,
                "webhook": sender.once,
            }
            together = Together("cell", *takers)
            with (
                streaming("BTC_USDT:BOREAS.spot", "events/spread", *source),
                ThreadPoolExecutor() as pool,
            ):
                rounds = [pool.submit(together.go_on, *taker) for taker in takers.items()]
                together.go_on("cell", reader.once)
            for each in rounds:
                each.result()
            reader.once()
            held = dict(store.catalogue().group_by("kind").agg(pl.col("rows").sum()).iter_rows())
            assert visitor.rows() == f"{sum(rows for kind, rows in held.items() if kind in ROWS):,}"
        assert "Traceback" not in app.output.read_text()
        with Client(base_url, "demo-pro") as client:
            check_held(store, client, syncs.window)
            answered = client.history(OTHER_LEG, *others.window).drop("extra")
            assert store.series(OTHER_LEG).equals(answered)
    assert len(read_deliveries(store)) == sender.delivered
    rows, documents = ([said[name] for said in reader.said] for name in ("rows", "documents"))
    assert rows == sorted(rows)
    assert documents == sorted(documents)
    assert rows[-1] == store.series(PAIR).height > STEP_S / 60
    assert [said["measured"] for said in reader.said] == rows
    assert [said["held_s"] for said in reader.said] == [60 * n for n in rows]
