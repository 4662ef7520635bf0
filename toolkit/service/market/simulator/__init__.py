"""A simulated market: prices, spreads and funding as a pure function of (seed, time).

`processes` (random numbers and paths) -> the `catalogue` and what is planted over it ->
`Simulated`, which makes prices and funding. The source's id names seed, catalogue and generator
version.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.market import Leg, Market
from toolkit.service.market.simulator.catalogue import (
    MARKETS,
    SLOW_HALF_LIFE_S,
    Asset,
    Deviation,
    LegSchedule,
    Markets,
    Pulse,
    Schedule,
    SimulatedLeg,
    Slots,
    planted_bps,
)
from toolkit.service.market.simulator.processes import (
    DAY_S,
    END,
    EPOCH,
    HOUR_S,
    MINUTE_S,
    MINUTES_A_DAY,
    Diffusion,
    Floats,
    RandomStream,
    Reverting,
    check_day,
    check_window,
    day_of,
    minute_ends,
    weekday,
)
from toolkit.service.market.source import Bars, Kind, SettledRates, Whole

_VOLUME_LOG_SD = 0.8
_VOLUME_PER_SHOCK_BPS = 0.02  # a pump of 10 % multiplies volume by 21
_WEEKEND_VOLUME = 0.75  # of a working day's


class AssetPath:
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
    """A leg's 1,440 minutes of a day: prices at each minute's end and volume (quote).

    Only futures have mark prices. ``present``: which minutes have a bar.
    """

    price: Floats
    mark_price: Floats | None
    volume: Floats
    present: NDArray[np.bool_]


class LegPath:
    """The prices of one symbol on one leg.

    log price = log of the instrument's price at the epoch + the asset's path and shocks, of which a
    leg that lags has a part one minute late. Off the reference leg also + deviation + quote noise +
    episodes + the leg's own shocks. Prices are then rounded to the tick.
    """

    def __init__(
        self, seed: int, symbol: str, listing: SimulatedLeg, asset: AssetPath, schedule: LegSchedule
    ) -> None:
        self._stream = RandomStream(seed, f"leg/{symbol}:{listing.leg}")
        self._listing, self._asset, self._schedule = listing, asset, schedule
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
        planted = planted_bps([self._schedule.episodes, self._schedule.shocks], ends)
        traded = random.random(MINUTES_A_DAY) >= self._listing.stale_share
        traded[0] = True  # so that no day needs the one before
        last_trade = np.maximum.accumulate(np.where(traded, np.arange(MINUTES_A_DAY), 0))
        volume = self._volume(random, day, ends)
        present = random.random(MINUTES_A_DAY) >= self._listing.quiet_share
        for outage in self._schedule.outages.between(day * DAY_S, (day + 1) * DAY_S):
            present &= (ends <= outage.start) | (ends > outage.end)
        return LegDay(
            price=self._rounded(fair + (planted + self._spec.noise_bps * noise) / 1e4)[last_trade],
            mark_price=self._rounded(fair) if self._listing.leg.market is Market.FUTURES else None,
            volume=np.where(traded, volume, 0.0),
            present=present,
        )

    def _fair(self, day: int, ends: NDArray[np.int64]) -> Floats:
        """Return the log mark price: the price without the leg's noise, episodes and shocks."""
        lag = self._listing.lag
        bps = self._asset.shock_bps(ends, lag) + self._spec.level_bps
        for scale, deviation in self._deviations:
            bps += self._spec.sd_bps * scale * deviation.day(day)[1:]
        log_price = math.log(self._listing.instrument.price) + self._asset.minutes(day, lag)
        return log_price + bps / 1e4

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


CAP = 0.003_75
"""The largest rate either way (fraction per 8 h)."""

CYCLE_DAYS = 20
"""A changing interval repeats after so many days."""

_STAGES = ((9, 8), (15, 4), (CYCLE_DAYS, 1))  # up to which day of a cycle, which interval (h)
_BASELINE, _CLAMP = 0.000_1, 0.000_5
_UNCLAMPED = 0.3  # of the premium reaches the rate of a leg that clamps nothing
_MEAN, _SD = 0.000_03, 0.000_7
_DISCOUNT, _BEYOND = -0.000_4, 0.35  # beyond it, so much of a discount counts
_SHARED = (0.75, 14 * DAY_S)  # share of the variance, half-life
_OWN = {"slow": (0.12, 6 * DAY_S), "fast": (0.13, 4 * HOUR_S)}


