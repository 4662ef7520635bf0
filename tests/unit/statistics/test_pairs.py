"""Any two prices against a loop over the bars, the algebra of quotes, and what was known then."""

from __future__ import annotations

import functools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.statistics import quality, spread

DEPEG = 1_678_406_400  # 10 March 2023
DAYS = 3 * 1440


def leg(key: str, prices: dict[int, float | None]) -> pl.DataFrame:
    schema = {"ts": pl.Int64, "price": pl.Float64}
    rows = pl.DataFrame({"ts": list(prices), "price": list(prices.values())}, schema=schema)
    return rows.select(pl.lit(key).alias("trajectory"), "ts", "price")


def newest(prices: dict[int, float | None], step: int, known: int, stale: int) -> float | None:
    good = [at for at, price in prices.items() if price and price > 0 and at + step <= known]
    return prices[max(good)] if good and known - max(good) - step <= stale else None


def bars(step: int):
    price = st.one_of(st.none(), st.just(-1.0), st.floats(1, 9))
    return st.dictionaries(st.integers(0, 12).map(lambda k: k * step), price, min_size=1)


@given(bars(60), st.sampled_from([60, 180]), st.data(), st.sampled_from([None, 0, 60, 400]))
def test_rows_are_those_of_a_loop_over_the_bars(buy, step, data, stale):
    sell = data.draw(bars(step))
    frames = leg("A_USD:X.spot", buy), leg("A_USD:Y.spot", sell)
    rows = spread.pair(*frames, steps_s=(60, step), max_stale_s=stale)
    assert rows["ts"].to_list() == sorted({*sell, *buy} if step == 60 else sell)
    for ts, bought, sold in rows.select("ts", "buy_price", "sell_price").iter_rows():
        known = ts + step
        assert bought == newest(buy, 60, known, 59 if stale is None else stale)
        assert sold == newest(sell, step, known, step - 1 if stale is None else stale)


@given(bars(60), bars(60), st.integers(0, 13))
def test_nothing_known_later_changes_a_row(buy, sell, cut):
    keys, options = ("A_USD:X.spot", "A_USD:Y.spot"), {"steps_s": (60, 60), "max_stale_s": 120}
    whole = spread.pair(leg(keys[0], buy), leg(keys[1], sell), **options)
    early = [{at: price for at, price in each.items() if at <= cut * 60} for each in (buy, sell)]
    if all(early):
        past = spread.pair(leg(keys[0], early[0]), leg(keys[1], early[1]), **options)
        assert whole.filter(pl.col("ts") <= cut * 60).equals(past)


def test_the_pair_the_other_way_round_has_the_turned_rows():
    one, other = leg("A_USD:X.spot", {0: 3.0, 60: 4.0}), leg("A_USD:Y.spot", {0: 7.0, 120: 5.0})
    rows = spread.pair(one, other, steps_s=(60, 60))
    back = spread.pair(other, one, steps_s=(60, 60))
    assert (rows["spread_log_bps"] + back["spread_log_bps"]).drop_nulls().to_list() == [0.0]
    assert rows["buy_price"].to_list() == back["sell_price"].to_list() == [3.0, 4.0, None]
    assert rows["sell_price"].to_list() == back["buy_price"].to_list() == [7.0, None, 5.0]


def test_an_fx_leg_multiplies_or_divides_by_its_symbol():
    usd, usdt = leg("A_USD:X.spot", {0: 8.0, 60: 8.0}), leg("A_USDT:Y.spot", {0: 10.0, 60: 10.0})
    divided = leg("USDT_USD:X.spot", {0: 0.8, 60: 0.5})
    multiplied = leg("USD_USDT:X.spot", {0: 1.25, 60: 2.0})
    for fx in (divided, multiplied):
        rows = spread.pair(usd, usdt, fx)
        assert rows["buy_price"].to_list() == pytest.approx([10.0, 16.0])
        assert rows["fx_price"].to_list() == fx["price"].to_list()
    gone = spread.pair(usd, usdt, divided.head(1), steps_s=(60, 60, 60)).row(1, named=True)
    assert (gone["fx_price"], gone["buy_price"], gone["spread_bps"]) == (None, None, None)
    assert gone["fx_age_s"] == 60


