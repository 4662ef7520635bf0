"""Cross-correlation, discovery and Hayashi-Yoshida: numpy, statsmodels and leads that are known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from statsmodels.regression.linear_model import OLS

from toolkit.errors import InputError
from toolkit.statistics.spread import cross_correlation, hayashi_yoshida, lead_lag


def two_legs(
    buy: np.ndarray, sell: np.ndarray, *, ts: np.ndarray | None = None, step_s: int = 60
) -> pl.DataFrame:
    """Rows of log prices."""
    return pl.DataFrame(
        {
            "trajectory": ["a"] * len(buy),
            "ts": 1_700_000_040 + step_s * (np.arange(len(buy)) if ts is None else ts),
            "buy_price": 50 * np.exp(buy),
            "sell_price": 50 * np.exp(sell),
        }
    )


def led(rng: np.random.Generator, length: int, lead: int) -> tuple[np.ndarray, np.ndarray]:
    """A walk, and the same ``lead`` steps later beneath noise of its own."""
    walk = np.cumsum(1e-3 * rng.standard_normal(length + lead))
    return walk[lead:], walk[:length] + 2e-4 * rng.standard_normal(length)


def test_correlations_are_those_of_the_pairs_of_returns():
    rng = np.random.default_rng(5)
    buy, sell = led(rng, 3000, 2)
    kept = np.flatnonzero(rng.random(3000) >= 0.05)
    frame = two_legs(buy[kept], sell[kept], ts=kept)
    found = cross_correlation(frame, max_lag_steps=5, step_s=60)
    at = kept[np.isin(kept - 1, kept)]
    x, y = buy - np.roll(buy, 1), sell - np.roll(sell, 1)
    for lag, row in zip(range(-5, 6), found.iter_rows(named=True), strict=True):
        pairs = at[np.isin(at + lag, at)]
        expected = np.corrcoef(x[pairs], y[pairs + lag])[0, 1]
        assert (row["lag_s"], row["pairs"]) == (60 * lag, len(pairs))
        assert row["correlation"] == pytest.approx(expected, abs=1e-10)
    figures = lead_lag(frame, max_lag_steps=5).row(0, named=True)
    squares = found["correlation"].to_numpy() ** 2
    assert figures["lead_lag_ratio"] == pytest.approx(squares[6:].sum() / squares[:5].sum())
    assert (figures["peak_lag_s"], figures["beyond_band"]) == (120, True)
    assert figures["peak_correlation"] == found["correlation"].max()


@pytest.mark.parametrize("lead", [0, 1, 7])
def test_a_known_lead_is_found_with_its_sign_and_legs_swapped_change_it(lead):
    buy, sell = led(np.random.default_rng(lead), 2000, lead)
    one, other = (
        lead_lag(two_legs(*legs)).row(0, named=True) for legs in ((buy, sell), (sell, buy))
    )
    assert (one["peak_lag_s"], other["peak_lag_s"]) == (60 * lead, -60 * lead)
    assert one["peak_correlation"] == pytest.approx(other["peak_correlation"], rel=1e-12)
    assert one["lead_lag_ratio"] == pytest.approx(1 / other["lead_lag_ratio"], rel=1e-9)


def test_what_cannot_be_measured_has_its_reason():
    rng = np.random.default_rng(1)
    flat = lead_lag(two_legs(np.zeros(500), np.cumsum(rng.standard_normal(500)))).row(0, named=True)
    assert (flat["peak_lag_s"], flat["lead_lag_reason"]) == (None, "degenerate")
    assert flat["discovery_reason"] == "step_too_coarse"
    short = lead_lag(two_legs(np.zeros(50), np.zeros(50), step_s=1)).row(0, named=True)
    assert short["lead_lag_reason"] == short["discovery_reason"] == "too_few"
    broken = two_legs(np.zeros(3), np.zeros(3)).with_columns(sell_price=pl.lit(-1.0))
    empty = lead_lag(broken).row(0, named=True)
    assert (empty["n"], empty["n_null"], empty["lead_lag_reason"]) == (0, 3, "empty")
    with pytest.raises(InputError, match="max_lag_steps"):
        lead_lag(broken, max_lag_steps=721)


def test_the_null_band_has_the_products_of_neighbours_where_prices_bounce():
    rng = np.random.default_rng(6)
    legs = [
        np.cumsum(1e-4 * rng.standard_normal(2_000)) + 2e-4 * rng.choice([-1, 1], 2_000)
        for _ in range(2)
    ]
    kept = np.flatnonzero(rng.random(2_000) >= 0.05)
    frame = two_legs(*(each[kept] for each in legs), ts=kept)
    found = cross_correlation(frame, max_lag_steps=3, step_s=60)
    at = kept[np.isin(kept - 1, kept)]
    x, y = (each - np.roll(each, 1) for each in legs)
    for lag, row in zip(range(-3, 4), found.iter_rows(named=True), strict=True):
        pairs = at[np.isin(at + lag, at)]
        own, other = (each - each.mean() for each in (x[pairs], y[pairs + lag]))
        products = dict(zip(pairs.tolist(), (own * other).tolist(), strict=True))
        both = sum(each * products.get(time + 1, 0.0) for time, each in products.items())
        alone = np.square(own * other).sum()
        scale = np.sqrt((own**2).sum() * (other**2).sum())
        error = np.sqrt(alone + 2 * max(both, 0)) / scale
        assert row["null_band"] == pytest.approx(1.959963984540054 * error, rel=1e-9)
    white = np.sqrt(1 / found["pairs"].to_numpy())
    assert (found["null_band"].to_numpy() > 1.96 * 1.05 * white).any()


def corrected(rng: np.random.Generator, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Log prices of which the sell leg alone corrects: all of the common price is the buy leg's."""
    news = 1e-4 * rng.standard_normal((length, 2))
    legs = np.zeros((length, 2))
    for at in range(1, length):
        gap = legs[at - 1, 0] - legs[at - 1, 1]
        legs[at] = legs[at - 1] + news[at] + np.array([0.0, 0.2]) * gap
    return legs[:, 0], legs[:, 1]


