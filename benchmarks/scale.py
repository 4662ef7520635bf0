"""How statistics of published rows get on with more processes, and with more rows.

``python -m benchmarks.scale [--quick]``: spreads of 20 million rows are published, and their
summaries computed in this process, by a pool of 2, and by Dask with 1, 2 and 3 workers. Then those
of six times the rows: the same files under other names. The results have to be identical.
`benchmarks.scheduler` measures what the scheduler takes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from distributed import Client, LocalCluster

from benchmarks._memory import peak_mb
from benchmarks._walks import START, STEP_S, TOGETHER, fill_store, spread_rows
from toolkit.cluster import Cluster
from toolkit.statistics import spread
from toolkit.statistics.passes import in_one_pass
from toolkit.store import Store
from toolkit.store.publish import PublishedRows, publish

WAYS = ["serial", "pool", "dask1", "dask2", "dask3"]


def published(folder: Path, trajectories: int, minutes: int) -> PublishedRows:
    """Publish a store of spreads, and return all its rows."""
    blocks = (range(n, min(n + TOGETHER, trajectories)) for n in range(0, trajectories, TOGETHER))
    fill_store(folder, (spread_rows(block, minutes) for block in blocks))
    publish(Store(folder / "rail.duckdb"), folder / "archive")
    window = (START, START + STEP_S * minutes)
    return PublishedRows.of(str(folder / "archive"), "spread", window)


def times(rows: PublishedRows, number: int) -> PublishedRows:
    """Return so many times the rows: the same files under other names."""
    parts = [
        replace(part, streams=tuple((f"{n}{key}", files) for key, files in part.streams))
        for n in range(number)
        for part in rows.parts
    ]
    return PublishedRows(rows.address, tuple(parts))


def serial(rows: PublishedRows, analysis: Any) -> pl.DataFrame:
    """Compute in this process."""
    return in_one_pass((part.read() for part in rows.parts), analysis)[0]


def on(where: object, rows: PublishedRows, analysis: Any) -> pl.DataFrame:
    """Compute on a cluster, of which nothing is kept."""
    with tempfile.TemporaryDirectory() as results:
        return Cluster(where, Path(results)).in_one_pass(rows, analysis)[0]


def with_dask(workers: int, work: Callable[[Client], Any]) -> tuple[Any, float]:
    """Do something with so many workers. Returns its result, and the largest of a worker (MB)."""
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    options |= {"env": {"POLARS_MAX_THREADS": "1"}, "scheduler_kwargs": {"dashboard": False}}
    with LocalCluster(n_workers=workers, **options) as made, Client(made) as client:
        found = work(client)
        return found, max(client.run(peak_mb).values())


def timed(work: Callable[[], pl.DataFrame]) -> tuple[pl.DataFrame, float]:
    """Do something, and return its result and seconds."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def compared(rows: PublishedRows, analysis: Any) -> dict[str, tuple[Any, ...]]:
    """Return of each way its result, seconds, and the largest worker (MB, 0 without workers)."""
    found: dict[str, tuple[Any, ...]] = {}
    for way in WAYS:
        if way == "serial":
            found[way] = (*timed(lambda: serial(rows, analysis)), 0.0)
        elif way == "pool":
            found[way] = (*timed(lambda: on(2, rows, analysis)), 0.0)
        else:
            work = partial(_on_client, rows, analysis)
            (result, seconds), peak = with_dask(int(way[4:]), work)
            found[way] = (result, seconds, peak)
        print(f"  {way:<8}{found[way][1]:>8.1f} s{found[way][2]:>10.0f} MB")
    return found


def _on_client(rows: PublishedRows, analysis: Any, client: Client) -> tuple[pl.DataFrame, float]:
    return timed(lambda: on(client, rows, analysis))


def main(*, quick: bool) -> None:
    """Print a table, and the ratios as one line of JSON."""
    trajectories, minutes = (40, 500) if quick else (500, 40_000)
    with tempfile.TemporaryDirectory() as folder:
        rows = published(Path(folder), trajectories, minutes)
        if quick:
            rows = PublishedRows.of(rows.address, "spread", rows.parts[0].window, rows=2_000)
        analysis = partial(
            spread.summary, start=rows.parts[0].window.start, end=rows.parts[0].window.end
        )
        size = sum(file.bytes for part in rows.parts for _, files in part.streams for file in files)
        count = sum(part.rows for part in rows.parts)
        print(f"{count:,} rows in {len(rows.parts)} parts, {size / count:.1f} bytes a row")
        one = compared(rows, analysis)
        print(f"{6 * count:,} rows")
        six = compared(times(rows, 6), analysis)
    same = all(way[0].equals(found["serial"][0]) for found in (one, six) for way in found.values())
    overhead_s = one["dask1"][1] - one["serial"][1]
    ratios = {
        "identical": float(same),
        "dask2_vs_pool": six["dask2"][1] / six["pool"][1],
        "overhead_ms_per_chunk": 1_000 * overhead_s / len(rows.parts),
        "overhead_us_per_row": 1e6 * overhead_s / count,
        "worker_rss_growth_6x": six["dask2"][2] / one["dask2"][2],
    }
    print(json.dumps({"name": "scale", "ratios": ratios}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="few rows")
    main(quick=parser.parse_args().quick)
