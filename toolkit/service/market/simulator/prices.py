"""Prices: a common part that all legs of an asset share, and what each leg makes of it.

log price of a leg = log of the instrument's price at the epoch + the asset's path, shocks in it, of
which a leg that lags has a part one minute late. Off the reference leg also + deviation + quote
noise + episodes + shocks of the leg's own. Prices are then rounded to the tick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.market import Market
from toolkit.service.market.simulator.catalogue import SLOW_HALF_LIFE_S, Asset, Deviation, Listing
from toolkit.service.market.simulator.processes import Diffusion, Floats, Reverting
from toolkit.service.market.simulator.pulses import Pulse, Slots, planted_bps
from toolkit.service.market.simulator.schedule import LegSchedule
from toolkit.service.market.simulator.streams import RandomStream
from toolkit.service.market.simulator.timeline import (
    DAY_S,
    MINUTE_S,
    MINUTES_A_DAY,
    minute_ends,
    weekday,
)

_VOLUME_LOG_SD = 0.8
_VOLUME_PER_SHOCK_BPS = 0.02  # a pump of 10 % multiplies volume by 21
_WEEKEND_VOLUME = 0.75  # of a working day's


class AssetPrices:
    """The path of one asset: its log price less that at the epoch, without shocks.

    ``shocks`` are the market's and the asset's own: excursions that every leg takes part in.
    """

    def __init__(
        self, seed: int, asset: Asset, market: Diffusion, shocks: tuple[Slots[Pulse], ...]
    ) -> None:
        self._beta = asset.beta
        self._market = market
        self._own = Diffusion(
            RandomStream(seed, f"asset/{asset.name}"), daily_volatility=asset.daily_volatility
        )
        self._shocks = shocks

    def minutes(self, day: int, lag: float = 0.0) -> Floats:
        """Return the path at the end of each minute of a day, ``lag`` of it the minute before's."""
        path = self._beta * self._market.day(day).values + self._own.day(day).values
        late: Floats = (1.0 - lag) * path[1:] + lag * path[:-1]
        return late

    def activity(self, day: int) -> Floats:
        """Return the variance of each minute of a day, in multiples of the day's mean."""
        market, own = self._market.day(day).variances, self._own.day(day).variances
        variances = self._beta**2 * market + own
        activity: Floats = variances / variances.mean()
        return activity

    def shock_bps(self, ts: NDArray[np.int64], lag: float = 0.0) -> Floats:
        """Sum the shocks at each moment (ascending), ``lag`` of them as a minute before."""
        now = planted_bps(self._shocks, ts)
        if not lag:
            return now
        return (1.0 - lag) * now + lag * planted_bps(self._shocks, ts - MINUTE_S)


@dataclass(frozen=True, slots=True, eq=False)
class LegDay:
    """A leg's 1,440 minutes of a day, each price at the minute's end.

    ``price``, ``mark_price`` (quote, mark prices of futures alone), ``volume`` (quote), and which
    minutes have a bar (``present``).
    """

    price: Floats
    mark_price: Floats | None
    volume: Floats
    present: NDArray[np.bool_]


class LegPrices:
    """The prices of one symbol on one leg."""

    def __init__(
        self, seed: int, symbol: str, listing: Listing, asset: AssetPrices, schedule: LegSchedule
    ) -> None:
        self._stream = RandomStream(seed, f"leg/{symbol}:{listing.leg}")
        self._listing = listing
        self._asset = asset
        self._schedule = schedule
        self._spec = listing.deviation or Deviation(0.0, 0.0, half_life_s=DAY_S)
        slow_share = self._spec.slow_share
        speeds = [("deviation", 1.0 - slow_share, self._spec.half_life_s)]
        speeds += [("slow", slow_share, SLOW_HALF_LIFE_S)] if slow_share else []
        self._deviations = [
            (share**0.5, Reverting(self._stream.under(name), half_life_s=half_life_s))
            for name, share, half_life_s in speeds
        ]

    def day(self, day: int) -> LegDay:
        """Return the minutes of a day."""
        random = self._stream.at(day)
        noise = random.standard_normal(MINUTES_A_DAY)
        ends = minute_ends(day)
        fair = self._fair(day, ends)
        traded = random.random(MINUTES_A_DAY) >= self._listing.stale_share
        traded[0] = True  # so that no day needs the one before
        last_trade = np.maximum.accumulate(np.where(traded, np.arange(MINUTES_A_DAY), 0))
        volume = self._volume(random, day, ends)
        present = random.random(MINUTES_A_DAY) >= self._listing.quiet_share
        for outage in self._schedule.outages.between(day * DAY_S, (day + 1) * DAY_S):
            present &= (ends <= outage.start) | (ends > outage.end)
        return LegDay(
            price=self._quoted(fair, noise, ends)[last_trade],
            mark_price=self._rounded(fair) if self._listing.leg.market is Market.FUTURES else None,
            volume=np.where(traded, volume, 0.0),
            present=present,
        )

    def _fair(self, day: int, ends: NDArray[np.int64]) -> Floats:
        """Return the log price without the leg's noise, episodes and shocks: the mark price's."""
        lag = self._listing.lag
        bps = self._asset.shock_bps(ends, lag) + self._spec.level_bps
        for scale, deviation in self._deviations:
            bps += self._spec.sd_bps * scale * deviation.day(day)[1:]
        log_price = math.log(self._listing.instrument.price) + self._asset.minutes(day, lag)
        return log_price + bps / 1e4

    def _quoted(self, fair: Floats, noise: Floats, ts: NDArray[np.int64]) -> Floats:
        planted = planted_bps([self._schedule.episodes, self._schedule.shocks], ts)
        return self._rounded(fair + (planted + self._spec.noise_bps * noise) / 1e4)

    def _rounded(self, log_price: Floats) -> Floats:
        price: Floats = np.exp(log_price)
        return price.round(self._listing.instrument.decimals)

    def _volume(self, random: np.random.Generator, day: int, ts: NDArray[np.int64]) -> Floats:
        """Draw what each minute of a day trades (quote): more where prices move."""
        usual = random.lognormal(-(_VOLUME_LOG_SD**2) / 2, _VOLUME_LOG_SD, len(ts))
        shock_bps = self._asset.shock_bps(ts) + planted_bps([self._schedule.shocks], ts)
        stirred = np.sqrt(self._asset.activity(day)) * (
            1.0 + _VOLUME_PER_SHOCK_BPS * np.abs(shock_bps)
        )
        stirred *= _WEEKEND_VOLUME if weekday(day) >= 5 else 1.0
        return np.round(self._listing.instrument.asset.turnover * usual * stirred, 2)
