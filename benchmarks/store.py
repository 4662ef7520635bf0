"""Rows committed and read per second, beside plainer ways to keep them, in the same run.

Loading: batches of 100 pages, newest first as the pager brings them, each in an opening and a
transaction of its own; the toolkit also finds out what it holds and keeps the coverage ledger.
``INSERT`` is plain and stores whatever comes, however often; ``key`` is a PRIMARY KEY with INSERT
OR IGNORE, which keeps a changed answer out. Then the last fifth comes a second time.

Reading: every row of one trajectory, from the store as loaded and from a copy whose rows lie in
order of time, as minute by minute polling would leave them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import polars as pl

from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter

START, STEP_S, PAGE_ROWS, PAGES, TOGETHER = 1_600_000_020, 60, 1_000, 100, 4
BATCH_ROWS = PAGE_ROWS * PAGES
ROUNDS, READS = 3, 15
COLUMNS = "trajectory_id INTEGER, ts BIGINT, buy_price DOUBLE, sell_price DOUBLE, spread_pct DOUBLE"

Pages = dict[int, list[pl.DataFrame]]


def trajectory(number: int) -> Trajectory:
    return Trajectory.spread(f"ASSET{number}_USDT", "ONE.spot", "TWO.spot")


def make_batches(groups: int, depth: int) -> list[Pages]:
    """``depth`` batches for each group of trajectories, each reaching further back."""
    random, each = np.random.default_rng(1), BATCH_ROWS // TOGETHER
    found = []
    for group, back in product(range(groups), range(depth)):
        pages: Pages = {}
        for number in range(group * TOGETHER, (group + 1) * TOGETHER):
            steps = np.arange(each)[::-1] + (depth - 1 - back) * each
            buy = np.round(100 + random.standard_normal(each), 2)
            sell = np.round(buy * (1 + random.standard_normal(each) / 1e4), 2)
            frame = pl.DataFrame(
                {
                    "ts": START + STEP_S * steps,
                    "buy_price": buy,
                    "sell_price": sell,
                    "spread_pct": 100 * (sell / buy - 1),
                    "extra": pl.Series([None] * each, dtype=pl.String),
                }
            )
            pages[number] = list(frame.iter_slices(PAGE_ROWS))
        found.append(pages)
    return found


def load_store(path: Path, batches: Iterable[Pages]) -> None:
    """Through the toolkit, ledger and all."""
    store, edge = Store(path), Edge(served_at=2_000_000_000, step_s=STEP_S)
    writer = StoreWriter(store)
    writer.bind(Source("simulated", "walks"))
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1", 0, None, "0"))
    for pages in batches:
        batch = Batch()
        for number, frames in pages.items():
            for frame in frames:
                low, high = frame["ts"][-1], frame["ts"][0] + STEP_S
                batch.add(trajectory(number), frame, Interval(low, high), edge)
        writer.commit(load_id, batch)


def load_table(path: Path, batches: Iterable[Pages], key: str, insert: str) -> None:
    """Into a bare table, with or without a key."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS spread ({COLUMNS}{key})")
    for pages in batches:
        frame = pl.concat(
            page.select(pl.lit(number, pl.Int32).alias("trajectory_id"), pl.exclude("extra"))
            for number, frames in pages.items()
            for page in frames
        )
        with duckdb.connect(str(path)) as connection:
            connection.register("page", frame)
            connection.execute(f"{insert} INTO spread SELECT * FROM page")


WAYS: dict[str, Callable[[Path, Iterable[Pages]], None]] = {
    "toolkit": load_store,
    "INSERT": lambda path, batches: load_table(path, batches, "", "INSERT"),
    "key": lambda path, batches: load_table(
        path, batches, ", PRIMARY KEY (trajectory_id, ts)", "INSERT OR IGNORE"
    ),
}


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def held(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        return int(connection.execute("SELECT count(*) FROM spread").fetchall()[0][0])


def measure_loading(folder: Path, batches: list[Pages]) -> dict[str, tuple[float, float, float]]:
    """Median seconds of a first load and of repeating its last fifth, and the file's bytes.

    The ways take turns.
    """
    again = batches[-max(len(batches) // 5, 1) :]
    times: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    for round_number, way in product(range(ROUNDS), WAYS):
        path, load = folder / f"{way}-{round_number}.duckdb", WAYS[way]
        first = seconds(lambda load=load, path=path: load(path, batches))
        size = path.stat().st_size
        second = seconds(lambda load=load, path=path: load(path, again))
        wanted = len(batches) + (len(again) if way == "INSERT" else 0)
        assert held(path) == wanted * BATCH_ROWS, (way, held(path))
        times[way].append((first, second, size))
    return {
        way: (median(t[0] for t in each), median(t[1] for t in each), median(t[2] for t in each))
        for way, each in times.items()
    }


def measure_reading(folder: Path, trajectories: int) -> tuple[float, float]:
    """Median seconds to read one trajectory from the store, and from a copy in order of time."""
    loaded, by_time = Store(folder / "toolkit-0.duckdb"), Store(folder / "by-time.duckdb")
    shutil.copy(loaded.path, by_time.path)
    with duckdb.connect(str(by_time.path)) as connection:
        connection.execute("CREATE OR REPLACE TABLE spread AS FROM spread ORDER BY ts, stream_id")
    times: dict[Store, list[float]] = {loaded: [], by_time: []}
    for read, store in product(range(READS), times):
        wanted = trajectory(read * 7 % trajectories)
        times[store].append(seconds(lambda store=store, wanted=wanted: store.series(wanted)))
    assert loaded.series(trajectory(0)).equals(by_time.series(trajectory(0)))
    return median(times[loaded]), median(times[by_time])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rows")
    groups, depth = (2, 2) if parser.parse_args().quick else (10, 2)
    batches = make_batches(groups, depth)
    rows, again = len(batches) * BATCH_ROWS, max(len(batches) // 5, 1) * BATCH_ROWS
    with tempfile.TemporaryDirectory() as name:
        loading = measure_loading(Path(name), batches)
        reading = measure_reading(Path(name), groups * TOGETHER)
    print(f"{rows:,} rows in batches of {PAGES} pages; medians of {ROUNDS}")
    print(f"{'':10}{'new rows/s':>14}{'repeated rows/s':>18}{'bytes/row':>12}")
    for way, (first, second, size) in loading.items():
        print(f"{way:10}{rows / first:14,.0f}{again / second:18,.0f}{size / rows:12.1f}")
    print(f"one of {groups * TOGETHER} trajectories: {reading[0] * 1e3:.1f} ms as loaded, ", end="")
    print(f"{reading[1] * 1e3:.1f} ms in order of time")
    ours = loading["toolkit"]
    ratios = {
        "toolkit_s_over_insert": ours[0] / loading["INSERT"][0],
        "key_s_over_toolkit": loading["key"][0] / ours[0],
        "key_s_over_toolkit_repeated": loading["key"][1] / ours[1],
        "key_bytes_over_toolkit": loading["key"][2] / ours[2],
        "read_by_time_s_over_as_loaded": reading[1] / reading[0],
    }
    rounded = {name: round(ratio, 2) for name, ratio in ratios.items()}
    print(json.dumps({"name": "store", "rows": rows, "ratios": rounded}))


if __name__ == "__main__":
    main()
