"""What the toolkit's analyses of spreads are in plain pandas, and the figures that have to agree.

Each reads the Parquet file of `benchmarks._walks`, whose minutes are on one grid: one column per
trajectory, with NaN where a minute is missing. Of stationarity there are the autocorrelations and
the variance ratios. The toolkit's other figures (the unit root test, errors, intervals, coverage)
have no peer, so that pandas does less.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from benchmarks._walks import STEP_S

_PAIRS, _TAIL = 100, 50
_HOURS, _MONDAY = 168, 72
_HALF = 0.5 + 1e-12


def _rows(folder: Path, end: int) -> pd.DataFrame:
    frame = pd.read_parquet(folder / "spread.parquet")
    frame = frame[frame.ts < end]
    frame["x"] = 1e4 * np.log(frame.sell_price / frame.buy_price)
    return frame[np.isfinite(frame.x)]


def _wide(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    wide = rows.pivot(index="ts", columns="trajectory", values=column)
    return wide.reindex(range(wide.index[0], wide.index[-1] + 1, STEP_S))


def hours(folder: Path, end: int) -> list[pl.DataFrame]:
    """Average the hours of the week: one row per trajectory and hour that has an observation."""
    rows = _rows(folder, end)
    rows["hour"] = rows.ts // 3_600 + _MONDAY
    found = rows.groupby(["trajectory", "hour"]).x.agg(["mean", "size"]).reset_index()
    found["week"], found["cell"] = found.hour // _HOURS, found.hour % _HOURS
    of_week = found.groupby(["trajectory", "week"])["mean"].transform("mean")
    found["own"] = found["mean"] - of_week
    by_cell = found.groupby(["trajectory", "cell"])
    out = pd.DataFrame({"hour_n": by_cell["size"].sum(), "weeks": by_cell.size()})
    out["mean"], out["median"] = by_cell["mean"].mean(), by_cell["mean"].median()
    out["std"], out["deviation"] = by_cell["mean"].std(), by_cell.own.mean()
    return [pl.from_pandas(out.reset_index(drop=True))]


def stationary(folder: Path, end: int) -> list[pl.DataFrame]:
    """Compute autocorrelations and variance ratios: one row per trajectory."""
    wide = _wide(_rows(folder, end), "x")
    out = {f"acf_{lag}": wide.corrwith(wide.shift(lag)) for lag in (1, 10, 60, 1440)}
    change = wide.diff()
    for steps in (2, 10, 60, 240, 1440):
        whole = change.rolling(steps).sum().notna()
        # a change counts where some window without a gap holds it
        used = whole[::-1].astype(float).rolling(steps, min_periods=1).max()[::-1] > 0
        total, windows = used.sum(), whole.sum()
        centred = change.where(used)
        centred = centred - centred.mean()
        squares, far = (centred**2).sum(), (centred.rolling(steps).sum() ** 2).sum()
        ratio = far / (steps * windows * (1 - steps / total)) / (squares / (total - 1))
        out[f"variance_ratio_{steps}"] = ratio.where(total >= max(5 * steps, _PAIRS))
    return [pl.from_pandas(pd.DataFrame(out).reset_index(drop=True))]


def leads(folder: Path, end: int) -> list[pl.DataFrame]:
    """Correlate the returns of both legs at 21 lags: one row per trajectory."""
    rows = _rows(folder, end)
    rows["buy"], rows["sell"] = np.log(rows.buy_price), np.log(rows.sell_price)
    buy, sell = (_wide(rows, leg).diff() for leg in ("buy", "sell"))
    by_lag = pd.DataFrame({lag: buy.corrwith(sell.shift(-lag)) for lag in range(-10, 11)})
    squares = by_lag**2
    out = pd.DataFrame({"peak_correlation": by_lag.max(axis=1), "correlation_at_0": by_lag[0]})
    out["lead_lag_ratio"] = squares.loc[:, 1:].sum(axis=1) / squares.loc[:, :-1].sum(axis=1)
    return [pl.from_pandas(out.reset_index(drop=True))]


def tails(folder: Path, end: int) -> list[pl.DataFrame]:
    """Estimate the index of Hill at four depths: one row per trajectory."""
    rows = _rows(folder, end)
    rows["log"] = np.log(rows.x.abs().replace(0, np.nan))
    rows = rows.sort_values(["trajectory", "log"], ascending=[True, False])
    by_key = rows.groupby("trajectory").log
    place, n = by_key.cumcount(), by_key.transform("size")
    out = pd.DataFrame({"n": by_key.size()})
    for percent in (1, 2, 5, 10):
        count = n * percent // 100
        least = rows[place == count].set_index("trajectory").log
        mean = rows[place < count].groupby("trajectory").log.mean()
        enough = out.n * percent // 100 >= _TAIL
        out[f"tail_{percent}pct_index"] = (1 / (mean - least)).where(enough)
    return [pl.from_pandas(out.reset_index(drop=True))]


def screen(folder: Path, end: int) -> list[pl.DataFrame]:
    """Measure level and newest value, the widest first: without half-lives and flags."""
    rows = _rows(folder, end)
    by_key = rows.groupby("trajectory").x
    out = pd.DataFrame({"n": by_key.size(), "last": by_key.last()})
    out["mean"], out["std"], out["median"] = by_key.mean(), by_key.std(), by_key.median()
    for percent in (1, 5, 25, 50, 75, 95, 99):
        out[f"q{percent:02}"] = by_key.quantile(percent / 100)
    out["last_z"] = (out["last"] - out["mean"]) / out["std"]
    last = rows.trajectory.map(out["last"])
    below = (rows.x < last).groupby(rows.trajectory).sum()
    equal = (rows.x == last).groupby(rows.trajectory).sum()
    out["last_percentile"] = 100 * (below + equal / 2) / out.n
    out = out.iloc[np.argsort(-out["last"].abs(), kind="stable")]
    return [pl.from_pandas(out.reset_index(drop=True))]


def closing(folder: Path, end: int, enter_bps: float, exit_bps: float) -> list[pl.DataFrame]:
    """Measure the time from entry to close by Kaplan and Meier: one row per trajectory."""
    rows = _rows(folder, end)
    by_key = rows.groupby("trajectory").ts
    until, since = by_key.shift(-1) - rows.ts, by_key.diff()
    first, size = ~(since <= 1.5 * STEP_S), rows.x.abs()
    state = pd.Series(np.nan, rows.index).mask((size <= exit_bps) | first, 0.0)
    rows["above"] = state.mask(size >= enter_bps, 1.0).ffill() > 0
    rows["life"] = (first | (rows.above != rows.above.shift())).cumsum()
    rows["unseen"], rows["open"] = first, ~(until <= 1.5 * STEP_S)
    rows["until"] = rows.ts + np.minimum(until.fillna(end - rows.ts), 3 * STEP_S)
    inside = rows[rows.above].groupby("life")
    lives = inside.agg(
        trajectory=("trajectory", "first"),
        begins=("ts", "first"),
        ends=("until", "last"),
        unseen=("unseen", "first"),
        open=("open", "last"),
    )
    lives["lasted_s"], lives["closed"] = lives.ends - lives.begins, ~lives.open
    keys = pd.Index(rows.trajectory.unique())
    truncated = lives.groupby("trajectory").unseen.sum().reindex(keys, fill_value=0)
    lives = lives[~lives.unseen]
    curve = lives.groupby(["trajectory", "lasted_s"]).closed.agg(["sum", "size"]).reset_index()
    at_risk = curve[::-1].groupby("trajectory")["size"].cumsum()
    curve["share"] = (1 - curve["sum"] / at_risk).groupby(curve.trajectory).cumprod()
    half = curve[curve.share <= _HALF].groupby("trajectory").lasted_s.min()
    by_key = lives.groupby("trajectory").closed
    out = pd.DataFrame({"truncated": truncated})
    out["entries"] = by_key.size().reindex(keys, fill_value=0)
    out["closed"] = by_key.sum().reindex(keys, fill_value=0)
    out["close_median_s"] = half.reindex(keys).astype(float)
    return [pl.from_pandas(out.reset_index(drop=True))]
