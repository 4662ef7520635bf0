"""Each flag on a fault made for it, none on a clean market, and faults put into recorded prices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, groupby

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from toolkit.errors import InputError
from toolkit.service import Simulated
from toolkit.statistics.explanation import explain
from toolkit.statistics.quality import flags
from toolkit.statistics.quality.flags import FLAGS
from toolkit.statistics.spread import summary as spread_summary

START = 1_700_000_040
DAY = 1_440


def walk(seed: int, length: int = DAY) -> np.ndarray:
    return 50 * np.exp(np.cumsum(1e-3 * np.random.default_rng(seed).standard_normal(length)))


def noisy(prices: np.ndarray, seed: int) -> np.ndarray:
    return prices * np.exp(2e-4 * np.random.default_rng(seed).standard_normal(len(prices)))


def pair(
    buy: np.ndarray | list[float | None],
    sell: np.ndarray | list[float | None],
    trajectory: str = "a",
    **columns: object,
) -> pl.DataFrame:
    values = {"buy_price": buy, "sell_price": sell, **columns}
    return pl.DataFrame(
        {"trajectory": [trajectory] * len(buy), "ts": START + 60 * np.arange(len(buy))}
        | {name: list(each) for name, each in values.items()},  # type: ignore[call-overload]  # rows
        schema_overrides=dict.fromkeys(values, pl.Float64),
    )


def flagged(frame: pl.DataFrame, **options: object) -> dict[str, object]:
    (row,) = flags(frame, **options).iter_rows(named=True)  # type: ignore[arg-type]  # by name
    named = [name for name in FLAGS if row[name]]
    assert row["flags"] == ", ".join(named)
    return row | {"named": named}


def test_two_legs_of_one_price_with_noise_have_no_flag():
    prices = walk(1)
    sell = noisy(prices, 2)
    row = flagged(pair(prices, sell, spread_pct=100 * (sell / prices - 1)))
    assert row["named"] == []
    assert (row["n"], row["rows_of_both"], row["service_compared"]) == (DAY, DAY, DAY)
    assert (row["clock_shift_steps"], row["clock_shift_reason"]) == (0, None)


@pytest.mark.parametrize(("frozen", "other"), [("buy", "sell"), ("sell", "buy")])
def test_a_leg_that_stands_still_while_the_other_moves_is_stale(frozen, other):
    legs = {frozen: walk(1), other: noisy(walk(1), 2)}
    legs[frozen][300:372] = legs[frozen][300]
    row = flagged(pair(legs["buy"], legs["sell"]))
    assert row["named"] == [f"stale_{frozen}"]
    assert row[f"stale_{frozen}_runs"] == 1
    assert row[f"stale_{frozen}_first_ts"] == START + 300 * 60
    assert row[f"stale_{frozen}_longest_s"] == 71 * 60
    assert row[f"stale_{frozen}_share"] == 72 / DAY
    assert row[f"stale_{other}_first_ts"] is None
    assert flagged(pair(legs["buy"], legs["sell"]), stale_s=71 * 60)["named"] == []


def test_a_market_that_stands_still_as_a_whole_is_repeated_and_not_stale():
    buy, sell = walk(1), noisy(walk(1), 2)
    buy[100:900], sell[100:900] = buy[100], sell[100]
    row = flagged(pair(buy, sell))
    assert row["named"] == ["repeated_buy", "repeated_sell"]
    assert row["repeated_buy_n"] == row["repeated_sell_n"] == 799
    assert row["repeated_buy_share"] == 799 / (DAY - 1)
    assert row["repeated_buy_first_ts"] == START + 101 * 60


def test_a_gap_ends_what_is_stale_and_is_no_repeat():
    buy, sell = walk(1), noisy(walk(1), 2)
    buy[300:380] = buy[300]
    row = flagged(pair(buy, sell).filter(~pl.col("ts").is_between(START + 20_000, START + 20_400)))
    assert row["named"] == []
    assert row["repeated_buy_n"] == 79 - 8


@examples(30)
@given(
    legs=st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, None]), st.sampled_from([1.0, 2.0, 3.0])),
        min_size=1,
        max_size=40,
    ),
    kept=st.sets(st.integers(0, 39)),
)
def test_stale_stretches_are_those_of_a_loop(legs, kept):
    rows = [(60 * at, *legs[at]) for at in sorted(kept) if at < len(legs)]
    if not rows:
        return
    frame = pl.DataFrame(rows, ["ts", "buy_price", "sell_price"], orient="row")
    frame = frame.with_columns(pl.col("buy_price").cast(pl.Float64), trajectory=pl.lit("a"))
    observed = [row for row in rows if row[1] is not None]
    number = 0
    runs: list[list[tuple[int, float, float]]] = []
    for before, row in zip([None, *observed], observed, strict=False):
        number += before is None or row[0] - before[0] > 90 or row[1] != before[1]
        runs = [*runs, [row]] if number > len(runs) else [*runs[:-1], [*runs[-1], row]]
    stale = [
        run
        for run in runs
        if run[-1][0] - run[0][0] > 120 and len(list(groupby(run, key=lambda row: row[2]))) > 2
    ]
    row = flags(frame, 0, 3_000, step_s=60, stale_s=120, stale_moves=2).row(0, named=True)
    if not observed:
        assert (row["stale_buy"], row["stale_reason"]) == (None, "empty")
        return
    assert row["stale_buy_runs"] == len(stale)
    assert row["stale_buy_first_ts"] == (stale[0][0][0] if stale else None)
    assert row["stale_buy_longest_s"] == max((run[-1][0] - run[0][0] for run in stale), default=0)
    assert row["stale_buy_share"] == sum(map(len, stale)) / len(observed)


def test_a_ticker_of_another_coin_is_levels_apart():
    row = flagged(pair(walk(1), 3 * walk(2)))
    assert row["named"] == ["levels_apart"]
    assert (row["levels_apart_share"], row["levels_apart_first_ts"]) == (1.0, START)


def test_a_flag_is_explained_with_its_first_example():
    words = explain(flags(pair(walk(1), 3 * walk(2))))
    assert "flags = levels_apart: names of the flags that are true" in words
    assert "levels_apart_first_ts = 2023-11-14 22:14 UTC: time of the first" in words
    assert "flags = none" in explain(flags(pair(walk(1), noisy(walk(1), 2))))


def test_a_short_jump_is_counted_and_no_flag():
    prices = walk(1)
    sell = noisy(prices, 2)
    sell[700:720] *= 1.2
    row = flagged(pair(prices, sell))
    assert row["named"] == []
    assert (row["levels_apart_n"], row["levels_apart_first_ts"]) == (20, START + 700 * 60)


@pytest.mark.parametrize("exponent", [-3, -1, 3, 6])
def test_a_contract_of_a_power_of_ten_is_named(exponent):
    prices = walk(1)
    row = flagged(pair(prices, noisy(prices, 2) * 10.0**exponent))
    assert row["named"] == ["power_of_ten"]
    assert (row["power_of_ten_exponent"], row["power_of_ten_share"]) == (exponent, 1.0)
    assert row["levels_apart_n"] == 0


@pytest.mark.parametrize("steps", [-5, -1, 1, 3])
def test_a_clock_that_is_late_is_a_shift_of_so_many_steps(steps):
    prices = walk(1, DAY + 20)
    late = noisy(np.roll(prices, steps), 2)
    row = flagged(pair(prices[10:-10], late[10:-10]))
    assert row["named"] == ["clock_shift"]
    assert row["clock_shift_steps"] == steps
    assert row["clock_shift_correlation"] > 0.9
    assert abs(row["clock_shift_correlation_at_0"]) < 0.2


def test_legs_that_have_nothing_to_do_with_each_other_are_no_clock_shift():
    frame = pl.concat(pair(walk(at), walk(at + 100), str(at)) for at in range(40))
    assert flags(frame)["clock_shift"].sum() == 0


def test_a_spread_of_the_service_that_differs_from_the_legs_is_counted():
    buy, sell = walk(1), noisy(walk(1), 2)
    sent = np.round(100 * (sell / buy - 1), 2)
    assert flagged(pair(buy, sell, spread_pct=sent))["named"] == []
    sent[[50, 60]] += [0.5, -0.25]
    row = flagged(pair(buy, sell, spread_pct=sent))
    assert row["named"] == ["service_differs"]
    assert (row["service_differs_n"], row["service_differs_share"]) == (2, 2 / DAY)
    assert row["service_differs_first_ts"] == START + 50 * 60
    assert row["service_differs_largest_bps"] == pytest.approx(50, abs=0.51)


def test_what_cannot_be_known_is_null_with_the_reason():
    sent = pair([None] * 3, [None] * 3, spread_pct=[900.0, 900.0, 900.0])
    row = flagged(sent.drop("buy_price", "sell_price"))
    assert row["named"] == ["power_of_ten"]
    found = [row[f"{name}_reason"] for name in ("stale", "repeated", "service", "clock_shift")]
    assert found == ["missing_leg", "missing_leg", "empty", "missing_leg"]
    assert row["stale_buy"] is row["repeated_sell"] is row["service_differs"] is None
    assert row["clock_shift"] is None
    silent = flagged(pair(walk(1), walk(1)).with_columns(spread_pct=1.0), end=START + 60)
    assert (silent["repeated_reason"], silent["clock_shift_reason"]) == ("too_few", "too_few")
    nothing = flagged(pair([None], [1.0]))
    names = ("stale", "repeated", "levels", "service", "clock_shift")
    assert {nothing[f"{name}_reason"] for name in names} == {"empty"}
    assert nothing["flags"] == ""


def test_legs_swapped_swap_flags():
    prices = walk(1)
    frozen = prices.copy()
    frozen[200:300] = frozen[200]
    legs = frozen, noisy(prices, 3) * 100
    for each, flag, exponent in ((legs, "stale_buy", 2), (legs[::-1], "stale_sell", -2)):
        row = flagged(pair(*each))
        assert (row["named"], row["power_of_ten_exponent"]) == ([flag, "power_of_ten"], exponent)


@pytest.mark.parametrize("option", ["stale_s", "apart_bps", "differs_bps", "least_correlation"])
def test_a_threshold_of_zero_is_refused(option):
    with pytest.raises(InputError, match=option):
        flags(pair([1.0], [1.0]), **{option: 0})


def simulated() -> Iterator[pl.DataFrame]:
    """Yield all pairs of legs of each symbol over a day of a simulated market."""
    market, start = Simulated(7), 1_793_491_200
    for symbol, legs in market.listing.items():
        prices = {}
        for leg in legs:
            bars = market.bars(symbol, leg).between(start, start + 86_400)
            prices[leg] = pl.DataFrame({"ts": bars.ts, "price": bars.price})
        for buy, sell in combinations(prices, 2):
            both = prices[buy].join(prices[sell], on="ts", suffix="_sell")
            yield both.select(
                pl.lit(f"{symbol}:{buy}:{sell}").alias("trajectory"),
                "ts",
                buy_price="price",
                sell_price="price_sell",
            )


@pytest.mark.slow
def test_in_the_whole_simulated_market_another_coin_of_one_ticker_alone_is_flagged():
    found = flags(pl.concat(simulated()))
    other_coin = pl.col("trajectory").str.contains(r"^SUN_USDT:.*FORNAX\.spot")
    assert found.filter(other_coin)["flags"].unique().to_list() == ["levels_apart"]
    assert found.filter(~other_coin)["flags"].unique().to_list() == [""]


def test_recorded_prices_of_two_exchanges_are_clean_until_one_has_a_fault(real_data):
    rows = (
        pl.scan_parquet(real_data / "prices.parquet")
        .filter(dataset="iaqf_dhruvk1432", symbol="BTC_USD")
        .select(
            pl.col("dataset", "symbol", "exchange").cast(pl.String),
            pl.col("ts").cast(pl.Int64),
            pl.col("price").cast(pl.Float64),
        )
        .collect()
    )
    buy, sell = (rows.filter(exchange=each).sort("ts") for each in ("COINBASE", "KRAKEN"))

    def both(ts: int = 0, factor: float = 1.0, share: float = 1.0) -> pl.DataFrame:
        late = pl.int_range(pl.len()) >= pl.len() - (share * pl.len()).round()
        faulty = sell.with_columns(
            pl.col("ts") + ts, pl.col("price") * pl.when(late).then(factor).otherwise(1.0)
        )
        joined = buy.join(faulty, on="ts", suffix="_sell").rename({"price": "buy_price"})
        return joined.with_columns(trajectory=pl.lit("a"), sell_price="price_sell")

    assert flagged(both())["named"] == []
    assert flagged(both(ts=60))["named"] == ["clock_shift"]
    assert flagged(both(factor=1e3))["named"] == ["power_of_ten"]
    for share in (0.02, 0.2, 0.4):
        frame = both(factor=1e-3, share=share)
        summed = spread_summary(frame).row(0, named=True)
        assert (summed["implausible"], summed["implausible_n"]) == ("level_break", 1)
        row = flagged(frame)
        assert "level_break" in row["named"]
        first = frame.filter(pl.col("sell_price") < pl.col("buy_price") / 10)["ts"].min()
        assert row["level_break_first_ts"] == first


@pytest.mark.parametrize(
    ("late_s", "sd_bps", "beyond_10_bps"), [(10, 5.6, 0.076), (60, 13.8, 0.47)]
)
def test_a_late_leg_of_one_price_makes_spreads_of_the_deviation_that_is_said(
    late_s: int, sd_bps: float, beyond_10_bps: float
) -> None:
    """Of no spread and a volatility of 100 % a year, as research measured it."""
    rng = np.random.default_rng(late_s)
    every_s, steps = late_s, 6_000
    moves = np.sqrt(every_s / (365 * 86_400)) * rng.standard_normal(steps + 1)
    price = 50 * np.exp(np.cumsum(moves))
    frame = pair(price[1:], price[:-1]).with_columns(
        ts=START + every_s * pl.int_range(pl.len()),
        buy_age_s=pl.lit(0, pl.Int64),
        sell_age_s=pl.lit(late_s, pl.Int64),
    )
    row = flagged(frame)
    assert row["late_s"] == late_s
    assert row["stale_sd_log_bps"] == pytest.approx(sd_bps, rel=0.03)
    spread = 1e4 * np.log(price[:-1] / price[1:])
    assert spread.std() == pytest.approx(row["stale_sd_log_bps"], rel=0.03)
    assert (abs(spread) > 10).mean() == pytest.approx(beyond_10_bps, abs=0.02)
    assert row["within_stale_sd_share"] == pytest.approx(0.954, abs=0.01)


def test_rows_without_ages_may_be_a_step_apart_and_equal_ages_are_not():
    prices = walk(1)
    frame = pair(prices, prices * 1.001)
    row = flagged(frame)
    assert row["late_s"] == 60
    assert row["stale_sd_log_bps"] == pytest.approx(10, rel=0.05)
    assert row["within_stale_sd_share"] == 1.0
    ages = frame.with_columns(buy_age_s=pl.lit(5, pl.Int64), sell_age_s=pl.lit(5, pl.Int64))
    row = flagged(ages)
    assert (row["late_s"], row["stale_sd_log_bps"], row["within_stale_sd_share"]) == (0, 0, 0)
    alone = flagged(frame.head(1), step_s=60)
    assert (alone["stale_sd_log_bps"], alone["stale_sd_reason"]) == (None, "too_few")
    one_leg = flagged(frame.with_columns(sell_price=pl.lit(None, pl.Float64), spread_pct=0.1))
    assert (one_leg["late_s"], one_leg["stale_sd_reason"]) == (None, "missing_leg")
