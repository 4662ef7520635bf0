"""What cannot be so has its name at the figure, and no real market has one."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

from toolkit.statistics import funding, prices, quality, spread
from toolkit.statistics.funding.rates_in_force import with_apr
from toolkit.statistics.quality.plausibility import notes_of, sentinel_marks
from toolkit.statistics.screening import funding_figures, rate_figures, spread_figures

START = 1_700_006_400
DAY = 1_440


def walk(seed: int = 1, length: int = DAY) -> np.ndarray:
    return 100 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0, 5e-4, length)))


def priced(price: np.ndarray) -> pl.DataFrame:
    ts = START + 60 * np.arange(len(price))
    return pl.DataFrame({"trajectory": "A_B:X.spot", "ts": ts, "price": price})


def paired(buy: np.ndarray, sell: np.ndarray) -> pl.DataFrame:
    legs = {"buy_price": buy, "sell_price": sell}
    return priced(buy).drop("price").with_columns(**{k: pl.Series(v) for k, v in legs.items()})


def found(summary: pl.DataFrame) -> tuple[str, int]:
    return summary.select("implausible", "implausible_n").row(0)  # type: ignore[return-value]  # of two columns


Found = dict[str, tuple[str, int]]
WALK = walk()


def judged(sold: dict[str, np.ndarray]) -> tuple[dict[str, Found], dict[str, dict]]:
    """Sell each price, by a name, against a walk: what four summaries find, and rows of flags."""
    pairs = pl.concat(
        paired(WALK, price).with_columns(trajectory=pl.lit(name)) for name, price in sold.items()
    )
    one = pairs.select("trajectory", "ts", price="sell_price")
    summaries = {
        "price": prices.summary(one),
        "shown price": spread.summary(one, column="price"),
        "spread": spread.summary(pairs),
        "screen": spread_figures(pairs, START, START + 60 * DAY),
    }
    columns = ("trajectory", "implausible", "implausible_n")
    rows = {
        by: {name: (names, n) for name, names, n in summed.select(columns).rows()}
        for by, summed in summaries.items()
    }
    return rows, quality.flags(pairs).rows_by_key("trajectory", named=True, unique=True)


def test_a_redenomination_is_named_at_any_share_of_the_window():
    near = WALK * np.exp(np.random.default_rng(2).normal(0, 2e-4, DAY))
    sold, first = {}, {}
    for factor, share in product((1e-3, 1e3, 10.0, 0.01, 2_500.0), (0.02, 0.2, 0.4, 0.5, 0.98)):
        at, name = DAY - round(share * DAY), f"{factor} in {share}"
        sold[name] = np.concatenate([near[:at], factor * near[at:]])
        first[name] = START + 60 * at
    rows, flags = judged(sold)
    for by, named in rows.items():
        assert named == dict.fromkeys(sold, ("level_break", 1)), by
    assert all("level_break" in row["flags"].split(", ") for row in flags.values())
    assert {name: row["level_break_first_ts"] for name, row in flags.items()} == first
    assert {row["level_break_n"] for row in flags.values()} == {1}


def test_a_crash_or_a_pump_is_no_redenomination():
    sold = {}
    for factor, minutes in product((0.4, 0.2, 2.0, 5.0, 8.0), (1, 20, 600)):
        sold[f"{factor} in {minutes}"] = price = WALK.copy()
        price[700 : 700 + minutes] *= factor
    rows, flags = judged(sold)
    for by, named in rows.items():
        assert named == dict.fromkeys(sold, ("", 0)), by
    assert {name: row["level_break"] for name, row in flags.items()} == dict.fromkeys(sold, False)


def test_a_sentinel_in_the_place_of_a_price_is_named():
    sentinels = [
        *(2.0**63, 92233720368.54775807, 9.223372036854775807, 92233720368.55, 2**31 - 1),
        *(21.47483647, 4294967295.0, 42.94967295, 2.0**53, 9007.199254740991),
        *(18446744073709551615e-8, 999999.0, 9999.99, 99999999.0, 999999999999.0),
    ]
    sold = {str(price): WALK.copy() for price in sentinels}
    for price in sentinels:
        sold[str(price)][[100, 700]] = price
    rows, flags = judged(sold)
    for by, named in rows.items():
        for name, (names, _) in named.items():
            assert "sentinel_price" in names.split(", "), (by, name)
    for name, row in flags.items():
        assert "sentinel_price" in row["flags"].split(", "), name
        first = (row["sentinel_price_n"], row["sentinel_price_first_ts"])
        assert first == (2, START + 6_000), name


def test_a_sentinel_in_the_whole_window_is_named():
    for price in (2.0**63 / 1e8, 999999.0):
        whole = np.full(DAY, price)
        assert found(prices.summary(priced(whole))) == ("sentinel_price", DAY)
        assert "sentinel_price" in quality.flags(paired(whole, whole))["flags"].item()


def test_a_real_price_of_nines_and_a_price_below_nothing_are_no_sentinels():
    near = 99_999.9 * walk() / 100
    near[700] = 99_999.9
    assert found(prices.summary(priced(near))) == ("", 0)
    stable = np.full(DAY, 0.999999)
    assert found(prices.summary(priced(stable))) == ("", 0)
    lacking = walk()
    lacking[100:110] = -1.0
    row = prices.summary(priced(lacking)).row(0, named=True)
    assert (row["implausible"], row["n_null"], row["n"]) == ("", 10, DAY - 10)


def test_no_price_with_eight_digits_in_a_million_is_a_sure_sentinel():
    digits = np.random.default_rng(5).integers(10**7, 10**8, 1_000_000)
    drawn = pl.DataFrame(
        {"price": digits / 10.0 ** np.random.default_rng(6).integers(0, 12, 10**6)}
    )
    assert drawn.select(sentinel_marks(pl.col("price")).max()).item() < 2


def test_more_rows_than_expected_leave_the_coverage_unknown_and_are_named():
    frame = priced(walk())
    again = frame.filter(pl.int_range(pl.len()) % 24 == 5).with_columns(pl.col("ts") + 7)
    both = pl.concat([frame, again])
    row = prices.summary(both, START, START + 60 * DAY).row(0, named=True)
    assert (row["n"], row["n_expected"]) == (DAY + 60, DAY)
    assert (row["coverage"], row["coverage_reason"]) == (None, "more_than_expected")
    assert row["implausible"] == "more_than_expected"
    pair = both.rename({"price": "buy_price"}).with_columns(sell_price="buy_price")
    flags = quality.flags(pair, START, START + 60 * DAY).row(0, named=True)
    assert flags["more_than_expected"]
    assert "more_than_expected" in flags["flags"].split(", ")
    episodes = spread.episodes(pair, START, START + 60 * DAY, enter_bps=0.0001)
    assert episodes.is_empty() or set(episodes["coverage_reason"]) == {"more_than_expected"}
    whole = quality.coverage(frame, START, START + 60 * DAY).row(0, named=True)
    assert (whole["coverage"], whole["coverage_reason"]) == (1.0, None)


def settled(rate: float, hours: int = 8) -> pl.DataFrame:
    ts = START + 3600 * hours * np.arange(1, 22)
    none = pl.lit(None, pl.Float64)
    return pl.DataFrame({"trajectory": "funding/A_B:X.spot:Y.futures", "ts": ts}).with_columns(
        buy_rate=pl.lit(0.0),
        sell_rate=pl.lit(rate),
        buy_interval_hours=none,
        sell_interval_hours=pl.lit(float(hours)),
    )


def test_a_rate_in_the_quote_per_contract_is_named_beside_the_apr():
    rates = settled(6.88)
    row = funding.summary(rates).row(0, named=True)
    assert row["funding_apr_pct"] == pytest.approx(753_360)
    assert (row["implausible"], row["implausible_n"]) == ("rate_above_5_pct", 21)
    screened = funding_figures(rates, START, START + 7 * 86_400)
    assert screened["implausible"].item() == "rate_above_5_pct"
    assert set(funding.intervals(rates)["rate_flag"]) == {"rate_above_5_pct"}
    assert "a rate is above 5 % per interval" in notes_of(funding.summary(rates))[0]
    for rate in (0.05, -0.05, 0.00375):
        assert found(funding.summary(settled(rate))) == ("", 0)
        assert set(funding.intervals(settled(rate))["rate_flag"]) == {None}


def test_a_rate_in_force_that_is_too_high_is_named_beside_its_year():
    ts = START + 60 * np.arange(100)
    rates = pl.DataFrame({"trajectory": "A_B:X.futures", "ts": ts}).with_columns(
        rate=pl.when(pl.col("ts") < START + 3_000).then(1e-4).otherwise(-6.88),
        interval_hours=pl.lit(8.0),
    )
    named = ("rate_above_5_pct", 50)
    assert found(rate_figures(rates, START, START + 6_000)) == named
    assert found(spread.summary(with_apr(rates), column="funding_apr_pct")) == named


def real_prices(real_data: object) -> pl.DataFrame:
    key = pl.concat_str("dataset", "exchange", "symbol", "market", "interval_s", separator="/")
    rows = pl.read_parquet(f"{real_data}/prices.parquet").select(
        key.alias("trajectory"), "ts", pl.col("price").cast(pl.Float64)
    )
    return rows.unique(["trajectory", "ts"], keep="first", maintain_order=True)


@pytest.mark.slow
def test_no_real_price_and_no_real_pair_has_a_name(real_data):
    rows = real_prices(real_data)
    summed = prices.summary(rows.with_columns(pl.col("ts").cast(pl.Int64)))
    assert summed.height > 40
    assert set(summed["implausible"]) == {""}
    legs = rows.partition_by("trajectory", as_dict=True)
    pairs = 0
    for (first,), (second,) in combinations(sorted(legs), 2):
        if first.split("/")[2][:3] != second.split("/")[2][:3]:
            continue
        joined = (
            legs[first,]
            .join(legs[second,], on="ts", suffix="_sell")
            .select(
                pl.lit(f"{first}|{second}").alias("trajectory"),
                pl.col("ts").cast(pl.Int64),
                buy_price="price",
                sell_price="price_sell",
            )
        )
        if joined.height > 1_000:
            pairs += 1
            assert found(spread.summary(joined)) == ("", 0), (first, second)
    assert pairs > 100
