"""Stylised facts of a market, by one code for real and for simulated rows.

`make docs` writes docs/simulated-market.md with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.market import Leg
from toolkit.service.market.simulator import Simulator
from toolkit.statistics import spread

from ...truth import Truth

PAGE = Path(__file__).parents[5] / "docs" / "simulated-market.md"
SEEDS = (1, 2, 3, 4, 5)
MINUTE_S, EIGHT_HOURS_S, DAY_S = 60, 28_800, 86_400
FIRST_DAY, DAYS, FUNDING_DAYS = 20_777, 21, 360
LIQUID = ("BTC_USDT", "ETH_USDT")
STALE = "FORNAX.spot"
SETTLING = ("AURORA.futures", "BOREAS.futures", "CORONA.futures", "DRACO.futures")
REAL_LEGS = [
    (symbol, exchange)
    for symbol in ("BTC_USD", "BTC_USDT")
    for exchange in ("BINANCEUS", "COINBASE", "KRAKEN")
]
REAL_SETTLING = ("BINANCE", "BYBIT", "GATE", "HTX", "KUCOIN")

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
    Fact("kurtosis", "excess kurtosis of a leg's returns", (28, 24, 37), (10, 40), (5, 80)),
    Fact("size_acf_1", "autocorrelation of absolute returns, 1 minute later", (0.36, 0.35, 0.38),
         (0.15, 0.4), (0.1, 0.4)),
    Fact("size_acf_30", "the same, 30 minutes later", (0.21, 0.19, 0.22), (0.1, 0.25), (0.05, 0.3)),
    Fact("stale", "share of minutes that repeat the close, with volume 0, on a stale leg",
         (0.43, 0.43, 0.43), (0.35, 0.45), (0.35, 0.45)),
    Fact("half_life", "half-life that `statistics.spread` finds, in planted ones", None,
         (0.85, 1.1), (0.4, 1.6)),
    Fact("funding_acf_1", "autocorrelation of funding, one settlement later", (0.67, 0.49, 0.82),
         (0.5, 0.8), (0.45, 0.85)),
    Fact("funding_baseline", "share of settlements at the baseline, 0.0001", (0.46, 0.41, 0.51),
         (0.4, 0.65), (0.3, 0.7)),
    Fact("funding_positive", "share of settlements that longs pay", (0.85, 0.81, 0.87),
         (0.8, 0.92), (0.6, 0.96)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Minutes:
    """A leg's one-minute bars, by time: START (s), closing price, volume."""

    ts: NDArray[np.int64]
    price: Floats
    volume: Floats


def of_prices(legs: Iterable[Minutes]) -> Values:
    """Measure each leg's returns over neighbouring minutes, and each two legs' spread."""
    legs, found = list(legs), {}
    for leg in legs:
        next_to, returns = np.diff(leg.ts) == MINUTE_S, np.diff(np.log(leg.price))
        centred = returns[next_to] - returns[next_to].mean()
        kurtosis = (centred**4).mean() / (centred**2).mean() ** 2 - 3.0
        found.setdefault("kurtosis", []).append(float(kurtosis))
        for lag in (1, 30):
            value = autocorrelation(np.abs(returns), next_to, lag)
            found.setdefault(f"size_acf_{lag}", []).append(value)
    for buy, sell in combinations(legs, 2):
        _, bps = log_spread(buy, sell)
        found.setdefault("spread_sd", []).append(float(bps.std()))
        found.setdefault("spread_largest", []).append(float(np.abs(bps).max()))
        found.setdefault("beyond_100_bps", []).append(float((np.abs(bps) >= 100.0).mean()))
    return found


def of_stale_prices(leg: Minutes) -> Values:
    """Measure how many minutes repeat the close before them with a volume of 0."""
    return {"stale": [float(((leg.volume[1:] == 0.0) & (np.diff(leg.price) == 0.0)).mean())]}


def of_funding(ts: NDArray[np.int64], rate: Floats) -> Values:
    """Measure a leg that settles every eight hours."""
    # A step of funding ends at its settlement: neighbours are eight hours apart.
    known = np.concatenate([np.diff(ts) == EIGHT_HOURS_S, [True]])
    return {
        "funding_acf_1": [autocorrelation(rate, known, 1)],
        "funding_baseline": [float((rate == 0.0001).mean())],
        "funding_positive": [float((rate > 0.0).mean())],
    }


def log_spread(buy: Minutes, sell: Minutes) -> tuple[NDArray[np.int64], Floats]:
    """Return the minutes that both legs have, and 1e4 ln(sell / buy) at their ends."""
    ts, of_buy, of_sell = np.intersect1d(buy.ts, sell.ts, return_indices=True)
    return ts, 1e4 * np.log(sell.price[of_sell] / buy.price[of_buy])


def autocorrelation(values: Floats, known: NDArray[np.bool_], lag: int) -> float:
    """Return the autocorrelation of the values that are known at both ends."""
    both = known[lag:] & known[:-lag]
    centred = values - values[known].mean()
    return float((centred[lag:] * centred[:-lag])[both].mean() / (centred[known] ** 2).mean())


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


