"""The spread summary of many trajectories, against one scan of its columns and plain peers.

``python -m benchmarks.statistics [--quick]``: each peer reads the same sorted Parquet file in a
process of its own, three times; the medians of CPU-seconds (imports not counted) are compared, and
the figures have to agree. The peers compute the same figures in their plain forms: group-by, shift
and quantile in pandas, window functions and aggregates in DuckDB.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

START, STEP_S, STALE_S = 1_700_000_040, 60, 180
RUNS = 3
LEVELS = {f"q{percent:02}": percent / 100 for percent in (1, 5, 25, 50, 75, 95, 99)}
NORMAL_SCALE = 1.482602218505602


def make_file(path: Path, trajectories: int, minutes: int) -> int:
    """AR(1) spreads of known kind, one minute in twenty missing; the number of rows."""
    rng = np.random.default_rng(20261120)
    phi = rng.uniform(0.9, 0.999, trajectories)
    noise = rng.standard_normal((trajectories, minutes))
    spread = np.zeros((trajectories, minutes))
    for at in range(1, minutes):
        spread[:, at] = phi * spread[:, at - 1] + noise[:, at]
    walk = np.cumsum(1e-4 * rng.standard_normal((trajectories, minutes)), axis=1)
    buy = 100 * np.exp(walk)
    frame = pl.DataFrame(
        {
            "trajectory": np.repeat(np.arange(trajectories, dtype=np.int32), minutes),
            "ts": np.tile(START + STEP_S * np.arange(minutes), trajectories),
            "buy_price": buy.ravel(),
            "sell_price": (buy * np.exp(spread / 1e4)).ravel(),
        }
    ).filter(pl.Series(rng.random(trajectories * minutes) >= 0.05))
    frame.write_parquet(path, row_group_size=250_000)
    return frame.height


def scan(path: Path, _end: int) -> pl.DataFrame:
    return pl.scan_parquet(path).select(pl.all().sum()).collect()


def toolkit(path: Path, end: int) -> pl.DataFrame:
    from toolkit.statistics.spread import summary  # noqa: PLC0415 - a peer imports only its own

    result = summary(pl.scan_parquet(path), START, end)
    names = {
        column: column.removeprefix("spread_").removesuffix("_log_bps") for column in result.columns
    }
    return result.rename(names).rename({"ar1_phi": "phi", "expected_shortfall_95": "shortfall"})


def pandas(path: Path, end: int) -> pl.DataFrame:
    import pandas as pd  # noqa: PLC0415 - a peer imports only its own

    frame = pd.read_parquet(path)
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
    out = pd.DataFrame({"n": by_key.size(), "coverage": by_key.w.sum() / (end - START)})
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
    return pl.from_pandas(out.reset_index())


def duckdb(path: Path, end: int) -> pl.DataFrame:
    import duckdb as engine  # noqa: PLC0415 - a peer imports only its own

    levels = ", ".join(f"quantile_cont(x, {level}) AS {name}" for name, level in LEVELS.items())
    return engine.sql(f"""
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
            SELECT trajectory, count(*) AS n, sum(weight) / {end - START} AS coverage,
                   avg(x) AS mean, stddev_samp(x) AS std, median(x) AS median,
                   sum(weight * x) / sum(weight) AS time_weighted_mean,
                   mad(x) * {NORMAL_SCALE} AS mad, {levels}, regr_slope(x, before) AS phi
            FROM weighted GROUP BY trajectory
        ), tails AS (
            SELECT trajectory, avg(x) AS shortfall
            FROM weighted JOIN figures USING (trajectory) WHERE x >= q95 GROUP BY trajectory
        )
        SELECT * FROM figures JOIN tails USING (trajectory) ORDER BY trajectory
    """).pl()


PEERS: dict[str, Callable[[Path, int], pl.DataFrame]] = {
    "toolkit": toolkit,
    "scan": scan,
    "pandas": pandas,
    "duckdb": duckdb,
}
FIGURES = ["n", "coverage", "mean", "std", "time_weighted_mean", "median", "mad"]
FIGURES += [*LEVELS, "shortfall", "phi"]


def measure_here(peer: str, path: Path, end: int) -> None:
    """One peer in this process: its figures beside the file, its cost on standard output."""
    __import__({"scan": "polars", "toolkit": "toolkit.statistics"}.get(peer, peer))
    before = resource.getrusage(resource.RUSAGE_SELF)
    result = PEERS[peer](path, end)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result.write_parquet(path.with_name(f"{peer}.parquet"))
    print(json.dumps({"cpu_s": cpu, "peak_mb": after.ru_maxrss / 1024}))


def measure_apart(peer: str, path: Path, end: int) -> dict[str, float]:
    """The medians of several runs, each in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.statistics", "--peer", peer]
    command += ["--file", str(path), "--end", str(end)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(RUNS)
    ]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def check_agreement(folder: Path) -> None:
    """Every figure of every peer equals ours, or there is nothing to compare."""
    ours = pl.read_parquet(folder / "toolkit.parquet").select(FIGURES).to_numpy()
    for peer in ("pandas", "duckdb"):
        theirs = pl.read_parquet(folder / f"{peer}.parquet").select(FIGURES).to_numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8, err_msg=peer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="40 x 2,000 rows, not 200 x 10,000")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peer:
        measure_here(asked.peer, asked.file, asked.end)
        return
    trajectories, minutes = (40, 2_000) if asked.quick else (200, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spread.parquet"
        rows = make_file(path, trajectories, minutes)
        end = START + STEP_S * minutes
        costs = {peer: measure_apart(peer, path, end) for peer in PEERS}
        check_agreement(Path(folder))
    ours = costs["toolkit"]
    print(f"spread summary of {trajectories} trajectories, {rows:,} rows; medians of {RUNS}")
    print(f"{'':10}{'CPU s':>8}{'to ours':>9}{'peak MB':>9}")
    for peer, cost in costs.items():
        ratio = cost["cpu_s"] / ours["cpu_s"]
        print(f"{peer:10}{cost['cpu_s']:8.3f}{ratio:9.2f}{cost['peak_mb']:9.0f}")
    ratios = {
        "toolkit_cpu_over_scan": ours["cpu_s"] / costs["scan"]["cpu_s"],
        "pandas_cpu_over_toolkit": costs["pandas"]["cpu_s"] / ours["cpu_s"],
        "duckdb_cpu_over_toolkit": costs["duckdb"]["cpu_s"] / ours["cpu_s"],
        "pandas_memory_over_toolkit": costs["pandas"]["peak_mb"] / ours["peak_mb"],
    }
    rounded = {name: round(ratio, 2) for name, ratio in ratios.items()}
    print(json.dumps({"name": "statistics", "rows": rows, "ratios": rounded}))


if __name__ == "__main__":
    main()
