"""Schedule of shocks, episodes, outages and funding dislocations, by kind and place.

Prices and the truth are both made from it. At most one pulse or stretch is planted per slot of
time. A slot is drawn from its own number, and what is planted in it ends in it. So any window is
known by itself, and nothing of one kind overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolkit.market import Market
from toolkit.service.market.simulator.catalogue import TURNS, Asset, SimulatedLeg
from toolkit.service.market.simulator.processes import DAY_S, HOUR_S, MINUTE_S, Floats, RandomStream

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