def test_shares_of_discovery_equal_regressions_and_find_who_leads():
    buy, sell = corrected(np.random.default_rng(2), 4000)
    row = lead_lag(two_legs(buy, sell, step_s=1)).row(0, named=True)
    moves = [np.diff(buy), np.diff(sell)]
    lagged = [moves[leg][10 - k : -k] for k in range(1, 11) for leg in (0, 1)]
    known = np.column_stack([np.ones(3989), (buy - sell)[10:-1], *lagged])
    fits = [OLS(each[10:], known).fit() for each in moves]
    to_buy, to_sell = (fit.params[1] for fit in fits)
    assert row["gonzalo_granger_share"] == pytest.approx(to_sell / (to_sell - to_buy), rel=1e-8)
    cov = np.cov([fit.resid for fit in fits], ddof=0)
    weight = np.array([to_sell, -to_buy])
    bounds = []
    for order in ([0, 1], [1, 0]):
        triangle = np.linalg.cholesky(cov[np.ix_(order, order)])
        parts = (weight[order] @ triangle) ** 2 / (weight @ cov @ weight)
        bounds.append(parts[order.index(0)])
    shares = (row["hasbrouck_lower_share"], row["hasbrouck_upper_share"])
    assert shares == pytest.approx(sorted(bounds), rel=1e-6)
    assert row["gonzalo_granger_share"] > 0.9
    assert shares[0] > 0.9


def of_two_clocks(buy: pl.DataFrame, sell: pl.DataFrame) -> pl.DataFrame:
    """Rows of a spread, null where that leg has no price of the time."""
    legs = (each.rename({"price": f"{leg}_price"}) for leg, each in (("buy", buy), ("sell", sell)))
    both = next(legs).join(next(legs), on="ts", how="full", coalesce=True)
    return both.with_columns(trajectory=pl.lit("a"))


def overlapping(ts: np.ndarray, x: np.ndarray, other: np.ndarray, y: np.ndarray) -> float:
    return sum(
        (x[i] - x[i - 1]) * (y[j] - y[j - 1])
        for i in range(1, len(ts))
        for j in range(1, len(other))
        if min(ts[i], other[j]) > max(ts[i - 1], other[j - 1])
    )


