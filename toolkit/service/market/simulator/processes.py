"""Time, random numbers by seed, name and index, and the processes that prices are made of.

A day has the number ``ts // 86400``. Bars carry their START, prices are those at the END.

A process is a function of (stream, day), drawn in two stages: values at midnight, a chain from the
epoch, then minutes, a bridge between two midnights.

Bridges: y + (b - y_T) Cov(y_t, y_T) / Var(y_T) for a Gaussian path y from the bridge's start, with
b its end. See Glasserman (2003), Monte Carlo Methods in Financial Engineering, 3.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator, Philox
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from toolkit.errors import InputError
from toolkit.market import format_ts

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
MINUTES_A_DAY = DAY_S // MINUTE_S

EPOCH = 1_767_225_600
"""2026-01-01 00:00 UTC: no market before it."""

END = 4_102_444_800
"""2100-01-01 00:00 UTC: no market from it on."""


def day_of(ts: int) -> int:
    """Return the number of the UTC day that ``ts`` lies in."""
    return ts // DAY_S


def weekday(day: int) -> int:
    """Return the day of the week, 0 for a Monday."""
    return (day + 3) % 7


def check_day(day: int) -> None:
    """Refuse a day outside the simulated time with an `InputError`."""
    first, last = day_of(EPOCH), day_of(END - 1)
    if not first <= day <= last:
        raise InputError("day", day, f"{first} (2026-01-01) to {last} (2099-12-31)")


def check_window(start: int, end: int) -> None:
    """Refuse a window that ends before it starts or leaves the simulated time (`InputError`)."""
    if not EPOCH <= start <= end <= END:
        found = f"{format_ts(start)} to {format_ts(end)}"
        raise InputError("window", found, f"within {format_ts(EPOCH)} to {format_ts(END)}")


def minute_ends(day: int) -> NDArray[np.int64]:
    """Return the 1,440 moments (s, Unix UTC) at which the minutes of a day end."""
    return day * DAY_S + MINUTE_S * np.arange(1, MINUTES_A_DAY + 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class RandomStream:
    """A named source of random numbers that depend on a seed, the name and an index alone.

    The generator is numpy's Philox 4x64, with a key from seed and name, and the index in the
    counter's top word. Streams of different names are unrelated, and draws of one index never reach
    those of the next.
    """

    seed: int
    name: str

    def at(self, index: int) -> Generator:
        """Return a fresh generator for an index of 0 or more: a day, an hour, a slot."""
        key: Any = _key(self.seed, self.name)  # numpy's types know no ISeedSequence
        return Generator(Philox(key, counter=[0, 0, 0, index]))

    def under(self, name: str) -> RandomStream:
        """Return the stream of a part, unrelated to this one's own numbers."""
        return RandomStream(self.seed, f"{self.name}/{name}")


class _Key(ISeedSequence):
    """A key that Philox takes as it is. Given as ``key``, numpy first draws a seed for nothing."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[np.uint64]:
        return np.asarray(self._words[:n_words], dtype)


@lru_cache(4096)
def _key(seed: int, name: str) -> _Key:
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=16).digest()
    return _Key(np.frombuffer(digest, "<u8"))


Floats = NDArray[np.float64]

SHORTEST_HALF_LIFE_S = 120
"""A day's decay, 2^(-86400 / half-life), stays a float64 above this."""

_BLOCK_DAYS = 256
_DAYS_KEPT = 40
_PRICE_HALF_LIFE_DAYS = 120  # keeps prices near their start: the tick still fits after 74 years
_VOLATILITY_HALF_LIFE_DAYS = 10
_DAILY_LOG_VOLATILITY = 0.35  # standard deviation of a day's log volatility
_INTRADAY_HALF_LIFE_S = 7_200
_INTRADAY_LOG_VOLATILITY = 0.8
_BUSIEST_MINUTE, _DAILY_SWING = 870, 0.35  # 14:30 UTC
_JUMP_SHARE = 0.003  # of the minutes: about four per day
_JUMP_VARIANCE = 40.0  # of a jump minute, in variances of an ordinary one
_LARGEST_VARIANCE = 80.0  # of a minute, in those of the day's mean one
_LARGEST_LOG_VOLATILITY = 2.2  # of a day, in standard deviations either way
_WEEKEND_VOLATILITY = 0.8  # of a working day's
_DAYS_OF_THE_WEEK = np.array([*5 * [1.0], *2 * [_WEEKEND_VOLATILITY]])
_DAYS_OF_THE_WEEK /= np.sqrt(np.mean(_DAYS_OF_THE_WEEK**2))  # Monday first


