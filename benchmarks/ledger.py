"""What reading the ledger costs after days of polling, over what it costs after the first sync.

A sync reads the ledger of its streams once, before it plans. ``--streams`` trajectories are asked
for every minute. The ledger's rows merge when they are written, so that the cost must not grow.
Each cost is taken in turns with that of a store with one sync, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import polars as pl

from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter

START, STEP_S = 1_600_000_020, 60
ORIGIN = LoadOrigin("http://127.0.0.1", 0, None, "0")


def polled(store: Store, streams: list[Trajectory], now: int) -> None:
    """One sync of the last minute of every stream."""
    batch, edge = Batch(), Edge(now, step_s=STEP_S, tail_ts=now)
    ts = now - 3 * STEP_S
    row = {"ts": [ts], "price": [1.0], "mark_price": [1.0], "volume": [1.0], "extra": [None]}
    frame = pl.DataFrame(row, schema_overrides={"extra": pl.String})
    for stream in streams:
        batch.add(stream, frame, Interval(ts, now), edge)
    writer = StoreWriter(store)
    load_id = writer.start_load(ORIGIN, streams, Interval(now - 7 * 86_400, now))
    writer.commit(load_id, batch)


def ledger_s(store: Store, streams: list[Trajectory], now: int) -> float:
    """CPU seconds of one look at the ledger."""
    began = time.process_time()
    known = store.ledger(streams, Interval(now - 7 * 86_400, now))
    assert len(known) == len(streams)
    return time.process_time() - began


def compared_s(
    fresh: Store, store: Store, streams: list[Trajectory], now: int
) -> tuple[float, float]:
    """CPU seconds of a look at either ledger, the medians of eleven in turns."""
    pairs = [(ledger_s(fresh, streams, START), ledger_s(store, streams, now)) for _ in range(11)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--minutes", type=int, default=7 * 1440)
    parser.add_argument("--quick", action="store_true", help="50 streams, 200 minutes")
    asked = parser.parse_args()
    count, minutes = (50, 200) if asked.quick else (asked.streams, asked.minutes)
    streams = [Trajectory.parse(f"ASSET{number}_USDT:ONE.spot") for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        fresh, store = (Store(Path(folder) / name) for name in ("fresh.duckdb", "rail.duckdb"))
        for each in (fresh, store):
            StoreWriter(each).bind(Source("simulated", "walks"))
            polled(each, streams, START)
        for minute in range(1, minutes):
            polled(store, streams, START + STEP_S * minute)
            if minute % 720 == 0:
                first, now_s = compared_s(fresh, store, streams, START + STEP_S * minute)
                print(f"after {minute / 1440:g} days: {now_s / first:.3f}", flush=True)
        first, last = compared_s(fresh, store, streams, START + STEP_S * (minutes - 1))
        size_mb = store.path.stat().st_size / 1e6
    print(f"{count} streams, {minutes} syncs: {first:.4f} s at first, {last:.4f} s at last")
    print(f"file {size_mb:.1f} MB")
    ratios = {"ledger_week_over_first": last / first}
    print(json.dumps({"name": "ledger", "rows": count * minutes, "ratios": ratios}))


if __name__ == "__main__":
    main()
