from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import median_abs_deviation

from toolkit.errors import InputError
from toolkit.statistics import spread

from .conftest import only

PERCENTS = (1, 5, 25, 50, 75, 95, 99)
NAN, INF = float("nan"), float("inf")

ADVERSARIAL = {
    "normal": lambda rng: rng.standard_normal(1001),
    "even count": lambda rng: rng.standard_normal(1000),
    "far from zero": lambda rng: 1e6 + 1e-2 * rng.standard_normal(500),
    "heavy tails": lambda rng: rng.standard_cauchy(700) * 1e3,
    "many ties": lambda rng: rng.integers(0, 4, 400).astype(float),
    "one outlier": lambda rng: np.append(rng.standard_normal(300), 1e9),
    "tiny": lambda rng: 1e-12 * rng.standard_normal(300),
    "two values": lambda _: np.array([0.1, 0.3]),
    "three values": lambda _: np.array([-5.0, 0.0, 5.0]),
}


@pytest.fixture(params=list(ADVERSARIAL))
def values(request) -> np.ndarray:
    return ADVERSARIAL[request.param](np.random.default_rng(42))


def close(value: float, reference: float, scale: float) -> bool:
    """Equal to 1e-12 of the value, or of the size of the data where the value cancels to 0."""
    return math.isclose(value, reference, rel_tol=1e-12, abs_tol=1e-13 * scale)


# Against independent references


def test_figures_equal_exact_arithmetic_numpy_and_scipy(values, series, start):
    row = only(spread.summary(series(values), start, start + 60 * len(values)))
    exact = [Fraction(value) for value in values.tolist()]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / (len(exact) - 1)
    scale = float(np.abs(values).max())
    assert close(row["spread_mean_log_bps"], float(mean), scale)
    assert math.isclose(row["spread_std_log_bps"], math.sqrt(variance), rel_tol=1e-12)
    assert math.isclose(row["spread_std_log_bps"], np.std(values, ddof=1), rel_tol=1e-9)
    assert close(row["spread_time_weighted_mean_log_bps"], float(mean), scale)
    assert close(row["spread_median_log_bps"], np.median(values), scale)
    expected = median_abs_deviation(values, scale="normal")
    assert math.isclose(row["spread_mad_log_bps"], expected, rel_tol=1e-12)
    for percent in PERCENTS:
        expected = np.quantile(values, percent / 100, method="linear")
        assert close(row[f"spread_q{percent:02}_log_bps"], expected, scale)
    tail = values[values >= row["spread_q95_log_bps"]]
    assert tail.size
    assert close(row["spread_expected_shortfall_95_log_bps"], math.fsum(tail) / tail.size, scale)


def test_the_time_weighted_mean_equals_counting_seconds(series):
    rng = np.random.default_rng(11)
    for _ in range(10):
        ts = np.sort(rng.choice(3000, size=60, replace=False))
        values = rng.standard_normal(60) * 10
        limit = int(rng.integers(1, 200))
        held: dict[int, float] = {}
        for at, value in zip(ts.tolist(), values.tolist(), strict=True):
            held |= dict.fromkeys(range(at, min(at + limit, 3000)), value)
        row = only(spread.summary(series(values, ts=ts), 0, 3000, max_stale_s=limit))
        expected = math.fsum(held.values()) / len(held)
        assert row["spread_time_weighted_mean_log_bps"] == pytest.approx(expected, rel=1e-12)
        assert row["observed_share"] == len(held) / 3000


def test_two_blocks_an_hour_apart_share_the_observed_time_as_the_convention_says():
    """Capped at three steps the first block has 0.545 of the time; without a cap 0.875."""
    ts = [60 * minute for minute in [*range(10), *range(70, 80)]]
    frame = pl.DataFrame({"trajectory": ["a"] * 20, "ts": ts, "above": [1.0] * 10 + [0.0] * 10})
    row = only(spread.summary(frame, 0, 4800, column="above"))
    assert row["above_mean"] == 0.5
    assert row["above_time_weighted_mean"] == 720 / 1320
    assert round(row["above_time_weighted_mean"], 3) == 0.545
    uncapped = only(spread.summary(frame, 0, 4800, column="above", max_stale_s=4800))
    assert uncapped["above_time_weighted_mean"] == 4200 / 4800


# Nulls and their reasons


def test_a_constant_spread_has_no_deviation(series, start):
    """0.1 is no binary fraction: its mean may round, its deviation must not."""
    for count in (2, 3, 7, 1000):
        row = only(spread.summary(series([0.1] * count), start, start + 60 * count))
        assert row["spread_std_log_bps"] == row["spread_mad_log_bps"] == 0.0
        assert row["spread_mean_log_bps"] == pytest.approx(0.1, rel=1e-15)
        assert {row[f"spread_q{percent:02}_log_bps"] for percent in PERCENTS} == {0.1}
        assert row["half_life_s"] is None
        assert row["half_life_reason"] == ("degenerate" if count == 1000 else "too_few")


