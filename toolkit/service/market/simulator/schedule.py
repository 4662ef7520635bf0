"""When things happen: shocks, episodes, outages and funding dislocations, by kind and place.

Prices are made from it and the truth is read from it, so that the two cannot differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from toolkit.service.market.simulator.catalogue import Asset, Listing
from toolkit.service.market.simulator.pulses import Pulse, Slots, TimeSpan
from toolkit.service.market.simulator.streams import RandomStream
from toolkit.service.market.simulator.timeline import DAY_S, HOUR_S, MINUTE_S

_SHORT_EPISODES = 0.6  # the rest last from two minutes to four hours, times the illiquidity
_SHORT_MEDIAN_S, _SHORT_LOG_SD = 28.75, 0.70  # a mean of 36.8 s, as between real exchanges


@dataclass(frozen=True, slots=True)
class LegSchedule:
    """What happens to one symbol on one leg alone.

    ``shocks``: pumps and dumps of this leg, in bps of its price. ``episodes``: excursions of its
    deviation. ``outages``: stretches without bars. ``dislocations``: excursions of its funding
    premium, in bps per 8 h.
    """

    shocks: Slots[Pulse]
    episodes: Slots[Pulse]
    outages: Slots[TimeSpan]
    dislocations: Slots[Pulse]


class Schedule:
    """Everything planted under a seed. ``market_shocks`` take every symbol along.

    >>> schedule = Schedule(7)
    >>> len(schedule.market_shocks.between(1_790_000_000, 1_790_000_000 + 365 * 86_400)) > 50
    True
    """

    def __init__(self, seed: int) -> None:
        self._root = RandomStream(seed, "schedule")
        self.market_shocks = Slots(self._root.under("market"), 2 * DAY_S, 0.35, _market_shock)
        self._assets = cache(self._build_asset)
        self._legs = cache(self._build_leg)

    def asset_shocks(self, asset: Asset) -> Slots[Pulse]:
        """Return the pumps and dumps that take every leg of an asset along.

        >>> illiquid = Asset("SUN", beta=0.8, daily_volatility=0.030, turnover=6e3)
        >>> slots = Schedule(7).asset_shocks(illiquid)
        >>> {abs(each.peak_bps) >= 300 for each in slots.between(1_790_000_000, 1_795_000_000)}
        {True}
        """
        return self._assets(asset)

    def leg(self, symbol: str, listing: Listing) -> LegSchedule:
        """Return what happens to one symbol on one leg alone.

        >>> from toolkit.service.market.simulator.catalogue import MARKETS
        >>> reference = Schedule(7).leg("BTC_USDT", MARKETS["BTC_USDT"][1])
        >>> reference.episodes.between(1_790_000_000, 1_795_000_000)
        []
        """
        return self._legs(symbol, listing)

    def _build_asset(self, asset: Asset) -> Slots[Pulse]:
        scale = asset.illiquidity
        shock = partial(_shock, scale * asset.daily_volatility)
        return Slots(self._root.under(asset.name), 8 * HOUR_S, 0.08 * scale, shock)

    def _build_leg(self, symbol: str, listing: Listing) -> LegSchedule:
        stream = self._root.under(f"{symbol}:{listing.leg}")
        scale, funded = listing.illiquidity, listing.funding is not None
        shock = partial(_shock, scale * listing.instrument.asset.daily_volatility)
        episode = partial(_episode, scale)
        return LegSchedule(
            shocks=Slots(stream.under("shock"), 8 * HOUR_S, 0.04 * scale, shock),
            episodes=Slots(stream.under("episode"), 288 * MINUTE_S, 0.35 * scale, episode),
            outages=Slots(stream.under("outage"), 10 * DAY_S, float(listing.outages), _outage),
            dislocations=Slots(stream.under("dislocation"), 6 * DAY_S, 0.25 * funded, _dislocation),
        )


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
) -> Pulse:
    """Place a pulse of rise, hold and fall (whole seconds, rise and fall 1 or more) in a slot."""
    rise, hold, fall = max(1, round(times[0])), round(times[1]), max(1, round(times[2]))
    at, length = slot
    start = at + int(random.integers(length - rise - hold - fall + 1))
    return Pulse(start, rise, hold, fall, peak_bps, fall_power)


def _market_shock(random: np.random.Generator, at: int, length: int) -> Pulse:
    times = (random.uniform(90, 180), 0.0, random.uniform(6, 18) * HOUR_S)
    return _placed(random, (at, length), times, _sign(random) * _between(random, 80, 200), 3)


def _shock(volatility: float, random: np.random.Generator, at: int, length: int) -> Pulse:
    """Draw a pump or a dump: 20 to 120 s up, half of it gone 2 to 18 minutes later.

    With a ``volatility`` of 3 % it goes 3 to 15 % up or down, else in proportion.
    """
    times = (random.uniform(20, 120), 0.0, _between(random, 10, 90) * MINUTE_S)
    peak_bps = volatility / 0.03 * _between(random, 300, 1_500)
    return _placed(random, (at, length), times, _sign(random) * peak_bps, 3)


def _episode(scale: float, random: np.random.Generator, at: int, length: int) -> Pulse:
    """Draw an excursion of one leg: ``scale`` times 60 to 400 bps, seconds to hours long."""
    if random.random() < _SHORT_EPISODES:
        typical = random.lognormal(math.log(_SHORT_MEDIAN_S), _SHORT_LOG_SD)
        duration = min(max(typical, 8.0), 240.0)
    else:
        duration = _between(random, 120, scale * 4 * HOUR_S)
    ramp = min(0.08 * duration, 60.0)
    times = (ramp, duration - 2 * ramp, ramp)
    return _placed(random, (at, length), times, scale * _sign(random) * _between(random, 60, 400))


def _outage(random: np.random.Generator, at: int, length: int) -> TimeSpan:
    minutes = int(random.integers(30, 301))
    start = at + MINUTE_S * int(random.integers(length // MINUTE_S - minutes + 1))
    return TimeSpan(start, start + minutes * MINUTE_S)


def _dislocation(random: np.random.Generator, at: int, length: int) -> Pulse:
    times = (2 * HOUR_S, random.uniform(4, 44) * HOUR_S, 2 * HOUR_S)
    return _placed(random, (at, length), times, _sign(random) * _between(random, 20, 60))
