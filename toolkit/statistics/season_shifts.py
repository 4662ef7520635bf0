"""Shifts of an event log by whole seasons, within the time in which the log is held.

A season is a length of time after which a log repeats its habits: a day keeps the hour of the day.
An event that is shifted keeps its phase, which is its time since the season began. It moves to
another of the seasons in which that phase is held, and from the last on to the first. So a shifted
log has as many events as before, none in a gap, and its own hours and bursts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.intervals import split, union

_AT_ONCE = 250_000
"""Pairs of events, or cells of a table, that are counted at once."""
_IN_ONE_THREAD = 65_536
"""Products of complex numbers for which the linear algebra of numpy starts no thread."""
_LARGEST_BIN_S = 60

Counts = npt.NDArray[np.int64]
Waves = npt.NDArray[np.complex128]
Log = tuple[Counts, Counts]
"""Times (s) of events, and the number of the group of each."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """Events in the order of their phase (s), with the column of their season and their group."""

    phase: Counts
    column: Counts
    group: Counts

    @classmethod
    def ordered(cls, phase: Counts, column: Counts, group: Counts) -> _Placed:
        """Put events in the order of their phase."""
        order = np.argsort(phase, kind="stable")
        return cls(phase[order], column[order], group[order])

    def between(self, start: int, end: int) -> _Placed:
        """Return the events with a phase from start to before end."""
        first, last = np.searchsorted(self.phase, [start, end])
        return _Placed(self.phase[first:last], self.column[first:last], self.group[first:last])


@dataclass(frozen=True, slots=True)
class SeasonShifts:
    """What is held of each phase of a season.

    ``edges`` are the phases (s) at which it changes what is held, from 0 to ``season_s``: a part
    lasts from one to the next. ``seasons`` are the numbers of the seasons since 1970 of which
    anything is held. ``places`` has a row per part and a column per season: the place of the season
    among those that hold the part, -1 where it does not, and a last column of -1. ``sizes`` is how
    many hold it. ``shifts`` is the number of shifts, with that by 0: the commonest size.
    """

    season_s: int
    edges: Counts
    seasons: Counts
    places: npt.NDArray[np.int32]
    sizes: Counts
    shifts: int

    @classmethod
    def of(cls, stretches: Iterable[tuple[int, int]], season_s: int) -> SeasonShifts:
        """Read what is held from stretches of time, half-open and in seconds.

        The commonest size is the median over the time of a season that is held at all.

        >>> found = SeasonShifts.of([(0, 3 * 86_400), (3 * 86_400 + 600, 5 * 86_400)], 86_400)
        >>> found.edges.tolist(), found.sizes.tolist(), found.shifts
        ([0, 600, 86400], [4, 5], 5)
        """
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

    def pair_counts(self, moved: Log, others: Log, shape: tuple[int, int], within_s: int) -> Counts:
        """Count, of each shift of ``moved``, the pairs with others that are near in time.

        All times (s) are held. Groups are numbered from 0 in both logs, and ``shape`` says how many
        there are. The result has three tables: of others that come up to ``within_s`` before, at
        the same second, and up to ``within_s`` after. Each has a row per group that is moved, a
        column per group of the others, and there a figure per shift, the first of which is none.

        >>> found = SeasonShifts.of([(0, 4 * 60)], 60)
        >>> moved = np.array([10]), np.zeros(1, int)
        >>> others = np.array([15, 130, 185]), np.zeros(3, int)
        >>> found.pair_counts(moved, others, (1, 1), 30)[:, 0, 0].tolist()
        [[0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]]
        """
        season, phase = np.divmod(moved[0], self.season_s)
        one = _Placed.ordered(phase, self._column(season), moved[1])
        other = self._around(*others, within_s)
        bin_s = self._bin_s(moved[0].size * others[0].size, shape, within_s)
        return self._counted(one, other, shape, within_s, bin_s)

    def _bin_s(self, pairs: int, shape: tuple[int, int], within_s: int) -> int:
        """Choose the bin that costs least, in units of a pair that is looked at."""
        of_bin = self.shifts * (sum(shape) / 2 + shape[0] * shape[1] / 30)
        length_s = self.season_s + 2 * within_s * self.sizes.size

        def cost(bin_s: int) -> float:
            looked_at_s = 2 * (bin_s + (within_s + 1) % bin_s)
            return pairs * looked_at_s / self.season_s + length_s / bin_s * of_bin

        one_by_one = within_s + 1
        found = min(range(1, min(within_s, _LARGEST_BIN_S) + 1), key=cost)
        return found if cost(found) < pairs * 2 * within_s / self.season_s else one_by_one

    def _counted(
        self, one: _Placed, other: _Placed, shape: tuple[int, int], within_s: int, bin_s: int
    ) -> Counts:
        """Count pairs in whole bins of phase by their numbers, and one by one at the ends of them.

        A bin has ``bin_s`` seconds. One of more than ``within_s`` leaves all pairs one by one.
        """
        whole = max(0, (within_s + 1) // bin_s - 1)  # bins on each side that are near as a whole
        begin = one.phase // bin_s * bin_s
        before, now, after = one.phase - within_s, one.phase, one.phase + within_s + 1
        ranges = [(0, before, now), (1, now, now + 1), (2, now + 1, after)]
        if whole:
            ranges = [
                (0, before, begin - whole * bin_s),
                (0, begin, now),
                (1, now, now + 1),
                (2, now + 1, begin + bin_s),
                (2, begin + (whole + 1) * bin_s, after),
            ]
        found = np.zeros((3, *shape, self.shifts), np.int64)
        for number, start, end in ranges:
            first, last = (np.searchsorted(other.phase, each) for each in (start, end))
            found[number] += self._one_by_one(one, other, shape, first, last)
        if whole:
            found[::2] += self._by_bins(one, other, shape, bin_s, whole)
        return found

    def _column(self, season: Counts) -> Counts:
        """Return the column of each season, the last one where nothing of it is held."""
        column = np.searchsorted(self.seasons, season)
        known = np.append(self.seasons, self.seasons[-1] + 1)[column] == season
        return np.where(known, column, self.seasons.size)

    def _around(self, times: Counts, groups: Counts, within_s: int) -> _Placed:
        """Place events, also with phases up to ``within_s`` outside a season.

        An event near the end of a season is also there with a phase below 0, as one of the season
        that follows, and one near the beginning with a phase from ``season_s`` on.
        """
        season, phase = np.divmod(times, self.season_s)
        more = -(-within_s // self.season_s)
        parts = []
        for turn in range(-more, more + 1):
            moved = phase + turn * self.season_s
            near = np.flatnonzero((moved >= -within_s) & (moved < self.season_s + within_s))
            parts.append((moved[near], self._column(season[near] - turn), groups[near]))
        return _Placed.ordered(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _one_by_one(
        self, one: _Placed, other: _Placed, shape: tuple[int, int], first: Counts, last: Counts
    ) -> Counts:
        """Count pairs by looking at each with one of its others from first to before last."""
        sizes, kind = np.unique(self.sizes, return_inverse=True)
        most = int(sizes[-1])  # the other's season is by less than this later or earlier
        groups, places = other.group * 2 * most, self.places.ravel()
        histogram = np.zeros(sizes.size * shape[0] * shape[1] * 2 * most, np.int64)
        for some, times, there in _expanded(first, last):
            part = np.searchsorted(self.edges, one.phase[some], "right") - 1
            key = (kind[part] * shape[0] + one.group[some]) * shape[1] * 2 * most
            key += most - self.places[part, one.column[some]]
            row = np.repeat(part * self.places.shape[1], times)
            place = places[row + other.column[there]]
            key = np.repeat(key, times) + groups[there] + place
            key = key if place.min(initial=0) >= 0 else key[place >= 0]
            histogram += np.bincount(key, minlength=histogram.size)
        found = np.zeros((*shape, self.shifts), np.int64)
        tables = histogram.reshape(sizes.size, *shape, 2 * most)
        for size, table in zip(sizes.tolist(), tables, strict=True):
            if size:
                later = table[..., most : most + size] + table[..., most - size : most]
                found += later[..., self._moves(size)]
        return found

    def _by_bins(
        self, one: _Placed, other: _Placed, shape: tuple[int, int], bin_s: int, whole: int
    ) -> Counts:
        """Count pairs of events that are from 1 to ``whole`` bins apart, before and after.

        The counts by how many seasons the other is later are a circular correlation of how many
        events each bin has in each season.
        """
        found = np.zeros((2, *shape, self.shifts), np.int64)
        for part in np.flatnonzero(self.sizes).tolist():
            places, size = self.places[part], int(self.sizes[part])
            start, end = self.edges[part : part + 2].tolist()
            waves = np.zeros((2, size // 2 + 1, *shape), np.complex128)
            length = max(2 * whole, _AT_ONCE // (size * max(shape)))
            for at in range(start // bin_s, -(-end // bin_s), length):
                until = min(at + length, -(-end // bin_s))
                mine = one.between(max(start, at * bin_s), min(end, until * bin_s))
                near = other.between((at - whole) * bin_s, (until + whole) * bin_s)
                cells = size, shape[1], until - at + 2 * whole + 1
                row = near.phase // bin_s - at + whole + 1
                until_row = np.cumsum(_table(places[near.column], near.group, row, cells), axis=2)
                row, cells = mine.phase // bin_s - at, (size, shape[0], until - at)
                own = _table(places[mine.column], mine.group, row, cells)
                wave, total = np.fft.rfft(own, axis=0).conj(), np.fft.rfft(until_row, axis=0)
                _add_products(waves, wave, total, whole)
            later = np.rint(np.fft.irfft(waves, size, axis=1)).astype(np.int64)
            found += np.moveaxis(later, 1, 3)[..., self._moves(size)]
        return found

    def _moves(self, size: int) -> Counts:
        """Return how many seasons each shift moves an event by, in a part that so many hold.

        All parts move by the same share of the seasons that hold them.
        """
        moves = (2 * size * np.arange(self.shifts) + self.shifts) // (2 * self.shifts)
        return np.asarray(moves % size, np.int64)


def _table(
    place: npt.NDArray[np.int32], group: Counts, row: Counts, shape: tuple[int, int, int]
) -> Counts:
    """Count events by place, group and row, without those that have no place."""
    known = place >= 0
    cells = ((place * shape[1] + group) * shape[2] + row)[known]
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def _add_products(waves: Waves, wave: Waves, total: Waves, whole: int) -> None:
    """Add to ``waves`` the sums over all bins of a wave times those of the bins near it.

    Products of so few bins at a time are made in one thread. Of many threads each would wait for
    the others by counting, which on a machine with other work takes ten times as long.
    """
    length = max(1, _IN_ONE_THREAD // (wave.shape[1] * total.shape[1]))
    for low in range(0, wave.shape[2], length):
        high = min(low + length, wave.shape[2])
        mine = wave[:, :, low:high]
        for number, first in enumerate((0, whole + 1)):
            near = total[:, :, low + first + whole : high + first + whole]
            near = near - total[:, :, low + first : high + first]
            waves[number] += mine @ near.swapaxes(1, 2)


def _expanded(first: Counts, last: Counts) -> Iterator[tuple[slice, Counts, Counts]]:
    """Yield some events, how many others each has, and the others: those from first to last."""
    counts = last - first
    until = counts.cumsum()
    total = int(until[-1]) if until.size else 0
    cuts = np.searchsorted(until, np.arange(_AT_ONCE, total, _AT_ONCE))
    for low, high in itertools.pairwise([0, *np.unique(cuts + 1).tolist(), counts.size]):
        here = counts[low:high]
        there = np.repeat(first[low:high] - here.cumsum() + here, here)
        there += np.arange(there.size)
        yield slice(low, high), here, there
