"""How fast the loader brings rows into the store, beside plainer ways, over a real socket.

The service runs in a process of its own. Each way loads the same trajectories into a new file in
a process of its own; rows a second by wall clock, and CPU seconds of the loading process. What the
service could have sent meanwhile is measured by fetching the same pages and throwing them away.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb
import httpx
import numpy as np
import polars as pl

from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Trajectory
from toolkit.store import Store

START = 1_767_225_600
KEY = "demo-pro"


def make_market(folder: Path, days: int, legs: int) -> int:
    """A Parquet file of minutes; gives its number of rows."""
    walk = np.random.default_rng(1)
    ts = START + 60 * np.arange(days * 1440)
    names = {"symbol": "AAA_USDT", "market": "spot", "dataset": "bench"}
    frames = [
        pl.DataFrame(
            {"ts": ts, "price": np.exp(walk.normal(0, 1e-4, len(ts)).cumsum()).round(6)}
        ).with_columns(exchange=pl.lit(f"LEG{n}"))
        for n in range(legs)
    ]
    rows = pl.concat(frames).with_columns(
        *(pl.lit(v).alias(k) for k, v in names.items()), interval_s=pl.lit(60)
    )
    rows.write_parquet(folder / "prices.parquet")
    return rows.height


def trajectories(legs: int) -> list[Trajectory]:
    return [Trajectory.price("AAA_USDT", f"LEG{n}", "spot") for n in range(legs)]


def follow(base_url: str, legs: int, limit: int, take: Callable[[int, bytes], int | None]) -> None:
    """Follow ``next_end_time`` for every leg; ``take`` handles a page and gives the next one."""
    with httpx.Client(base_url=base_url, headers={"apikey": KEY}) as http:
        for number in range(legs):
            end: int | None = START + 400 * 86_400
            while end is not None:
                query = {
                    "symbol": "AAA_USDT",
                    "exchange": f"LEG{number}",
                    "market": "spot",
                    "end_time": end,
                    "limit": limit,
                }
                end = take(number, http.get("/api/v1/data/history/price", params=query).content)


def next_of(body: bytes) -> int | None:
    at = body.rindex(b'"next_end_time":') + 16
    value = body[at:].rstrip(b"}")
    return None if value == b"null" else int(value)


def toolkit_way(base_url: str, folder: Path, days: int, legs: int) -> int:
    with Client(base_url, KEY) as client:
        store = Store(folder / "toolkit.duckdb")
        sync(client, store, trajectories(legs), Interval(START, START + days * 86_400))
        return sum(store.counts(Interval(START, START + days * 86_400)).values())


def fetch_only(base_url: str, folder: Path, days: int, legs: int) -> int:
    del folder, days
    rows = 0

    def count(_: int, body: bytes) -> int | None:
        nonlocal rows
        rows += body.count(b'"ts":')
        return next_of(body)

    follow(base_url, legs, 5000, count)
    return rows


def page_by_page(base_url: str, folder: Path, days: int, legs: int) -> int:
    """json to dicts to a frame, one commit a page, no ledger: what a script usually does."""
    del days
    con = duckdb.connect(str(folder / "plain.duckdb"))
    con.execute("CREATE TABLE price (leg INTEGER, ts BIGINT, price DOUBLE)")

    def take(number: int, body: bytes) -> int | None:
        page = json.loads(body)
        if page["items"]:
            frame = pl.DataFrame(page["items"]).select(pl.lit(number).alias("leg"), "ts", "price")
            con.register("page", frame)
            con.execute("INSERT INTO price SELECT * FROM page")
            con.unregister("page")
        found: int | None = page["next_end_time"]
        return found

    follow(base_url, legs, 1000, take)
    (rows,) = con.execute("SELECT count(*) FROM price").fetchall()[0]
    con.close()
    return int(rows)


WAYS = {"toolkit": toolkit_way, "fetch only": fetch_only, "page by page": page_by_page}


def child(way: str, base_url: str, days: int, legs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        rows = WAYS[way](base_url, Path(folder), days, legs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if rows != days * 1440 * legs:
        sys.exit(f"{way} brought {rows} rows of {days * 1440 * legs}")
    print(json.dumps([wall, cpu]))


def main(quick: bool) -> None:
    days, legs, rounds = (20, 5, 1) if quick else (30, 24, 3)
    with tempfile.TemporaryDirectory() as folder:
        rows = make_market(Path(folder), days, legs)
        rail = str(Path(sys.executable).with_name("rail"))
        command = [
            rail,
            "serve",
            "--replay",
            folder,
            "--port",
            "0",
            "--now",
            str(START + days * 86_400),
        ]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert service.stdout is not None
        url = next(line for line in service.stdout if "listening" in line).split()[2].rstrip(";")
        try:
            found = measure(url, days, legs, rounds)
        finally:
            service.terminate()
            service.wait()
    print(f"{'way':14} {'rows/s':>12} {'CPU s per 1 M rows':>20}")
    for way, (wall, cpu) in found.items():
        print(f"{way:14} {rows / wall:12,.0f} {cpu / rows * 1e6:20.2f}")
    ours = found["toolkit"]
    ratios = {
        "rows_per_s_over_page_by_page": found["page by page"][0] / ours[0],
        "fetch_rows_per_s_over_load": ours[0] / found["fetch only"][0],
    }
    print(json.dumps({"name": "loader", "rows": rows, "ratios": ratios}))


def measure(url: str, days: int, legs: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Median wall and CPU seconds of each way, the ways taking turns."""
    times: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            argv = [
                sys.executable,
                "-m",
                "benchmarks.loader",
                "--child",
                way,
                url,
                str(days),
                str(legs),
            ]
            done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
            times[way].append(json.loads(done.stdout))
    return {
        way: (median(t[0] for t in each), median(t[1] for t in each)) for way, each in times.items()
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main("--quick" in sys.argv)
