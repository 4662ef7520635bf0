from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.spread import rolling_z, rolling_z_summary


def by_pandas(ts: np.ndarray, values: np.ndarray, window_s: int, least: int) -> np.ndarray:
    indexed = pd.Series(values, index=pd.to_datetime(ts, unit="s"))
    window = indexed.rolling(f"{window_s}s", closed="left", min_periods=least)
    return ((indexed - window.mean()) / window.std()).to_numpy()


@pytest.mark.parametrize("window_s", [3600, 86_400])
def test_rolling_z_equals_pandas_on_gapped_rows(window_s, autoregressive, series):
    rng = np.random.default_rng(3)
    values = 30 + 5 * autoregressive(0.97, 4000, seed=2)[0]
    values[rng.random(4000) < 0.03] = math.nan
    present = rng.random(4000) > 0.1
    present[1500:1800] = False
    ts = 60 * np.arange(4000)[present]
    scored = rolling_z(series(values[present], ts=ts), window_s=window_s)
    expected = by_pandas(ts, values[present], window_s, window_s // 120)
    ours = scored["rolling_z"].to_numpy()
    assert np.array_equal(np.isnan(ours), np.isnan(expected))
    assert np.isfinite(ours).sum() > 2000
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)


def test_later_rows_change_no_earlier_figure(autoregressive, series):
    frame = series(autoregressive(0.9, 1200, seed=4)[0])
    whole = rolling_z(frame, window_s=7200)
    for kept in (1, 2, 61, 500, 1199):
        assert rolling_z(frame.head(kept), window_s=7200).equals(whole.head(kept))
    # a coarser rest of the series, so that a step taken from all rows would differ
    coarse = frame.with_columns(
        ts=pl.when(pl.int_range(pl.len()) < 400)
        .then("ts")
        .otherwise(pl.col("ts") + 240 * pl.int_range(pl.len()))
    )
    assert rolling_z(coarse, window_s=7200).head(400).equals(whole.head(400))


def test_neither_the_row_itself_nor_its_time_is_in_the_window(series):
    scored = rolling_z(series([1.0, 3.0, 1000.0, 5.0]), window_s=120, min_samples=2)
    assert scored["rolling_z"][2] == pytest.approx((1000 - 2) / math.sqrt(2))
    assert scored["rolling_n"].to_list() == [0, 1, 2, 2]


def test_a_figure_that_cannot_be_had_says_why(series):
    frame = series([0.1, 0.1, 0.1, 7.0, None, math.nan, 3.0])
    scored = rolling_z(frame, window_s=180, min_samples=2)
    assert scored["rolling_z_reason"].to_list() == [
        *("too_few", "too_few", "degenerate", "degenerate", "empty", "empty"),
        "too_few",
    ]
    assert scored["rolling_z"].null_count() == 7


def test_a_quote_that_freezes_has_no_deviation_after_a_large_value(series):
    """The sum of a running window keeps a trace of what has left it."""
    scored = rolling_z(series([1e9, 1e-9, 3.3, *[0.1] * 20]), window_s=300, min_samples=5)
    assert set(scored["rolling_z_reason"][8:]) == {"degenerate"}


def test_rolling_z_keeps_its_digits_far_from_zero(series):
    values = 1e6 + 1e-2 * np.random.default_rng(6).standard_normal(500)
    scored = rolling_z(series(values), window_s=3600, min_samples=60)
    for at in range(60, 500):
        window = values[at - 60 : at].astype(np.longdouble)
        expected = float((values[at] - window.mean()) / window.std(ddof=1))
        assert scored["rolling_z"][at] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_half_of_the_window_is_needed_at_the_spacing_told(series):
    frame = series(np.arange(100.0) % 7)
    told = {step: rolling_z(frame, window_s=3600, step_s=step) for step in (60, 120, 3600)}
    first = {step: one["rolling_z"].is_not_null().arg_max() for step, one in told.items()}
    assert first == {60: 30, 120: 15, 3600: 2}


def test_rows_keep_their_order(series):
    mixed = pl.concat([series(np.arange(50.0), trajectory=name) for name in "ab"]).sample(
        fraction=1, shuffle=True, seed=5
    )
    assert rolling_z(mixed.lazy(), window_s=1800).select(mixed.columns).equals(mixed)


