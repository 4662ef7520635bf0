"""Changes of a value around events, less what it would have done without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.market import Family
from toolkit.statistics.core.contract import Frame, checked_frame, column_for, whole_number
from toolkit.statistics.events.paths import DAY_S, KnownValues, in_one_order
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers

COMPARISONS = ("none", "past", "against", "controls")

CONTROL_DAYS = 28
"""How far from an event its control times may be (days)."""

_CONTROLS = 5
_POINTS = 60
_CELLS = 1_000_000
_TO_BPS = 1e4


STUDIED = {
    Family.PRICE: "price",
    Family.SPREAD: "spread_log_bps",
    Family.FUNDING: "differential_pct_8h",
}
"""The column studied around events, by kind of rows."""


def studied_column(values: Frame, column: str | None) -> str:
    """Return the column to study, by default the first of `STUDIED` that the values have."""
    if column is not None:
        return column
    checked_frame(values, "values")
    known = values.collect_schema().names()
    return next((name for name in STUDIED.values() if name in known), STUDIED[Family.PRICE])


def usual_s(column: str) -> int:
    """Return the default time before and after events (s): a day for funding, else an hour."""
    return DAY_S if column == STUDIED[Family.FUNDING] else 3_600


def checked_horizons(horizons_s: Sequence[int]) -> list[int]:
    """Return the times after the start of a path (s), sorted, or raise `InputError`."""
    if not horizons_s:
        raise InputError("horizons_s", horizons_s, "one or more whole numbers of seconds")
    return sorted({whole_number("horizons_s", each, 1, "seconds") for each in horizons_s})


@dataclass(frozen=True, slots=True)
class Around:
    """The options of a study of the time around events."""

    before_s: int
    after_s: int
    quiet_s: int = 0
    less: str = "none"
    from_detection: bool = False

    def __post_init__(self) -> None:
        whole_number("before_s", self.before_s, 1)
        whole_number("after_s", self.after_s, 1)
        whole_number("quiet_s", self.quiet_s, 0)
        if self.quiet_s >= self.before_s:
            raise InputError("quiet_s", self.quiet_s, f"less than before_s, {self.before_s}")
        if self.less not in COMPARISONS:
            raise InputError("less", self.less, COMPARISONS)
        if not isinstance(self.from_detection, bool):
            raise InputError("from_detection", self.from_detection, "True or False")

    def options(self, **others: str | int | None) -> tuple[tuple[str, str | float | None], ...]:
        """Return all options, with others, for the hash of a result."""
        return tuple((asdict(self) | others).items())


def is_price(column: str) -> bool:
    """Return whether a column holds prices, by its name."""
    return column == "price" or column.endswith("_price")


def name_of_change(column: str, figure: str, *, from_detection: bool = False) -> str:
    """Return the name of a figure of the changes of a column."""
    if is_price(column):
        changed = "return_from_detection_log_bps" if from_detection else "return_log_bps"
    else:
        changed = column_for(column, "change_from_before" if from_detection else "change")
    return column_for(changed, figure)


def in_bps(known: KnownValues) -> KnownValues:
    """Return prices as 1e4 times their logarithms."""
    return replace(known, values=_TO_BPS * np.log(known.values))


@dataclass(frozen=True)
class PathChanges:
    """The changes of trajectories after events: one number and one time per event.

    Offsets count from when the first value after the event was known. With ``from_detection`` they
    count from the event, and changes are from the price known then, or else the median before it.
    """

    known: KnownValues
    numbers: Integers
    times: Integers
    around: Around
    is_price: bool

    @cached_property
    def starts(self) -> Integers:
        """The start of each path (s), or a time after all values if there is none."""
        if self.around.from_detection:
            return self.times
        return self.known.known_when[self.known.first_after(self.numbers, self.times)]

    def values(self, offset_s: int) -> Floats:
        """Return the value at an offset from the start."""
        return self.known.at(self.numbers, self.starts + offset_s)

    def before(self, offset_s: int) -> Floats:
        """Return the value at an offset <= 0 from the event."""
        return self.known.at(self.numbers, self.times + offset_s)

    @cached_property
    def reference(self) -> Floats:
        """The value that changes are from, NaN without a start."""
        if self.is_price or not self.around.from_detection:
            return self.values(0)
        return self._median_before

    @property
    def _median_before(self) -> Floats:
        before = np.stack([self.before(int(each)) for each in self.before_offsets])
        found = np.full(self.times.size, np.nan)
        some = np.isfinite(before).any(axis=0)
        found[some] = np.nanmedian(before[:, some], axis=0)
        return found

    @property
    def offsets(self) -> list[int]:
        """The offsets before the event that the reference needs."""
        around = self.around
        trend = [around.before_s, around.quiet_s] if around.less == "past" else []
        of_values = self.is_price or not around.from_detection
        return trend if of_values else [*trend, *self.before_offsets.tolist()]

    @property
    def before_offsets(self) -> Integers:
        """At most 60 offsets before the event, without the quiet time."""
        length = self.around.before_s - self.around.quiet_s
        every = max(self.known.step_s, -(-length // _POINTS))
        return np.arange(-self.around.before_s, -self.around.quiet_s, every, dtype=np.int64)

    @cached_property
    def _trend(self) -> Floats:
        first, last = -self.around.before_s, -self.around.quiet_s
        return (self.before(last) - self.before(first)) / (last - first)

    def at(self, offset_s: int) -> Floats:
        """Return the change at an offset, NaN if not known."""
        found = self.values(offset_s) - self.reference
        return found - self._trend * offset_s if self.around.less == "past" else found

    @cached_property
    def volatility(self) -> Floats:
        """The standard deviation of the steps before the event, NaN with fewer than two."""
        steps = np.diff(np.stack([self.before(int(each)) for each in self.before_offsets]), axis=0)
        found = np.full(self.times.size, np.nan)
        some = np.isfinite(steps).sum(axis=0) > 1
        found[some] = np.nanstd(steps[:, some], axis=0)
        return found

    def of(self, numbers: Integers, times: Integers) -> PathChanges:
        """Return the changes of other trajectories and times, without a comparison."""
        around = replace(self.around, less="none")
        return PathChanges(self.known, numbers, times, around, self.is_price)


@dataclass(frozen=True)
class AbnormalChanges:
    """The changes after events, less their comparison, in the direction of each event."""

    events: pl.DataFrame
    changes: PathChanges
    every: pl.DataFrame = field(default_factory=pl.DataFrame)
    """All events, of which none may be a control."""

    @classmethod
    def of(
        cls,
        known: KnownValues,
        events: pl.DataFrame,
        every: pl.DataFrame,
        around: Around,
        *,
        is_price: bool,
    ) -> AbnormalChanges:
        """Return the changes of events, each with a trajectory of the values."""
        if around.less == "against" and "against" not in events.columns:
            raise InputError("events", "no against", "a column against, with trajectories")
        numbers, times = known.numbered(events["trajectory"]), events["ts"].to_numpy()
        known = in_bps(known) if is_price else known
        return cls(events, PathChanges(known, numbers, times, around, is_price), every)

    @cached_property
    def _others(self) -> tuple[PathChanges, Integers] | None:
        changes = self.changes
        if changes.around.less == "against":
            numbers = changes.known.numbered(self.events["against"])
            return changes.of(numbers, changes.times), np.arange(changes.times.size)
        if changes.around.less == "controls":
            owners, times = self._controls()
            return changes.of(changes.numbers[owners], times), owners
        return None

    @property
    def known(self) -> Flags:
        """The events with a first value, and one of their comparison."""
        found = np.isfinite(self.changes.reference)
        if self._others is not None:
            others, owners = self._others
            some = np.bincount(owners[np.isfinite(others.reference)], minlength=found.size)
            found &= some > 0
        return found

    def at(self, offset_s: int) -> Floats:
        """Return the change of each event at an offset, NaN if not known."""
        found = self.changes.at(offset_s)
        if self._others is not None:
            others, owners = self._others
            path = others.at(offset_s)
            there = np.isfinite(path)
            count = np.bincount(owners[there], minlength=found.size)
            total = np.bincount(owners[there], weights=path[there], minlength=found.size)
            with np.errstate(invalid="ignore"):
                found = found - total / count
        directed: Floats = found * self.events["direction"].to_numpy()
        return directed

    def _controls(self) -> tuple[Integers, Integers]:
        """Return the times of each event's controls: the event's row and the time."""
        # those of one trajectory together, as neighbours are looked up faster
        rows = np.argsort(in_one_order(self.changes.numbers, self.changes.times), kind="stable")
        days = np.arange(1, CONTROL_DAYS + 1, dtype=np.int64)
        shifts = DAY_S * np.stack([days, -days], axis=1).ravel()
        per_chunk = max(1, _CELLS // (shifts.size * self.changes.before_offsets.size))
        found = [
            self._nearest(rows[low : low + per_chunk], shifts)
            for low in range(0, rows.size, per_chunk)
        ]
        owners, times = zip(*found, strict=True) if found else ([], [])
        none = np.zeros(0, dtype=np.int64)
        return np.concatenate([none, *owners]), np.concatenate([none, *times])

    def _nearest(self, rows: Integers, shifts: Integers) -> tuple[Integers, Integers]:
        """Choose the days whose volatility at that time is nearest to the event's."""
        changes = self.changes
        own = changes.of(changes.numbers[rows], changes.times[rows])
        # those of one day together, as neighbours are looked up faster
        event = np.tile(np.arange(rows.size), shifts.size)
        times = own.times[event] + np.repeat(shifts, rows.size)
        free = self._apart(own.numbers[event], times)
        event, times = event[free], times[free]
        distance = np.abs(changes.of(own.numbers[event], times).volatility - own.volatility[event])
        there = np.isfinite(distance)
        event, times, distance = event[there], times[there], distance[there]
        order = np.lexsort((distance, event))  # stable: of equal ones the nearest day
        event, times = event[order], times[order]
        chosen = np.arange(event.size) - np.searchsorted(event, event) < _CONTROLS
        return rows[event[chosen]], times[chosen]

    def _apart(self, numbers: Integers, times: Integers) -> Flags:
        around = self.changes.around
        apart_s = around.before_s + around.after_s
        after = in_one_order(numbers, times - apart_s)
        following = np.searchsorted(self._places, after, side="right")
        until = in_one_order(numbers, times + apart_s)
        return np.asarray((numbers >= 0) & (self._places[following] >= until))

    @cached_property
    def _places(self) -> Integers:
        numbers = self.changes.known.numbered(self.every["trajectory"])
        places = np.sort(in_one_order(numbers, self.every["ts"].to_numpy()))
        return np.append(places, np.iinfo(np.int64).max)
