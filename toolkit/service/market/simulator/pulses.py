"""Planted pulses that rise, hold and fall, and stretches, at most one per slot of time.

A slot is drawn from its own number, and what is planted in it ends in it, so that a window is known
without looking at any other and nothing of one kind overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolkit.service.market.simulator.processes import Floats, RandomStream

_SLOTS_KEPT = 256


class Planted(Protocol):
    """Anything with a first second and a first second after (Unix UTC)."""

    @property
    def start(self) -> int:
        """The first second."""

    @property
    def end(self) -> int:
        """The first second after."""


T = TypeVar("T", bound=Planted)
P_co = TypeVar("P_co", bound=Planted, covariant=True)


class PlantedOverTime(Protocol[P_co]):
    """What is planted, by time."""

    def between(self, start: int, end: int) -> Sequence[P_co]:
        """Return what touches ``[start, end)``, by time."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """``[start, end)`` in Unix seconds."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pulse:
    """A log price's excursion: 0 at ``start``, ``peak_bps`` for a while, 0 again at ``end``.

    The rise is linear in time and lasts ``rise_s``. The fall goes by the ``fall_power``-th power of
    the time that is left and lasts ``fall_s``. ``peak_bps`` is signed.

    >>> pulse = Pulse(start=1000, rise_s=10, hold_s=30, fall_s=20, peak_bps=-80.0)
    >>> pulse.end, pulse.height_bps(np.array([1000, 1005, 1020, 1050, 1060])).tolist()
    (1060, [-0.0, -40.0, -80.0, -40.0, -0.0])
    """

    start: int
    rise_s: int
    hold_s: int
    fall_s: int
    peak_bps: float
    fall_power: int = 1

    @property
    def end(self) -> int:
        """The moment from which it is 0 again."""
        return self.start + self.rise_s + self.hold_s + self.fall_s

    def height_bps(self, ts: NDArray[np.int64]) -> Floats:
        """Return its height at each moment, 0 outside ``(start, end)``."""
        rise = np.clip((ts - self.start) / self.rise_s, 0.0, 1.0)
        left = np.clip((self.end - ts) / self.fall_s, 0.0, 1.0)
        height: Floats = self.peak_bps * rise
        for _ in range(self.fall_power):
            height = height * left
        return height


class Slots(Generic[T]):
    """Time cut into slots of ``length_s``, each holding one planted thing with ``probability``.

    ``draw`` takes a generator, the slot's start and its length, and gives what ends in the slot.
    Slots begin ``phase_s`` before the multiples of their length, by default at whole minutes drawn
    from the stream.

    >>> slots = Slots(RandomStream(7, "x"), 3600, 1.0, lambda _, at, __: TimeSpan(at, at + 60))
    >>> len(slots.between(1_800_000_000, 1_800_072_000)) in {19, 20, 21}
    True
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
        self._stream = stream
        self._length_s = length_s
        self._probability = probability
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


def planted_bps(kinds: Sequence[PlantedOverTime[Pulse]], ts: NDArray[np.int64]) -> Floats:
    """Sum all pulses' heights at each moment (ascending, at least one)."""
    total = np.zeros(len(ts))
    for slots in kinds:
        for pulse in slots.between(int(ts[0]), int(ts[-1]) + 1):
            touched = slice(*np.searchsorted(ts, [pulse.start, pulse.end]))
            total[touched] += pulse.height_bps(ts[touched])
    return total