def test_two_clocks_are_correlated_by_overlap_and_a_lead_is_found():
    rng = np.random.default_rng(9)
    walk = np.cumsum(1e-3 * rng.standard_normal(20_000))
    seen = [np.sort(rng.choice(19_980, count, replace=False)) + 10 for count in (8000, 3000)]
    legs = [(seen[0], walk[seen[0]]), (seen[1], walk[seen[1] - 5])]  # the sell leg is 5 s late
    buy, sell = (pl.DataFrame({"ts": ts, "price": np.exp(x)}) for ts, x in legs)
    rows = of_two_clocks(buy, sell).sample(fraction=1, shuffle=True, seed=1)
    found = hayashi_yoshida(rows, lags_s=range(10))
    assert found["lag_s"].to_list() == list(range(-9, 10))
    best = found.sort("correlation").row(-1, named=True)
    assert best["lag_s"] == 5
    assert best["correlation"] == pytest.approx(1, abs=0.1)
    few = hayashi_yoshida(of_two_clocks(buy[:400], sell[:150]), 0, 20_000, lags_s=[0, 3, 5])
    for row in few.iter_rows(named=True):
        expected = overlapping(
            *(each[:400] for each in legs[0]), seen[1][:150] - row["lag_s"], legs[1][1][:150]
        )
        assert row["covariance"] == pytest.approx(expected, rel=1e-9)
    rows = of_two_clocks(buy, sell.head(9))
    assert hayashi_yoshida(rows)["correlation_reason"].unique().item() == "too_few"
    with pytest.raises(InputError, match="already there"):
        hayashi_yoshida(pl.concat([rows, rows]))
    for lags in ([0.5], [-60], []):
        with pytest.raises(InputError, match="lags_s"):
            hayashi_yoshida(rows, lags_s=lags)


def test_a_lag_between_the_times_of_bars_has_no_correlation_and_steps_are_the_default():
    rng = np.random.default_rng(5)
    prices = {f"{leg}_price": np.exp(1e-3 * rng.standard_normal(200)) for leg in ("buy", "sell")}
    bars = pl.DataFrame({"trajectory": "a", "ts": range(0, 12_000, 60), **prices})
    found = hayashi_yoshida(bars.filter(pl.col("ts") % 420 > 0), lags_s=[30, 60])
    assert found["correlation_reason"].to_list() == [None, *["step_too_coarse"] * 2, None]
    assert found["covariance"].is_null().to_list() == [False, True, True, False]
    assert hayashi_yoshida(bars)["lag_s"].to_list() == [
        *(-600, -300, -120, -60, 0),
        *(60, 120, 300, 600),
    ]
    assert hayashi_yoshida(bars.head(1))["lag_s"].to_list() == [0]


def test_each_trajectory_is_correlated_by_itself_and_one_outside_the_window_is_empty():
    rng = np.random.default_rng(3)
    prices = {f"{leg}_price": np.exp(1e-3 * rng.standard_normal(300)) for leg in ("buy", "sell")}
    first = pl.DataFrame({"trajectory": "a", "ts": range(300), **prices})
    later = first.with_columns(pl.col("ts") + 9_000, trajectory=pl.lit("b"))
    found = hayashi_yoshida(pl.concat([later, first]), 0, 300, lags_s=[0, 1])
    assert found["trajectory"].to_list() == ["a"] * 3 + ["b"] * 3
    assert found.head(3).equals(hayashi_yoshida(first, 0, 300, lags_s=[0, 1]))
    assert found["correlation_reason"].to_list() == [None] * 3 + ["empty"] * 3
    returns = np.diff(np.log(np.column_stack(list(prices.values()))), axis=0)
    expected = returns.T @ returns
    assert found["covariance"][1] == pytest.approx(expected[0, 1], rel=1e-9)
    scale = np.sqrt(expected[0, 0] * expected[1, 1])
    assert found["correlation"][1] == pytest.approx(expected[0, 1] / scale, rel=1e-9)
