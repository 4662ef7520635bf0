"""Shifts of an event log by whole seasons, within the time in which the log is held.

A season is a length of time after which a log repeats its habits: a day keeps the hour of the day.
An event that is shifted keeps its phase, which is its time since the season began. It moves to
another of the seasons in which that phase is held, and from the last on to the first. So a shifted
log has as many events as before, none in a gap, and its own hours and bursts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.intervals import split, union

_AT_ONCE = 250_000
"""Pairs of events, or seconds of parts, that are counted at once."""

Counts = npt.NDArray[np.int64]
Lags = Sequence[tuple[int, int]]


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

    def of(self, group: int) -> _Placed:
        """Return the events of a group."""
        mine = self.group == group
        return _Placed(self.phase[mine], self.column[mine], self.group[mine])


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

    def pair_counts(
        self, moved: Counts, others: Counts, groups: Counts, n_groups: int, within_s: int
    ) -> Counts:
        """Count, of each shift of ``moved``, the pairs with others that are near in time.

        All times (s) are held. ``groups`` numbers the group of each of the others, from 0. The
        result has three tables: of others that come up to ``within_s`` before, at the same second,
        and up to ``within_s`` after. Each has a row per group and a column per shift, the first of
        which is none.

        >>> found = SeasonShifts.of([(0, 4 * 60)], 60)
        >>> moved, others, groups = np.array([10]), np.array([15, 130, 185]), np.zeros(3, int)
        >>> found.pair_counts(moved, others, groups, 1, 30).tolist()
        [[[0, 0, 0, 1]], [[0, 0, 1, 0]], [[1, 0, 0, 0]]]
        """
        season, phase = np.divmod(moved, self.season_s)
        one = _Placed.ordered(phase, self._column(season), np.zeros_like(moved))
        other = self._around(others, groups, within_s)
        # what each way costs, in units of a pair that is looked at
        apart = moved.size * others.size * within_s / self.season_s
        together = n_groups * self.season_s * self.shifts * (1 + self.shifts / 300)
        count = self._by_second if apart > together else self._one_by_one
        before, after = count(one, other, n_groups, ((-within_s, -1), (1, within_s)))
        (now,) = self._one_by_one(one, other, n_groups, ((0, 0),))
        return np.stack([before, now, after])

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
        self, one: _Placed, other: _Placed, n_groups: int, lags: Lags
    ) -> Iterator[Counts]:
        """Count pairs by looking at each of which the phases are so far apart, from first to last.

        There is a table for each pair of ``lags`` (s), with a row per group and a column per shift.
        """
        sizes, kind = np.unique(self.sizes, return_inverse=True)
        most = int(sizes[-1])  # the other's season is by less than this later or earlier
        part = np.searchsorted(self.edges, one.phase, "right") - 1
        rows = part * self.places.shape[1]
        keys = kind[part] * n_groups * 2 * most + most - self.places[part, one.column]
        groups, places = other.group * 2 * most, self.places.ravel()
        for before, after in lags:
            first = np.searchsorted(other.phase, one.phase + before)
            last = np.searchsorted(other.phase, one.phase + after, "right")
            histogram = np.zeros(sizes.size * n_groups * 2 * most, np.int64)
            for here, there in _expanded(first, last):
                place = places[rows[here] + other.column[there]]
                key = (keys[here] + groups[there] + place)[place >= 0]
                histogram += np.bincount(key, minlength=histogram.size)
            tables = histogram.reshape(sizes.size, n_groups, 2 * most)
            found = np.zeros((n_groups, self.shifts), np.int64)
            for size, table in zip(sizes.tolist(), tables, strict=True):
                if size:
                    later = table[:, most : most + size] + table[:, most - size : most]
                    found += later[:, self._moves(size)]
            yield found

    def _by_second(
        self, one: _Placed, other: _Placed, n_groups: int, lags: Lags
    ) -> Iterator[Counts]:
        """Count the same pairs by tables of seconds and seasons, of which each has many events.

        The counts by how many seasons the other is later are a circular correlation.
        """
        found = np.zeros((len(lags), n_groups, self.shifts), np.int64)
        low, high = lags[0][0], lags[-1][1]
        for part in np.flatnonzero(self.sizes).tolist():
            places, size = self.places[part], int(self.sizes[part])
            start, end = self.edges[part : part + 2].tolist()
            waves = np.zeros((len(lags), n_groups, size // 2 + 1), np.complex128)
            length = max(high - low, _AT_ONCE // size)
            for at in range(start, end, length):
                until = min(at + length, end)
                mine = one.between(at, until)
                seconds, row = np.unique(mine.phase - at, return_inverse=True)
                wave = np.fft.rfft(_table(row, places[mine.column], (seconds.size, size))).conj()
                near = other.between(at + low, until + high)
                for group in range(n_groups):
                    theirs = near.of(group)
                    cells = (until - at + high - low, size)
                    counts = _table(theirs.phase - at - low, places[theirs.column], cells)
                    total = np.zeros((cells[0] + 1, size), np.int32)
                    np.cumsum(counts, axis=0, out=total[1:])
                    for number, (before, after) in enumerate(lags):
                        near_by = total[seconds + after - low + 1] - total[seconds + before - low]
                        waves[number, group] += np.einsum("ij,ij->j", wave, np.fft.rfft(near_by))
            later = np.rint(np.fft.irfft(waves, size)).astype(np.int64)
            found += later[:, :, self._moves(size)]
        yield from found

    def _moves(self, size: int) -> Counts:
        """Return how many seasons each shift moves an event by, in a part that so many hold.

        All parts move by the same share of the seasons that hold them.
        """
        moves = (2 * size * np.arange(self.shifts) + self.shifts) // (2 * self.shifts)
        return np.asarray(moves % size, np.int64)


def _table(row: Counts, place: npt.NDArray[np.int32], shape: tuple[int, int]) -> Counts:
    """Count events by row and place, without those that have no place."""
    known = place >= 0
    cells = row[known] * shape[1] + place[known]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def _expanded(first: Counts, last: Counts) -> Iterator[tuple[Counts, Counts]]:
    """Yield pairs of an event and one of its others, which are those from first to last."""
    counts = last - first
    until = counts.cumsum()
    total = int(until[-1]) if until.size else 0
    cuts = np.searchsorted(until, np.arange(_AT_ONCE, total, _AT_ONCE))
    for low, high in itertools.pairwise([0, *np.unique(cuts + 1).tolist(), counts.size]):
        here = counts[low:high]
        event = np.repeat(np.arange(low, high), here)
        begins = first[low:high] - here.cumsum() + here
        yield event, np.arange(event.size) + np.repeat(begins, here)
