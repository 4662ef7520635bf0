"""The simulator itself: one object per seed, which answers for any moment of any leg."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Literal

import numpy as np

from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.market import Leg
from toolkit.service.market.simulator.catalogue import MARKETS, Asset, Listing, Markets
from toolkit.service.market.simulator.funding import LegFunding
from toolkit.service.market.simulator.prices import AssetPrices, LegDay, LegPrices
from toolkit.service.market.simulator.processes import Diffusion
from toolkit.service.market.simulator.schedule import Schedule
from toolkit.service.market.simulator.streams import RandomStream
from toolkit.service.market.simulator.timeline import (
    DAY_S,
    EPOCH,
    MINUTE_S,
    check_day,
    check_window,
    day_of,
    minute_ends,
)
from toolkit.service.market.source import Bars, SettledRates

GENERATOR = 3
"""The generator's version: another one gives other numbers under the same seed."""

_MARKET_DAILY_VOLATILITY = 0.024
_LEG_DAYS_KEPT = 512  # of 50 kB


class Simulator:
    """A market that is a function of (seed, time) alone, in whichever process and order.

    Times run from 2026-01-01 to 2100-01-01. Anything else is an `InputError`, and so is a symbol or
    a leg that is not listed (`UnknownTrajectoryError`).

    >>> simulator = Simulator(7)
    >>> simulator.kind, len(simulator.listing)
    ('simulated', 15)
    >>> bars = simulator.day("BTC_USDT", Leg.parse("AURORA.spot"), 20_776)
    >>> len(bars.ts), int(bars.ts[0])
    (1440, 1795046400)
    """

    kind: Literal["simulated"] = "simulated"

    def __init__(self, seed: int, *, markets: Markets = MARKETS) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError("seed", seed, "a whole number of 0 or more")
        self._seed = seed
        self._listings = {
            symbol: {each.leg: each for each in legs} for symbol, legs in markets.items()
        }
        # Holds the catalogue's class names: renaming one would make every market another.
        content = f"{GENERATOR} {sorted(markets.items())}".encode()
        self.id = f"seed-{seed}-{hashlib.sha256(content).hexdigest()[:12]}"
        self.listing: Mapping[str, tuple[Leg, ...]] = MappingProxyType(
            {symbol: tuple(sorted(legs)) for symbol, legs in sorted(self._listings.items())}
        )
        self._schedule = Schedule(seed)
        self._market = Diffusion(
            RandomStream(seed, "market"), daily_volatility=_MARKET_DAILY_VOLATILITY
        )
        self._asset = cache(self._build_asset)
        self._prices = cache(self._build_prices)
        self._funding = cache(self._build_funding)
        self._leg_day = lru_cache(_LEG_DAYS_KEPT)(self._build_leg_day)

    def day(self, symbol: str, leg: Leg, day: int) -> Bars:
        """Return the one-minute bars of the UTC day with this number, ``ts // 86400``.

        A minute without a bar is left out. Mark prices are those of futures alone. The volume is 0
        where a minute repeats the close before.
        """
        check_day(day)
        found = self._leg_day(symbol, leg, day)
        present, mark_price = found.present, found.mark_price
        return Bars(
            ts=minute_ends(day)[present] - MINUTE_S,
            price=found.price[present],
            interval_s=MINUTE_S,
            mark_price=None if mark_price is None else mark_price[present],
            volume=found.volume[present],
        )

    def within(self, symbol: str, leg: Leg, ts: int) -> Bars:
        """Return the one-second bars of the minute that starts at ``ts``, none where it has no bar.

        Prices run straight from the minute before's close to this one's, which shows when within
        the minute something was reached.
        """
        check_window(ts, ts + MINUTE_S)
        listing = self._listed(symbol, leg)
        day, minute = day_of(ts), ts % DAY_S // MINUTE_S
        found = self._leg_day(symbol, leg, day)
        if not found.present[minute]:
            return Bars(ts=np.empty(0, dtype=np.int64), price=np.empty(0), interval_s=1)
        before = found if minute or ts == EPOCH else self._leg_day(symbol, leg, day - 1)
        last, close = before.price[minute - 1 if ts != EPOCH else minute], found.price[minute]
        path = last + (close - last) * np.arange(1, MINUTE_S + 1) / MINUTE_S
        price = path.round(listing.instrument.decimals)
        return Bars(ts=ts + np.arange(MINUTE_S, dtype=np.int64), price=price, interval_s=1)

    def settlements(self, symbol: str, leg: Leg, start: int, end: int) -> SettledRates:
        """Return the settlements in ``[start, end)``, of futures alone (`InputError`)."""
        check_window(start, end)
        return self._funding(symbol, leg).settlements(start, end)

    def next_settlement(self, symbol: str, leg: Leg, ts: int) -> int:
        """Return the first settlement after ``ts`` (s, Unix UTC) of a futures leg."""
        check_window(ts, ts)
        return self._funding(symbol, leg).next_settlement(ts)

    def _listed(self, symbol: str, leg: Leg) -> Listing:
        legs = self._listings.get(symbol, {})
        if leg not in legs:
            raise UnknownTrajectoryError(
                f"{symbol}:{leg}", [f"{symbol}:{each}" for each in sorted(legs)]
            )
        return legs[leg]

    def _build_asset(self, asset: Asset) -> AssetPrices:
        shocks = (self._schedule.market_shocks, self._schedule.asset_shocks(asset))
        return AssetPrices(self._seed, asset, self._market, shocks)

    def _build_prices(self, symbol: str, leg: Leg) -> LegPrices:
        listing = self._listed(symbol, leg)
        schedule = self._schedule.leg(symbol, listing)
        return LegPrices(
            self._seed, symbol, listing, self._asset(listing.instrument.asset), schedule
        )

    def _build_funding(self, symbol: str, leg: Leg) -> LegFunding:
        listing = self._listed(symbol, leg)
        schedule = self._schedule.leg(symbol, listing)
        return LegFunding(self._seed, symbol, listing, schedule.dislocations)

    def _build_leg_day(self, symbol: str, leg: Leg, day: int) -> LegDay:
        return self._prices(symbol, leg).day(day)