def test_a_single_observation_has_a_place_but_no_spread(series, start):
    row = only(spread.summary(series([3.0]), start, start + 600))
    assert row["spread_mean_log_bps"] == row["spread_median_log_bps"] == 3.0
    assert row["spread_q01_log_bps"] == row["spread_q99_log_bps"] == 3.0
    assert row["spread_std_log_bps"] is row["spread_time_weighted_mean_log_bps"] is None
    assert row["moments_reason"] == row["coverage_reason"] == row["half_life_reason"] == "too_few"
    told = only(spread.summary(series([3.0]), start, start + 600, step_s=60))
    assert told["spread_time_weighted_mean_log_bps"] == 3.0
    assert told["moments_reason"] == "too_few"


@pytest.mark.parametrize("nothing", [None, NAN, INF, -INF])
def test_a_trajectory_without_a_number_is_empty_everywhere(nothing, series, start):
    row = only(spread.summary(series([nothing] * 500), start, start + 30000))
    assert (row["n"], row["n_null"], row["coverage"]) == (0, 500, 0.0)
    reasons = {name: row[name] for name in row if name.endswith("_reason")}
    assert set(reasons.values()) == {"empty"}
    assert len(reasons) == 14


def test_non_numbers_change_nothing_but_the_count_of_nulls(series, start):
    values = np.random.default_rng(1).standard_normal(300)
    ts = np.arange(300) * 60 + start
    gone = np.zeros(300, dtype=bool)
    gone[[5, 6, 100, 299]] = True
    holes = series(np.where(gone, NAN, values), ts=ts)
    absent = series(values[~gone], ts=ts[~gone])
    end = start + 18000
    with_holes, without = spread.summary(holes, start, end), spread.summary(absent, start, end)
    assert with_holes["n_null"].item() == 4
    assert with_holes.drop("n_null").equals(without.drop("n_null"))


def test_every_null_has_a_reason_and_every_reason_a_null(series, autoregressive, start):
    parts = [
        series([], trajectory="none"),
        series([None, None], trajectory="nulls"),
        series([1.0], trajectory="single"),
        series([1.0, 2.0], trajectory="pair"),
        series([4.0] * 200, trajectory="frozen"),
        series(1.05 ** np.arange(200), trajectory="explosive"),
        series([(-1.0) ** k + k % 3 for k in range(200)], trajectory="alternating"),
        series(autoregressive(0.999, 300, seed=1)[0], trajectory="slow"),
        series(autoregressive(0.05, 300, seed=1)[0], trajectory="fast"),
        series(autoregressive(0.9, 2000, seed=1)[0], trajectory="plain"),
    ]
    result = spread.summary(pl.concat(parts), start, start + 60 * 2000)
    nulls = 0
    for row in result.rows(named=True):
        missing = False
        for name, value in row.items():
            if name.endswith("_reason"):
                assert (value is not None) == missing, (row["trajectory"], name)
                missing = False
            else:
                missing = missing or value is None
                nulls += value is None
        assert not missing
    assert nulls > 50
    assert result.filter(trajectory="plain")["half_life_upper_s"].item() > 0


def test_no_result_is_ever_nan_or_infinite(series, start):
    parts = [
        series(1e7 * 1.5 ** np.arange(150.0), trajectory="explosive"),
        series([0.0] * 150, trajectory="zero"),
        series([1.0, -1.0] * 75, trajectory="alternating"),
        series([1e149, -1e149, 1e200] * 75, trajectory="huge"),
        series([1e-200, -1e-200, 3e-200] * 75, trajectory="tiny"),
    ]
    result = spread.summary(pl.concat(parts), start, start + 14000)
    assert result.filter(trajectory="huge")["n_null"].item() == 75
    numbers = result.select(pl.col(pl.Float64).is_finite().all())
    assert all(numbers.row(0))


# One kernel


