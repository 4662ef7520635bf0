"""The archive of exchanges' answers, an append-only DuckDB file, and the source made of it.

One process opens the file. An answer's rows and how far they are known are committed together. The
row accepted first stays, and a later reading that differs is recorded beside it. Each row with
``ts`` before the ``until`` of its leg and kind is here, lost, or never was.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
from numpy.typing import NDArray

from toolkit.errors import InputError
from toolkit.market import Leg
from toolkit.service.market.exchanges import PUBLISHED_S, BarAnswer, LegKey, ListedLeg, RateAnswer
from toolkit.service.market.source import Bars, Kind, LostRows, RowKind, SettledRates

BAR_S, HOUR_S, DAY_S, END = 60, 3_600, 86_400, 4_102_444_800

_KEPT = 512
"""How many days of a leg's bars are kept as arrays (30 MB at most)."""
_HELD: set[Path] = set()  # DuckDB lets one process open a file twice
_TABLES = """
CREATE TABLE meta (id VARCHAR, made_at BIGINT, start BIGINT, revision BIGINT);
CREATE TABLE leg (leg_id INTEGER, symbol VARCHAR, exchange VARCHAR, market VARCHAR, venue VARCHAR,
    ccxt_symbol VARCHAR, multiplier DOUBLE, volume_factor DOUBLE, funding BOOLEAN, note VARCHAR,
    added_at BIGINT, ended_at BIGINT);
CREATE TABLE bar (leg_id INTEGER, ts BIGINT, price DOUBLE, volume DOUBLE, late BOOLEAN);
CREATE TABLE settlement (leg_id INTEGER, ts BIGINT, rate DOUBLE, interval_hours INTEGER,
    late BOOLEAN);
CREATE TABLE known (leg_id INTEGER, kind VARCHAR, until BIGINT);
CREATE TABLE lost (leg_id INTEGER, kind VARCHAR, "start" BIGINT, "end" BIGINT, why VARCHAR,
    declared_at BIGINT);
CREATE TABLE difference (leg_id INTEGER, named VARCHAR, ts BIGINT, served DOUBLE, read DOUBLE,
    read_at BIGINT);
CREATE TABLE refused (leg_id INTEGER, kind VARCHAR, until BIGINT, why VARCHAR, n BIGINT);
"""
_ROWS: Mapping[RowKind, tuple[str, str, str]] = {
    "bars": ("bar", "price", "volume"),
    "funding": ("settlement", "rate", "interval_hours"),
}
_DIFFER = """
INSERT INTO difference SELECT *, epoch(now()) FROM (
    SELECT $leg, '{column}', ts, ours.value, theirs.value
    FROM (SELECT ts, {column} AS value FROM {table}
        WHERE leg_id = $leg AND ts >= $start AND ts < $end) AS ours
    FULL JOIN (SELECT unnest($ts::BIGINT[]) AS ts, unnest($read::DOUBLE[]) AS value) AS theirs
        USING (ts)
    WHERE ours.value IS DISTINCT FROM theirs.value
    EXCEPT SELECT leg_id, named, ts, served, read FROM difference)
"""
_Columns = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(slots=True)
class HeldLeg:
    """A leg, and by kind how far its rows are known and what is lost of them, oldest first.

    Detectors use rows from ``added_at`` (s) on. A leg with ``ended_at`` is not read any more.
    """

    id: int
    listed: ListedLeg
    added_at: int
    ended_at: int | None
    until: dict[RowKind, int]
    lost: dict[RowKind, list[LostRows]] = field(default_factory=dict)

    @property
    def known_until(self) -> int:
        """The moment (s) before which everything is known or lost."""
        funding = self.until["funding"] - 1 if self.listed.funding else END
        return min(self.until["bars"], funding)


