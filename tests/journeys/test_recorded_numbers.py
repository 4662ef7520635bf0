"""The numbers of `rail stats` over every recorded pair, against pandas, numpy and statsmodels.

Nothing of the toolkit computes what is expected here: it is worked out from the rows that were put
into the store.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import median_abs_deviation
from statsmodels.tsa.stattools import adfuller

from tests.once import made_once
from toolkit.market import Trajectory
from toolkit.store import Store

from .recorded_hours import HOUR, Hours
from .recorded_pairs import Pairs, funding_pairs, kept, price_pairs
from .test_load_and_measure import Rail

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


def variance_ratio(values: pd.Series, step: int, steps: int) -> float | None:
    """The variance of changes over so many steps over that of single ones, from whole runs."""
    gaps = np.flatnonzero(np.diff(values.index) != step) + 1
    runs = [np.diff(run) for run in np.split(values.to_numpy(), gaps) if len(run) > steps]
    changes = np.concatenate([[], *runs])
    if len(changes) < max(5 * steps, 100):
        return None
    ones = np.ones(steps)
    far = np.concatenate([np.convolve(run - changes.mean(), ones, "valid") for run in runs])
    return np.mean(far**2) / steps / (1 - steps / len(changes)) / changes.var(ddof=1)


def test_variance_ratios_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    for row, rows in each_pair(recorded.printed(rail, "stationarity"), recorded.prices):
        for steps in (10, 60, 1440):
            name, values = f"variance_ratio_{steps}", spread_of(rows)
            expected = variance_ratio(values, row["step_s"], steps)
            assert (row[name] is None) == (expected is None) == bool(row[f"{name}_reason"])
            assert expected is None or close(row[name], expected, 1e-7)


def test_tails_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    for row, rows in each_pair(recorded.printed(rail, "tail-index"), recorded.prices):
        values = spread_of(rows).abs().sort_values(ascending=False)
        for percent in (1, 2, 5, 10):
            count = len(values) * percent // 100
            largest, name = values.iloc[:count], f"tail_{percent}pct"
            assert row[f"{name}_n"] == count
            assert row[f"{name}_days"] == len(np.unique(largest.index // 86_400))
            if count < 50:
                assert (row[f"{name}_index"], row[f"{name}_reason"]) == (None, "too_few")
                continue
            index = 1 / np.log(largest / values.iloc[count]).mean()
            assert close(row[f"spread_{name}_x_min_log_bps"], values.iloc[count])
            assert close(row[f"{name}_index"], index, 1e-8)
            assert close(row[f"{name}_error"], index / np.sqrt(count), 1e-8)


def test_hours_of_the_week_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    found = recorded.printed(rail, "hour-of-week")
    by_key = {key: [row for row in found if row["trajectory"] == key] for key in recorded.prices}
    for key, rows in by_key.items():
        values = spread_of(recorded.prices[key])
        at = pd.to_datetime(values.index, unit="s", utc=True)
        week = (values.index - 4 * 86_400) // 604_800
        cells = values.groupby([at.day_of_week + 1, at.hour, week])
        means, counts = cells.mean(), cells.size().groupby(level=[0, 1]).sum()
        weekly = means.groupby(level=[0, 1])
        of_week = (means - means.groupby(level=2).transform("mean")).groupby(level=[0, 1])
        mean, deviation, std, weeks = weekly.mean(), of_week.mean(), weekly.std(), weekly.size()
        assert len(rows) == 168
        for row in rows:
            cell = (row["weekday"], row["hour"])
            assert row["hour_n"] == counts.get(cell, 0)
            assert row["weeks"] == weeks.get(cell, 0)
            if row["weeks"]:
                assert close(row["spread_mean_log_bps"], mean[cell])
                assert close(row["spread_deviation_log_bps"], deviation[cell], 1e-7)
            if row["weeks"] > 1:
                assert close(row["spread_std_log_bps"], std[cell], 1e-7)


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


def test_entries_and_closes_of_all_recorded_spreads(rail: Rail, recorded: Recorded) -> None:
    asked = ("time-to-close", "--enter-bps", "20", "--exit-bps", "5")
    for row, rows in each_pair(recorded.printed(rail, *asked), recorded.prices):
        values = spread_of(rows)
        at_most = np.nextafter(5, 6)  # a close is at 5 bps or less
        lives = stretches(values, row["step_s"], row["window_end"], enter=20, leave=at_most)
        seen = [life for life in lives if not life[3]]
        assert row["truncated"] == len(lives) - len(seen)
        assert row["entries"] == len(seen)
        assert row["closed"] == sum(not life[4] for life in seen)


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


def test_dispersion_of_all_recorded_venues(rail: Rail, recorded: Recorded) -> None:
    window = ("--start", "2023-01-02", "--end", "2023-12-30")
    for row in recorded.printed(rail, "dispersion", *window):
        start, end = row["window_start"], row["window_end"]
        venues: dict[str, np.ndarray] = {}
        for key, rows in recorded.funding.items():
            symbol, *legs = key.removeprefix("funding/").split(":")
            for leg, side in zip(legs, ("buy", "sell"), strict=True):
                if symbol == row["symbol"] and leg not in venues:
                    one = rows.select(
                        "ts",
                        buy_rate=f"{side}_rate",
                        buy_interval_hours=f"{side}_interval_hours",
                        sell_rate=pl.lit(None, pl.Float64),
                        sell_interval_hours=pl.lit(None, pl.Float64),
                    )
                    hours = Hours(one, 0, max(int(rows["ts"].max()) + 86_400, end))
                    venues[leg] = hours.paid_for[0][start // HOUR : end // HOUR].reshape(-1, 8)
        whole = {leg: 100 * YEAR_H * each.mean(axis=1) for leg, each in venues.items()}
        kept_in = {leg: each for leg, each in whole.items() if (~np.isnan(each)).mean() >= 0.9}
        assert row["venues"].split() == sorted(kept_in)
        rates = np.array([kept_in[leg] for leg in sorted(kept_in)])
        rates = rates[:, ~np.isnan(rates).any(axis=0)]
        widths = np.ptp(rates, axis=0)
        quarters = np.quantile(rates, [0.25, 0.75], axis=0)
        expected = {
            "n": rates.shape[1],
            "range_mean_apr_pct": widths.mean(),
            "range_median_apr_pct": np.median(widths),
            "range_q95_apr_pct": np.quantile(widths, 0.95),
            "iqr_mean_apr_pct": (quarters[1] - quarters[0]).mean(),
            "std_mean_apr_pct": rates.std(axis=0, ddof=1).mean(),
        }
        assert all(close(row[name], it) for name, it in expected.items()), row