def prices(trajectories: int, length: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    size = trajectories * length
    buy = 100 * np.exp(rng.standard_normal(size) * 1e-3)
    frame = pl.DataFrame(
        {
            "trajectory": np.repeat([f"t{k:03}" for k in range(trajectories)], length),
            "ts": np.tile(np.arange(length) * 60, trajectories),
            "buy_price": buy,
            "sell_price": buy * np.exp(rng.standard_normal(size) * 1e-4),
        }
    )
    kept = pl.Series(rng.random(size) < 0.9)
    return frame.filter(kept)


def test_the_summary_holds_what_coverage_and_half_life_give_alone():
    frame = spread.with_spread(prices(7, 400))
    whole = spread.summary(frame, 600, 21000)
    column = {"column": "spread_log_bps"}
    for part in (spread.coverage(frame, 600, 21000, **column), spread.half_life(frame, 600, 21000)):
        own = part.drop("method", "params_hash")
        assert own.equals(whole.select(own.columns))


def test_spreads_are_computed_from_the_prices_where_the_frame_lacks_them():
    frame = prices(3, 200)
    added = spread.with_spread(frame)
    for column in ("spread_log_bps", "spread_bps"):
        from_prices = spread.summary(frame, 0, 12000, column=column)
        assert from_prices.equals(spread.summary(added, 0, 12000, column=column))


def test_a_frame_with_neither_spread_nor_prices_is_told_what_is_missing():
    frame = pl.DataFrame({"trajectory": ["a"], "ts": [0], "price": [1.0]})
    with pytest.raises(InputError, match=r"no buy_price .*, no sell_price"):
        spread.summary(frame, 0, 60)
    with pytest.raises(InputError, match="'other' is not allowed; allowed: price"):
        spread.summary(frame, 0, 60, column="other")


@pytest.mark.slow
def test_more_rows_than_a_chunk_holds_give_each_trajectory_what_it_gives_alone():
    frame = prices(70, 10_000)
    assert frame.height > 600_000
    whole = spread.summary(frame, 0, 600_000)
    assert spread.summary(frame.lazy(), 0, 600_000).equals(whole)
    for key in ("t000", "t054", "t055", "t056", "t069"):
        alone = spread.summary(frame.filter(trajectory=key), 0, 600_000)
        assert alone.equals(whole.filter(trajectory=key))


def test_a_sorted_file_read_lazily_gives_the_same_as_the_frame(tmp_path):
    frame = prices(120, 300)
    frame.write_parquet(tmp_path / "spread.parquet", row_group_size=5000)
    scanned = pl.scan_parquet(tmp_path / "spread.parquet")
    assert spread.summary(scanned, 600, 15000).equals(spread.summary(frame, 600, 15000))


def test_integer_and_text_keys_give_the_same_numbers():
    frame = prices(60, 150)
    numbered = frame.with_columns(pl.col("trajectory").str.strip_prefix("t").cast(pl.Int32))
    by_text = spread.summary(frame, 0, 9000).drop("trajectory")
    assert spread.summary(numbered, 0, 9000).drop("trajectory").equals(by_text)


def test_real_minutes_of_two_exchanges_have_no_one_half_life(real_data):
    rows = pl.scan_parquet(real_data / "prices.parquet").filter(
        pl.col("dataset").cast(pl.String) == "iaqf_dhruvk1432",
        pl.col("symbol").cast(pl.String) == "BTC_USD",
    )
    buy, sell = (
        rows.filter(pl.col("exchange").cast(pl.String) == exchange).select("ts", **{leg: "price"})
        for exchange, leg in (("COINBASE", "buy_price"), ("KRAKEN", "sell_price"))
    )
    frame = buy.join(sell, on="ts").with_columns(trajectory=pl.lit("a")).collect()
    start, end = 1677628800, 1679443200  # 1 to 22 March 2023
    row = only(spread.summary(frame, start, end))
    inside = frame.filter(pl.col("ts").is_between(start, end - 1))
    assert row["n"] == inside.height > 20000
    minutes = np.unique(inside["ts"].to_numpy() // 60)
    assert row["coverage"] == len(minutes) / ((end - start) // 60)
    assert row["observed_share"] > row["coverage"] > 0.95
    # The autocorrelation after half an hour is 0.66; the AR(1) gives 3 min 22 s. Less its noise it
    # halves after 6 h, so that the interval about 55 minutes, from 34 to 142, was of no one speed.
    assert 3000 < row["half_life_s"] < 4000
    assert row["half_life_lower_s"] is row["half_life_upper_s"] is None
    assert row["half_life_lower_reason"] == row["half_life_upper_reason"] == "several_speeds"
    assert row["fit_p_value"] < 1e-9
    assert 5 < row["acf_half_lag_s"] / 3600 < 7
    assert 2000 < row["half_life_without_spikes_s"] < 4000
    weeks = pl.concat(
        spread.half_life(frame, at, at + 604_800) for at in range(start, end, 604_800)
    )
    found = weeks["half_life_s"] / 60  # 2, 21 and 222 minutes, of which none is given
    assert found.max() > 50 * found.min()
    assert weeks["half_life_lower_reason"].to_list() == ["several_speeds"] * 3
    assert row["half_life_ar1_s"] == pytest.approx(202, abs=1)
    assert row["half_lives_differ"]
    assert row["half_life_acf_error"] < 0.1
    assert row["half_life_ar1_acf_error"] > 0.6