def brownian_bridge(start: Floats, end: Floats, variances: Floats, normals: Floats) -> Floats:
    """Return Brownian paths from ``start`` to ``end``, without the start itself.

    ``variances`` (per step) and ``normals`` (standard normal) have the steps in their last axis,
    which ``start`` and ``end`` do not have. The last value is ``end`` to the bit.
    """
    walk = np.cumsum(np.sqrt(variances) * normals, axis=-1)
    clock = np.cumsum(variances, axis=-1)
    missing = end[..., None] - start[..., None] - walk[..., -1:]
    path: Floats = start[..., None] + walk + clock / clock[..., -1:] * missing
    path[..., -1] = end
    return path


def reverting_bridge(start: Floats, end: Floats, decay: float, normals: Floats) -> Floats:
    """Return Ornstein-Uhlenbeck paths of mean 0 and variance 1 from ``start`` to ``end``.

    ``decay`` is the correlation of neighbours. Shapes and last value are as in `brownian_bridge`.
    """
    fade, pull = _fade_and_pull(decay, normals.shape[-1])
    kicks = np.sqrt(1.0 - decay**2) * normals / fade
    free = fade * (start[..., None] + np.cumsum(kicks, axis=-1))
    path: Floats = free + pull * (end[..., None] - free[..., -1:])
    path[..., -1] = end
    return path


@lru_cache(64)
def _fade_and_pull(decay: float, length: int) -> tuple[Floats, Floats]:
    steps = np.arange(1, length + 1)
    fade = np.asarray(decay**steps, np.float64)
    pull = (decay ** (length - steps) - decay ** (length + steps)) / (1.0 - decay ** (2 * length))
    return fade, pull


class Midnights:
    """A first-order autoregression over days: x(day) = decay x(day - 1) + step(day) z(day).

    It begins at the epoch with ``first`` z. That of `stationary` has variance 1.
    """

    def __init__(
        self, stream: RandomStream, *, decay: float, step: Callable[[int], float], first: float
    ) -> None:
        self._stream, self._decay, self._step = stream, decay, step
        self._first = first
        self._block = lru_cache(maxsize=None)(self._build)

    @classmethod
    def stationary(cls, stream: RandomStream, *, decay: float) -> Midnights:
        """Build the chain of mean 0 and variance 1 at every midnight."""
        step = float(np.sqrt(1.0 - decay**2))
        return cls(stream, decay=decay, step=lambda _day: step, first=1.0)

    def at(self, day: int) -> float:
        """Return the value at the midnight that begins a day."""
        block, place = divmod(day - day_of(EPOCH), _BLOCK_DAYS)
        return float(self._block(block)[place])

    def _build(self, block: int) -> Floats:
        normals = self._stream.at(block).standard_normal(_BLOCK_DAYS)
        values = np.empty(_BLOCK_DAYS)
        value = self._block(block - 1)[-1] if block else 0.0
        day = day_of(EPOCH) + block * _BLOCK_DAYS
        for place, normal in enumerate(normals):
            step = self._step(day + place) if block or place else self._first
            value = self._decay * value + step * normal
            values[place] = value
        return values


