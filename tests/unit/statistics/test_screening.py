"""A screen is its statistics side by side, kept by a condition and ranked by any column."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import percentileofscore
from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests

from toolkit.errors import InputError
from toolkit.statistics import funding, spread
from toolkit.statistics.core.contract import beside
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.funding.persistence import persistence
from toolkit.statistics.funding.rates_in_force import with_apr
from toolkit.statistics.numeric.long_run import memories
from toolkit.statistics.passes import in_one_pass
from toolkit.statistics.quality import flags
from toolkit.statistics.screening import funding_figures, rate_figures, spread_figures

START, ROWS = 1_700_000_040, 400
WINDOW = (START, START + 60 * ROWS)
FEES = FeeModel.example()
KEYS = [f"{coin}_USDT:BINANCE.spot:KRAKEN.spot" for coin in ("BTC", "ETH", "LTC")]


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    """Three pairs: the second is widest at its end, the third has a frozen leg."""
    draw = np.random.default_rng(4)
    parts = []
    for at, key in enumerate(KEYS):
        buy = 50 * np.exp(np.cumsum(1e-3 * draw.standard_normal(ROWS)))
        sell = buy * np.exp(30e-4 * (at + 1) * draw.standard_normal(ROWS))
        if at == 1:
            sell[-1] = buy[-1] * 0.95
        if at == 2:
            buy[100:200] = buy[100]
        part = {"ts": START + 60 * np.arange(ROWS), "buy_price": buy, "sell_price": sell}
        parts.append(pl.DataFrame(part).with_columns(trajectory=pl.lit(key)))
    return pl.concat(parts)


def test_the_columns_are_those_of_the_statistics_and_equal_theirs(frame: pl.DataFrame) -> None:
    found = spread_figures(frame, *WINDOW, fees=FEES)
    rest = ["trajectory", "method", "params_hash"]
    for own, prefix in (
        (spread.summary(frame, *WINDOW), ""),
        (flags(frame, *WINDOW), "flags_"),
        (spread.net_summary(frame, *WINDOW, fees=FEES), "net_"),
    ):
        assert own.drop(rest).equals(found.select(own.drop(rest).columns))
        if prefix:
            assert found[f"{prefix}method"].to_list() == own["method"].to_list()
            assert found[f"{prefix}params_hash"].to_list() == own["params_hash"].to_list()


def test_the_figures_of_a_rate_are_those_of_its_summary_as_a_percentage_a_year() -> None:
    draw = np.random.default_rng(5)
    part = {"ts": START + 60 * np.arange(ROWS), "rate": 1e-4 * draw.standard_normal(ROWS)}
    rows = pl.DataFrame(part).with_columns(
        trajectory=pl.lit("A_B:X.futures"), interval_hours=pl.lit(4.0)
    )
    found = rate_figures(rows, *WINDOW)
    own = spread.summary(with_apr(rows), *WINDOW, column="funding_apr_pct")
    rest = ["method", "params_hash"]
    assert own.drop(rest).equals(found.select(own.drop(rest).columns))
    levels = part["rate"] / 4 * 8_760 * 100
    row = found.row(0, named=True)
    assert row["funding_apr_last_pct"] == pytest.approx(levels[-1])
    assert row["funding_apr_last_size_pct"] == pytest.approx(abs(levels[-1]))
    assert row["last_z"] == pytest.approx((levels[-1] - levels.mean()) / levels.std(ddof=1))


def test_the_newest_level_its_age_and_its_z_are_plain_arithmetic(frame: pl.DataFrame) -> None:
    later = WINDOW[1] + 600
    for row in spread_figures(frame, START, later).iter_rows(named=True):
        rows = frame.filter(trajectory=row["trajectory"])
        levels = 1e4 * np.log(rows["sell_price"] / rows["buy_price"]).to_numpy()
        assert row["spread_last_log_bps"] == pytest.approx(levels[-1])
        assert row["spread_last_size_log_bps"] == pytest.approx(abs(levels[-1]))
        percentile = percentileofscore(levels, levels[-1], kind="mean")
        assert row["last_percentile"] == pytest.approx(percentile)
        assert row["last_z"] == pytest.approx((levels[-1] - levels.mean()) / levels.std(ddof=1))
        assert row["last_age_s"] == 660


def test_the_net_edge_is_the_mean_over_time_of_what_is_beyond_the_cost(frame: pl.DataFrame) -> None:
    found = spread.screen(frame, *WINDOW, fees=FEES)
    for row in found.iter_rows(named=True):
        rows = frame.filter(trajectory=row["trajectory"])
        level = 1e4 * (rows["sell_price"] / rows["buy_price"] - 1).to_numpy()
        cost = FEES.round_trip_bps(row["trajectory"], 10_000.0, "taker", at=START)
        beyond = np.maximum(np.abs(level) - cost, 0)
        assert row["net_edge_bps"] == pytest.approx(beyond.mean(), rel=0.02)
    quiet = frame.with_columns(sell_price=pl.col("buy_price"))
    nothing = spread.screen(quiet, *WINDOW, fees=FEES)
    assert nothing["net_edge_bps"].to_list() == [0.0] * 3
    assert nothing["last_z_reason"].to_list() == ["degenerate"] * 3
    unknown = spread.screen(frame, *WINDOW, fees=FeeModel("none", ()))
    assert unknown.select("net_edge_bps", "net_edge_reason").unique().rows() == [
        (None, "unknown_fee")
    ]


def test_rows_are_kept_sorted_and_cut(frame: pl.DataFrame) -> None:
    def keys(**options: object) -> list[str]:
        found = spread.screen(frame, *WINDOW, **options)  # type: ignore[arg-type]  # by name
        return [KEYS.index(key) for key in found["trajectory"]]

    assert keys(top=1) == [1]
    assert keys(sort="spread_std_log_bps") == [0, 1, 2]
    assert keys(sort="-spread_std_log_bps", top=2) == [2, 1]
    assert keys(sort="trajectory", where="spread_std_log_bps > 45 and coverage = 1") == [1, 2]
    assert keys(sort="trajectory", exclude_flags=True) == [0, 1]
    assert keys(sort="trajectory", exclude_flags="stale_buy") == [0, 1]
    assert keys(sort="trajectory", exclude_flags=["stale_sell", "clock_shift"]) == [0, 1, 2]
    assert keys(sort="trajectory", where="flags = 'stale_buy'") == [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sort": "-half_life"}, "sort: 'half_life' .* nearest: half_life_s"),
        ({"sort": None}, "sort"),
        ({"where": "n >"}, "where"),
        ({"where": 5}, "where"),
        ({"top": 0}, "top"),
        ({"exclude_flags": "stale"}, "exclude_flags: 'stale' .* nearest: stale_buy"),
        ({"exclude_flags": 3}, "exclude_flags"),
        ({"style": "both", "fees": FEES}, "style"),
    ],
)
def test_what_cannot_be_ranked_by_is_one_clear_line(
    frame: pl.DataFrame, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        spread.screen(frame, *WINDOW, **options)  # type: ignore[arg-type]  # what is refused


def test_some_trajectories_at_a_time_give_the_same_to_the_last_bit(frame: pl.DataFrame) -> None:
    groups = (frame.filter(trajectory=key) for key in KEYS)
    (parts,) = in_one_pass(groups, lambda rows: spread_figures(rows, *WINDOW, fees=FEES))
    assert parts.equals(spread_figures(frame, *WINDOW, fees=FEES))


def test_funding_is_its_carry_net_and_persistence_side_by_side() -> None:
    hours = 1_700_006_400 + 28_800 * np.arange(1, 31)
    rates = 1e-4 * np.random.default_rng(2).standard_normal((2, 30))
    key = "funding/BTC_USDT:BINANCE.futures:KRAKEN.futures"
    rows = {"trajectory": key, "ts": hours, "buy_rate": rates[0], "sell_rate": rates[1]}
    intervals = dict.fromkeys(("buy_interval_hours", "sell_interval_hours"), 8.0)
    frame, window = pl.DataFrame(rows | intervals), (1_700_006_400, int(hours[-1]))
    carried = funding.net_summary(funding.summary(frame, *window), FEES)
    steady = persistence(frame, *window)
    found = funding_figures(frame, *window, fees=FEES)
    assert found.equals(beside(carried, steady, "persistence"))
    assert found["flips"].item() == steady["flips"].item() > 0


def test_p_and_q_values_are_those_of_statsmodels_over_all_trajectories(frame: pl.DataFrame) -> None:
    found = spread.screen(frame, *WINDOW, fees=FEES, where="n > 0", top=2, sort="trajectory")
    every = spread.screen(frame, *WINDOW, fees=FEES, sort="trajectory")
    assert every.head(2).equals(found)  # to choose rows changes no q-value
    tested = spread.stationarity(frame, *WINDOW).sort("trajectory")
    assert every["reversion_p_value"].to_list() == tested["adf_p_value"].to_list()
    assert set(every["reversion_tests"]) == {3}
    for name in ("reversion", "edge"):
        of_tests = every.drop_nulls(f"{name}_p_value")
        assert set(every[f"{name}_tests"]) == {of_tests.height}
        expected = multipletests(of_tests[f"{name}_p_value"], method="fdr_bh")[1]
        assert of_tests[f"{name}_q_value"].to_list() == pytest.approx(expected, rel=1e-12)
        assert every[f"{name}_q_value"].null_count() == 3 - of_tests.height


def test_the_p_value_of_the_edge_is_that_of_its_mean_over_its_long_run_error(
    frame: pl.DataFrame,
) -> None:
    found = spread.net_summary(frame, *WINDOW, fees=FEES)
    for row in found.iter_rows(named=True):
        rows = frame.filter(trajectory=row["trajectory"])
        spread_bps = 1e4 * (rows["sell_price"] / rows["buy_price"] - 1).to_numpy()
        net = np.abs(spread_bps) - row["cost_bps"]
        place = (np.arange(ROWS) + 0.5) / ROWS
        waves = [2 * ((net * np.cos(np.pi * k * place)).mean()) ** 2 for k in range(1, 9)]
        (memory,) = memories([net])
        assert row["edge_mean_bps"] == pytest.approx(net.mean(), rel=0.02)
        if row["edge_reason"] is None:
            error = np.sqrt(memory.excess * np.mean(waves))
            assert row["edge_error_bps"] == pytest.approx(error, rel=0.1)
            t = row["edge_mean_bps"] / row["edge_error_bps"]
            assert row["edge_p_value"] == pytest.approx(student.sf(t, 8), rel=1e-9)


def test_an_edge_whose_memory_exceeds_the_window_has_no_p_value() -> None:
    drift = np.linspace(200, 400, ROWS) + np.random.default_rng(1).standard_normal(ROWS)
    rows = {"trajectory": KEYS[0], "ts": START + 60 * np.arange(ROWS), "spread_bps": drift}
    row = spread.net_summary(pl.DataFrame(rows), *WINDOW, fees=FEES).row(0, named=True)
    assert (row["edge_p_value"], row["edge_reason"]) == (None, "long_memory")
    assert row["edge_mean_bps"] == pytest.approx(300 - row["cost_bps"], rel=0.01)
    few = spread.net_summary(pl.DataFrame(rows).head(50), *WINDOW, fees=FEES).row(0, named=True)
    assert (few["edge_p_value"], few["edge_reason"]) == (None, "too_few")
