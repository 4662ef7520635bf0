"""The catalogue of the simulated market: instruments, exchanges and how each leg behaves.

The exchanges are invented, so that no number is taken for a real exchange's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from toolkit.errors import InputError
from toolkit.market import Leg, Market

_ILLIQUID_TURNOVER = 2e4
_ILLIQUIDITY_ON_DEX = 0.5  # at least

SLOW_HALF_LIFE_S = 48 * 3_600
"""Half-life of the slower of a deviation's two processes."""


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset: its log price is ``beta`` times the market's plus a part of its own.

    ``daily_volatility``: of its own part (a fraction, 0.03 = 3 %). ``turnover``: of a leg in a
    usual minute (quote).
    """

    name: str
    beta: float
    daily_volatility: float
    turnover: float

    @property
    def illiquidity(self) -> float:
        """The smaller of 1 and the square root of 20,000 / turnover.

        It scales the frequency of pumps, dumps and episodes, the width and length of episodes, and
        squared the size of pumps and dumps.
        """
        return float(min(1.0, (_ILLIQUID_TURNOVER / self.turnover) ** 0.5))


@dataclass(frozen=True, slots=True)
class QuotedAsset:
    """An asset as it is quoted: ``price`` at the epoch, ``decimals`` of every price."""

    asset: Asset
    price: float
    decimals: int


@dataclass(frozen=True, slots=True)
class Deviation:
    """A leg's log distance from its asset: a level, Ornstein-Uhlenbeck processes, quote noise.

    ``sd_bps``: the processes' standard deviation. ``half_life_s``: the faster one's half-life.
    ``slow_share``: the slower one's (`SLOW_HALF_LIFE_S`) share of their variance. ``noise_share``:
    the noise's share of all variance. The noise changes once per minute.
    """

    level_bps: float
    sd_bps: float
    half_life_s: float
    noise_share: float = 0.0
    slow_share: float = 0.0

    def __post_init__(self) -> None:
        for name in ("noise_share", "slow_share"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise InputError(name, getattr(self, name), "0 or more and less than 1")

    @property
    def noise_bps(self) -> float:
        """The noise's standard deviation."""
        return float(self.sd_bps * (self.noise_share / (1.0 - self.noise_share)) ** 0.5)


