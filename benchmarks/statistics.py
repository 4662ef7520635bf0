"""Statistics of many trajectories from a store, against one scan of a file and plain peers.

``python -m benchmarks.statistics [--quick]``: each way reads the same sorted rows in a process of
its own; the medians of CPU-seconds (imports not counted) are compared, and the figures have to
agree. The peers compute the spread summary in its plain forms: group-by, shift and quantile in
pandas, window functions and aggregates in DuckDB. They read a Parquet file of 2 million rows, as do
the toolkit's further analyses of spreads and of funding, and what pandas does of each
(`benchmarks._pandas_peers`, `benchmarks._pandas_funding`). Then the toolkit alone measures 20
million rows, from Parquet and from a store: the spread summary, the same with episodes in one pass,
each alone, rolling scores, flags and the further analyses. Last come the analyses of a million
events, against one scan of the table of their lifecycles.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks._events import EVENT_WAYS, EVENTS_END, make_event_files, scan_events
from benchmarks._memory import peak_mb
from benchmarks._walks import HOUR_S, START, STEP_S, make_files

STALE_S = 180
RUNS = 3
LEVELS = {f"q{percent:02}": percent / 100 for percent in (1, 5, 25, 50, 75, 95, 99)}
NORMAL_SCALE = 1.482602218505602
ENTER_BPS = 20


def scan(folder: Path, _end: int) -> list[pl.DataFrame]:
    key_bytes = pl.col("trajectory").str.len_bytes().sum()
    rows = pl.scan_parquet(folder / "spread.parquet")
    return [rows.select(key_bytes, pl.exclude("trajectory").sum()).collect()]


def toolkit(folder: Path, end: int) -> list[pl.DataFrame]:
    from toolkit.statistics.spread import summary  # noqa: PLC0415 - a peer imports only its own

    return [summary(pl.scan_parquet(folder / "spread.parquet"), START, end)]


def groups(folder: Path, kind: str) -> Iterable[pl.DataFrame]:
    from toolkit.store import Store  # noqa: PLC0415 - a peer imports only its own

    return Store(folder / "rail.duckdb").groups(kind)


def store(folder: Path, end: int) -> list[pl.DataFrame]:
    from toolkit.statistics import passes, spread  # noqa: PLC0415 - a peer imports only its own

    return passes.in_one_pass(
        groups(folder, "spread"), lambda rows: spread.summary(rows, START, end)
    )


def both(folder: Path, end: int) -> list[pl.DataFrame]:
    from toolkit.statistics import passes, spread  # noqa: PLC0415 - a peer imports only its own

    return passes.in_one_pass(
        groups(folder, "spread"),
        lambda rows: spread.summary(rows, START, end),
        lambda rows: spread.episodes(rows, START, end, enter_bps=ENTER_BPS),
    )


def last_settled(end: int) -> int:
    """The end of the window of funding, whose rows are hours where those of spreads are minutes."""
    return START + (end - START) // STEP_S * HOUR_S


def funding(
    folder: Path, end: int, statistic: str = "summary", *, stored: bool = True
) -> list[pl.DataFrame]:
    from toolkit.statistics import funding as carries  # noqa: PLC0415 - a peer imports only its own
    from toolkit.statistics.passes import in_one_pass  # noqa: PLC0415 - as above

    window, measure = (START, last_settled(end)), getattr(carries, statistic)
    if statistic in ("summary", "carry", "holdings"):
        measure = partial(measure, funding_only=True)
    if not stored:
        return [measure(pl.scan_parquet(folder / "funding.parquet"), *window)]
    return in_one_pass(groups(folder, "funding"), lambda rows: measure(rows, *window))


def funding_in_pandas(folder: Path, end: int, statistic: str) -> list[pl.DataFrame]:
    from benchmarks import _pandas_funding  # noqa: PLC0415 - a peer imports only its own

    found: list[pl.DataFrame] = getattr(_pandas_funding, statistic)(folder, last_settled(end))
    return found


def analysis(
    folder: Path, end: int, *, name: str, stored: bool = True, **options: float
) -> list[pl.DataFrame]:
    """A statistic of spreads from the store or the file, by its name and options."""
    from toolkit.statistics import passes, quality, spread  # noqa: PLC0415 - a peer imports only its own

    statistic = getattr(quality if name == "flags" else spread, name)
    if not stored:
        return [statistic(pl.scan_parquet(folder / "spread.parquet"), START, end, **options)]
    return passes.in_one_pass(
        groups(folder, "spread"), lambda rows: statistic(rows, START, end, **options)
    )


def analysis_in_pandas(folder: Path, end: int, *, way: str, **options: float) -> list[pl.DataFrame]:
    from benchmarks import _pandas_peers  # noqa: PLC0415 - a peer imports only its own

    found: list[pl.DataFrame] = getattr(_pandas_peers, way)(folder, end, **options)
    return found


def pandas(folder: Path, end: int) -> list[pl.DataFrame]:
    import pandas as pd  # noqa: PLC0415 - a peer imports only its own

    frame = pd.read_parquet(folder / "spread.parquet")
    frame = frame[(frame.ts >= START) & (frame.ts < end)]
    frame["x"] = 1e4 * np.log(frame.sell_price / frame.buy_price)
    frame = frame[np.isfinite(frame.x)]
    by_key = frame.groupby("trajectory")
    frame["until"] = by_key.ts.shift(-1) - frame.ts
    step = frame.groupby("trajectory").until.agg(lambda until: until.mode().iloc[0])
    limit = 3 * frame.trajectory.map(step)
    frame["w"] = np.minimum(frame.until.fillna(end - frame.ts), limit)
    frame["wx"] = frame.w * frame.x
    by_key = frame.groupby("trajectory")
    linked = frame.ts - by_key.ts.shift(1) <= limit / 2
    frame["before"] = by_key.x.shift(1).where(linked)
    frame["now"] = frame.x.where(linked)
    by_key = frame.groupby("trajectory")
    median = by_key.x.median()
    out = pd.DataFrame({"n": by_key.size(), "observed_share": by_key.w.sum() / (end - START)})
    out["mean"], out["std"], out["median"] = by_key.x.mean(), by_key.x.std(), median
    out["time_weighted_mean"] = by_key.wx.sum() / by_key.w.sum()
    deviation = (frame.x - frame.trajectory.map(median)).abs()
    out["mad"] = deviation.groupby(frame.trajectory).median() * NORMAL_SCALE
    for name, level in LEVELS.items():
        out[name] = by_key.x.quantile(level)
    tail = frame[frame.x >= frame.trajectory.map(out.q95)]
    out["shortfall"] = tail.groupby("trajectory").x.mean()
    now, before = (
        frame[name] - frame.trajectory.map(by_key[name].mean()) for name in ("now", "before")
    )
    products, squares = (series.groupby(frame.trajectory) for series in (now * before, before**2))
    out["phi"] = products.sum() / squares.sum()
    return [pl.from_pandas(out.reset_index())]


def duckdb(folder: Path, end: int) -> list[pl.DataFrame]:
    import duckdb as engine  # noqa: PLC0415 - a peer imports only its own

    levels = ", ".join(f"quantile_cont(x, {level}) AS {name}" for name, level in LEVELS.items())
    path = folder / "spread.parquet"
    found = engine.sql(f"""
        WITH observed AS (
            SELECT trajectory, ts, 1e4 * ln(sell_price / buy_price) AS x,
                   lead(ts) OVER w - ts AS until
            FROM '{path}' WHERE ts >= {START} AND ts < {end} AND buy_price > 0 AND sell_price > 0
            WINDOW w AS (PARTITION BY trajectory ORDER BY ts)
        ), steps AS (
            SELECT trajectory, mode(until) AS step FROM observed GROUP BY trajectory
        ), weighted AS (
            SELECT trajectory, x, least(coalesce(until, {end} - ts), 3 * step) AS weight,
                   CASE WHEN lag(until) OVER w <= 1.5 * step THEN lag(x) OVER w END AS before
            FROM observed JOIN steps USING (trajectory)
            WINDOW w AS (PARTITION BY trajectory ORDER BY ts)
        ), figures AS (
            SELECT trajectory, count(*) AS n, sum(weight) / {end - START} AS observed_share,
                   avg(x) AS mean, stddev_samp(x) AS std, median(x) AS median,
                   sum(weight * x) / sum(weight) AS time_weighted_mean,
                   mad(x) * {NORMAL_SCALE} AS mad, {levels}, regr_slope(x, before) AS phi
            FROM weighted GROUP BY trajectory
        ), tails AS (
            SELECT trajectory, avg(x) AS shortfall
            FROM weighted JOIN figures USING (trajectory) WHERE x >= q95 GROUP BY trajectory
        )
        SELECT * FROM figures JOIN tails USING (trajectory) ORDER BY trajectory
    """)
    return [found.pl()]


ANALYSES: dict[str, dict[str, Any]] = {
    "stationary": {"name": "stationarity"},
    "hours": {"name": "hour_of_week"},
    "closing": {"name": "time_to_close", "enter_bps": ENTER_BPS, "exit_bps": ENTER_BPS / 4},
    "leads": {"name": "lead_lag"},
    "tails": {"name": "tail_index"},
    "screen": {"name": "screen"},
}
"""The further analyses of which pandas does a part."""
FUNDING = {"funding": "summary", "persistence": "persistence", "holdings": "holdings"}
"""Those of funding, of which pandas does a part."""
PEERS: dict[str, Callable[[Path, int], list[pl.DataFrame]]] = {
    "toolkit": toolkit,
    "scan": scan,
    "pandas": pandas,
    "duckdb": duckdb,
}
FROM_STORE: dict[str, Callable[[Path, int], list[pl.DataFrame]]] = {
    "store": store,
    "both": both,
    "episodes": partial(analysis, name="episodes", enter_bps=ENTER_BPS),
    "rolling": partial(analysis, name="rolling_z_summary"),
    **{way: partial(funding, statistic=name) for way, name in FUNDING.items()},
    **{way: partial(analysis, **asked) for way, asked in ANALYSES.items()},
    "flags": partial(analysis, name="flags"),
}
IN_PANDAS: dict[str, Callable[[Path, int], list[pl.DataFrame]]] = {}
for _way, _asked in ANALYSES.items():
    _options = {name: value for name, value in _asked.items() if name != "name"}
    IN_PANDAS[f"{_way}_file"] = partial(analysis, stored=False, **_asked)
    IN_PANDAS[f"{_way}_pandas"] = partial(analysis_in_pandas, way=_way, **_options)
for _way, _name in FUNDING.items():
    IN_PANDAS[f"{_way}_file"] = partial(funding, statistic=_name, stored=False)
    IN_PANDAS[f"{_way}_pandas"] = partial(funding_in_pandas, statistic=_name)
WAYS = PEERS | FROM_STORE | IN_PANDAS | EVENT_WAYS | {"scan_events": scan_events}


def measure_here(way: str, folder: Path, end: int, run: int) -> None:
    """One way in this process: its figures beside the files, its cost on standard output."""
    imports = ["toolkit.statistics", "toolkit.store"]
    if way.endswith("pandas"):
        imports = ["pandas"]
    elif way in ("scan", "scan_events", "duckdb"):
        imports = ["duckdb" if way == "duckdb" else "polars"]
    for name in imports:
        __import__(name)
    before = resource.getrusage(resource.RUSAGE_SELF)
    results = WAYS[way](folder, end)
    after = resource.getrusage(resource.RUSAGE_SELF)
    memory_mb = peak_mb()  # before the figures are written to files, which no analyst does
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for number, result in enumerate(results):
        result.write_parquet(folder / f"{way}-{number}-{run}.parquet")
    print(json.dumps({"cpu_s": cpu, "peak_mb": memory_mb}))


def measure_apart(
    ways: Iterable[str], folder: Path, end: int, count: int
) -> dict[str, dict[str, float]]:
    """The medians of several runs of each way, each in a fresh process. The ways take turns."""
    command = [sys.executable, "-m", "benchmarks.statistics", "--folder", str(folder)]
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for run in range(count):
        for way, found in runs.items():
            asked = [*command, "--way", way, "--end", str(end), "--run", str(run)]
            done = subprocess.run(asked, check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout))
    return {
        way: {name: statistics.median(run[name] for run in found) for name in found[0]}
        for way, found in runs.items()
    }


def check_agreement(folder: Path, ours: str, peer: str) -> None:
    """Every figure of a peer equals ours, or there is nothing to compare."""
    found, theirs = (pl.read_parquet(folder / f"{way}-0-0.parquet") for way in (ours, peer))
    names = {c: c.removeprefix("spread_").removesuffix("_log_bps") for c in found.columns}
    names |= {"ar1_phi": "phi", "spread_expected_shortfall_95_log_bps": "shortfall"}
    found, theirs = found.rename(names, strict=False), theirs.select(pl.exclude("trajectory"))
    if "weeks" in found.columns:
        found = found.filter(pl.col("weeks") > 0)
    for name in theirs.columns:
        figures = (each[name].cast(pl.Float64).fill_null(float("nan")) for each in (found, theirs))
        np.testing.assert_allclose(*figures, rtol=1e-8, atol=1e-8, err_msg=f"{peer} {name}")


def bit_identical(folder: Path, count: int) -> bool:
    """Whether each run gave the same bits, and the store those of the Parquet file."""
    same = True
    for first in folder.glob("*-0.parquet"):
        way, number, _run = first.stem.split("-")
        if way in ("duckdb", "scan", "scan_events") or way.endswith("pandas"):
            continue
        found = pl.read_parquet(first)
        runs = [folder / f"{way}-{number}-{run}.parquet" for run in range(count)]
        if (way, number) in (("store", "0"), ("both", "0")):
            runs.append(folder / "toolkit-0-0.parquet")
        same &= all(pl.read_parquet(run).equals(found) for run in runs)
    return same


def show(title: str, rows: int, costs: dict[str, dict[str, float]], unit: str) -> None:
    print(f"{title}, {rows:,} rows")
    print(f"{'':18}{'CPU s':>8}{'to ' + unit:>16}{'peak MB':>9}")
    for way, cost in costs.items():
        ratio = cost["cpu_s"] / costs[unit]["cpu_s"]
        print(f"{way:18}{cost['cpu_s']:8.3f}{ratio:16.2f}{cost['peak_mb']:9.0f}")


def report(rows: int, ratios: dict[str, float | bool]) -> None:
    rounded = {name: value if value is True else round(value, 2) for name, value in ratios.items()}
    print(json.dumps({"name": "statistics", "rows": rows, "ratios": rounded}))


def compare_peers(trajectories: int, minutes: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, end = Path(name), START + STEP_S * minutes
        rows = make_files(folder, trajectories, minutes, store=False)
        costs = measure_apart([*PEERS, *IN_PANDAS], folder, end, count)
        pairs = {("toolkit", "pandas"): "", ("toolkit", "duckdb"): ""}
        pairs |= {(f"{way}_file", f"{way}_pandas"): f"{way}_" for way in (*ANALYSES, *FUNDING)}
        for ours, peer in pairs:
            check_agreement(folder, ours, peer)
    show(f"spreads of {trajectories} trajectories", rows, costs, "toolkit")
    ratios: dict[str, float | bool] = {}
    for (ours, peer), name in pairs.items():
        key = f"{name}{peer.rpartition('_')[2]}"
        ratios[f"{key}_cpu_over_ours"] = costs[peer]["cpu_s"] / costs[ours]["cpu_s"]
        ratios[f"{key}_memory_over_ours"] = costs[peer]["peak_mb"] / costs[ours]["peak_mb"]
    report(rows, ratios)


def compare_sources(trajectories: int, minutes: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, end = Path(name), START + STEP_S * minutes
        rows = make_files(folder, trajectories, minutes, store=True)
        costs = measure_apart(["scan", "toolkit", *FROM_STORE], folder, end, count)
        same = bit_identical(folder, count)
    show(f"{trajectories} trajectories from Parquet and a store", rows, costs, "scan")
    report(
        rows,
        {
            "cpu_vs_scan": costs["both"]["cpu_s"] / costs["scan"]["cpu_s"],
            "store_vs_parquet": costs["store"]["cpu_s"] / costs["toolkit"]["cpu_s"],
            "peak_rss_mb": max(costs[way]["peak_mb"] for way in FROM_STORE),
            "bit_identical": same,
        },
    )


def compare_events(count: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_event_files(folder, count)
        costs = measure_apart(["scan_events", *EVENT_WAYS], folder, EVENTS_END, runs)
        same = bit_identical(folder, runs)
    show("analyses of events", count, costs, "scan_events")
    scan_s = costs["scan_events"]["cpu_s"]
    ratios: dict[str, float | bool] = {
        f"{way}_cpu_vs_scan": costs[way]["cpu_s"] / scan_s for way in EVENT_WAYS
    }
    peak_mb = max(costs[way]["peak_mb"] for way in EVENT_WAYS)
    report(count, ratios | {"peak_rss_mb": peak_mb, "bit_identical": same})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="40 x 2,000 rows, 20,000 events, one run"
    )
    parser.add_argument("--trajectories", type=int, default=2_000, help="in the store")
    parser.add_argument("--events", type=int, default=1_000_000, help="of the analyses of events")
    parser.add_argument("--only-events", action="store_true", help="the analyses of events alone")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each way; --quick has one")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.way:
        measure_here(asked.way, asked.folder, asked.end, asked.run)
        return
    if asked.quick:
        asked.runs, asked.trajectories, asked.events = 1, 40, 20_000
    peers, minutes = (40, 2_000) if asked.quick else (200, 10_000)
    if not asked.only_events:
        compare_peers(peers, minutes, asked.runs)
        compare_sources(asked.trajectories, minutes, asked.runs)
    compare_events(asked.events, asked.runs)


if __name__ == "__main__":
    main()
