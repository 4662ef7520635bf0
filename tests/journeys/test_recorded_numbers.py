"""The numbers of `rail stats` over every recorded pair, against pandas, numpy and statsmodels.

Nothing of the toolkit computes what is expected here: it is worked out from the rows that were put
into the store.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import median_abs_deviation
from statsmodels.tsa.stattools import adfuller

from tests.once import made_once
from toolkit.market import Source, Trajectory
from toolkit.series import own_series
from toolkit.store import Batch, LoadOrigin, Store, StoreWriter
from toolkit.workspace.loading import add_own

from .test_load_and_measure import Rail

HOUR = 3600


class Hours:
    """A pair's legs by the hour: the rate that each pays, what it settles, and what is in force."""

    def __init__(self, rows: pl.DataFrame, start: int, end: int) -> None:
        self.first, self.count = start // HOUR, (end - start) // HOUR
        legs = [
            rows.select("ts", rate=f"{side}_rate", hours=f"{side}_interval_hours").drop_nulls(
                "rate"
            )
            for side in ("buy", "sell")
        ]
        paid_for, received, settled, in_force = zip(*map(self._leg, legs), strict=True)
        self.covered = ~np.isnan(paid_for[0]) & ~np.isnan(paid_for[1])
        self.more = paid_for[1] - paid_for[0]
        self.received = received[1] - received[0]
        self.settled = settled[1] - settled[0]
        self.in_force = in_force[1] - in_force[0]
        self.n = [leg.height for leg in legs]

    def _leg(self, leg: pl.DataFrame) -> tuple[np.ndarray, ...]:
        paid_for, received, in_force = np.full((3, self.count), np.nan)
        settled, before = np.zeros(self.count + 1), -self.first
        ends = [*(leg["ts"] // HOUR - self.first)[1:], self.count][: leg.height]
        for (ts, rate, hours), following in zip(leg.rows(), ends, strict=True):
            at = ts // HOUR - self.first
            settled[at] += rate
            since = max(before, at - int(hours), 0)
            paid_for[since:at] = rate / hours
            received[since:at] = rate / max(at - since, 1)  # whole, though it settled early
            in_force[at : min(following, at + 2 * int(hours))] = rate / hours
            before = at
        return paid_for, received, settled, in_force


Pairs = dict[str, pl.DataFrame]


def price_pairs(real_data: Path) -> Pairs:
    """The prices of both legs at each time that both have, by key: bars of one length."""
    bars = pl.read_parquet(real_data / "prices.parquet").filter(pl.col("interval_s") > 0)
    names = pl.col("symbol", "exchange", "market", "dataset").cast(pl.String)
    found = {}
    for (symbol, _), part in sorted(bars.with_columns(names).group_by("symbol", "interval_s")):
        legs = _fullest(part, pl.concat_str("exchange", pl.lit("."), "market"), ["ts", "price"])
        for buy, sell in combinations(legs, 2):
            both = legs[buy].join(legs[sell], on="ts", suffix="_sell").sort("ts")
            if both.height:
                named = both.rename({"price": "buy_price", "price_sell": "sell_price"})
                found[f"{symbol}:{buy}:{sell}"] = named
    return found


def funding_pairs(real_data: Path) -> Pairs:
    """The settlements of both legs, by key, where their times overlap."""
    rates = pl.read_parquet(real_data / "funding.parquet").with_columns(
        pl.col("symbol", "exchange", "dataset").cast(pl.String),
        pl.col("rate", "interval_hours").cast(pl.Float64),
    )
    found = {}
    for (symbol,), part in sorted(rates.group_by("symbol")):
        columns = ["ts", "rate", "interval_hours"]
        legs = _fullest(part, pl.concat_str("exchange", pl.lit(".futures")), columns)
        for buy, sell in combinations(legs, 2):
            ends = [leg["ts"].max() for leg in (legs[buy], legs[sell])]
            begins = [leg["ts"].min() for leg in (legs[buy], legs[sell])]
            if min(ends) > max(begins):
                joined = legs[buy].join(
                    legs[sell], on="ts", how="full", coalesce=True, suffix="_sell"
                )
                found[f"funding/{symbol}:{buy}:{sell}"] = joined.sort("ts").select(
                    "ts",
                    buy_rate="rate",
                    sell_rate="rate_sell",
                    buy_interval_hours="interval_hours",
                    sell_interval_hours="interval_hours_sell",
                )
    return found


def _fullest(part: pl.DataFrame, leg: pl.Expr, columns: list[str]) -> Pairs:
    """Each leg's rows of the data set that has the most, sorted by time."""
    named = part.with_columns(leg=leg, ts=pl.col("ts").cast(pl.Int64))
    counts = named.group_by("leg", "dataset").len().sort("leg", "len", "dataset")
    chosen = counts.group_by("leg", maintain_order=True).last().sort("leg")
    return {
        leg: named.filter(leg=leg, dataset=dataset).select(columns).unique("ts").sort("ts")
        for leg, dataset in chosen.select("leg", "dataset").iter_rows()
    }


def kept(pairs: Pairs, path: Path) -> Path:
    """A store of one's own data with these pairs, of one load: one for each takes 0.3 s of CPU."""
    writer, now = StoreWriter(Store(path)), int(time.time())
    writer.bind(Source("own", "recorded"))
    load_id, batch = writer.start_load(LoadOrigin("file:recorded", now, None, "0.1.0")), Batch()
    for key, rows in pairs.items():
        add_own(batch, own_series(rows, key), now)
    writer.commit(load_id, batch)
    writer.finish_load(load_id, [])
    return path


YEAR_H = 8760
Row = dict[str, Any]


class Recorded:
    """The pairs, and a store that has them, which is made once for all workers."""

    def __init__(self, real_data: Path, factory: pytest.TempPathFactory) -> None:
        self.prices, self.funding = price_pairs(real_data), funding_pairs(real_data)
        pairs = self.prices | self.funding
        folder = made_once(factory, "recorded", lambda made: kept(pairs, made / "own.duckdb"))
        self.path = folder / "own.duckdb"
        self._printed: dict[tuple[str, ...], list[Row]] = {}
        self._hours: dict[tuple[str, int, int], Hours] = {}

    def printed(self, rail: Rail, *asked: str) -> list[Row]:
        """What `rail stats` prints of them. Several tests hold what one question gives."""
        if asked not in self._printed:
            done = rail("stats", *asked, "--store", str(self.path), "--format", "json")
            assert done.returncode == 0, done.stderr
            self._printed[asked] = [json.loads(line) for line in done.stdout.splitlines()]
        return self._printed[asked]

    def hours(self, row: Row) -> Hours:
        """The hours of a pair of rates in the window that a row is of."""
        key, start, end = asked = row["trajectory"], row["window_start"], row["window_end"]
        if asked not in self._hours:
            self._hours[asked] = Hours(self.funding[key], start, end)
        return self._hours[asked]


@pytest.fixture(scope="module")
def recorded(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(real_data, tmp_path_factory)


def each_pair(rows: list[Row], pairs: Pairs) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Each row with the rows of its pair; every pair comes once."""
    assert sorted(row["trajectory"] for row in rows) == sorted(pairs)
    for row in rows:
        yield row, pairs[row["trajectory"]]


def close(found: float | None, expected: float, digits: float = 1e-9) -> bool:
    return found == pytest.approx(expected, rel=digits, abs=1e-9)


def spread_of(rows: pl.DataFrame) -> pd.Series:
    """The spread in log bps, by time."""
    values = 1e4 * np.log(rows["sell_price"].to_numpy() / rows["buy_price"].to_numpy())
    return pd.Series(values, index=rows["ts"].to_numpy())


def step_of(ts: np.ndarray) -> int:
    steps, counts = np.unique(np.diff(ts), return_counts=True)
    return int(steps[counts.argmax()])


def later(values: pd.Series, by_s: int) -> pd.Series:
    """The value exactly so many seconds later, at each time that has one."""
    return values.set_axis(values.index - by_s).reindex(values.index)


def held_s(ts: np.ndarray, step: int, end: int) -> np.ndarray:
    return np.minimum(np.diff(ts, append=end), 3 * step)


def test_levels_and_quantiles_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    for row, rows in each_pair(recorded.printed(rail, "spread"), recorded.prices):
        values, start, end = spread_of(rows), row["window_start"], row["window_end"]
        ts, x, step = values.index.to_numpy(), values.to_numpy(), row["step_s"]
        held, phase = held_s(ts, step, end), ts[0] % step
        due = -((phase - end) // step) + (phase - start) // step  # bars that begin in the window
        expected = {
            "step_s": step_of(ts),
            "n": len(values),
            "n_expected": due,
            "coverage": len(np.unique((ts - phase) // step)) / due,
            "observed_share": held.sum() / (end - start),
            "longest_gap_s": max([0, *(apart for apart in np.diff(ts) if apart > 1.5 * step)]),
            "n_segments": 1 + (np.diff(ts) > 1.5 * step).sum(),
            "spread_mean_log_bps": values.mean(),
            "spread_std_log_bps": values.std(),
            "spread_time_weighted_mean_log_bps": np.average(x, weights=held),
            "spread_median_log_bps": values.median(),
            "spread_mad_log_bps": median_abs_deviation(x, scale="normal"),
            "spread_expected_shortfall_95_log_bps": x[x >= np.quantile(x, 0.95)].mean(),
        } | {f"spread_q{q:02}_log_bps": np.quantile(x, q / 100) for q in (1, 5, 25, 50, 75, 95, 99)}
        wrong = {name: (row[name], it) for name, it in expected.items() if not close(row[name], it)}
        assert not wrong, (row["trajectory"], wrong)


def decay(values: pd.Series, step: int, lag: int) -> tuple[int, float, float]:
    """Triples at t, one step and 1 + lag steps later: how many, and two products of the first."""
    triples = pd.DataFrame(
        {"z": values, "near": later(values, step), "far": later(values, (1 + lag) * step)}
    ).dropna()
    of = triples - triples.mean()
    return len(of), float((of.z * of.far).sum()), float((of.z * of.near).sum())


def test_half_lives_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    for row, rows in each_pair(recorded.printed(rail, "spread"), recorded.prices):
        values, step = spread_of(rows), row["step_s"]
        pairs = pd.DataFrame({"now": values, "next": later(values, step)}).dropna()
        phi = np.polyfit(pairs.now, pairs.next, 1)[0]
        assert row["ar1_pairs"] == len(pairs)
        assert close(row["ar1_phi"], phi, 1e-7)
        if phi > 0.5:
            assert close(row["half_life_ar1_s"], -step * np.log(2) / np.log(phi), 1e-5)
        lag = 9
        triples, far, near = decay(values, step, lag)
        if triples < 100 or far < 0.5 * near:
            lag = 1
            triples, far, near = decay(values, step, lag)
        assert (row["half_life_triples"], row["half_life_lag_steps"]) == (triples, lag)
        if row["half_life_s"] is None:
            assert row["half_life_reason"]
            continue
        noise = 1 - pairs.corr().iloc[0, 1] / (far / near) ** (1 / lag)
        assert close(row["noise_share"], noise, 1e-6)
        assert close(row["half_life_phi"], 2 ** (-step / row["half_life_s"]))
        raw_s = -step * lag * np.log(2) / np.log(far / near)
        lower_s, upper_s = row["half_life_lower_s"] or 0, row["half_life_upper_s"] or np.inf
        assert lower_s <= raw_s <= upper_s, row["trajectory"]


def longest_run(values: pd.Series, step: int) -> np.ndarray:
    runs = np.split(values.to_numpy(), np.flatnonzero(np.diff(values.index) != step) + 1)
    return max(runs, key=len)


def test_unit_roots_and_correlations_of_all_recorded_spreads(
    rail: Rail, recorded: Recorded
) -> None:
    for row, rows in each_pair(recorded.printed(rail, "stationarity"), recorded.prices):
        values, step = spread_of(rows), row["step_s"]
        run = longest_run(values, step)
        lags = int(12 * (len(run) / 100) ** 0.25)
        assert row["adf_n"] == len(run)
        if len(run) >= 10 * (lags + 2):
            asked = {"maxlag": lags, "autolag": None, "regression": "c", "result_object": False}
            t, _, used, _, critical = adfuller(run, **asked)[:5]
            assert row["adf_lags"] == used
            assert close(row["adf_t"], t, 1e-6)
            assert close(row["adf_critical_5pct"], critical["5%"], 1e-3)
            assert row["rejects_unit_root_5pct"] == (t < critical["5%"])
        else:
            assert (row["adf_t"], row["adf_reason"]) == (None, "too_few")
        for lag in (1, 10, 60, 1440):
            pairs = pd.DataFrame({"now": values, "later": later(values, lag * step)}).dropna()
            assert row[f"acf_{lag}_pairs"] == len(pairs)
            if len(pairs) >= 100:
                assert close(row[f"acf_{lag}"], pairs.corr().iloc[0, 1], 1e-7)


def test_leads_and_lags_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    for row, rows in each_pair(recorded.printed(rail, "lead-lag"), recorded.prices):
        step, index = row["step_s"], rows["ts"].to_numpy()
        buy, sell = (
            pd.Series(np.log(rows[side].to_numpy()), index=index)
            for side in ("buy_price", "sell_price")
        )
        moves = pd.DataFrame({"buy": later(buy, step) - buy, "sell": later(sell, step) - sell})
        moves = moves.dropna()
        by_lag = {}
        for lag in range(-10, 11):
            pairs = pd.DataFrame({"buy": moves.buy, "sell": later(moves.sell, lag * step)})
            by_lag[lag] = pairs.dropna().corr().iloc[0, 1]
        peak = max(by_lag, key=lambda lag: (by_lag[lag], -abs(lag)))
        ahead = sum(by_lag[lag] ** 2 for lag in range(1, 11))
        behind = sum(by_lag[-lag] ** 2 for lag in range(1, 11))
        assert (row["returns_n"], row["peak_lag_s"]) == (len(moves), peak * step)
        assert close(row["peak_correlation"], by_lag[peak], 1e-8)
        assert close(row["correlation_at_0"], by_lag[0], 1e-8)
        assert close(row["lead_lag_ratio"], ahead / behind, 1e-7)


def stretches(
    values: pd.Series, step: int, end: int, *, enter: float, leave: float
) -> list[tuple[int, int, float, bool, bool]]:
    """Start, end, peak and whether each side was not seen, by a loop over the rows."""
    found: list[tuple[int, int, float, bool, bool]] = []
    ts, x = values.index.tolist(), values.tolist()
    since, left = None, False
    for k, at in enumerate([*ts, end]):
        after_gap = k in (0, len(ts)) or at - ts[k - 1] > 1.5 * step
        over = k < len(ts) and abs(x[k]) < leave
        if since is not None and (after_gap or over):
            until = min(ts[k - 1] + 3 * step, at) if after_gap else at
            found.append((ts[since], until, max(x[since:k], key=abs), left, after_gap))
            since = None
        if since is None and k < len(ts) and abs(x[k]) >= enter:
            since, left = k, after_gap
    return found


def test_episodes_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    store = Store(recorded.path)
    found = recorded.printed(
        rail, "episodes", "--absolute", "--enter-bps", "20", "--leave-bps", "5"
    )
    for key, given in recorded.prices.items():
        assert store.series(Trajectory.parse(key)).select(given.columns).equals(given)
        values = spread_of(given)
        lives = stretches(values, step_of(values.index), found[0]["window_end"], enter=20, leave=5)
        columns = ("start_ts", "end_ts", "peak_bps", "censored_left", "censored_right")
        got = [tuple(row[each] for each in columns) for row in found if row["trajectory"] == key]
        assert [life[:2] + life[3:] for life in got] == [life[:2] + life[3:] for life in lives]
        assert [life[2] for life in got] == pytest.approx([life[2] for life in lives], rel=1e-9)


def test_carry_and_apr_of_all_recorded_pairs(rail: Rail, recorded: Recorded) -> None:
    found = recorded.printed(rail, "funding", "--min-coverage", "0")
    for row, rows in each_pair(found, recorded.funding):
        hours = recorded.hours(row)
        common = hours.more[hours.covered]
        assert [row["n_buy"], row["n_sell"], row["n"]] == [*hours.n, rows.height]
        assert close(row["coverage"], len(common) / hours.count)
        assert close(row["funding_bps"], 1e4 * hours.received[hours.covered].sum())
        assert close(row["funding_apr_pct"], 100 * YEAR_H * common.mean())


def test_signs_and_flips_of_all_recorded_pairs(rail: Rail, recorded: Recorded) -> None:
    for row, _ in each_pair(recorded.printed(rail, "persistence"), recorded.funding):
        in_force = recorded.hours(row).in_force
        known = in_force[~np.isnan(in_force)]
        flips = 0
        for run in np.split(in_force, np.flatnonzero(np.diff(np.isnan(in_force))) + 1):
            signs = np.sign(run[run != 0])
            flips += 0 if np.isnan(run[0]) else int((np.diff(signs) != 0).sum())
        assert close(row["coverage"], len(known) / len(in_force))
        assert close(row["positive_share"], (known > 0).mean())
        assert close(row["negative_share"], (known < 0).mean())
        assert row["flips"] == flips, row["trajectory"]
        assert close(row["flips_per_day"], 24 * flips / len(known))


def kept_by_entry(hours: Hours, horizon: int, *, compound: bool) -> tuple[np.ndarray, ...]:
    """Of each entry every 8 h: whether it counts, what it kept, and its largest fall, in bps."""
    grown = np.cumprod(1 + hours.settled) if compound else np.cumsum(hours.settled)
    covered = np.append(0, np.cumsum(hours.covered))
    first = -hours.first % 8
    entries = np.arange(first, hours.count - horizon + 1, 8)
    counts = covered[entries + horizon] - covered[entries] == horizon
    paths = np.lib.stride_tricks.sliding_window_view(grown, horizon + 1)[entries[counts]]
    paths = paths / paths[:, :1] - 1 if compound else paths - paths[:, :1]
    falls = (np.maximum.accumulate(paths, axis=1) - paths).max(axis=1)
    return counts, 1e4 * paths[:, -1], 1e4 * falls


@pytest.mark.parametrize("compound", [False, True])
def test_holdings_of_all_recorded_pairs(rail: Rail, recorded: Recorded, compound: bool) -> None:
    asked = ["carry", "--funding-only", "--every", "8h", "--horizon", "1d", "--horizon", "7d"]
    found = recorded.printed(rail, *asked, *(["--compound"] if compound else []))
    for horizon in (24, 168):
        of_horizon = [row for row in found if row["horizon_s"] == horizon * HOUR]
        for row, _ in each_pair(of_horizon, recorded.funding):
            counts, gross, falls = kept_by_entry(recorded.hours(row), horizon, compound=compound)
            assert (row["n_due"], row["n"]) == (len(counts), len(gross))
            assert close(row["funding_mean_bps"], gross.mean(), 1e-7)
            for name, q in (("q05", 5), ("q25", 25), ("median", 50), ("q75", 75), ("q95", 95)):
                assert close(row[f"funding_{name}_bps"], np.quantile(gross, q / 100), 1e-7)
            if not compound:
                assert close(row["funding_only_drawdown_median_bps"], np.median(falls), 1e-7)
                assert close(row["funding_only_drawdown_q95_bps"], np.quantile(falls, 0.95), 1e-7)
