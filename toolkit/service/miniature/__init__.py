"""A miniature market, simulated and committed: three days, two symbols, four legs, known truth.

Per symbol AURORA.spot is a random walk. Each other leg is AURORA.spot times exp(deviation), the
deviation an AR(1) process in log price with a level, a standard deviation and a half-life of its
own; so every spread that buys AURORA.spot reverts with exactly that half-life. Prices are then
rounded to the tick. The exchanges are invented. What real data are found to have is here too:

* BTC_USDT on CORONA.futures stands still for four hours and a half (no rows);
* ETH_USDT on BOREAS.spot skips quiet minutes (no row);
* DEX-SOLARIS.dex repeats its last close in a minute without a trade.

``python -m toolkit.service.miniature`` writes the file anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.market import Leg
from toolkit.service.market.replay import KIND_METADATA, Replay

__all__ = ["END", "PATH", "START", "TRUTH", "generate", "source", "write"]

PATH = Path(__file__).with_name("prices.parquet")
"""The committed file."""

START, END = 1_793_491_200, 1_793_750_400
"""2026-11-01 to 2026-11-04, both 00:00 UTC: ``[START, END)`` in Unix seconds."""

_MINUTE = 60
_MINUTES = (END - START) // _MINUTE
_SEED = 20_261_101
_VOLATILITY_BPS = 5.0  # of AURORA.spot, a minute
_OUTAGE = slice(2_000, 2_270)  # minutes of BTC_USDT on CORONA.futures
_QUIET_SHARE = 0.08  # of the minutes of ETH_USDT on BOREAS.spot
_STALE_SHARE = 0.4  # of the minutes on DEX-SOLARIS.dex

_REFERENCE = Leg.parse("AURORA.spot")
_BOREAS = Leg.parse("BOREAS.spot")
_CORONA = Leg.parse("CORONA.futures")
_SOLARIS = Leg.parse("DEX-SOLARIS.dex")


@dataclass(frozen=True, slots=True)
class _Deviation:
    """A leg's log distance from AURORA.spot."""

    level_bps: float
    sd_bps: float
    half_life_s: int


@dataclass(frozen=True, slots=True)
class _Market:
    start_price: float
    decimals: int
    legs: Mapping[Leg, _Deviation]


_MARKETS = {
    "BTC_USDT": _Market(
        start_price=91_250.0,
        decimals=1,
        legs={
            _BOREAS: _Deviation(level_bps=1.0, sd_bps=4.0, half_life_s=300),
            _CORONA: _Deviation(level_bps=6.0, sd_bps=8.0, half_life_s=1_200),
            _SOLARIS: _Deviation(level_bps=-3.0, sd_bps=12.0, half_life_s=600),
        },
    ),
    "ETH_USDT": _Market(
        start_price=3_120.0,
        decimals=2,
        legs={
            _BOREAS: _Deviation(level_bps=-2.0, sd_bps=6.0, half_life_s=600),
            _CORONA: _Deviation(level_bps=5.0, sd_bps=10.0, half_life_s=1_800),
            _SOLARIS: _Deviation(level_bps=4.0, sd_bps=15.0, half_life_s=900),
        },
    ),
}

TRUTH: Mapping[str, int] = MappingProxyType(
    {
        f"{symbol}:{_REFERENCE}:{leg}": deviation.half_life_s
        for symbol, market in _MARKETS.items()
        for leg, deviation in market.legs.items()
        if leg != _SOLARIS
    }
)
"""Half-life (s) of each spread's log value, by trajectory.

DEX-SOLARIS.dex is left out: its repeated closes hide the process they were made from.
"""


def generate() -> pl.DataFrame:
    """The whole market, the same on every call.

    Columns: ts (s, Unix UTC, start of the minute), symbol, exchange, market, interval_s (60),
    price (quote), dataset ("miniature"); ordered by symbol, leg, ts.

    Examples
    --------
    >>> generate().columns
    ['ts', 'symbol', 'exchange', 'market', 'interval_s', 'price', 'dataset']
    """
    random = np.random.default_rng(_SEED)
    return pl.concat(
        [frame for symbol in _MARKETS for frame in _symbol_frames(symbol, random)],
        how="vertical",
    )


def write(path: Path = PATH) -> int:
    """Write the market as Parquet that calls itself simulated; gives the file's size in bytes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "prices.parquet") < 500_000
    True
    """
    generate().write_parquet(
        path, compression="zstd", compression_level=19, metadata={KIND_METADATA: "simulated"}
    )
    return path.stat().st_size


def source() -> Replay:
    """The committed miniature as a source; its kind is ``simulated``.

    Examples
    --------
    >>> source().kind
    'simulated'
    """
    return Replay.read(PATH)


def _symbol_frames(symbol: str, random: np.random.Generator) -> list[pl.DataFrame]:
    market = _MARKETS[symbol]
    steps = random.standard_normal(_MINUTES) * _VOLATILITY_BPS / 1e4
    reference = np.log(market.start_price) + np.cumsum(steps)
    frames = [_frame(symbol, _REFERENCE, np.round(np.exp(reference), market.decimals))]
    for leg, deviation in market.legs.items():
        log_price = reference + _ar1(deviation, random)
        price = np.round(np.exp(log_price), market.decimals)
        present = np.full(_MINUTES, fill_value=True)
        if (symbol, leg) == ("BTC_USDT", _CORONA):
            present[_OUTAGE] = False
        elif (symbol, leg) == ("ETH_USDT", _BOREAS):
            present = random.random(_MINUTES) >= _QUIET_SHARE
        elif leg == _SOLARIS:
            price = _repeat_stale(price, random.random(_MINUTES) < _STALE_SHARE)
        frames.append(_frame(symbol, leg, price).filter(present))
    return frames


def _ar1(deviation: _Deviation, random: np.random.Generator) -> NDArray[np.float64]:
    """An AR(1) path begun in its stationary law: level, standard deviation, half-life."""
    phi = 0.5 ** (_MINUTE / deviation.half_life_s)
    shocks = random.standard_normal(_MINUTES) * deviation.sd_bps
    shocks[1:] *= np.sqrt(1.0 - phi * phi)
    path = np.empty(_MINUTES)
    value = 0.0
    for minute, shock in enumerate(shocks):
        value = phi * value + shock
        path[minute] = value
    return (deviation.level_bps + path) / 1e4


def _repeat_stale(price: NDArray[np.float64], stale: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The last price of a minute with a trade, in each minute without one."""
    stale[0] = False
    last_traded = np.maximum.accumulate(np.where(stale, 0, np.arange(len(price))))
    repeated: NDArray[np.float64] = price[last_traded]
    return repeated


def _frame(symbol: str, leg: Leg, price: NDArray[np.float64]) -> pl.DataFrame:
    return pl.DataFrame(
        {"ts": np.arange(START, END, _MINUTE, dtype=np.int64), "price": price}
    ).select(
        "ts",
        symbol=pl.lit(symbol),
        exchange=pl.lit(leg.exchange),
        market=pl.lit(leg.market.value),
        interval_s=pl.lit(_MINUTE, dtype=pl.Int32),
        price="price",
        dataset=pl.lit("miniature"),
    )