class Archive:
    """The rows of every leg, for all threads of this process.

    ``id`` is drawn when the file is made. Nothing before ``start`` (s) is read. All that was over
    by ``known_until`` (s), which never goes back, is known of every leg that is read. ``revision``
    changes with what lies before it.
    """

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self._path, self._lock = path, threading.RLock()
        self._connection: duckdb.DuckDBPyConnection | None = connection
        self._kept: dict[tuple[int, RowKind, int], tuple[_Columns, _Columns]] = {}
        if path.resolve() in _HELD:
            raise duckdb.IOException(f"(PID {os.getpid()})")
        self.start: int
        self.revision: int
        self.id, self.start, self.revision = self._do("SELECT id, start, revision FROM meta")[0]
        self.legs: dict[LegKey, HeldLeg] = {}
        self.known_until = self.start
        for number, symbol, exchange, market, *rest, added_at, ended_at in self._do("FROM leg"):
            listed = ListedLeg(LegKey(symbol, Leg(exchange, market)), *rest)
            until = dict(self._do("SELECT kind, until FROM known WHERE leg_id = ?", number))
            self.legs[listed.key] = HeldLeg(number, listed, added_at, ended_at, until)
        self._look_up(*self.legs.values())
        _HELD.add(path.resolve())

    @classmethod
    def open(
        cls, path: Path, *, start: int, legs: Sequence[ListedLeg], silent: Collection[str] = ()
    ) -> Self:
        """Open the file, or make it with ``start`` (s, rounded down to the hour), for some legs.

        New legs have a history from the archive's start on. Legs that are not among ``legs`` end,
        except those of ``silent`` exchanges, whose listings are unknown. A leg that comes back has
        lost the time between. A file that is in use or not an archive, and a leg that was another
        market before, are an `InputError`.
        """
        with ExitStack() as opened:
            try:
                if not path.exists():
                    _make(path, start // HOUR_S * HOUR_S)
                connection = opened.enter_context(_connected(path))
                archive = cls(path, connection)
            except (duckdb.Error, OSError, LookupError) as error:
                raise _refusal(path, error) from None
            opened.callback(archive.close)
            archive._take_up({leg.key: leg for leg in legs}, silent)
            opened.pop_all()
        return archive

    def close(self) -> None:
        """Close the file. A thread that still waits for an answer can add nothing."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            _HELD.discard(self._path.resolve())

    def accept(self, key: LegKey, answer: BarAnswer | RateAnswer) -> None:
        """Add an answer's rows from the leg's ``until`` on. Its window began there or before."""
        leg, (kind, until, rows, missing) = self.legs[key], _read(answer)
        with self._commit(leg, kind, leg.until[kind], until):
            self._insert(leg, kind, _between(rows, leg.until[kind], until), late=False)
            for why, n in answer.refused.items():
                self._do("INSERT INTO refused VALUES (?, ?, ?, ?, ?)", leg.id, kind, until, why, n)
            for ts in (each for each in missing if each >= leg.until[kind]):
                why = f"not published in {PUBLISHED_S} s"
                self._declare(leg, kind, LostRows(ts, ts + HOUR_S, why))

    def lose(self, key: LegKey, kind: RowKind, until: int, why: str) -> None:
        """Declare the unknown rows with ``ts`` before ``until`` (s) lost, until they are found."""
        leg = self.legs[key]
        known = leg.until[kind]
        if until <= known:
            return
        with self._commit(leg, kind, known, until):
            extend = (
                'UPDATE lost SET "end" = ? WHERE leg_id = ? AND kind = ? AND "end" = ? AND why = ?'
            )
            if self._do(extend, until, leg.id, kind, known, why) == [(0,)]:
                self._declare(leg, kind, LostRows(known, until, why))

    def find_late(
        self, key: LegKey, lost: LostRows, start: int, answer: BarAnswer | RateAnswer
    ) -> None:
        """Add an answer's rows of a lost stretch from ``start`` (s) on, which is lost no more."""
        leg, (kind, until, rows, missing) = self.legs[key], _read(answer)
        start = max(start, lost.start)
        until = max(start, min(until, lost.end, *(ts for ts in missing if ts >= start)))
        with self._commit(leg, kind, start, until):
            self._insert(leg, kind, _between(rows, start, until), late=True)
            where = (leg.id, kind, lost.start)
            self._do('DELETE FROM lost WHERE leg_id = ? AND kind = ? AND "start" = ?', *where)
            for first, last in ((lost.start, start), (until, lost.end)):
                if first < last:
                    self._declare(leg, kind, LostRows(first, last, lost.why))

    def compare(self, key: LegKey, start: int, answer: BarAnswer | RateAnswer) -> None:
        """Record where a later reading from ``start`` (s) on differs from the archive."""
        leg, (kind, until, rows, _) = self.legs[key], _read(answer)
        table, *columns = _ROWS[kind]
        until = min(until, leg.until[kind])
        ts, *values = _between(rows, start, until)
        with self._commit(leg, kind, until, until) as connection:
            for column, read in zip(columns, map(_nullable, values), strict=True):
                window = {"leg": leg.id, "start": start, "end": until}
                theirs = {"ts": ts.tolist(), "read": read}
                connection.execute(_DIFFER.format(table=table, column=column), window | theirs)

    def end(self, key: LegKey, at: int | None) -> None:
        """End a leg at a moment (s): it is not read any more. None revokes that."""
        leg = self.legs[key]
        with self._commit(leg, "bars", leg.until["bars"], 0):
            self._do("UPDATE leg SET ended_at = ? WHERE leg_id = ?", at, leg.id)
            leg.ended_at = at

    def bars(self, key: LegKey, start: int, end: int, *, heard: bool) -> Bars:
        """Return a leg's bars with ``start <= ts < end``, as served or as detectors hear them.

        Detectors hear none that came late, and none before the leg was added.
        """
        leg = self.legs[key]
        start = max(start, self.start)
        end = max(start, min(end, leg.until["bars"]))
        days = range(start // DAY_S, -(-end // DAY_S)) or [start // DAY_S]
        found = [_between(self._rows(leg, "bars", day)[heard], start, end) for day in days]
        ts, price, volume = map(np.concatenate, zip(*found, strict=True))
        no_volume = leg.listed.volume_factor is None
        return Bars(ts, price, BAR_S, volume=None if no_volume else volume)

    def settlements(self, key: LegKey, *, heard: bool) -> SettledRates:
        """Return all settlements of a leg, as `bars`."""
        ts, rate, hours = self._rows(self.legs[key], "funding", 0)[heard]
        return SettledRates(ts, rate, hours.astype(np.int64))

    def _rows(self, leg: HeldLeg, kind: RowKind, day: int) -> tuple[_Columns, _Columns]:
        """Return a leg's bars of a day, or all its settlements (day 0), as served and as heard."""
        place = (leg.id, kind, day)
        with self._used() as connection:
            rows = self._kept.pop(place, None)
            if rows is None:
                table, first, second = _ROWS[kind]
                window = [day * DAY_S, (day + 1) * DAY_S] if kind == "bars" else [0, END]
                values = f"ts, {first}, coalesce({second}, 'nan'::DOUBLE), late"
                where = "WHERE leg_id = ? AND ts >= ? AND ts < ? ORDER BY ts"
                connection.execute(f"SELECT {values} FROM {table} {where}", [leg.id, *window])  # noqa: S608 - ours
                ts, one, other, late = connection.fetchnumpy().values()
                heard = ~late & (ts >= leg.added_at)
                rows = (ts, one, other), (ts[heard], one[heard], other[heard])
            self._kept[place] = rows
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return rows

    def _insert(self, leg: HeldLeg, kind: RowKind, rows: _Columns, *, late: bool) -> None:
        lists = "unnest(?::BIGINT[]), unnest(?::DOUBLE[]), unnest(?::DOUBLE[])"
        values = [rows[0].tolist(), *map(_nullable, rows[1:])]
        self._do(f"INSERT INTO {_ROWS[kind][0]} SELECT ?, {lists}, ?", leg.id, *values, late)

    def _declare(self, leg: HeldLeg, kind: RowKind, lost: LostRows) -> None:
        self._do("INSERT INTO lost VALUES (?, ?, ?, ?, ?, epoch(now()))", leg.id, kind, *lost)

    def _do(self, statement: str, *values: object) -> list[Any]:
        with self._used() as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _used(self) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            with self._lock:
                if self._connection is None:
                    raise duckdb.ConnectionException("it was closed")
                yield self._connection
        except duckdb.Error as error:
            raise _refusal(self._path, error) from None

    @contextmanager
    def _commit(
        self, leg: HeldLeg, kind: RowKind, start: int, until: int
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Commit the block's changes, and with them that rows in ``[start, until)`` are known."""
        known, changed = max(until, leg.until[kind]), start < min(until, self.known_until)
        with self._used() as connection:
            connection.begin()
            try:
                yield connection
                advance = "UPDATE known SET until = ? WHERE leg_id = ? AND kind = ?"
                self._do(advance, known, leg.id, kind)
                if changed:
                    self._do("UPDATE meta SET revision = revision + 1")
                connection.commit()
            except BaseException:
                with suppress(duckdb.Error):
                    connection.rollback()
                raise
            for day in range(start // DAY_S, until // DAY_S + 1) if kind == "bars" else [0]:
                self._kept.pop((leg.id, kind, day), None)
            leg.until[kind] = known
            self.revision += changed
            self._look_up(leg)

    def _look_up(self, *changed: HeldLeg) -> None:
        """Update what is lost of some legs, and until when everything is known."""
        query = 'SELECT kind, "start", "end", why FROM lost WHERE leg_id = ? ORDER BY "start"'
        for leg in changed:
            found = self._do(query, leg.id)
            leg.lost = {
                kind: [LostRows(*row) for of, *row in found if of == kind] for kind in _ROWS
            }
        read = [leg for leg in self.legs.values() if leg.ended_at is None]
        ended = max((leg.ended_at or 0 for leg in self.legs.values()), default=self.start)
        known = min((leg.known_until for leg in read), default=ended)
        self.known_until = max(self.known_until, known, *(leg.added_at for leg in read))

    def _take_up(self, legs: Mapping[LegKey, ListedLeg], silent: Collection[str]) -> None:
        for key, held in self.legs.items():
            was, listed = held.listed, legs.get(key, held.listed)
            if (was.venue, was.market) != (listed.venue, listed.market):
                allowed = f"{was.market} of {was.venue}, the {key.symbol}:{key.leg} of the archive"
                raise InputError("market", listed.market, allowed, advice="name another file")
        for key, held in self.legs.items():
            if not (key in legs or key.leg.exchange in silent or held.ended_at is not None):
                self.end(key, self.known_until)
        now = self.known_until
        for key, listed in legs.items():
            if key not in self.legs:
                self._add(listed, now)
            elif self.legs[key].ended_at is not None:
                self.lose(key, "bars", now // BAR_S * BAR_S, "it was not read")
                self.lose(key, "funding", now + 1, "it was not read")
                self.end(key, None)

    def _add(self, listed: ListedLeg, added_at: int) -> None:
        until: dict[RowKind, int] = dict.fromkeys(_ROWS, self.start)
        leg = HeldLeg(len(self.legs), listed, added_at, None, until)
        (symbol, (exchange, market)), *facts = astuple(listed)
        with self._commit(leg, "bars", 0, 0):
            row = (leg.id, symbol, exchange, str(market), *facts, added_at, None)
            self._do("INSERT INTO leg VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)
            for kind in _ROWS:
                self._do("INSERT INTO known VALUES (?, ?, ?)", leg.id, kind, self.start)
        self.legs[listed.key] = leg


def _make(path: Path, start: int) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    with _connected(draft) as connection:
        connection.execute(_TABLES)
        row = [f"exchanges-by-ccxt-{secrets.token_hex(4)}", start]
        connection.execute("INSERT INTO meta VALUES (?, epoch(now()), ?, 0)", row)
    draft.replace(path)


def _connected(path: Path) -> duckdb.DuckDBPyConnection:
    confined = {"enable_external_access": False, "python_enable_replacements": False}
    return duckdb.connect(path, config={**confined, "memory_limit": "256MB", "threads": 1})


def _refusal(path: Path, error: BaseException) -> InputError:
    held = re.search(r"PID (\d+)", str(error))
    allowed = "an archive of exchanges, or the name of a new file"
    advice = str(error).strip().splitlines()[0]
    if held:
        allowed = "a file that no process holds"
        advice = f"process {held[1]} holds it: stop it, or name another file"
    return InputError("archive", str(path), allowed, advice=advice)


def _read(answer: BarAnswer | RateAnswer) -> tuple[RowKind, int, _Columns, tuple[int, ...]]:
    """Return the kind, the ``ts`` (s) before which rows are known, the rows, and the missing."""
    if isinstance(answer, RateAnswer):
        rates, until = answer.rows, answer.known_until + 1
        hours = rates.interval_hours.astype(np.float64)
        return "funding", until, (rates.ts, rates.rate, hours), answer.missing
    bars = answer.rows
    volume = np.full(len(bars.ts), np.nan) if bars.volume is None else bars.volume
    return "bars", answer.known_until // BAR_S * BAR_S, (bars.ts, bars.price, volume), ()


def _between(rows: _Columns, start: int, end: int) -> _Columns:
    first, last = np.searchsorted(rows[0], (start, end))
    return rows[0][first:last], rows[1][first:last], rows[2][first:last]


def _nullable(values: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


class Exchanges:
    """An archive as a source: as it is served, or with ``is_heard`` as detectors see it."""

    kind: Kind = "live"

    def __init__(self, archive: Archive, *, is_heard: bool = False) -> None:
        self._archive, self._is_heard = archive, is_heard
        self.id = archive.id
        self.exchanges: Sequence[str] = sorted({key.leg.exchange for key in archive.legs})
        by_symbol = groupby(sorted(archive.legs), key=lambda key: key.symbol)
        self.listing: Mapping[str, tuple[Leg, ...]] = {
            symbol: tuple(key.leg for key in keys) for symbol, keys in by_symbol
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exchanges) and hash(other) == hash(self)

    def __hash__(self) -> int:
        return hash((self.id, self._is_heard))

    @property
    def known_until(self) -> int:
        """The archive's ``known_until`` (s)."""
        return self._archive.known_until

    @property
    def begins(self) -> int:
        """The archive's start (s)."""
        return self._archive.start

    @property
    def revision(self) -> int:
        """The archive's ``revision``."""
        return self._archive.revision

    @property
    def heard(self) -> Exchanges:
        """The source without rows that came late, or from before their leg was added."""
        return Exchanges(self._archive, is_heard=True)

    def lost(
        self, symbol: str, leg: Leg, start: int, end: int, kind: RowKind
    ) -> Sequence[LostRows]:
        """Return the lost stretches of a leg's rows of a kind that touch ``[start, end)``."""
        lost = self._held(symbol, leg).lost[kind]
        return [each for each in lost if each.start < end and each.end > start]

    def bars(self, symbol: str, leg: Leg) -> _ArchivedBars:
        """Return the bars of a listed leg."""
        return _ArchivedBars(self._archive, self._held(symbol, leg).listed.key, self._is_heard)

    def funding(self, symbol: str, leg: Leg) -> _ArchivedFunding | None:
        """Return the settlements of a listed futures leg, None if it has none to read."""
        listed = self._held(symbol, leg).listed
        return (
            _ArchivedFunding(self._archive, listed.key, self._is_heard) if listed.funding else None
        )

    def _held(self, symbol: str, leg: Leg) -> HeldLeg:
        return self._archive.legs[LegKey(symbol, leg)]


@dataclass(frozen=True, slots=True)
class _ArchivedRows:
    """A leg's rows of one kind. Its span includes what is not known yet."""

    archive: Archive
    key: LegKey
    is_heard: bool
    block_s: int = DAY_S
    interval_s: int = BAR_S

    @property
    def span(self) -> tuple[int, int]:
        return self.archive.start, END


class _ArchivedBars(_ArchivedRows):
    def between(self, start: int, end: int) -> Bars:
        return self.archive.bars(self.key, start, end, heard=self.is_heard)

    def parts(self, ts: int) -> Bars:
        return self.between(ts, ts + 1)


class _ArchivedFunding(_ArchivedRows):
    def between(self, start: int, end: int) -> SettledRates:
        return self.archive.settlements(self.key, heard=self.is_heard).between(start, end)

    def next_after(self, ts: int) -> int | None:
        return self.archive.settlements(self.key, heard=self.is_heard).next_after(ts)
