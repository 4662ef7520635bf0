"""How fast the loader brings rows and events into the store, beside others, over a real socket.

``python -m benchmarks.loader [--quick]``: the service runs in a process of its own, and each way
loads the same pages into a new file in a process of its own. The ways take turns, and the medians
of wall seconds are compared. Ours keeps a ledger and drops repeats, which the others do not.

The bound fetches the pages and decodes them into frames, and does nothing else. dlt
(`benchmarks._dlt`) runs where `make bench` has installed it, in .bench, and is left out elsewhere.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import httpx
import numpy as np
import pandas as pd
import polars as pl

from benchmarks._market import EVENTS, HISTORY, KEY, START, prices, weeks
from benchmarks._memory import peak_mb
from tests.adversary import Accident, Adversary, RestSwitches, adverse
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, sync
from toolkit.market import EventLog, Leg, Stream, Trajectory
from toolkit.service import Bars, Clock, Config, faithful, running
from toolkit.service.market.source import Kind, Whole
from toolkit.store import Store
from toolkit.wire.profile.user_profile import UserProfile

DLT = Path(".bench/bin/python")
ROWS = {"ts": pl.Int64, "price": pl.Float64, "mark_price": pl.Float64, "volume": pl.Float64}
EVENT_LEGS = 10
LATENCY_S = 0.05


@dataclass(frozen=True)
class Walks(Whole):
    """One symbol whose legs stay together, and one whose legs part and meet, which makes events."""

    days: int
    legs: int
    kind: Kind = "simulated"
    id: str = "walks"
    made: dict[tuple[str, Leg], Bars] = field(default_factory=dict, compare=False)

    @property
    def listing(self) -> Mapping[str, tuple[Leg, ...]]:
        """The legs by symbol."""
        return {
            symbol: tuple(Leg.parse(f"LEG{n}.spot") for n in range(legs))
            for symbol, legs in (("AAA_USDT", self.legs), ("EVENTS_USDT", EVENT_LEGS))
        }

    def bars(self, symbol: str, leg: Leg) -> Bars:
        """Return a leg's minutes."""
        if (symbol, leg) not in self.made:
            noise = np.random.default_rng([int(leg.exchange[3:]), len(symbol)])
            count = self.days * 1440
            common = np.random.default_rng(1).normal(0, 1e-4, count).cumsum()
            apart = noise.normal(0, 3.1e-3 if symbol == "EVENTS_USDT" else 1e-5, count)
            price = np.exp(common + apart).round(6)
            self.made[symbol, leg] = Bars(START + 60 * np.arange(count), price, 60)
        return self.made[symbol, leg]


def _serve(pipe: Connection, days: int, legs: int, latency_s: float) -> None:
    slow = RestSwitches(
        accidents=(Accident("slow", routes=("history/price",), slow_s=latency_s / 3),)
    )
    config = Config(
        Walks(days, legs),
        port=0,
        clock=Clock(fixed_at=START + days * 86_400),
        retention_s=10**10,
        quota=10**9,
        application=adverse(Adversary(rest=slow)) if latency_s else faithful,
    )
    with running(config) as service:
        pipe.send(service.base_url)
        pipe.recv()


@contextmanager
def serving(days: int, legs: int, latency_s: float = 0.0) -> Iterator[str]:
    """Serve in a child process for the length of the block, and yield the address."""
    here, there = get_context("spawn").Pipe()
    args = (there, days, legs, latency_s)
    child = get_context("spawn").Process(target=_serve, args=args, daemon=True)
    child.start()
    yield here.recv()
    here.send(None)
    child.join()


@dataclass(frozen=True)
class Job:
    """What one way loads: all pages of some legs' prices, or of the event log."""

    base_url: str
    days: int
    legs: int
    limit: int
    workers: int = 4

    @property
    def end(self) -> int:
        """The end of what is loaded, Unix s."""
        return START + self.days * 86_400


def toolkit_way(job: Job, folder: Path) -> int:
    """Load prices with the loader."""
    return _synced(job, folder, _prices_of(job)).rows.new