class Reverting:
    """An Ornstein-Uhlenbeck process of mean 0 and variance 1 with an exact half-life (s)."""

    def __init__(self, stream: RandomStream, *, half_life_s: float, step_s: int = MINUTE_S) -> None:
        if half_life_s < SHORTEST_HALF_LIFE_S:
            raise InputError("half_life_s", half_life_s, f"{SHORTEST_HALF_LIFE_S} or more")
        self._stream, self._half_life_s, self._step_s = stream, half_life_s, step_s
        self._midnights = Midnights.stationary(stream.under("midnight"), decay=self._decay(DAY_S))
        self.day = lru_cache(2)(self._day)

    def _day(self, day: int) -> Floats:
        """Return the values at midnight and at the end of each step of a day."""
        values: Floats = self.days(range(day, day + 1))[0]
        return values

    def days(self, days: range) -> Floats:
        """Return the values of some days, at least one, a row for each, as `day` has them."""
        edges = np.array([self._midnights.at(day) for day in range(days.start, days.stop + 1)])
        steps = DAY_S // self._step_s
        normals = np.stack([self._stream.at(day).standard_normal(steps) for day in days])
        path = reverting_bridge(edges[:-1], edges[1:], self._decay(self._step_s), normals)
        return np.concatenate([edges[:-1, None], path], axis=1)

    def _decay(self, length_s: int) -> float:
        return float(0.5 ** (length_s / self._half_life_s))


@dataclass(frozen=True, slots=True, eq=False)
class DiffusionDay:
    """A day of a `Diffusion`: ``values`` at midnight and at each minute's end (1,441).

    ``variances`` of the 1,440 minutes add up to the day's.
    """

    values: Floats
    variances: Floats


class Diffusion:
    """A log price with occasional jumps, and volatility that clusters over days and over minutes.

    Given its variances it is a Brownian motion, drawn towards 0 with a half-life of 120 days.
    ``daily_volatility`` is the square root of a day's mean variance (a fraction, 0.03 = 3 %), at
    weekends 0.8 times a working day's. Before scaling to the day's sum, no minute's variance
    exceeds 80 times the mean.
    """

    def __init__(self, stream: RandomStream, *, daily_volatility: float) -> None:
        self._stream, self._daily_volatility = stream, daily_volatility
        self._volatility = Midnights.stationary(
            stream.under("volatility"), decay=0.5 ** (1 / _VOLATILITY_HALF_LIFE_DAYS)
        )
        self._bursts = Reverting(stream.under("bursts"), half_life_s=_INTRADAY_HALF_LIFE_S)
        self._midnights = Midnights(
            stream.under("midnight"),
            decay=0.5 ** (1 / _PRICE_HALF_LIFE_DAYS),
            step=lambda day: self._deviation(day - 1),
            first=0.0,
        )
        self.day = lru_cache(_DAYS_KEPT)(self._day)

    def _deviation(self, day: int) -> float:
        """Return a day's standard deviation; its square has the mean ``daily_volatility``^2."""
        bounds = (-_LARGEST_LOG_VOLATILITY, _LARGEST_LOG_VOLATILITY)
        log = _DAILY_LOG_VOLATILITY * np.clip(self._volatility.at(day), *bounds)
        usual = self._daily_volatility * np.exp(log - _DAILY_LOG_VOLATILITY**2)
        return float(usual * _DAYS_OF_THE_WEEK[weekday(day)])

    def _day(self, day: int) -> DiffusionDay:
        random = self._stream.at(day)
        normals = random.standard_normal(MINUTES_A_DAY)
        jumps = random.random(MINUTES_A_DAY) < _JUMP_SHARE
        hours = 2.0 * np.pi * (np.arange(MINUTES_A_DAY) - _BUSIEST_MINUTE) / MINUTES_A_DAY
        variances = 1.0 + _DAILY_SWING * np.cos(hours)
        variances *= np.exp(2.0 * _INTRADAY_LOG_VOLATILITY * self._bursts.day(day)[1:])
        variances[jumps] *= _JUMP_VARIANCE
        np.minimum(variances, _LARGEST_VARIANCE * variances.mean(), out=variances)
        variances *= self._deviation(day) ** 2 / variances.sum()
        start, end = self._midnights.at(day), self._midnights.at(day + 1)
        path = brownian_bridge(np.array(start), np.array(end), variances, normals)
        return DiffusionDay(np.concatenate([[start], path]), variances)
