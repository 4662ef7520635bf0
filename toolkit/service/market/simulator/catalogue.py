"""The catalogue of the simulated market, and the schedule of what is planted over it.

Catalogue: instruments, exchanges and how each leg behaves. The exchanges are invented, so that no
number is taken for a real exchange's.

Schedule: shocks, episodes, outages and funding dislocations, by kind and place. Prices and the
truth are both made from it. At most one pulse or stretch is planted per slot of time. A slot is
drawn from its own number, and what is planted in it ends in it. So any window is known by itself,
and nothing of one kind overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import InputError
from toolkit.market import Leg, Market
from toolkit.service.market.simulator.processes import DAY_S, HOUR_S, MINUTE_S, Floats, RandomStream

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


_SLOTS_KEPT = 256


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """``[start, end)`` in Unix seconds."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pulse:
    """A log price's excursion: 0 at ``start``, ``peak_bps`` for a while, 0 again at ``end``.

    The rise is linear in time and lasts ``rise_s``. The fall goes by the ``fall_power``-th power of
    the time that is left and lasts ``fall_s``. ``peak_bps`` is signed. ``name`` is the leg
    (SYMBOL:LEG) of a thin leg's turn.
    """

    start: int
    rise_s: int
    hold_s: int
    fall_s: int
    peak_bps: float
    fall_power: int = 1
    name: str = ""

    @property
    def end(self) -> int:
        """The moment from which it is 0 again (s)."""
        return self.start + self.rise_s + self.hold_s + self.fall_s

    def height_bps(self, ts: NDArray[np.int64]) -> Floats:
        """Return its height at each moment, 0 outside ``(start, end)``."""
        rise = np.clip((ts - self.start) / self.rise_s, 0.0, 1.0)
        left = np.clip((self.end - ts) / self.fall_s, 0.0, 1.0)
        height: Floats = self.peak_bps * rise
        for _ in range(self.fall_power):
            height = height * left
        return height


T = TypeVar("T", bound=Pulse | TimeSpan)