@dataclass(frozen=True, slots=True)
class Funding:
    """When a futures leg settles, and by which rule.

    It settles at the hours (UTC) that are ``first_hour`` modulo ``interval_hours``. ``clamped``: a
    premium near the baseline of 0.0001 per 8 h settles at the baseline. ``changing``: the interval
    goes 8 h, 4 h, 1 h and back, in cycles of 20 days (``interval_hours`` is 8).
    """

    interval_hours: int
    first_hour: int = 0
    clamped: bool = True
    changing: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedLeg:
    """An instrument on a leg, and how it behaves there.

    ``deviation`` None: the leg follows its asset exactly, without episodes or shocks of its own.
    ``lag`` of its asset's moves come one minute late. ``quiet_share`` of the minutes have no bar.
    ``stale_share`` repeat the close before, with volume 0. ``outages``: about one in ten days.
    """

    leg: Leg
    instrument: QuotedAsset
    deviation: Deviation | None = None
    funding: Funding | None = None
    lag: float = 0.0
    quiet_share: float = 0.0
    stale_share: float = 0.0
    outages: bool = False

    def __post_init__(self) -> None:
        for name in ("lag", "quiet_share", "stale_share"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise InputError(name, getattr(self, name), "0 or more and less than 1")

    @property
    def illiquidity(self) -> float:
        """The asset's, on a DEX 0.5 at least, 0 without a deviation."""
        if self.deviation is None:
            return 0.0
        on_dex = self.leg.market is Market.DEX
        return max(self.instrument.asset.illiquidity, _ILLIQUIDITY_ON_DEX * on_dex)


Markets = Mapping[str, tuple[SimulatedLeg, ...]]


def _leg(
    deviation: Deviation | None = None, funding: Funding | None = None, **shares: Any
) -> partial[SimulatedLeg]:
    return partial(SimulatedLeg, deviation=deviation, funding=funding, **shares)


# The deviations are those of a market of ordinary width and pace: `_Listed` scales them.
_LEGS: Mapping[str, partial[SimulatedLeg]] = {
    "AURORA.spot": _leg(),
    "AURORA.futures": _leg(Deviation(4.0, 6.0, 1_200, 0.2, 0.5), Funding(8)),
    "BOREAS.spot": _leg(Deviation(-1.0, 4.0, 600, 0.08), quiet_share=0.12, lag=0.10),
    "BOREAS.futures": _leg(Deviation(5.0, 5.0, 900, 0.5, 0.5), Funding(8), lag=0.02),
    "CORONA.spot": _leg(Deviation(1.0, 5.0, 300, 0.03), lag=0.03),
    "CORONA.futures": _leg(Deviation(6.0, 8.0, 1_800, 0.02), Funding(8)),
    "DRACO.futures": _leg(Deviation(3.0, 3.2, 3_600, 0.8, 0.4), Funding(8, 4), lag=0.18),
    "EQUINOX.futures": _leg(
        Deviation(2.0, 8.0, 1_800, 0.2, 0.5), Funding(1, clamped=False), lag=0.12
    ),
    "FORNAX.spot": _leg(Deviation(-2.0, 8.0, 1_500, 0.15, 0.3), stale_share=0.4, lag=0.20),
    "GALENE.futures": _leg(Deviation(4.0, 8.0, 5_400, 0.25, 0.6), Funding(4), lag=0.14),
    "DEX-LUNARIS.dex": _leg(Deviation(5.0, 18.0, 2_400, 0.35, 0.25), lag=0.30),
    "DEX-SOLARIS.dex": _leg(Deviation(-3.0, 14.0, 720, 0.2), lag=0.25),
}

_ALL = tuple(_LEGS)
_LARGE = tuple(leg for leg in _ALL if leg != "FORNAX.spot")
_TWO_COINS = ("AURORA.spot", "FORNAX.spot")
_SMALL = ("AURORA.spot", "BOREAS.spot", "BOREAS.futures", "CORONA.futures", "EQUINOX.futures")
_PERPETUAL = ("AURORA.spot", "AURORA.futures", "CORONA.futures", "DRACO.futures")
_ON_CHAIN = ("AURORA.spot", "FORNAX.spot", "GALENE.futures", "DEX-LUNARIS.dex", "DEX-SOLARIS.dex")


@dataclass(frozen=True, slots=True)
class _Listed:
    """A symbol: its legs' deviations are ``width`` times as wide and ``pace`` times as long."""

    instrument: QuotedAsset
    width: float
    pace: float
    legs: tuple[str, ...]

    def listing(self, name: str) -> SimulatedLeg:
        plain = _LEGS[name](Leg.parse(name), self.instrument)
        if plain.deviation is None:
            return plain
        deviation = replace(
            plain.deviation,
            sd_bps=plain.deviation.sd_bps * self.width,
            half_life_s=plain.deviation.half_life_s * self.pace,
        )
        return replace(plain, deviation=deviation)


_PEPE = Asset("PEPE", 1.5, 0.050, 2e4)

# Asset: name, beta, daily volatility, turnover. QuotedAsset: asset, price, decimals.
_SYMBOLS: Mapping[str, _Listed] = {
    "1000PEPE_USDT": _Listed(QuotedAsset(_PEPE, 0.005_21, 8), 1.8, 1.5, _PERPETUAL),
    "ADA_USDT": _Listed(QuotedAsset(Asset("ADA", 1.1, 0.025, 3.5e4), 0.52, 6), 1.2, 1.0, _SMALL),
    "ARB_USDT": _Listed(
        QuotedAsset(Asset("ARB", 1.3, 0.035, 1.5e4), 0.241, 6), 1.6, 2.0, _ON_CHAIN
    ),
    "AVAX_USDT": _Listed(QuotedAsset(Asset("AVAX", 1.2, 0.030, 6e4), 17.4, 4), 1.3, 1.0, _LARGE),
    "BTC_USDT": _Listed(QuotedAsset(Asset("BTC", 0.9, 0.008, 9e5), 91_250.0, 1), 0.6, 1.0, _ALL),
    "DOGE_USDT": _Listed(QuotedAsset(Asset("DOGE", 1.2, 0.030, 9e4), 0.171_2, 6), 1.2, 1.5, _SMALL),
    "ETH_USDT": _Listed(QuotedAsset(Asset("ETH", 1.1, 0.015, 7e5), 3_120.0, 2), 0.65, 1.0, _ALL),
    "LINK_USDT": _Listed(
        QuotedAsset(Asset("LINK", 1.1, 0.028, 2.5e4), 14.2, 5), 1.3, 1.0, _ON_CHAIN
    ),
    "LTC_USDT": _Listed(QuotedAsset(Asset("LTC", 0.9, 0.022, 2.5e4), 96.3, 3), 1.1, 2.0, _SMALL),
    "PEPE_USDT": _Listed(QuotedAsset(_PEPE, 0.000_005_21, 11), 2.0, 1.5, _ON_CHAIN),
    "SOL_USDT": _Listed(QuotedAsset(Asset("SOL", 1.2, 0.025, 2e5), 148.0, 3), 1.0, 1.0, _LARGE),
    "SUI_USDT": _Listed(QuotedAsset(Asset("SUI", 1.3, 0.035, 4e4), 1.86, 5), 1.4, 1.5, _SMALL),
    "SUN_USDT": _Listed(
        QuotedAsset(Asset("SUN", 0.8, 0.030, 6e3), 0.021_5, 7), 2.0, 2.5, _TWO_COINS
    ),
    "TON_USDT": _Listed(
        QuotedAsset(Asset("TON", 0.9, 0.028, 1.5e4), 1.95, 5), 1.5, 2.5, _PERPETUAL
    ),
    "XRP_USDT": _Listed(QuotedAsset(Asset("XRP", 1.0, 0.022, 1.5e5), 2.31, 5), 1.0, 1.0, _LARGE),
}
_OTHER_SUN = _Listed(
    QuotedAsset(Asset("SUN-OTHER", 1.0, 0.030, 2e3), 0.74, 5), 2.0, 2.5, ("FORNAX.spot",)
)

TURNS: tuple[tuple[str, ...], tuple[str, ...]] = (
    (
        "ARB_USDT:DEX-LUNARIS.dex",
        "ARB_USDT:DEX-SOLARIS.dex",
        "ARB_USDT:GALENE.futures",
        "LINK_USDT:DEX-LUNARIS.dex",
        "LINK_USDT:DEX-SOLARIS.dex",
        "1000PEPE_USDT:DRACO.futures",
    ),
    (
        "PEPE_USDT:DEX-LUNARIS.dex",
        "PEPE_USDT:DEX-SOLARIS.dex",
        "PEPE_USDT:GALENE.futures",
        "TON_USDT:AURORA.futures",
        "TON_USDT:CORONA.futures",
        "TON_USDT:DRACO.futures",
    ),
)
"""Thin legs, in two halves that share no symbol. One of each half is away from its symbol's other
legs for most of any two hours, as if deposits were closed; at any time at least one of all is."""


def _markets() -> Markets:
    """Build the tables above with the three exceptions."""
    markets = {
        symbol: {name: market.listing(name) for name in market.legs}
        for symbol, market in _SYMBOLS.items()
    }
    bitcoin, avalanche = markets["BTC_USDT"], markets["AVAX_USDT"]
    bitcoin["CORONA.futures"] = replace(bitcoin["CORONA.futures"], outages=True)
    avalanche["BOREAS.futures"] = replace(
        avalanche["BOREAS.futures"], funding=Funding(8, changing=True)
    )
    markets["SUN_USDT"]["FORNAX.spot"] = _OTHER_SUN.listing("FORNAX.spot")
    return MappingProxyType(
        {
            symbol: tuple(sorted(legs.values(), key=lambda each: each.leg))
            for symbol, legs in sorted(markets.items())
        }
    )


MARKETS: Markets = _markets()
"""The default catalogue: 15 symbols on 9 exchanges, two of them DEXs.

AURORA.spot is every symbol's reference. BOREAS.spot leaves quiet minutes out, FORNAX.spot repeats
stale closes, BTC_USDT on CORONA.futures has outages. Only DRACO.futures settles at 04, 12 and 20 h.
AVAX_USDT on BOREAS.futures changes its interval. PEPE and 1000PEPE are one asset. SUN_USDT on
FORNAX.spot is another coin of the same name as on AURORA.spot.
"""