@pytest.mark.parametrize(
    ("buy", "sell", "multiplier", "coins"),
    [
        ("PEPE", "1000PEPE", None, (1, 1000)),
        ("SHIB1000", "SHIB", None, (1000, 1)),
        ("1000CAT", "1MCAT", None, (1000, 1e6)),
        ("1000CAT", "1000CAT", None, (1, 1)),
        ("WBTC", "BTC", 1, (1, 1)),
        ("PEPE", "1000PEPE", 10.0, (1, 10)),
    ],
)
def test_contracts_count_in_coins_that_the_rows_name(buy, sell, multiplier, coins):
    keys = f"{buy}_USD:X.spot", f"{sell}_USD:Y.spot"
    frames = [leg(key, {0: 6.0, 60: 6.0}) for key in keys]
    row = spread.pair(*frames, multiplier=multiplier).row(0, named=True)
    assert (row["buy_coins"], row["sell_coins"]) == coins
    assert type(row["buy_coins"]) is type(row["sell_coins"]) is float
    assert (row["buy_price"], row["sell_price"]) == pytest.approx((6 / coins[0], 6 / coins[1]))


MEASURES = (
    spread.summary,
    spread.half_life,
    spread.hour_of_week,
    spread.lead_lag,
    spread.rolling_z_summary,
    spread.screen,
    spread.stationarity,
    quality.coverage,
    quality.flags,
    functools.partial(spread.episodes, enter_bps=1.0, absolute=True),
    functools.partial(spread.time_above, threshold_bps=1.0),
    functools.partial(spread.time_to_close, enter_bps=2.0, exit_bps=1.0),
)


@pytest.fixture(scope="module")
def joined_in_ways() -> pl.DataFrame:
    prices = {60 * k: 4.0 + k % 3 for k in range(10)}
    keys = "A_USD:X.spot", "A_USDT:Y.spot", "USDT_USD:X.spot", "USD_USDT:X.spot"
    usd, usdt, divides, multiplies = (leg(key, prices) for key in keys)
    ways = {
        "plain": spread.pair(usd, usdt, divides),
        "plain again": spread.pair(usd.reverse(), usdt, divides, multiplier=1),
        "other fx": spread.pair(usd, usdt, multiplies),
        "multiplied": spread.pair(usd, usdt, divides, multiplier=2.0),
        "never stale": spread.pair(usd, usdt, divides, max_stale_s=0),
        "stale": spread.pair(usd, usdt, divides, max_stale_s=300),
    }
    ways["sent"] = ways["plain"].drop("pair_hash")
    named = [rows.with_columns(trajectory=pl.lit(way)) for way, rows in ways.items()]
    return pl.concat(named, how="diagonal")


@pytest.mark.parametrize("measure", MEASURES, ids=lambda each: getattr(each, "func", each).__name__)
def test_another_fx_leg_multiplier_or_limit_of_age_is_another_params_hash(measure, joined_in_ways):
    found = measure(joined_in_ways, 0, 600).select("trajectory", "params_hash").unique()
    hashes = dict(found.rows())
    assert len(hashes) == found.height == 7
    assert hashes.pop("plain again") == hashes["plain"]
    assert len(set(hashes.values())) == 6


def test_pairs_joined_in_several_ways_keep_their_own_hash_side_by_side():
    one, other = leg("A_USD:X.spot", {0: 3.0, 60: 4.0}), leg("A_USD:Y.spot", {0: 7.0, 60: 5.0})
    there, back = spread.pair(one, other), spread.pair(other, one, max_stale_s=60)
    sent = there.drop("pair_hash").with_columns(trajectory=pl.lit("A_USD:X.spot:Y.spot"))
    alone = [spread.summary(rows, 0, 120) for rows in (sent, there, back)]
    rows = pl.concat([back, sent, there], how="diagonal")
    assert spread.summary(rows, 0, 120).equals(pl.concat(alone))
    assert spread.summary(rows.lazy(), 0, 120).equals(pl.concat(alone))
    mixed = pl.concat([there.head(1), spread.pair(one, other, max_stale_s=60).tail(1)])
    with pytest.raises(InputError, match="joined in two ways"):
        spread.summary(mixed)


