"""Values of trajectories before and after events, each as known at that time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.analyses import Parameter
from toolkit.errors import InputError
from toolkit.market import Step
from toolkit.statistics.core.categories import in_order
from toolkit.statistics.core.contract import (
    Frame,
    checked_columns,
    checked_times,
    checked_types,
    collected,
    whole_number,
)
from toolkit.statistics.core.observations import observed, ordered
from toolkit.statistics.numeric.arrays import Floats, Integers

CLUSTERS = ("path", "day", "trajectory", "trajectory_day")
EVENTS_IN = Parameter(
    "Which events may depend on each other. path: those near in time.", choices=CLUSTERS
)

DAY_S = 86_400

_MOST_STEPS = 4
_FAR_S = 2**39
NEVER_TS = 2 * _FAR_S
"""A time after all values."""


@dataclass(frozen=True)
class KnownValues:
    """The observations of trajectories by the time at which they became known."""

    numbers: dict[str | int, int]
    first: Integers
    """The first observation of each trajectory, and the number of observations."""
    known_ts: Integers
    values: Floats
    step_s: int
    max_stale_s: int

    @classmethod
    def of(
        cls,
        frame: Frame,
        column: str,
        step_s: Step,
        known_after_s: int | None,
        max_stale_s: int | None,
    ) -> KnownValues:
        """Read the observations of a frame, sorted by trajectory and time.

        Defaults: ``step_s`` the commonest step, also of known steps of trajectories,
        ``known_after_s`` one step (a bar's close is known at its end), ``max_stale_s`` three steps.
        """
        checked_columns(frame, column)
        value = observed(column)
        if column == "price" or column.endswith("_price"):
            value = pl.when(value > 0).then(value)
        rows = collected(frame.lazy().select("trajectory", "ts", value.alias("value")))
        checked_times(rows)
        rows = ordered(rows)
        if isinstance(step_s, Mapping):
            step_s = min(pl.Series(list(step_s.values()), dtype=pl.Int64).mode(), default=None)
        step = _step(rows) if step_s is None else whole_number("step_s", step_s, 1, "seconds")
        after = step if known_after_s is None else whole_number("known_after_s", known_after_s, 0)
        stale = 3 * step if max_stale_s is None else whole_number("max_stale_s", max_stale_s, 1)
        rows = rows.drop_nulls("value")
        runs = rows["trajectory"].rle().struct.unnest()
        numbers = {name: number for number, name in enumerate(runs["value"])}
        first = np.concatenate([[0], runs["len"].to_numpy().cumsum()]).astype(np.int64)
        known_ts = rows["ts"].to_numpy() + after
        values = rows["value"].to_numpy()
        return cls(numbers, first, known_ts, values, step, stale)

    @cached_property
    def grid(self) -> Grid | None:
        """The newest observation at each step, if all observations keep to one clock."""
        return Grid.of(self.known_ts, self.first)

    def numbered(self, trajectories: pl.Series) -> Integers:
        """Return the number of each trajectory, -1 without observations."""
        found = trajectories.replace_strict(self.numbers, default=-1, return_dtype=pl.Int64)
        return found.to_numpy()

    def at(self, numbers: Integers, times: Integers) -> Floats:
        """Return the newest value known at each time, NaN without one or if it is too old."""
        values, fresh_until = self._looked_up
        place = self._place(numbers, times)
        found = values[place]
        found[times > fresh_until[place]] = np.nan
        return found

    @cached_property
    def _looked_up(self) -> tuple[Floats, Integers]:
        found = np.append(self.values, np.nan), np.append(self.known_ts + self.max_stale_s, 0)
        if self.grid is None:
            return found
        return found[0][self.grid.places], found[1][self.grid.places]

    def _place(self, numbers: Integers, times: Integers) -> Integers:
        """Return where the newest observation known at each time is looked up, or -1."""
        if self.grid is not None:
            return self.grid.place(numbers, times)
        found = np.full(times.shape, -1)
        for asked, begin, end in self._parts(numbers):
            place = np.searchsorted(self.known_ts[begin:end], times[asked], side="right") - 1
            found[asked] = np.where(place < 0, -1, place + begin)
        return found

    def first_after(self, numbers: Integers, times: Integers) -> Integers:
        """Return the place of the first value known after each time, not in its very second.

        It is -1 if there is none within ``max_stale_s``.
        """
        newest = self._place(numbers, times)
        if self.grid is not None:
            newest = self.grid.places[newest].astype(np.int64)
        next_one = np.where(newest < 0, self.first[numbers], newest + 1)
        ends = np.append(self.first[1:], -1)  # the last one is of the number -1
        soon = (next_one < ends[numbers]) & (self.known_when[next_one] - times <= self.max_stale_s)
        return np.where(soon, next_one, -1)

    @cached_property
    def known_when(self) -> Integers:
        """When each value became known (s), and at place -1 a time after all others."""
        return np.append(self.known_ts, NEVER_TS)

    def following(self, numbers: Integers, times: Integers) -> Integers:
        """Return the place of the first value known at each time or later, as `first_after`."""
        found = np.full(times.shape, -1, dtype=np.int64)
        for asked, begin, end in self._parts(numbers):
            next_one = begin + np.searchsorted(self.known_ts[begin:end], times[asked])
            seen = np.minimum(next_one, end - 1)
            soon = (next_one < end) & (self.known_ts[seen] - times[asked] <= self.max_stale_s)
            found[asked] = np.where(soon, next_one, -1)
        return found

    def next_at_most(self, numbers: Integers, places: Integers, level: float) -> Integers:
        """Return the place of the first value after each place that is at most a level, or -1."""
        low = np.flatnonzero(self.values <= level)
        after = np.searchsorted(low, places, side="right")
        found = np.append(low, self.values.size)[after]
        ends = np.append(self.first[1:], -1)  # the last one is of the number -1
        return np.where(found < ends[numbers], found, -1)

    def _parts(self, numbers: Integers) -> Iterator[tuple[Integers, int, int]]:
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(len(self.numbers) + 1))
        for number in np.unique(numbers[numbers >= 0]):
            asked = order[ends[number] : ends[number + 1]]
            yield asked, int(self.first[number]), int(self.first[number + 1])


@dataclass(frozen=True, slots=True)
class Grid:
    """The newest observation at each step of a common clock: ten times as fast as a search."""

    begin: int
    every_s: int
    width: int
    places: npt.NDArray[np.int32]
    """One observation per step for each trajectory and for -1, the first before all of them."""

    @classmethod
    def of(cls, known_ts: Integers, first: Integers) -> Grid | None:
        """Return the grid, or None if it has far more steps than there are observations."""
        if not known_ts.size:
            return None
        begin = int(known_ts.min())
        every_s = max(1, int(np.gcd.reduce(known_ts - begin)))
        steps = int(known_ts.max() - begin) // every_s + 1
        trajectories = first.size - 1
        if steps * trajectories > _MOST_STEPS * known_ts.size:
            return None
        places = np.full((trajectories + 1, steps + 1), -1, np.int32)
        row = np.repeat(np.arange(trajectories), np.diff(first))
        places[row, (known_ts - begin) // every_s + 1] = np.arange(known_ts.size)
        np.maximum.accumulate(places, axis=1, out=places)
        return cls(begin, every_s, steps + 1, places.ravel())

    def place(self, numbers: Integers, times: Integers) -> Integers:
        """Return the place in ``places`` of the newest observation known at each time."""
        column = np.clip((times - self.begin) // self.every_s + 1, 0, self.width - 1)
        # the number -1, of a trajectory without observations, is the last row
        return np.asarray(numbers * self.width + column, np.int64)


def _step(rows: pl.DataFrame) -> int:
    lengths = rows["trajectory"].rle().struct.field("len").to_numpy()
    steps = pl.Series(np.delete(np.diff(rows["ts"].to_numpy()), lengths.cumsum()[:-1] - 1))
    if steps.is_empty():
        raise InputError("step_s", None, "the step (s), for no trajectory has two rows")
    return int(steps.mode().sort()[0])


def checked_events(events: Frame) -> pl.DataFrame:
    """Return the events by time: ``trajectory``, ``ts``, ``direction`` (default 1), the rest."""
    checked_types(events, {"trajectory": "String or integer", "ts": "Int64"}, parameter="events")
    rows = collected(events)
    for name in ("trajectory", "ts"):
        if rows[name].null_count():
            raise InputError("events", f"a null {name}", "events that have one")
    checked_times(rows)
    if "direction" not in rows.columns:
        rows = rows.with_columns(direction=pl.lit(1.0))
    ways = rows["direction"]
    if not ways.dtype.is_numeric() or not ways.cast(pl.Float64).is_in([1.0, -1.0]).all():
        raise InputError("direction", ways.head(3).to_list(), "1 (up) and -1 (down)")
    rows = rows.with_columns(pl.col("direction").cast(pl.Float64))
    first = ("trajectory", "ts", "direction")
    return in_order(rows.select(*first, pl.exclude(first)), {"ts": False, "trajectory": False})


def without_overlaps(events: pl.DataFrame, apart_s: int) -> pl.DataFrame:
    """Keep each trajectory's first event, and each at least ``apart_s`` after the last kept."""
    names = events["trajectory"].cast(pl.String).cast(pl.Categorical).to_physical().to_numpy()
    order = np.argsort(names, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(names[order])) + 1, names.size)
    numbers = np.searchsorted(ends, np.arange(names.size), side="right")
    places = in_one_order(numbers, events["ts"].to_numpy()[order])
    following = np.searchsorted(places, places + min(apart_s, _FAR_S)).tolist()
    kept = []
    for begin, end in itertools.pairwise([0, *ends.tolist()]):
        next_one = begin
        while next_one < end:
            kept.append(next_one)
            next_one = following[next_one]
    return events[np.sort(order[kept])]


def in_one_order(numbers: Integers, times: Integers) -> Integers:
    """Return one number for trajectory and time, in the order of both."""
    return numbers * 2 * _FAR_S + np.clip(times, -_FAR_S, _FAR_S - 1)


def clusters_of(events: pl.DataFrame, cluster: str, path_s: int) -> Integers:
    """Return the number of each event's cluster, in the order of time or trajectories."""
    day = pl.col("ts") // DAY_S
    keys = {
        "path": [pl.col("ts") // path_s],
        "day": [day],
        "trajectory": [pl.col("trajectory")],
        "trajectory_day": [day, pl.col("trajectory")],
    }
    rank = pl.struct(*(key.alias(str(at)) for at, key in enumerate(keys[cluster]))).rank("dense")
    return events.select(rank.cast(pl.Int64)).to_series().to_numpy()
