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

`make docs` writes this page. The same code measures the simulated market and real ones. A cell has
the median, with the lowest and highest value in brackets. A test keeps the simulated median and
all simulated values within the last two columns.

"""

TAIL = """
**Real**: minutes of 1 to 21 March 2023, a month with a crisis (the USDC depeg), of BTC_USD and of
BTC_USDT on Binance.US, Coinbase and Kraken: six legs, and six pairs of one quote currency. The
stale leg is BTC_USDC on Binance.US. Settlements are those of BTC_USDT every eight hours, 2020 to
2023, on Binance, Bybit, Gate, HTX and KuCoin. Pumps are three lists of announcements, 2017 to 2022.
A test computes all of it again if the data is present, which was published by others and is not in
this repository.

**Simulated**: 21 days of BTC_USDT and ETH_USDT on their legs off the DEXs, under the seeds 1 to 5.
Settlements are those of 720 days of BTC_USDT, on the four legs that settle every eight hours.
Pumps are those of 3 % or more of a single coin, in 21 days of all symbols. A half-life is planted
where both legs revert at one speed; a ratio of 1 means that the estimate equals the planted value.

The rest of the simulated market:

- Most legs revert at **two speeds**, in minutes or hours and in two days, and all but the reference
  have noise. BOREAS.spot, CORONA.spot, CORONA.futures and DEX-SOLARIS revert at one.
- **AURORA.spot leads**: between nothing and 30 % of its moves reach another leg a minute later. It
  is the reference: it moves as its asset does, and never alone.
- The rate, size and duration of pumps, dumps and dislocations of a leg follow from its
  **illiquidity**: 1 for an asset that trades up to 20,000 USDT per minute on a leg, less with the
  root of that volume. BTC has 0.15, a DEX at least 0.5.
- Most events are therefore on symbols such as PEPE and ARB, and on legs on DEXs. They are not
  compared with real ones, except for the minute in which their pumps begin.
- **Some spread event is open at any time**: twelve thin legs take turns, for more than an hour
  each, at 2 to 4 % from their symbol's other legs.
- **SUN_USDT on FORNAX.spot is another coin** of the same name, the only such leg.
- **FORNAX.spot** repeats its last close in four minutes of ten, with a volume of 0 (`stale_share`
  of the catalogue). A spread against such a close is not real.
- Events are detected by minute, and stamped with the second at which the value crossed if prices
  ran straight from one close to the next.
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
