"""Stylised facts of a market, by one code for real and for simulated rows.

`stylised_page` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.market import Leg
from toolkit.service.events.detectors import splash_lives
from toolkit.service.events.documents import SplashDocument
from toolkit.service.events.lives import DEFAULT
from toolkit.service.market.simulator import Simulated
from toolkit.statistics import spread

from ...truth import Truth

SEEDS = (1, 2, 3, 4, 5)
MINUTE_S, HOUR_S, EIGHT_HOURS_S, DAY_S = 60, 3_600, 28_800, 86_400
FIRST_DAY, DAYS, FUNDING_DAYS = 20_777, 21, 720
YEAR_PCT = 100 * 3 * 365  # of a rate per eight hours
PUMPS = replace(DEFAULT, splash=replace(DEFAULT.splash, open=3.0))
LIQUID = ("BTC_USDT", "ETH_USDT")
STALE = "FORNAX.spot"
SETTLING = ("AURORA.futures", "BOREAS.futures", "CORONA.futures", "DRACO.futures")
REAL_LEGS = [
    (symbol, exchange)
    for symbol in ("BTC_USD", "BTC_USDT")
    for exchange in ("BINANCEUS", "COINBASE", "KRAKEN")
]
REAL_SETTLING = ("BINANCE", "BYBIT", "GATE", "HTX", "KUCOIN")
REAL_PUMPS = ("b0r0koko", "bayi_hu", "sapienza")

Floats = NDArray[np.float64]
Values = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact: the real median, lowest and highest, and what the simulated ones may be.

    ``real`` None: nothing real to compare with.
    """

    name: str
    meaning: str
    real: tuple[float, float, float] | None
    median: tuple[float, float]
    all: tuple[float, float]