def toolkit_events(job: Job, folder: Path) -> int:
    """Load the event log with the loader."""
    return _synced(job, folder, [EventLog.of("spread")]).rows.new


def idle_requests_per_stream(job: Job) -> float:
    """Return the requests for rows and documents, per stream, of a load when nothing can be new."""
    streams = [*_prices_of(job), EventLog.of("spread")]
    with tempfile.TemporaryDirectory() as folder:
        _synced(job, Path(folder), streams)
        again = _synced(job, Path(folder), streams).requests
    return (again.history + again.events) / len(streams)


def _prices_of(job: Job) -> list[Stream]:
    return [Trajectory.price("AAA_USDT", f"LEG{n}", "spot") for n in range(job.legs)]


def _synced(job: Job, folder: Path, streams: list[Stream]) -> LoadResult:
    profile = folder / "profile.toml"
    profile.write_text(f"[history.price]\nlimit = {job.limit}\n")
    with Client(job.base_url, KEY, profile=UserProfile.read(profile)) as client:
        store = Store(folder / "toolkit.duckdb")
        window = Interval(START, job.end)
        return sync(client, store, streams, window, workers=job.workers)


def _price_pages(job: Job) -> Iterator[tuple[int, bytes]]:
    """Yield the leg's number and body of each page, following ``next_end_time``."""
    with httpx.Client(base_url=job.base_url, headers={"apikey": KEY}) as http:
        for leg in range(job.legs):
            before: int | None = job.end
            while before is not None:
                body = http.get(HISTORY, params=prices(leg, job.limit, before)).content
                said = body[body.rindex(b'"next_end_time":') + 16 :].rstrip(b"}")
                before = None if said == b"null" else int(said)
                yield leg, body


def bound(job: Job, folder: Path) -> int:
    """Fetch and decode, keep nothing: what no loader of whole pages can be faster than."""
    del folder
    rows = 0
    for _, body in _price_pages(job):
        items = body[body.index(b'"items":') + 8 : body.rindex(b',"next_end_time"')]
        rows += pl.read_json(io.BytesIO(items), schema=ROWS).height if len(items) > 2 else 0
    return rows


def pandas_way(job: Job, folder: Path) -> int:
    """Read pages to frames of pandas, and write them to DuckDB at the end: a script's usual way."""
    frames = [
        pd.DataFrame(json.loads(body)["items"]).assign(leg=leg) for leg, body in _price_pages(job)
    ]
    return _written(pd.concat(frames), folder)


def pandas_events(job: Job, folder: Path) -> int:
    """Read the event log's pages to a frame of pandas, the documents as text, and write it."""
    documents: list[dict[str, Any]] = []
    with httpx.Client(base_url=job.base_url, headers={"apikey": KEY}) as http:
        for first in weeks(job.end):
            cursor: dict[str, str] = {}
            while True:
                page = http.get(EVENTS, params={**first, **cursor}).json()
                documents += [
                    {"ts": item["ts"], "item": json.dumps(item)} for item in page["items"]
                ]
                if not page["has_more"]:
                    break
                cursor = {"cursor": page["next_cursor"]}
    return _written(pd.DataFrame(documents).drop_duplicates(), folder)


def _written(frame: pd.DataFrame, folder: Path) -> int:
    with duckdb.connect(str(folder / "pandas.duckdb")) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE loaded AS SELECT * FROM frame")
        return int(connection.execute("SELECT count(*) FROM loaded").fetchall()[0][0])


WAYS: dict[str, Callable[[Job, Path], int]] = {
    "toolkit": toolkit_way,
    "bound": bound,
    "pandas": pandas_way,
    "toolkit events": toolkit_events,
    "pandas events": pandas_events,
}
DLT_WAYS = {"dlt": "rest", "dlt resource": "resource", "dlt events": "events"}