class Slots(Generic[T]):
    """Time cut into slots of ``length_s``, each with one planted thing with ``probability``.

    ``draw`` takes a generator, the slot's start and its length, and returns what ends in the slot.
    Slots begin ``phase_s`` before the multiples of their length, by default a drawn number of whole
    minutes.
    """

    def __init__(
        self,
        stream: RandomStream,
        length_s: int,
        probability: float,
        draw: Callable[[np.random.Generator, int, int], T],
        *,
        phase_s: int | None = None,
    ) -> None:
        self._stream, self._length_s, self._probability = stream, length_s, probability
        self._draw = draw
        drawn_s = 60 * int(stream.under("phase").at(0).integers(length_s // 60))
        self._phase_s = drawn_s if phase_s is None else phase_s
        self._slot = lru_cache(_SLOTS_KEPT)(self._build)

    def between(self, start: int, end: int) -> list[T]:
        """Return what touches ``[start, end)``, by time."""
        first = (start + self._phase_s) // self._length_s
        last = (end - 1 + self._phase_s) // self._length_s
        found = map(self._slot, range(first, last + 1))
        return [each for each in found if each and each.start < end and each.end > start]

    def _build(self, number: int) -> T | None:
        random = self._stream.at(number)
        if random.random() >= self._probability:
            return None
        return self._draw(random, number * self._length_s - self._phase_s, self._length_s)


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """The turns of one thin leg, out of those of its half."""

    slots: Slots[Pulse]
    name: str

    def between(self, start: int, end: int) -> list[Pulse]:
        """Return what touches ``[start, end)``, by time."""
        return [pulse for pulse in self.slots.between(start, end) if pulse.name == self.name]


def planted_bps(kinds: Iterable[Slots[Pulse] | Turns], ts: NDArray[np.int64]) -> Floats:
    """Sum all pulses' heights at each moment (ascending, at least one)."""
    total = np.zeros(len(ts))
    for slots in kinds:
        for pulse in slots.between(int(ts[0]), int(ts[-1]) + 1):
            touched = slice(*np.searchsorted(ts, [pulse.start, pulse.end]))
            total[touched] += pulse.height_bps(ts[touched])
    return total


_SHORT_EPISODES = 0.6  # the rest last from two minutes to four hours, times the illiquidity
_SHORT_MEDIAN_S, _SHORT_LOG_SD = 28.75, 0.70  # a mean of 36.8 s, as between real exchanges
_LEAST_WIDE = 0.4  # of an illiquid leg's episodes
_PUMPS_ON_THE_HOUR = 0.95
_TURN_SLOT_S = 2 * HOUR_S  # of one half of the thin legs; the other's begin in the middle of them
_TURN_LATEST_S, _TURN_SHORTEST_S = 300, 85 * MINUTE_S
_RAMP_S_PER_BPS = 4.0  # what is wide for long opens too slowly to be a pump or a dump


@dataclass(frozen=True, slots=True)
class LegSchedule:
    """What happens to one symbol on one leg alone.

    ``shocks``: pumps and dumps, in bps of its price. ``episodes``: excursions of its deviation.
    ``dislocations``: excursions of its funding premium, in bps per 8 h. A leg that takes turns has
    its turns for episodes and no shocks.
    """

    shocks: Slots[Pulse]
    episodes: Slots[Pulse] | Turns
    outages: Slots[TimeSpan]
    dislocations: Slots[Pulse]


class Schedule:
    """Everything planted under a seed. ``market_shocks`` take every symbol along."""

    def __init__(self, seed: int) -> None:
        self._root = RandomStream(seed, "schedule")
        self.market_shocks = Slots(self._root.under("market"), 2 * DAY_S, 0.35, _market_shock)
        self._halves = [self._turns_of(half, names) for half, names in enumerate(TURNS)]
        self.asset_shocks = cache(self._asset_shocks)
        self.leg = cache(self._leg)

    def _asset_shocks(self, asset: Asset) -> Slots[Pulse]:
        scale = asset.illiquidity
        shock = partial(_shock, scale**2 * asset.daily_volatility)
        return Slots(self._root.under(asset.name), 8 * HOUR_S, 0.14 * scale, shock)

    def _leg(self, symbol: str, listing: SimulatedLeg) -> LegSchedule:
        name = f"{symbol}:{listing.leg}"
        stream = self._root.under(name)
        scale, funded = listing.illiquidity, listing.funding is not None
        shock = partial(_shock, scale**2 * listing.instrument.asset.daily_volatility)
        on_dex = listing.leg.market is Market.DEX
        episode, away = partial(_episode, scale, on_dex), partial(_dislocation, scale)
        own, dislocated = stream.under("episode"), funded * 0.45 * scale
        turns = [Turns(slots, name) for slots, names in self._halves if name in names]
        return LegSchedule(
            shocks=Slots(stream.under("shock"), 8 * HOUR_S, 0.09 * scale * (not turns), shock),
            episodes=turns[0] if turns else Slots(own, 288 * MINUTE_S, 0.35 * scale, episode),
            outages=Slots(stream.under("outage"), 10 * DAY_S, float(listing.outages), _outage),
            dislocations=Slots(stream.under("dislocation"), 6 * DAY_S, dislocated, away),
        )

    def _turns_of(self, half: int, names: Sequence[str]) -> tuple[Slots[Pulse], Sequence[str]]:
        """Return the turns of a half of the thin legs, and the legs.

        A turn begins in the first five minutes of its slot and lasts 85 minutes or more. The
        halves' slots are an hour apart.
        """
        draw, phase_s = partial(_turn, names), half * _TURN_SLOT_S // 2
        stream = self._root.under(f"turns/{half}")
        return Slots(stream, _TURN_SLOT_S, 1.0, draw, phase_s=phase_s), names


def _between(random: np.random.Generator, low: float, high: float) -> float:
    """Draw a number with a uniform logarithm."""
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _sign(random: np.random.Generator) -> int:
    return 1 if random.random() < 0.5 else -1


def _placed(
    random: np.random.Generator,
    slot: tuple[int, int],
    times: tuple[float, float, float],
    peak_bps: float,
    fall_power: int = 1,
    *,
    on_the_hour: bool = False,
) -> Pulse:
    """Place a pulse of rise, hold and fall (whole seconds, rise and fall 1 or more) in a slot.

    ``on_the_hour``: it begins at the last full hour before the moment drawn, where the slot has it.
    """
    rise, hold, fall = max(1, round(times[0])), round(times[1]), max(1, round(times[2]))
    at, length = slot
    start = at + int(random.integers(length - rise - hold - fall + 1))
    if on_the_hour and start // HOUR_S * HOUR_S >= at:
        start = start // HOUR_S * HOUR_S
    return Pulse(start, rise, hold, fall, peak_bps, fall_power)


def _market_shock(random: np.random.Generator, at: int, length: int) -> Pulse:
    times = (random.uniform(90, 180), 0.0, random.uniform(6, 18) * HOUR_S)
    return _placed(random, (at, length), times, _sign(random) * _between(random, 60, 150), 3)


def _shock(volatility: float, random: np.random.Generator, at: int, length: int) -> Pulse:
    """Draw a pump or a dump: 20 to 120 s up, half of it gone 2 to 18 minutes later.

    With a ``volatility`` of 3 % or more it goes 3 to 15 % up or down, else less in proportion. 19
    of 20 pumps begin on the hour.
    """
    times = (random.uniform(20, 120), 0.0, _between(random, 10, 90) * MINUTE_S)
    peak_bps = _sign(random) * min(volatility / 0.03, 1.0) * _between(random, 300, 1_500)
    agreed = peak_bps > 0 and random.random() < _PUMPS_ON_THE_HOUR
    return _placed(random, (at, length), times, peak_bps, 3, on_the_hour=agreed)


def _episode(
    scale: float, on_dex: bool, random: np.random.Generator, at: int, length: int
) -> Pulse:
    """Draw an excursion of one leg: ``scale`` times 60 to 150 bps, seconds to hours long.

    On a DEX, or of an hour or more, it goes ``scale`` times 60 to 400 bps. Widths count a ``scale``
    below 0.4 as 0.4.
    """
    if random.random() < _SHORT_EPISODES:
        typical = random.lognormal(math.log(_SHORT_MEDIAN_S), _SHORT_LOG_SD)
        duration = min(max(typical, 8.0), 240.0)
    else:
        duration = _between(random, 120, scale * 4 * HOUR_S)
    long = duration >= HOUR_S
    peak_bps = max(scale, _LEAST_WIDE) * _between(random, 60, 400 if long or on_dex else 150)
    ramp = _RAMP_S_PER_BPS * peak_bps if long else min(0.08 * duration, 60.0)
    times = (ramp, duration - 2 * ramp, ramp)
    return _placed(random, (at, length), times, _sign(random) * peak_bps)


def _turn(names: Sequence[str], random: np.random.Generator, at: int, length: int) -> Pulse:
    """Draw whose turn it is, and its excursion: 230 to 400 bps for most of its slot."""
    name = names[int(random.integers(len(names)))]
    peak_bps = _between(random, 230, 400)
    start = at + int(random.integers(_TURN_LATEST_S + 1))
    ramp = round(_RAMP_S_PER_BPS * peak_bps)
    lasts_s = int(random.integers(_TURN_SHORTEST_S, length - _TURN_LATEST_S)) // MINUTE_S * MINUTE_S
    return Pulse(start, ramp, lasts_s - 2 * ramp, ramp, _sign(random) * peak_bps, name=name)


def _outage(random: np.random.Generator, at: int, length: int) -> TimeSpan:
    minutes = int(random.integers(30, 301))
    start = at + MINUTE_S * int(random.integers(length // MINUTE_S - minutes + 1))
    return TimeSpan(start, start + minutes * MINUTE_S)


def _dislocation(scale: float, random: np.random.Generator, at: int, length: int) -> Pulse:
    times = (2 * HOUR_S, random.uniform(4, 44) * HOUR_S, 2 * HOUR_S)
    peak_bps = (0.6 + scale) * _between(random, 14, 40)
    return _placed(random, (at, length), times, _sign(random) * peak_bps)