FACTS = (
    Fact("spread_sd", "sd of a pair's spread (bps)", (6.3, 4.2, 7.7), (5, 8), (2, 11)),
    Fact("spread_largest", "largest spread of a pair (bps)", (61, 55, 83), (40, 90), (10, 150)),
    Fact("beyond_100_bps", "share of minutes at 100 bps or more", (0, 0, 0), (0, 0), (0, 0.001)),
    Fact("spread_noise", "share of a spread's variance that no minute hands on to the next",
         (0.47, 0.04, 0.8), (0.05, 0.6), (0, 0.9)),
    Fact("spread_acf_day", "autocorrelation of a spread, a day later", (0.1, 0.01, 0.34),
         (0.03, 0.35), (-0.15, 0.6)),
    Fact("half_life", "half-life that `statistics.spread` finds, in planted ones", None,
         (0.8, 1.2), (0.4, 1.6)),
    Fact("lead", "correlation of a leg's return with another's a minute later",
         (0.11, 0.05, 0.24), (0.06, 0.2), (-0.05, 0.35)),
    Fact("lead_back", "the same the other way round, where it is less", (0.03, 0.01, 0.04),
         (-0.01, 0.06), (-0.06, 0.12)),
    Fact("kurtosis", "excess kurtosis of a leg's returns", (28, 24, 37), (5, 60), (1, 100)),
    Fact("largest_move", "largest return of a minute in three weeks (bps)", (186, 161, 200),
         (40, 250), (20, 400)),
    Fact("size_acf_1", "autocorrelation of absolute returns, 1 minute later", (0.36, 0.35, 0.38),
         (0.15, 0.4), (0.1, 0.4)),
    Fact("size_acf_30", "the same, 30 minutes later", (0.21, 0.2, 0.22), (0.1, 0.25), (0, 0.3)),
    Fact("weekend_sd", "sd of returns on Saturday and Sunday, in that of other days",
         (0.82, 0.81, 0.88), (0.6, 1.0), (0.5, 1.1)),
    Fact("weekend_volume", "volume per minute on Saturday and Sunday, in that of other days",
         (0.69, 0.52, 1.07), (0.5, 0.95), (0.4, 1.2)),
    Fact("stale", "share of minutes that repeat the close, with volume 0, on a stale leg",
         (0.43, 0.43, 0.43), (0.35, 0.45), (0.35, 0.45)),
    Fact("pumps_on_the_hour", "share of a coin's pumps in the first minute of an hour",
         (0.74, 0.72, 0.83), (0.55, 0.9), (0.5, 0.95)),
    Fact("funding_acf_1", "autocorrelation of funding, one settlement later", (0.67, 0.49, 0.82),
         (0.5, 0.87), (0.45, 0.95)),
    Fact("funding_acf_3", "the same, 3 settlements later", (0.57, 0.47, 0.68),
         (0.4, 0.75), (0.3, 0.85)),
    Fact("funding_acf_21", "the same, 21 settlements later", (0.38, 0.26, 0.44),
         (0.15, 0.5), (0.05, 0.65)),
    Fact("funding_apart", "rates of two legs apart at a settlement (% of a year)",
         (4.8, 4.5, 4.9), (1, 8), (0, 12)),
    Fact("funding_mean", "mean rate of a leg (% of a year)", (15, 13, 17), (5, 25), (0, 30)),
    Fact("funding_baseline", "share of settlements at the baseline, 0.0001", (0.46, 0.41, 0.51),
         (0.4, 0.65), (0.3, 0.7)),
    Fact("funding_positive", "share of settlements that longs pay", (0.85, 0.81, 0.87),
         (0.75, 0.95), (0.6, 0.98)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Minutes:
    """A leg's one-minute bars, by time: START (s), closing price, volume."""

    ts: NDArray[np.int64]
    price: Floats
    volume: Floats


def of_prices(legs: Iterable[Minutes]) -> Values:
    """Measure each leg, and each two legs of one quote currency."""
    legs, found = list(legs), {}
    for leg in legs:
        merge(found, of_leg(leg))
    for buy, sell in combinations(legs, 2):
        merge(found, of_spread(*log_spread(buy, sell)), of_leading(buy, sell))
    return found


def of_leg(leg: Minutes) -> Values:
    """Measure a leg's returns over neighbouring minutes, and its volume."""
    ts, returns = minute_returns(leg)
    centred = returns - returns.mean()
    resting = weekend(ts)
    found = {
        "kurtosis": (centred**4).mean() / (centred**2).mean() ** 2 - 3.0,
        "largest_move": 1e4 * np.abs(returns).max(),
    }
    if resting.any() and not resting.all():
        traded, at_rest = leg.volume, weekend(leg.ts)
        found["weekend_sd"] = returns[resting].std() / returns[~resting].std()
        found["weekend_volume"] = traded[at_rest].mean() / traded[~at_rest].mean()
    for lag in (1, 30):
        found[f"size_acf_{lag}"] = autocorrelation(ts, np.abs(returns), lag * MINUTE_S)
    return each_once(found)


def of_spread(ts: NDArray[np.int64], bps: Floats) -> Values:
    """Measure a pair's spread.

    Noise of which no minute knows the next leaves (1 - noise) a^k of the autocorrelation at k
    minutes where the rest reverts, a being that of the rest. The first two make out both.
    """
    one, two = (autocorrelation(ts, bps, lag * MINUTE_S) for lag in (1, 2))
    return each_once({
        "spread_sd": bps.std(),
        "spread_largest": np.abs(bps).max(),
        "beyond_100_bps": (np.abs(bps) >= 100.0).mean(),
        "spread_noise": 1.0 - one**2 / two,
        "spread_acf_day": autocorrelation(ts, bps, DAY_S),
    })  # fmt: skip


def of_leading(one: Minutes, other: Minutes) -> Values:
    """Measure how one leg's return goes with the other's of the minute after, both ways round."""
    returns, both = [minute_returns(one), minute_returns(other)], []
    for (first_ts, first), (second_ts, second) in (returns, returns[::-1]):
        _, led, later = np.intersect1d(first_ts + MINUTE_S, second_ts, return_indices=True)
        both.append(np.corrcoef(first[led], second[later])[0, 1])
    return each_once({"lead": max(both), "lead_back": min(both)})


def of_stale_prices(leg: Minutes) -> Values:
    """Measure how many minutes repeat the close before them with a volume of 0."""
    return {"stale": [float(((leg.volume[1:] == 0.0) & (np.diff(leg.price) == 0.0)).mean())]}


def of_funding(legs: Iterable[tuple[NDArray[np.int64], Floats]]) -> Values:
    """Measure legs that settle every eight hours (settlements and rates), and each two of them."""
    legs, found = list(legs), {}
    for ts, rate in legs:
        measured = {
            f"funding_acf_{lag}": autocorrelation(ts, rate, lag * EIGHT_HOURS_S)
            for lag in (1, 3, 21)
        }
        measured["funding_mean"] = YEAR_PCT * rate.mean()
        measured["funding_baseline"] = (rate == 0.0001).mean()
        measured["funding_positive"] = (rate > 0.0).mean()
        merge(found, each_once(measured))
    for (buy_ts, buy), (sell_ts, sell) in combinations(legs, 2):
        ts, of_buy, of_sell = np.intersect1d(buy_ts, sell_ts, return_indices=True)
        if len(ts):
            apart = np.abs(sell[of_sell] - buy[of_buy])
            merge(found, each_once({"funding_apart": YEAR_PCT * np.median(apart)}))
    return found


def of_pumps(ts: NDArray[np.int64]) -> Values:
    """Measure how many pumps (their moments) are in the first minute of an hour."""
    return {"pumps_on_the_hour": [float((ts % HOUR_S < MINUTE_S).mean())]}


def each_once(found: Mapping[str, float | np.floating]) -> Values:
    """Return one value of each fact."""
    return {name: [float(value)] for name, value in found.items()}


def minute_returns(leg: Minutes) -> tuple[NDArray[np.int64], Floats]:
    """Return the log returns of neighbouring minutes, and the later one's START."""
    next_to = np.diff(leg.ts) == MINUTE_S
    return leg.ts[1:][next_to], np.diff(np.log(leg.price))[next_to]


def weekend(ts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which moments are on a Saturday or a Sunday (UTC). 1970 began on a Thursday."""
    return (ts // DAY_S + 3) % 7 >= 5


def log_spread(buy: Minutes, sell: Minutes) -> tuple[NDArray[np.int64], Floats]:
    """Return the minutes that both legs have, and 1e4 ln(sell / buy) at their ends."""
    ts, of_buy, of_sell = np.intersect1d(buy.ts, sell.ts, return_indices=True)
    return ts, 1e4 * np.log(sell.price[of_sell] / buy.price[of_buy])


def autocorrelation(ts: NDArray[np.int64], values: Floats, lag_s: int) -> float:
    """Return the autocorrelation of values that are ``lag_s`` apart, gaps or not."""
    _, later, earlier = np.intersect1d(ts, ts + lag_s, return_indices=True)
    centred = values - values.mean()
    return float((centred[later] * centred[earlier]).mean() / (centred**2).mean())


def half_lives(seed: int, symbol: str, legs: Mapping[Leg, Minutes]) -> pl.DataFrame:
    """Estimate the half-life of each pair that has one, of all minutes, episodes included.

    Columns: ``planted_s``, and those of `toolkit.statistics.spread.half_life`.
    """
    planted, frames = {}, []
    for buy, sell in combinations(legs, 2):
        law = Truth(seed).spread(symbol, buy, sell)
        if law.half_life_s is not None:
            planted[f"{buy}:{sell}"] = law.half_life_s
            ts, bps = log_spread(legs[buy], legs[sell])
            frames.append(pl.DataFrame({"ts": ts, "spread_log_bps": bps}).select(
                pl.lit(f"{buy}:{sell}").alias("trajectory"), pl.all()
            ))  # fmt: skip
    start, end = FIRST_DAY * DAY_S, (FIRST_DAY + DAYS) * DAY_S
    found = spread.half_life(pl.concat(frames), start, end, step_s=MINUTE_S)
    return found.with_columns(pl.col("trajectory").replace_strict(planted).alias("planted_s"))


def simulated_minutes(simulator: Simulated, symbol: str, leg: Leg) -> Minutes:
    """Return three weeks of a simulated leg."""
    days = [simulator.day(symbol, leg, day) for day in range(FIRST_DAY, FIRST_DAY + DAYS)]
    columns = ([getattr(day, name) for day in days] for name in ("ts", "price", "volume"))
    return Minutes(*map(np.concatenate, columns))


def simulated(seed: int) -> tuple[Values, pl.DataFrame]:
    """Measure the liquid symbols of a seed, off the DEXs: the real legs are neither.

    Returns the values, and the half-lives of `half_lives`.
    """
    simulator, found, frames = Simulated(seed), {}, []
    for symbol in LIQUID:
        listed = [leg for leg in simulator.listing[symbol] if leg.market != "dex"]
        legs = {leg: simulated_minutes(simulator, symbol, leg) for leg in listed}
        stale = legs.pop(Leg.parse(STALE))
        estimates = half_lives(seed, symbol, legs)
        frames.append(estimates)
        ratios = (estimates["half_life_s"] / estimates["planted_s"]).to_list()
        merge(found, of_prices(legs.values()), of_stale_prices(stale), {"half_life": ratios})
    start = (FIRST_DAY - FUNDING_DAYS // 4) * DAY_S
    window = (start, start + FUNDING_DAYS * DAY_S)
    settled = [simulator.settlements("BTC_USDT", Leg.parse(name), *window) for name in SETTLING]
    merge(found, of_funding((each.ts, each.rate) for each in settled), of_pumps(pumps(seed)))
    return found, pl.concat(frames)


def pumps(seed: int) -> NDArray[np.int64]:
    """Return when three weeks of pumps of 3 % or more were seen, each of one coin alone.

    Of a coin's pumps and dumps within an hour the first counts, where it is a pump. No other coin
    has any in the ten minutes before or after.
    """
    source = Simulated(seed)
    lives = [
        life
        for day in range(FIRST_DAY, FIRST_DAY + DAYS)
        for life in splash_lives(source, day, PUMPS)
    ]
    opened = sorted(
        (document.ts, document.instrument.base.removeprefix("1000"), document.kind)
        for life in lives for document in life.documents
        if isinstance(document, SplashDocument) and document.lifecycle == "open"
    )  # fmt: skip
    found, last = [], {}
    for ts, coin, kind in opened:
        alone = all(other == coin or abs(at - ts) > 600 for at, other, _ in opened)
        if kind == "pump" and alone and ts - last.get(coin, 0) > HOUR_S:
            found.append(ts)
        last[coin] = ts
    return np.array(found, dtype=np.int64)


def recorded(real_data: Path) -> Values:
    """Measure real bars of March 2023 and real settlements of 2020 to 2023."""
    bars = pl.read_parquet(real_data / "prices.parquet").filter(pl.col("interval_s") == MINUTE_S)
    rates = pl.read_parquet(real_data / "funding.parquet").filter(
        pl.col("dataset") == "supervik", pl.col("symbol") == "BTC_USDT"
    )

    def minutes(symbol: str, exchange: str) -> Minutes:
        rows = bars.filter(
            pl.col("dataset").is_in(["iaqf_dhruvk1432", "iaqf_cl8550"]),
            pl.col("symbol") == symbol, pl.col("exchange") == exchange,
        ).sort("ts")  # fmt: skip
        return Minutes(*(rows[name].to_numpy() for name in ("ts", "price", "volume")))

    found: Values = {}
    for symbol in ("BTC_USD", "BTC_USDT"):
        legs = [minutes(*each) for each in REAL_LEGS if each[0] == symbol]
        merge(found, of_prices(legs))
    merge(found, of_stale_prices(minutes("BTC_USDC", "BINANCEUS")))
    settled = [rates.filter(pl.col("exchange") == each).sort("ts") for each in REAL_SETTLING]
    merge(found, of_funding((each["ts"].to_numpy(), each["rate"].to_numpy()) for each in settled))
    announced = pl.read_parquet(real_data / "pumps.parquet")
    for dataset in REAL_PUMPS:
        merge(found, of_pumps(announced.filter(dataset=dataset)["ts"].to_numpy()))
    return found


def merge(found: Values, *others: Values) -> None:
    """Add values to those of the same fact."""
    for other in others:
        for name, values in other.items():
            found.setdefault(name, []).extend(values)


def summary(values: list[float]) -> tuple[float, float, float]:
    """Return median, lowest and highest."""
    return float(np.median(values)), min(values), max(values)