def simulated_minutes(simulator: Simulator, symbol: str, leg: Leg) -> Minutes:
    """Return three weeks of a simulated leg."""
    days = [simulator.day(symbol, leg, day) for day in range(FIRST_DAY, FIRST_DAY + DAYS)]
    columns = ([getattr(day, name) for day in days] for name in ("ts", "price", "volume"))
    return Minutes(*map(np.concatenate, columns))


def simulated(seed: int) -> Values:
    """Measure the liquid symbols of a seed, off the DEXs: the real legs are neither."""
    simulator, found = Simulator(seed), {}
    for symbol in LIQUID:
        listed = [leg for leg in simulator.listing[symbol] if leg.market != "dex"]
        legs = {leg: simulated_minutes(simulator, symbol, leg) for leg in listed}
        stale = legs.pop(Leg.parse(STALE))
        estimates = half_lives(seed, symbol, legs)
        ratios = (estimates["half_life_s"] / estimates["planted_s"]).to_list()
        merge(found, of_prices(legs.values()), of_stale_prices(stale), {"half_life": ratios})
    start = (FIRST_DAY - FUNDING_DAYS // 2) * DAY_S
    for name in SETTLING:
        window = (start, start + FUNDING_DAYS * DAY_S)
        settled = simulator.settlements("BTC_USDT", Leg.parse(name), *window)
        merge(found, of_funding(settled.ts, settled.rate))
    return found


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
    for exchange in REAL_SETTLING:
        rows = rates.filter(pl.col("exchange") == exchange).sort("ts")
        merge(found, of_funding(rows["ts"].to_numpy(), rows["rate"].to_numpy()))
    return found


def merge(found: Values, *others: Values) -> None:
    """Add values to those of the same fact."""
    for other in others:
        for name, values in other.items():
            found.setdefault(name, []).extend(values)


def summary(values: list[float]) -> tuple[float, float, float]:
    """Return median, lowest and highest."""
    return float(np.median(values)), min(values), max(values)


def shown(figures: tuple[float, float, float] | None) -> str:
    """Return median, lowest and highest with two digits each."""
    if figures is None:
        return ""
    middle, low, high = (number(each) for each in figures)
    return f"{middle} ({low} to {high})"


def number(value: float) -> str:
    """Return a number with two digits."""
    return f"{value:.2g}" if abs(value) < 99.5 else f"{value:.0f}"


HEAD = """\
# The simulated market beside real ones

This page is made by `make docs`, and a test keeps it equal to what the code finds. The market of a
seed is made up. What it has in common with real markets is measured here, with one code for both.

A cell has the median, and the lowest and highest in brackets. A test holds the simulated median and
all simulated values within the last two columns.

"""

TAIL = """
**Real**: minutes of 1 to 21 March 2023, a month with a crisis (the USDC depeg), of BTC_USD and of
BTC_USDT on Binance.US, Coinbase and Kraken: six legs, and six pairs of one quote currency. The
stale leg is BTC_USDC on Binance.US. Settlements are those of BTC_USDT every eight hours, 2020 to
2023, on Binance, Bybit, Gate, HTX and KuCoin. A test computes all of it anew where the data is
present. It was published by others and is not part of this repository.

**Simulated**: 21 days of BTC_USDT and ETH_USDT on their legs off the DEXs, under the seeds 1 to 5.
Settlements are those of 360 days of BTC_USDT, on the four legs that settle every eight hours.

What to know about the rest of the simulated market:

- How often a leg is pumped, dumped or leaves its level, how far and how long, follows from its
  **illiquidity**: 1 for an asset that trades up to 20,000 USDT per minute on a leg, less as the
  root of that grows. BTC has 0.15. On a DEX it is 0.5 at least.
- Symbols such as PEPE, SUN and ARB, and legs on DEXs, are therefore where most events are. Nothing
  real is held against them.
- **FORNAX.spot** repeats its last close in four minutes of ten, with a volume of 0. That is a
  switch of the catalogue, `stale_share`. A spread against such a close is not a real one.
- **AURORA.spot** is the reference: it moves as its asset does, and never alone.
- Events are found by minutes. Each is stamped with the second at which its value crossed, prices
  taken to run straight from one close to the next.
"""


def page(by_seed: Iterable[Values]) -> str:
    """Return the whole page."""
    found: Values = {}
    merge(found, *by_seed)
    rows = [
        f"| {fact.meaning} | {shown(fact.real)} | {shown(summary(found[fact.name]))} "
        f"| {fact.median[0]} to {fact.median[1]} | {fact.all[0]} to {fact.all[1]} |"
        for fact in FACTS
    ]
    head = "| fact | real | simulated | median allowed | all allowed |\n|---|---|---|---|---|\n"
    return HEAD + head + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(page(map(simulated, SEEDS)), encoding="utf-8")