@pytest.mark.parametrize(
    ("name", "keys", "options"),
    [
        ("fx", ("A_USD:X.spot", "A_USDT:X.spot"), {}),
        ("fx", ("A_USD:X.spot", "A_USDT:X.spot", "USDC_USD:X.spot"), {}),
        ("fx", ("A_USD:X.spot", "A_USD:Y.spot", "USDT_USD:X.spot"), {}),
        ("legs", ("A_USD:X.spot", "A_USD:X.spot"), {}),
        ("multiplier", ("A_USD:X.spot", "B_USD:X.spot"), {}),
        ("multiplier", ("A_USD:X.spot", "A_USD:Y.spot"), {"multiplier": math.nan}),
        ("max_stale_s", ("A_USD:X.spot", "A_USD:Y.spot"), {"max_stale_s": -1}),
        ("steps_s", ("A_USD:X.spot", "A_USD:Y.spot"), {"steps_s": (60,)}),
    ],
)
def test_what_makes_no_pair_is_one_clear_line(name, keys, options):
    with pytest.raises(InputError, match=f"^{name}: "):
        spread.pair(*(leg(key, {0: 1.0, 60: 1.0}) for key in keys), **options)


def test_frames_that_are_not_one_price_are_refused():
    one, other = leg("A_USD:X.spot", {0: 1.0, 60: 1.0}), leg("A_USD:Y.spot", {0: 1.0, 60: 1.0})
    for wrong in (pl.concat([one, other]), one.head(0), pl.concat([one, one])):
        with pytest.raises(InputError):
            spread.pair(wrong, other)
    with pytest.raises(InputError, match="steps_s"):
        spread.pair(one.head(1), other)


def depegged(rows: pl.DataFrame) -> tuple[float, float]:
    """Return the largest spread (bps) with a dollar for a coin, and the median at its price."""
    bare = (rows["sell_price"] / (rows["buy_price"] * rows["fx_price"])).log() * 1e4
    return bare.abs().max(), rows["spread_log_bps"].abs().median()


def test_a_depeg_is_in_the_fx_leg_and_not_between_the_quotes():
    rng, ts = np.random.default_rng(3), DEPEG + 60 * np.arange(DAYS)
    usd = 2e4 * np.exp(np.cumsum(rng.normal(0, 5e-4, DAYS)))
    fx = 1 - 0.12 * np.exp(-(((np.arange(DAYS) - 2000) / 400) ** 2))
    usdc = usd / fx * np.exp(rng.normal(0, 3e-4, DAYS))
    keys = "BTC_USD:K.spot", "BTC_USDC:K.spot", "USDC_USD:K.spot"
    prices = [dict(zip(ts.tolist(), each.tolist(), strict=True)) for each in (usd, usdc, fx)]
    widest, median = depegged(spread.pair(*map(leg, keys, prices)))
    assert widest > 1200
    assert median < 3


def test_the_depeg_of_march_2023_in_five_lines(real_data):
    table = pl.read_parquet(real_data / "prices.parquet").with_columns(
        pl.col(pl.Categorical).cast(pl.String)
    )
    kraken = table.filter(exchange="KRAKEN", dataset="iaqf_dhruvk1432").with_columns(
        pl.col("ts").cast(pl.Int64)
    )
    keyed = kraken.with_columns(trajectory=pl.col("symbol") + ":KRAKEN.spot")
    usd, usdc, fx = (keyed.filter(symbol=name) for name in ("BTC_USD", "BTC_USDC", "USDC_USD"))
    rows = spread.pair(usd, usdc, fx, max_stale_s=300)
    rows = rows.filter(pl.col("ts").is_between(DEPEG, DEPEG + DAYS * 60 - 1))
    widest, median = depegged(rows)
    assert widest > 800
    assert median < 25
