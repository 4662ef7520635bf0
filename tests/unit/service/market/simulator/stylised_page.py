"""The page of stylised facts, docs/simulated-market.md, as `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .stylised import FACTS, SEEDS, Values, merge, simulated, summary

PAGE = Path(__file__).parents[5] / "docs" / "simulated-market.md"


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
2023, on Binance, Bybit, Gate, HTX and KuCoin. Pumps are three lists of announcements, 2017 to 2022.
A test computes all of it anew where the data is present. It was published by others and is not part
of this repository.

**Simulated**: 21 days of BTC_USDT and ETH_USDT on their legs off the DEXs, under the seeds 1 to 5.
Settlements are those of 720 days of BTC_USDT, on the four legs that settle every eight hours. Pumps
are those of 3 % or more of one coin alone, in 21 days of all symbols. A half-life is planted where
both legs revert at one speed: at 1, the estimate is what was planted.

What to know about the rest of the simulated market:

- Most legs revert at **two speeds**, in minutes or hours and in two days, and all but the reference
  have noise. BOREAS.spot, CORONA.spot, CORONA.futures and DEX-SOLARIS revert at one.
- **AURORA.spot leads**: between nothing and 30 % of its moves reach another leg a minute later. It
  is the reference: it moves as its asset does, and never alone.
- How often a leg is pumped, dumped or leaves its level, how far and how long, follows from its
  **illiquidity**: 1 for an asset that trades up to 20,000 USDT per minute on a leg, less as the
  root of that grows. BTC has 0.15. On a DEX it is 0.5 at least.
- Symbols such as PEPE and ARB, and legs on DEXs, are therefore where most events are. Nothing real
  is held against them, but for the minute in which their pumps begin.
- **Something is open at any time**: twelve thin legs take turns in being 2 to 4 % away from their
  symbol's others, more than an hour each, so that a spread event is open in every minute.
- **SUN_USDT on FORNAX.spot is another coin** of the same name. That is one pair, and no other pair
  of legs is of two coins.
- **FORNAX.spot** repeats its last close in four minutes of ten, with a volume of 0. That is a
  switch of the catalogue, `stale_share`. A spread against such a close is not a real one.
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
    PAGE.write_text(page(simulated(seed)[0] for seed in SEEDS), encoding="utf-8")
