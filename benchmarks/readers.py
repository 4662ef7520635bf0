"""How readers and a loader at full rate get on with one store: failures, waits, and the slowdown.

``python -m benchmarks.readers [--quick]``: a store of 20 million rows. Six processes each read the
catalogue, the coverage of a trajectory, and a trajectory's last week with its spread summary, again
and again, while a seventh loads price after price, and then while a seventh follows some legs until
nothing of them is lacking. Before that one reader, the loader and a follow of other legs run alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._market import KEY
from benchmarks._market import START as PRICES_FROM
from benchmarks._walks import START, STEP_S, TOGETHER, fill_store, key, spread_rows
from benchmarks.loader import serving
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import Since, follow, sync
from toolkit.market import Trajectory
from toolkit.statistics.spread import summary
from toolkit.store import Store

READERS, SLICE_S, WEEK_S = 6, 6 * 3_600, 7 * 86_400
LEGS, DAYS = 28, 120


def read(path: Path, until: float, seed: int, trajectories: int, end: int) -> tuple[Counter, list]:
    """Read until a time: what failed, by class of error, and how long each read took (s)."""
    numbers = np.random.default_rng(seed)
    store, failed, took_s = Store(path), Counter[str](), []
    week = Interval(end - WEEK_S, end)
    reads = (
        lambda _: store.catalogue(),
        lambda asked: store.coverage(asked, week),
        lambda asked: summary(store.series(asked, week), *week),
    )
    while time.time() < until:
        asked = Trajectory.parse(key(int(numbers.integers(trajectories))))
        for each in reads:
            began = time.perf_counter()
            try:
                each(asked)
            except Exception as error:  # noqa: BLE001 - a failure of any kind is what is counted
                failed[type(error).__name__] += 1
            took_s.append(time.perf_counter() - began)
    return failed, took_s


def load(path: Path, base_url: str, until: float, first: int) -> tuple[int, float, int]:
    """Load slice after slice until a time: rows, seconds, and the number of the next slice."""
    legs = [Trajectory.price("AAA_USDT", f"LEG{n}", "spot") for n in range(LEGS)]
    rows, number, began, store = 0, first, time.perf_counter(), Store(path)
    with Client(base_url, KEY) as client:
        while time.time() < until and (number + 1) * SLICE_S <= DAYS * 86_400:
            start = PRICES_FROM + number * SLICE_S
            rows += sync(client, store, legs, Interval(start, start + SLICE_S)).rows.new
            number += 1
    return rows, time.perf_counter() - began, number


def catch_up(path: Path, base_url: str, legs: range, since: int) -> float:
    """Follow some legs' prices until nothing is lacking from a time on. Returns rows per second."""
    wanted = [Trajectory.price("EVENTS_USDT", f"LEG{n}", "spot") for n in legs]
    with Client(base_url, KEY) as client:
        done = follow(client, Store(path), wanted, since=Since(since), once=True)
    return done.rows.new / done.elapsed_s


def _beside(
    pool: Executor, path: Path, what: tuple[int, int], seconds: float, write: Callable[..., Any]
) -> tuple[Any, Counter, list]:
    """Have six processes read while ``write`` runs, which is given the time until which they do."""
    until = time.time() + seconds
    written = write(until)
    reads = [pool.submit(read, path, until, seed, *what) for seed in range(1, READERS + 1)]
    found = [each.result() for each in reads]
    failed = sum((each for each, _ in found), Counter[str]())
    return written.result(), failed, [one for _, each in found for one in each]


def _p95(took_s: list[float]) -> float:
    return float(np.quantile(took_s, 0.95))


def main(*, quick: bool) -> None:
    """Print what was measured, and the ratios as one line of JSON."""
    trajectories, minutes, seconds = (50, 2_000, 5) if quick else (500, 40_000, 60)
    followed_days = 12 if quick else DAYS
    end = START + STEP_S * minutes
    pool = ProcessPoolExecutor(READERS + 1, mp_context=get_context("spawn"))
    with tempfile.TemporaryDirectory() as folder, serving(DAYS, LEGS) as url, pool:
        path = Path(folder, "rail.duckdb")
        blocks = (range(at, at + TOGETHER) for at in range(0, trajectories, TOGETHER))
        fill_store(Path(folder), (spread_rows(block, minutes) for block in blocks))
        what = trajectories, end
        list(pool.map(time.sleep, [0.5] * (READERS + 1)))  # all have imported what they need

        until = time.time() + seconds / 3
        alone, alone_s = pool.submit(read, path, until, 0, *what).result()
        until = time.time() + seconds / 3
        rows, took_s, next_slice = pool.submit(load, path, url, until, 0).result()
        rate_alone = rows / took_s

        (rows, took_s, _), failed, together_s = _beside(
            pool, path, what, seconds, lambda at: pool.submit(load, path, url, at, next_slice)
        )
        since = PRICES_FROM + (DAYS - followed_days) * 86_400
        follow_alone = pool.submit(catch_up, path, url, range(5), since).result()
        follow_beside, failed_beside, beside_s = _beside(
            pool,
            path,
            what,
            seconds / 2,
            lambda _: pool.submit(catch_up, path, url, range(5, 10), since),
        )
    failed += alone + failed_beside
    slowdown = rate_alone / (rows / took_s)
    print(f"{READERS} readers and a loader for {seconds} s, {trajectories * minutes:,} rows:")
    print(f"  {len(together_s):,} reads, failures {dict(failed) or 'none'}")
    for name, each in (("alone", alone_s), ("together", together_s), ("beside a follow", beside_s)):
        print(f"  a read {name}: median {np.median(each):.3f} s, 95 % within {_p95(each):.3f} s")
    print(f"  rows/s: {rate_alone:,.0f} alone, {rows / took_s:,.0f} beside the readers")
    print(
        f"  rows/s of a follow: {follow_alone:,.0f} alone, {follow_beside:,.0f} beside the readers"
    )
    ratios = {
        "reader_failures": failed.total(),
        "read_p95_over_alone": _p95(together_s) / _p95(alone_s),
        "loader_slowdown": slowdown,
        "read_p95_beside_follow": _p95(beside_s) / _p95(alone_s),
        "follow_slowdown": follow_alone / follow_beside,
    }
    print(json.dumps({"name": "readers", "ratios": ratios}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="few rows, some seconds")
    main(quick=parser.parse_args().quick)
