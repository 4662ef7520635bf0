"""What the simulator knows about its market, for tests: no route of the service reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolkit.errors import UnknownTrajectoryError
from toolkit.market import Leg
from toolkit.service.market.simulator import LegFunding
from toolkit.service.market.simulator.catalogue import (
    MARKETS,
    Deviation,
    LegSchedule,
    Markets,
    Pulse,
    Schedule,
    SimulatedLeg,
    TimeSpan,
)
from toolkit.service.market.simulator.processes import DAY_S

__all__ = ["Shock", "SpreadTruth", "Truth", "beyond"]


@dataclass(frozen=True, slots=True)
class SpreadTruth:
    """The law of a spread's log value, 1e4 ln(sell / buy), episodes and shocks aside.

    ``half_life_s`` None: the spread reverts at more speeds than one. ``noise_share`` and
    ``slow_share``: parts of the variance that are quote noise and the legs' slow processes.
    ``same_asset`` False: two coins share the symbol, and nothing holds their prices together.
    """

    level_bps: float
    sd_bps: float
    noise_share: float
    slow_share: float
    half_life_s: float | None
    same_asset: bool


@dataclass(frozen=True, slots=True)
class Shock:
    """A pump (``pulse.peak_bps`` above 0) or a dump, and whom it takes along.

    ``asset`` None: every asset; ``leg`` None: every leg.
    """

    pulse: Pulse
    asset: str | None
    leg: Leg | None


def beyond(pulse: Pulse, threshold_bps: float) -> tuple[float, float] | None:
    """From when to when a pulse is at least so far from 0, None where it never is."""
    share = threshold_bps / abs(pulse.peak_bps)
    if share > 1.0:
        return None
    left = pulse.fall_s * share ** (1.0 / pulse.fall_power)
    return pulse.start + pulse.rise_s * share, pulse.end - left


class Truth:
    """The truth about the market of a seed."""

    def __init__(self, seed: int, *, markets: Markets = MARKETS) -> None:
        self._seed = seed
        self._listings = {
            (symbol, each.leg): each for symbol, legs in markets.items() for each in legs
        }
        self._schedule = Schedule(seed)

    def spread(self, symbol: str, buy: Leg, sell: Leg) -> SpreadTruth:
        """The law of a spread; of its processes each is exact. What comes late is left out."""
        legs = [self.listing(symbol, leg) for leg in (buy, sell)]
        paid, earned = (each.deviation or Deviation(0.0, 0.0, 0.0) for each in legs)
        half_lives = {each.half_life_s for each in (paid, earned) if each.sd_bps}
        same_asset = legs[0].instrument.asset == legs[1].instrument.asset
        moving = paid.sd_bps**2 + earned.sd_bps**2
        slow = paid.slow_share * paid.sd_bps**2 + earned.slow_share * earned.sd_bps**2
        noise = paid.noise_bps**2 + earned.noise_bps**2
        return SpreadTruth(
            level_bps=earned.level_bps - paid.level_bps,
            sd_bps=(moving + noise) ** 0.5,
            noise_share=noise / (moving + noise) if noise else 0.0,
            slow_share=slow / (moving + noise) if slow else 0.0,
            half_life_s=half_lives.pop()
            if same_asset and not slow and len(half_lives) == 1
            else None,
            same_asset=same_asset,
        )

    def listing(self, symbol: str, leg: Leg) -> SimulatedLeg:
        """How the leg behaves: its quiet and stale shares, its funding rule."""
        if (symbol, leg) not in self._listings:
            raise UnknownTrajectoryError(f"{symbol}:{leg}")
        return self._listings[symbol, leg]

    def episodes(self, symbol: str, buy: Leg, sell: Leg, start: int, end: int) -> list[Pulse]:
        """The planted episodes of a spread that touch ``[start, end)``, by time.

        ``peak_bps`` has the spread's sign: an episode of the buy leg counts the other way round.
        """
        paid, earned = (self._alone(symbol, leg).episodes for leg in (buy, sell))
        return _signed(paid.between(start, end), earned.between(start, end))

    def leg_shocks(self, symbol: str, buy: Leg, sell: Leg, start: int, end: int) -> list[Pulse]:
        """The pumps and dumps of one leg alone that touch ``[start, end)``, as a spread sees them.

        Those that every leg takes part in leave a spread as it is.
        """
        paid, earned = (self._alone(symbol, leg).shocks for leg in (buy, sell))
        return _signed(paid.between(start, end), earned.between(start, end))

    def shocks(self, symbol: str, leg: Leg, start: int, end: int) -> list[Shock]:
        """The pumps and dumps of one leg that touch ``[start, end)``, by time."""
        asset = self.listing(symbol, leg).instrument.asset
        market, own = self._schedule.market_shocks, self._schedule.asset_shocks(asset)
        alone = self._alone(symbol, leg).shocks
        found = [
            *(Shock(pulse, None, None) for pulse in market.between(start, end)),
            *(Shock(pulse, asset.name, None) for pulse in own.between(start, end)),
            *(Shock(pulse, asset.name, leg) for pulse in alone.between(start, end)),
        ]
        return sorted(found, key=lambda shock: shock.pulse.start)

    def outages(self, symbol: str, leg: Leg, start: int, end: int) -> list[TimeSpan]:
        """The stretches without bars that touch ``[start, end)``, in whole minutes, by time."""
        return self._alone(symbol, leg).outages.between(start, end)

    def dislocations(self, symbol: str, leg: Leg, start: int, end: int) -> list[Pulse]:
        """The planted excursions of a leg's funding premium (bps per 8 h), by time."""
        return self._alone(symbol, leg).dislocations.between(start, end)

    def interval_changes(
        self, symbol: str, leg: Leg, start: int, end: int
    ) -> list[tuple[int, int, int]]:
        """Changes of a futures leg's funding interval in ``[start, end)``: ts (s), from, to (h)."""
        listing = self.listing(symbol, leg)
        dislocations = self._alone(symbol, leg).dislocations
        calendar = LegFunding(self._seed, symbol, listing, dislocations)
        midnights = np.arange(-(-start // DAY_S), -(-end // DAY_S), dtype=np.int64) * DAY_S
        before, after = calendar.interval_hours(midnights - 1), calendar.interval_hours(midnights)
        changed = before != after
        columns = (midnights[changed], before[changed], after[changed])
        return [(int(ts), int(old), int(new)) for ts, old, new in zip(*columns, strict=True)]

    def _alone(self, symbol: str, leg: Leg) -> LegSchedule:
        return self._schedule.leg(symbol, self.listing(symbol, leg))


def _signed(paid: list[Pulse], earned: list[Pulse]) -> list[Pulse]:
    """The legs' pulses as the spread sees them."""
    flipped = [replace(pulse, peak_bps=-pulse.peak_bps) for pulse in paid]
    return sorted([*flipped, *earned], key=lambda pulse: pulse.start)
