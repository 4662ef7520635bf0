"""A small cut of the simulated market for tests: three days, two symbols, four legs, prices alone.

The seed is one under which CORONA.futures of BTC_USDT has an outage on the second day. BOREAS.spot
has no bar in quiet minutes, and the two other legs have every minute.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from toolkit.market import Leg
from toolkit.service import Replay, Simulated
from toolkit.service.market.replay import KIND_METADATA

SEED = 84
START, END = 1_793_491_200, 1_793_750_400
"""2026-11-01 to 2026-11-04, both 00:00 UTC: ``[START, END)`` in Unix seconds."""

OUTAGE = START + 2_000 * 60, START + 2_235 * 60
"""``[start, end)`` in which BTC_USDT has no bar on CORONA.futures (s)."""

SYMBOLS = ("BTC_USDT", "ETH_USDT")
LEGS = tuple(map(Leg.parse, ("AURORA.spot", "BOREAS.spot", "CORONA.futures", "DEX-SOLARIS.dex")))


@cache
def rows() -> pl.DataFrame:
    """Return every row, in the columns that `Replay.read` wants of prices."""
    market = Simulated(SEED)
    return pl.concat([_leg(market, symbol, leg) for symbol in SYMBOLS for leg in LEGS])


def write(path: Path) -> Path:
    """Write the rows as a Parquet file that calls itself simulated, and return its path."""
    rows().write_parquet(path, metadata={KIND_METADATA: "simulated"})
    return path


@cache
def source() -> Replay:
    """Return the cut as a source, the same object throughout a process."""
    with TemporaryDirectory() as folder:
        return Replay.read(write(Path(folder) / "prices.parquet"))


def _leg(market: Simulated, symbol: str, leg: Leg) -> pl.DataFrame:
    bars = market.bars(symbol, leg).between(START, END)
    return pl.DataFrame({"ts": bars.ts, "price": bars.price}).select(
        "ts",
        symbol=pl.lit(symbol),
        exchange=pl.lit(leg.exchange),
        market=pl.lit(leg.market.value),
        interval_s=pl.lit(bars.interval_s),
        price="price",
        dataset=pl.lit("miniature"),
    )
