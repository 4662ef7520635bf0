"""Shifts of an event log by whole seasons, within the time that the log covers.

A shifted event keeps its phase, the time since the season (such as a day) began, and moves to
another of the seasons in which that phase is covered, from the last on to the first. So a shifted
log has as many events, none in a gap, and its own hours and bursts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.intervals import split, union
from toolkit.statistics.numeric.arrays import Integers, Waves

_PAIRS_AT_ONCE = 60_000
"""Pairs of events that are looked at before the next ones, so that they stay in a cache."""
_CELLS_AT_ONCE = 250_000
"""Cells of a table that are counted at once."""
_IN_ONE_THREAD = 65_536
"""Products of complex numbers for which the linear algebra of numpy starts no thread."""
_LARGEST_BIN_S = 60

Log = tuple[Integers, Integers]
"""Times (s) of events, and the number of the group of each."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """Events of some groups in the order of their phase (s), with the column of their season."""

    phase: Integers
    column: npt.NDArray[np.int32]
    group: Integers
    groups: int


@dataclass(frozen=True, slots=True)
class _Laid:
    """Events along a line on which stretches of phase lie end to end, too far apart to be near.

    ``at`` (s) is the place of each on it, in order. ``place`` is that of its season among those
    that cover the part.
    """

    at: Integers
    place: npt.NDArray[np.int32]
    group: Integers
    groups: int

    def before(self, *positions: Integers) -> list[Integers]:
        """Return how many events are before each position from 0 on."""
        if self.at[-1] > self.at.size:
            return [np.searchsorted(self.at, each) for each in positions]
        until = np.bincount(self.at + 1).cumsum()
        return [until.take(each, mode="clip") for each in positions]

    def waves(self, begin: int, bins: int, bin_s: int, size: int) -> Waves:
        """Return the Fourier transforms over the seasons of counts, by frequency, group and bin."""
        first, last = np.searchsorted(self.at, [begin, begin + bins * bin_s])
        cell = self.group[first:last] * bins + (self.at[first:last] - begin) // bin_s
        place, cells = self.place[first:last].astype(np.int64), self.groups * bins
        if place.size > 2 * cells:  # to add the wave of each event would be more work
            counts = np.bincount(place * cells + cell, minlength=size * cells)
            return np.fft.rfft(counts.reshape(size, self.groups, bins), axis=0)
        turns = np.outer(np.arange(size // 2 + 1), np.arange(size)) % size / size
        found = np.empty((turns.shape[0], cells), np.complex128)
        for row, wave in zip(found, np.exp(-2j * np.pi * turns), strict=True):
            row.real = np.bincount(cell, wave.real.take(place), minlength=cells)
            row.imag = np.bincount(cell, wave.imag.take(place), minlength=cells)
        return found.reshape(-1, self.groups, bins)


@dataclass(frozen=True, slots=True)
class SeasonShifts:
    """The coverage of each phase of a season.

    ``edges`` are the phases (s), from 0 to ``season_s``, at which the coverage changes: a part
    lasts from one to the next. ``seasons`` are the numbers of the seasons since 1970 with any
    coverage. ``places`` has one row per part and one column per season: its place among those that
    cover the part, or -1, and a last column of -1. ``sizes`` is how many cover it, and ``shifts``
    the commonest size.
    """

    season_s: int
    edges: Integers
    seasons: Integers
    places: npt.NDArray[np.int32]
    sizes: Integers
    shifts: int

    @classmethod
    def of(cls, stretches: Iterable[tuple[int, int]], season_s: int) -> SeasonShifts:
        """Read the coverage from stretches of time, half-open and in seconds."""
        pieces = [each for stretch in union(stretches) for each in split(stretch, season_s)]
        table = np.array(pieces, np.int64).reshape(-1, 2)
        seasons, column = np.unique(table[:, 0] // season_s, return_inverse=True)
        starts, ends = (table - (table[:, :1] // season_s) * season_s).T
        edges = np.unique(np.concatenate([[0, season_s], starts, ends]))
        changes = np.zeros((edges.size, seasons.size + 1), np.int32)
        np.add.at(changes, (np.searchsorted(edges, starts), column), 1)
        np.subtract.at(changes, (np.searchsorted(edges, ends), column), 1)
        held = np.cumsum(changes[:-1], axis=0, dtype=np.int32)
        places = np.where(held > 0, np.cumsum(held, axis=1, dtype=np.int32) - 1, np.int32(-1))
        sizes = held.sum(axis=1, dtype=np.int64)
        order = np.argsort(sizes)
        lengths = np.where(sizes > 0, np.diff(edges), 0)[order].cumsum()
        middle = int(np.searchsorted(lengths, lengths[-1] / 2))
        shifts = max(1, int(sizes[order][middle]))
        return cls(season_s, edges, seasons, places, sizes, shifts)

    def pair_counts(
        self,
        moved: Log,
        others: Log,
        shape: tuple[int, int],
        within_s: int,
        bin_s: int | None = None,
    ) -> Integers:
        """Count, for each shift of ``moved``, the pairs with others that are near in time.

        All times (s) are covered. Groups are numbered from 0 in both logs, and ``shape`` has their
        numbers. The result has three tables: of others up to ``within_s`` before, at the same
        second, and up to ``within_s`` after, each with one row per moved group, one column per
        group of the others, and one figure per shift, the first of which is none. ``bin_s`` (s) is
        by default the cheapest: see `_following`. For a log with itself, given as the same object,
        each pair is looked at once.
        """
        one = self._around(moved, shape[0], within_s)
        other = one if others is moved else self._around(others, shape[1], within_s)
        found = np.zeros((3, *shape, self.shifts), np.int64)
        events = np.diff(np.searchsorted(one.phase, self.edges))
        with_events = np.flatnonzero((self.sizes > 0) & (events > 0))
        sizes = self.sizes[with_events]
        for size in np.unique(sizes).tolist():
            parts = with_events[sizes == size]
            # so that what is near the ends of some parts is not much more than both logs
            pieces = min(parts.size, -(-parts.size * within_s // self.season_s))
            for some in np.array_split(parts, pieces):
                for mine, theirs in self._lines(some, one, other, within_s):
                    counts = _near(mine, theirs, size, within_s, bin_s)
                    found += counts[..., self._moves(size)]
        return found

    def _lines(
        self, parts: Integers, one: _Placed, other: _Placed, within_s: int
    ) -> Iterator[tuple[_Laid, _Laid]]:
        """Yield events within parts, then those near the ends of them with others beyond."""
        starts, ends = self.edges[parts], self.edges[parts + 1]
        line = _line(starts, ends, within_s)
        mine = self._laid(one, parts, starts, ends, line)
        yield mine, mine if other is one else self._laid(other, parts, starts, ends, line)
        parts, edges = np.tile(parts, 2), np.concatenate([starts, ends])
        line = _line(edges - within_s, edges + within_s, within_s)
        low = np.concatenate([starts, np.maximum(starts, ends - within_s)])
        high = np.concatenate([np.minimum(ends, starts + within_s), ends])
        mine = self._laid(one, parts, low, high, line)
        low, high = (
            np.concatenate([starts - within_s, ends]),
            np.concatenate([starts, ends + within_s]),
        )
        yield mine, self._laid(other, parts, low, high, line)

    def _laid(
        self, placed: _Placed, parts: Integers, starts: Integers, ends: Integers, line: Integers
    ) -> _Laid:
        """Place the events from start to before end along a line, with their place in the part."""
        first, last = (np.searchsorted(placed.phase, each) for each in (starts, ends))
        row: Integers | int = 0
        there: Integers | slice = slice(first[0], last[0])
        if parts.size > 1:  # of one part nothing is copied
            counts = last - first
            row = np.repeat(np.arange(parts.size), counts)
            there = np.repeat(first - counts.cumsum() + counts, counts) + np.arange(row.size)
        place = self.places.take(parts[row] * self.places.shape[1] + placed.column[there])
        at, group = placed.phase[there] + line[row], placed.group[there]
        if place.min(initial=0) < 0:
            known = place >= 0
            at, place, group = at[known], place[known], group[known]
        return _Laid(at, place, group, placed.groups)

    def _column(self, season: Integers) -> npt.NDArray[np.int32]:
        if not self.seasons.size:
            return np.zeros(season.shape, np.int32)
        before = int(self.seasons[0]) - 1
        columns = np.full(int(self.seasons[-1]) - before + 2, self.seasons.size, np.int32)
        columns[self.seasons - before] = np.arange(self.seasons.size)
        return columns.take(season - before, mode="clip")

    def _around(self, log: Log, groups: int, within_s: int) -> _Placed:
        """Place events, also in the season beyond if they are up to ``within_s`` from its end."""
        season, phase = np.divmod(log[0], self.season_s)
        more = -(-within_s // self.season_s)
        parts = [(phase, self._column(season), log[1])]
        for turn in (*range(-more, 0), *range(1, more + 1)):
            moved = phase + turn * self.season_s
            near = np.flatnonzero((moved >= -within_s) & (moved < self.season_s + within_s))
            parts.append((moved[near], self._column(season[near] - turn), log[1][near]))
        del season, phase  # of a million events these and the parts take 50 MB
        at, column, group = (np.concatenate(each) for each in zip(*parts, strict=True))
        del parts
        order = np.argsort(at)
        return _Placed(at[order], column[order], group[order], groups)

    def _moves(self, size: int) -> Integers:
        """Return how many of so many seasons each shift moves an event by, all parts alike."""
        moves = (2 * size * np.arange(self.shifts) + self.shifts) // (2 * self.shifts)
        return np.asarray(moves % size, np.int64)


def _line(starts: Integers, ends: Integers, within_s: int) -> Integers:
    """Return what to add to each phase so that stretches lie end to end, too far apart."""
    lengths = ends - starts + within_s
    return np.asarray(lengths.cumsum() - lengths - starts, np.int64)


def _near(mine: _Laid, theirs: _Laid, size: int, within_s: int, bin_s: int | None) -> Integers:
    """Count pairs with others before, at the same second and after, by how many seasons later."""
    found = np.zeros((3, mine.groups, theirs.groups, size), np.int64)
    if mine.at.size and theirs.at.size:
        found[1] = _one_by_one(mine, theirs, mine.at, mine.at + 1, size)
        bin_s = _bin_s(mine, theirs, size, within_s) if bin_s is None else bin_s
        ways = [(mine, theirs)] if theirs is mine else [(mine, theirs), (theirs, mine)]
        counts = _following(ways, size, within_s, bin_s)
        # of a log with itself: that the other is before is the same pair, seen from the other
        found[2], found[0] = counts[0], counts[-1].swapaxes(0, 1)[..., -np.arange(size) % size]
    return found


def _bin_s(mine: _Laid, theirs: _Laid, size: int, within_s: int) -> int:
    """Choose the cheapest bin, in units of a pair that is looked at."""
    of_bin = size * (mine.groups + theirs.groups + mine.groups * theirs.groups / 15)
    length_s = int(max(mine.at[-1], theirs.at[-1])) + 1
    pairs_a_second = mine.at.size * theirs.at.size / length_s

    def cost(bin_s: int) -> float:
        looked_at_s = 2 * (bin_s + (within_s + 1) % bin_s)
        return pairs_a_second * looked_at_s + length_s / bin_s * of_bin

    one_by_one = within_s + 1
    found = min(range(1, min(within_s, _LARGEST_BIN_S) + 1), key=cost)
    return found if cost(found) < pairs_a_second * 2 * within_s else one_by_one


def _following(
    ways: list[tuple[_Laid, _Laid]], size: int, within_s: int, bin_s: int
) -> list[Integers]:
    """Count the pairs of which the event of the second log is up to ``within_s`` after the first.

    ``ways`` are one log with itself, or two logs either way. Pairs in whole bins of ``bin_s``
    seconds are counted by the numbers of their events, others one by one.
    """
    whole = max(0, (within_s + 1) // bin_s - 1)  # bins after an event's that are near as a whole
    found = _by_bins(ways, size, bin_s, whole)
    for number, (first, second) in enumerate(ways):
        after, until = first.at + 1, first.at + within_s + 1
        begin = first.at // bin_s * bin_s
        ranges = [(after, until)]
        if whole:
            ranges = [(after, begin + bin_s), (begin + (whole + 1) * bin_s, until)]
        for start, end in ranges:
            found[number] += _one_by_one(first, second, start, end, size)
    return found


def _one_by_one(first: _Laid, second: _Laid, start: Integers, end: Integers, size: int) -> Integers:
    """Count pairs of each event by group, group of the second, and how many seasons it is later."""
    key = (first.group * second.groups + 1) * 2 * size - size - first.place
    other_key = second.group * 2 * size + second.place
    histogram = np.zeros(first.groups * second.groups * 2 * size, np.int64)
    low, high = second.before(start, end)
    for some, times, there in _expanded(low, high):
        both = np.repeat(key[some], times)
        both += other_key.take(there)
        np.add.at(histogram, both, 1)
    table = histogram.reshape(first.groups, second.groups, 2, size)
    return np.asarray(table.sum(axis=2))


def _by_bins(ways: list[tuple[_Laid, _Laid]], size: int, bin_s: int, whole: int) -> list[Integers]:
    """Count pairs of events of which the second is from 1 to ``whole`` bins after the first.

    The counts by how many seasons it is later are a circular correlation of the counts of each bin
    in each season.
    """
    logs = [first for first, _ in ways]
    sums = [np.zeros((size // 2 + 1, a.groups, b.groups), np.complex128) for a, b in ways]
    bins = int(max(each.at[-1] for each in logs)) // bin_s + 1 if whole else 0
    length = max(2 * whole, _CELLS_AT_ONCE // (size * max(each.groups for each in ways[0])))
    length = min(length, max(bins, 1))
    for at in range(0, bins, length):
        waves = [each.waves(at * bin_s, length + whole, bin_s, size) for each in logs]
        totals = [np.cumsum(each, axis=2) for each in waves]
        for found, wave, total in zip(sums, waves, reversed(totals), strict=True):
            _add_products(found, wave, total, whole)
    later = (np.rint(np.fft.irfft(each.conj(), size, axis=0)).astype(np.int64) for each in sums)
    return [np.moveaxis(each, 0, 2).copy() for each in later]


def _add_products(found: Waves, wave: Waves, total: Waves, whole: int) -> None:
    """Add the sums over all bins of a wave times the conjugate of the ``whole`` bins after it.

    It makes so few products at a time that numpy starts no threads: see `product`.
    """
    length = max(1, _IN_ONE_THREAD // (wave.shape[1] * total.shape[1]))
    bins = wave.shape[2] - whole
    for low in range(0, bins, length):
        high = min(low + length, bins)
        near = total[:, :, low + whole : high + whole] - total[:, :, low:high]
        found += wave[:, :, low:high] @ np.conjugate(near, out=near).swapaxes(1, 2)


def _expanded(first: Integers, last: Integers) -> Iterator[tuple[slice, Integers, Integers]]:
    """Yield some events, how many others each has, and the others: those from first to last."""
    counts = last - first
    until = counts.cumsum()
    total = int(until[-1]) if until.size else 0
    cuts = np.searchsorted(until, np.arange(_PAIRS_AT_ONCE, total, _PAIRS_AT_ONCE))
    for low, high in itertools.pairwise([0, *np.unique(cuts + 1).tolist(), counts.size]):
        here = counts[low:high]
        there = np.repeat(first[low:high] - here.cumsum() + here, here)
        there += np.arange(there.size)
        yield slice(low, high), here, there