class LegFunding:
    """A futures leg's settlements.

    A premium p (fraction per 8 h) is a mean, plus a part that the asset's legs share (half-life 14
    days), plus two of its own (6 days, 4 hours), plus dislocations. A discount beyond 4 bps counts
    for a third, except dislocations. Per 8 h, a clamped leg settles at p + clip(b - p, -0.0005,
    0.0005) with the baseline b = 0.0001, any other at b + 0.3 p. Rates are capped at 0.00375 per 8
    h either way, scaled to the leg's interval, and rounded to 8 decimals.
    """

    def __init__(
        self, seed: int, symbol: str, listing: SimulatedLeg, dislocations: Slots[Pulse]
    ) -> None:
        if listing.funding is None:
            raise InputError("leg", str(listing.leg), "a futures leg: only those settle funding")
        stream = RandomStream(seed, "funding")
        own = stream.under(f"{symbol}:{listing.leg}")
        self._funding = listing.funding
        self._phase_days = int(own.under("cycle").at(0).integers(CYCLE_DAYS))
        self._dislocations = dislocations
        streams = [(stream.under(listing.instrument.asset.name), *_SHARED)]
        streams += [(own.under(name), *law) for name, law in _OWN.items()]
        self._parts = [
            (share**0.5, Reverting(part, half_life_s=half_life_s, step_s=HOUR_S))
            for part, share, half_life_s in streams
        ]

    def settlements(self, start: int, end: int) -> SettledRates:
        """Return the settlements in ``[start, end)``, by time."""
        ts, interval = self.due(start, end)
        premium = self._premium(ts)
        pull = np.clip(_BASELINE - premium, -_CLAMP, _CLAMP)
        per_8h = premium + pull if self._funding.clamped else _BASELINE + _UNCLAMPED * premium
        rate = np.round(np.clip(per_8h, -CAP, CAP) * interval / 8, 8)
        return SettledRates(ts, rate, interval)

    def next_settlement(self, ts: int) -> int:
        """Return the first settlement after ``ts``."""
        return int(self.due(ts + 1, ts + 1 + DAY_S)[0][0])

    def due(self, start: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return when the leg settles in ``[start, end)`` (s), and the intervals it ends (h)."""
        hours = np.arange(-(-start // HOUR_S), -(-end // HOUR_S), dtype=np.int64)
        interval = self.interval_hours(hours * HOUR_S - 1)
        due = (hours - self._funding.first_hour) % interval == 0
        return hours[due] * HOUR_S, interval[due]

    def interval_hours(self, ts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the interval in force at each moment (h)."""
        if not self._funding.changing:
            return np.full(len(ts), self._funding.interval_hours, dtype=np.int64)
        day = (ts // DAY_S + self._phase_days) % CYCLE_DAYS
        untils, intervals = zip(*_STAGES, strict=True)
        stage = np.searchsorted(untils, day, side="right")
        return np.array(intervals, dtype=np.int64)[stage]

    def _premium(self, ts: NDArray[np.int64]) -> Floats:
        if not len(ts):
            return np.empty(0)
        days = range(day_of(int(ts[0])), day_of(int(ts[-1])) + 1)
        hours = (ts - days.start * DAY_S) // HOUR_S
        usual = np.full(len(ts), _MEAN)
        for scale, part in self._parts:
            usual += _SD * scale * part.days(days)[:, :-1].ravel()[hours]
        usual += (_BEYOND - 1.0) * np.minimum(usual - _DISCOUNT, 0.0)
        return usual + planted_bps([self._dislocations], ts) / 1e4


GENERATOR = 3
"""The generator's version: another one gives other numbers under the same seed."""

_MARKET_DAILY_VOLATILITY = 0.024
_LEG_DAYS_KEPT = 512  # of 50 kB
_BAR_DAYS, _FUNDING_DAYS = 4, 32


class Simulated(Whole):
    """The market of a seed from 2026-01-01 to 2100-01-01 as a source, one bar per minute.

    The same seed gives the same rows in every process and order. Another time is an `InputError`, a
    symbol or leg that is not listed an `UnknownTrajectoryError`.

    >>> source = Simulated(7)
    >>> source.kind, len(source.listing), source.id == Simulated(7).id
    ('simulated', 15, True)
    >>> bars = source.bars("BTC_USDT", Leg.parse("AURORA.spot"))
    >>> bars.between(1_795_046_400, 1_795_046_520).ts.tolist()
    [1795046400, 1795046460]
    """

    kind: Kind = "simulated"

    def __init__(self, seed: int, *, markets: Markets = MARKETS) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError("seed", seed, "a whole number of 0 or more")
        self._seed = seed
        self._listings = {
            symbol: {each.leg: each for each in legs} for symbol, legs in markets.items()
        }
        self.id = f"seed-{seed}-{_catalogue_hash(markets)}"
        self.listing: Mapping[str, tuple[Leg, ...]] = MappingProxyType(
            {symbol: tuple(sorted(legs)) for symbol, legs in sorted(self._listings.items())}
        )
        self._schedule = Schedule(seed)
        self._market = Diffusion(
            RandomStream(seed, "market"), daily_volatility=_MARKET_DAILY_VOLATILITY
        )
        self._asset = cache(self._build_asset)
        self._path = cache(self._build_path)
        self._funding = cache(self._build_funding)
        self._leg_day = lru_cache(_LEG_DAYS_KEPT)(
            lambda symbol, leg, day: self._path(symbol, leg).day(day)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simulated) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def bars(self, symbol: str, leg: Leg) -> _SimulatedBars:
        """Return the bars of a listed leg."""
        return _SimulatedBars(self, symbol, leg, _BAR_DAYS * DAY_S)

    def funding(self, symbol: str, leg: Leg) -> _SimulatedFunding | None:
        """Return the settlements of a listed futures leg, None for any other."""
        block_s = _FUNDING_DAYS * DAY_S
        is_settled = leg.market is Market.FUTURES
        return _SimulatedFunding(self, symbol, leg, block_s) if is_settled else None

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
        """Return the one-second bars of the minute that starts at ``ts``, none if it has no bar.

        Prices run straight from the minute before's close to this one's.
        """
        check_window(ts, ts + MINUTE_S)
        decimals = self._listed(symbol, leg).instrument.decimals
        day, minute = day_of(ts), ts % DAY_S // MINUTE_S
        found = self._leg_day(symbol, leg, day)
        if not found.present[minute]:
            return Bars(ts=np.empty(0, dtype=np.int64), price=np.empty(0), interval_s=1)
        before = found if minute or ts == EPOCH else self._leg_day(symbol, leg, day - 1)
        last, close = before.price[minute - 1 if ts != EPOCH else minute], found.price[minute]
        path = last + (close - last) * np.arange(1, MINUTE_S + 1) / MINUTE_S
        return Bars(ts + np.arange(MINUTE_S, dtype=np.int64), path.round(decimals), interval_s=1)

    def settlements(self, symbol: str, leg: Leg, start: int, end: int) -> SettledRates:
        """Return the settlements in ``[start, end)``, of futures alone (`InputError`)."""
        check_window(start, end)
        return self._funding(symbol, leg).settlements(start, end)

    def next_settlement(self, symbol: str, leg: Leg, ts: int) -> int:
        """Return the first settlement after ``ts`` (s, Unix UTC) of a futures leg."""
        check_window(ts, ts)
        return self._funding(symbol, leg).next_settlement(ts)

    def _listed(self, symbol: str, leg: Leg) -> SimulatedLeg:
        legs = self._listings.get(symbol, {})
        if leg not in legs:
            raise UnknownTrajectoryError(
                f"{symbol}:{leg}", [f"{symbol}:{each}" for each in sorted(legs)]
            )
        return legs[leg]

    def _build_asset(self, asset: Asset) -> AssetPath:
        shocks = (self._schedule.market_shocks, self._schedule.asset_shocks(asset))
        return AssetPath(self._seed, asset, self._market, shocks)

    def _build_path(self, symbol: str, leg: Leg) -> LegPath:
        listed = self._listed(symbol, leg)
        schedule = self._schedule.leg(symbol, listed)
        return LegPath(self._seed, symbol, listed, self._asset(listed.instrument.asset), schedule)

    def _build_funding(self, symbol: str, leg: Leg) -> LegFunding:
        listed = self._listed(symbol, leg)
        dislocations = self._schedule.leg(symbol, listed).dislocations
        return LegFunding(self._seed, symbol, listed, dislocations)


def _catalogue_hash(markets: Markets) -> str:
    """Hash generator and catalogue. The class names in it are those that ids were made with."""
    content = f"{GENERATOR} {sorted(markets.items())}"
    content = content.replace("QuotedAsset(", "Instrument(").replace("SimulatedLeg(", "Listing(")
    return hashlib.sha256(content.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class _SimulatedRows:
    """A leg's rows, none before the market's first moment or after its last."""

    source: Simulated
    symbol: str
    leg: Leg
    block_s: int
    span: tuple[int, int] = (EPOCH, END)
    interval_s: int = MINUTE_S


class _SimulatedBars(_SimulatedRows):
    def between(self, start: int, end: int) -> Bars:
        first, last = max(start, EPOCH), min(end, END)
        days = range(first // DAY_S, -(-last // DAY_S))
        found = [self.source.day(self.symbol, self.leg, day) for day in days]
        marks = [day.mark_price for day in found if day.mark_price is not None]
        nothing = np.empty(0)
        whole = Bars(
            ts=np.concatenate([np.empty(0, dtype=np.int64), *(day.ts for day in found)]),
            price=np.concatenate([nothing, *(day.price for day in found)]),
            interval_s=MINUTE_S,
            mark_price=np.concatenate(marks) if marks else None,
            volume=np.concatenate([nothing, *(day.volume for day in found)]),
        )
        return whole.between(first, last)

    def parts(self, ts: int) -> Bars:
        return self.source.within(self.symbol, self.leg, ts)


class _SimulatedFunding(_SimulatedRows):
    def between(self, start: int, end: int) -> SettledRates:
        first = min(max(start, EPOCH), END)
        last = max(first, min(end, END))
        return self.source.settlements(self.symbol, self.leg, first, last)

    def next_after(self, ts: int) -> int | None:
        if not EPOCH <= ts < END:
            return None
        return self.source.next_settlement(self.symbol, self.leg, ts)