def measured(way: str, job: Job) -> dict[str, float]:
    """Run a way in a process of its own: wall_s, cpu_s, peak_mb and rows."""
    told = [job.base_url, *(str(n) for n in (job.legs, job.limit, job.days))]
    if way in DLT_WAYS:
        command = [str(DLT), str(Path(__file__).with_name("_dlt.py")), DLT_WAYS[way], *told]
    else:
        command = [sys.executable, "-m", "benchmarks.loader", "--child", way, *told]
        command.append(str(job.workers))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(way: str, base_url: str, *numbers: str) -> None:
    """Load by one way, in this process, and print what it took."""
    legs, limit, days, workers = map(int, numbers)
    job = Job(base_url, days, legs, limit, workers)
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        rows = WAYS[way](job, Path(folder))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "peak_mb": peak_mb(), "rows": rows}))


def compared(ways: list[str], job: Job, rounds: int) -> dict[str, dict[str, float]]:
    """Measure ways in turns, and return the median of each figure. All bring as many rows."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            runs[way].append(measured(way, job))
    found = {
        way: {name: median(run[name] for run in each) for name in each[0]}
        for way, each in runs.items()
    }
    counts = {way: figures["rows"] for way, figures in found.items()}
    if len(set(counts.values())) > 1:
        sys.exit(f"not all brought the same rows: {counts}")
    return found


def _times(found: dict[str, dict[str, float]], ours: str, peer: str) -> float | None:
    return found[peer]["wall_s"] / found[ours]["wall_s"] if peer in found else None


def _show(title: str, found: dict[str, dict[str, float]]) -> None:
    print(f"{title}: {next(iter(found.values()))['rows']:,.0f} rows")
    print(f"  {'way':16} {'rows/s':>12} {'CPU s per 1 M rows':>20} {'peak MB':>9}")
    for way, figures in found.items():
        rows, wall_s = figures["rows"], figures["wall_s"]
        cpu_s, peak_mb = figures["cpu_s"] / rows * 1e6, figures["peak_mb"]
        print(f"  {way:16} {rows / wall_s:12,.0f} {cpu_s:20.2f} {peak_mb:9.0f}")


def main(*, quick: bool) -> None:
    """Print a table per job, and all ratios as one line of JSON."""
    days, legs, rounds = (5, 4, 1) if quick else (30, 28, 3)
    dlt = DLT.exists()
    ratios: dict[str, float | None] = {}
    with serving(days, legs) as url:
        for limit in (1_000, 5_000):
            peers = ["bound", "pandas", *(["dlt", "dlt resource"] if dlt else [])]
            found = compared(["toolkit", *peers], Job(url, days, legs, limit), rounds)
            _show(f"prices, pages of {limit:,}", found)
            for key, peer in (("dlt", "dlt"), ("dlt_resource", "dlt resource"), ("bound", "bound")):
                ratios[f"trajectories_vs_{key}_{limit}"] = _times(found, "toolkit", peer)
            ratios["peak_rss_mb"] = found["toolkit"]["peak_mb"]
        ways = ["toolkit events", "pandas events", *(["dlt events"] if dlt else [])]
        events = compared(ways, Job(url, days, legs, 1_000), rounds)
        _show("events, whole documents", events)
        ratios["events_vs_dlt"] = _times(events, "toolkit events", "dlt events")
        ratios["idle_requests_per_stream"] = idle_requests_per_stream(Job(url, days, legs, 5_000))
    with serving(days, legs, LATENCY_S) as url:
        alone, many = (
            compared(["toolkit"], Job(url, days, legs, 1_000, workers), 1)["toolkit"]
            for workers in (1, 20)
        )
        ratios["latency_speedup_20"] = alone["wall_s"] / many["wall_s"]
    if not quick:
        with serving(250, legs) as url:
            ten_times = measured("toolkit", Job(url, 250, legs, 5_000))
        ratios["rss_growth_10x"] = ten_times["peak_mb"] / (ratios["peak_rss_mb"] or 1.0)
    print(json.dumps({"name": "loader", "days": days, "legs": legs, "ratios": ratios}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--quick", action="store_true", help="few rows, one round")
        main(quick=parser.parse_args().quick)