def test_a_window_that_holds_nothing_and_doubled_rows_are_refused(series):
    for options in ({"window_s": 0}, {"step_s": 0.5}, {"min_samples": 1}, {"window_s": True}):
        with pytest.raises(InputError, match="a whole number from"):
            rolling_z(series([1.0]), **options)
    with pytest.raises(InputError, match="one row per trajectory and ts"):
        rolling_z(series([1.0, 2.0], ts=[60, 60]))


def test_the_summary_is_of_the_scores_in_the_window(autoregressive, series):
    values = autoregressive(0.97, 3000, seed=5, paths=2)
    values[0, 2000:2100] = math.nan
    ts = 60 * np.arange(3000)
    frame = pl.concat(series(values[k], ts=ts, trajectory="ab"[k]) for k in (0, 1))
    start, end = 60 * 1500, 60 * 2500
    found = rolling_z_summary(frame, start, end, window_s=7200, beyond=2)
    scored = rolling_z(frame, window_s=7200).filter(pl.col("ts").is_between(start, end - 1))
    for row in found.iter_rows(named=True):
        z = scored.filter(trajectory=row["trajectory"]).drop_nulls("rolling_z")
        extreme = z.row(z["rolling_z"].abs().arg_max(), named=True)
        assert row["n_scored"] == z.height
        assert row["n_beyond"] == (z["rolling_z"].abs() >= 2).sum()
        assert row["beyond_share"] == row["n_beyond"] / row["n_scored"]
        assert row["rolling_z_last"] == pytest.approx(z["rolling_z"][-1], rel=1e-9)
        assert row["rolling_z_last_ts"] == z["ts"][-1]
        assert row["rolling_z_extreme"] == pytest.approx(extreme["rolling_z"], rel=1e-9)
        assert row["rolling_z_extreme_ts"] == extreme["ts"]
        assert row["rolling_z_reason"] is None
    assert found["n"].to_list() == [900, 1000]


@pytest.mark.parametrize(
    ("values", "start", "reason"),
    [
        ([1.0, 2.0, 3.0], 180, "empty"),
        ([1.0, None, None, 3.0], 0, "too_few"),
        ([1.0, 1.0, 1.0, 1.0], 120, "degenerate"),
        ([1.0, 2.0, 3.0, 9.0], 0, None),
    ],
)
def test_a_summary_without_a_score_has_its_reason(series, values, start, reason):
    frame = series(values)
    first = frame["ts"][0]
    found = rolling_z_summary(frame, first + start, first + 240, window_s=120, min_samples=2)
    row = found.row(0, named=True)
    assert row["rolling_z_reason"] == reason
    assert (row["rolling_z_last"] is None) == (reason is not None)
    assert (row["beyond_share"] is None) == (reason is not None)


def test_a_summary_asks_for_half_of_the_bars_of_each_trajectorys_own_step():
    hours, days = 3_600, 86_400
    frame = pl.DataFrame(
        {
            "trajectory": ["minutes"] * 2_880 + ["hours"] * 48,
            "ts": [*range(0, 2 * days, 60), *range(0, 2 * days, hours)],
            "spread_log_bps": [float(7 * row % 23) for row in range(2_928)],
        }
    )
    found = rolling_z_summary(frame, 0, 2 * days)
    assert dict(found.select("trajectory", "n_scored").rows()) == {
        "hours": 48 - 12,
        "minutes": 2_880 - 720,
    }
    known = rolling_z_summary(frame, 0, 2 * days, step_s={"hours": hours, "minutes": 60})
    assert known.equals(found)
    asked = rolling_z_summary(frame, 0, 2 * days, step_s=hours)
    assert dict(asked.select("trajectory", "n_scored").rows())["minutes"] == 2_880 - 12
    few = rolling_z_summary(frame, 0, 2 * days, min_samples=24)
    assert dict(few.select("trajectory", "n_scored").rows())["hours"] == 24


@pytest.mark.parametrize("beyond", [0, -1, None, "3"])
def test_a_score_to_count_from_is_above_0(series, beyond):
    with pytest.raises(InputError, match="beyond"):
        rolling_z_summary(series([1.0, 2.0]), beyond=beyond)
