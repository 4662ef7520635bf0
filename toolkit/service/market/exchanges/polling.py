"""Polling of exchanges: backfill, then each minute the last one, and again what was lost.

Each exchange has a thread that calls `Poller.round` and waits until something is due again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from toolkit.errors import ExchangeOutageError as Outage
from toolkit.errors import ExchangeRefusedError as Refused
from toolkit.errors import RailError
from toolkit.service.market.exchanges import PUBLISHED_S, BarAnswer, RateAnswer, WantedLegs
from toolkit.service.market.exchanges.archive import BAR_S, DAY_S, HOUR_S, Archive, HeldLeg
from toolkit.service.market.exchanges.reading import Exchange
from toolkit.service.market.source import Clock, LostRows, RowKind, SpedClock

LAG_S = 150
"""The archive is known up to this far behind an exchange (s), unless it stops answering."""

LOST_AFTER_S = 90
"""After so long without an answer (s), the rows are lost."""

_ASKED_AFTER_S, _UNEXPECTED_AFTER_S, _PATIENCE_S = 5, 65, 20
_LONGEST_WAIT_S, _TIMEOUT_S, _GRACE_S, _FAILURES = 60, 10, 0.5, 2


@dataclass(slots=True)
class _Poll:
    kind: RowKind | Literal["again", "listing"]
    leg: HeldLeg | None = None
    due: float = 0.0
    wait_s: float = 0.0
    failing_s: float = 0.0
    why: str = ""

    def succeed(self, due: float) -> None:
        self.due, self.wait_s, self.failing_s, self.why = due, 0.0, 0.0, ""

    def fail(self, now: float, why: str) -> None:
        self.wait_s = min(2.0 * self.wait_s or 1.0, _LONGEST_WAIT_S)
        self.due, self.why = now + self.wait_s, self.why or why


class Poller:
    """Fills an archive from exchanges, with a thread per exchange inside a ``with`` block.

    ``wanted``: the legs they were asked to list. ``clock``: how much faster than time their clocks
    run. ``tell`` gets a line per outage and per leg that ends. ``stopping`` ends the threads.
    """

    def __init__(
        self,
        archive: Archive,
        exchanges: Sequence[Exchange],
        clock: Clock,
        wanted: WantedLegs,
        *,
        tell: Callable[[str], object] = lambda _: None,
        stopping: threading.Event | None = None,
    ) -> None:
        self._archive, self._exchanges, self._wanted, self._tell = archive, exchanges, wanted, tell
        self._speed = clock.speed if isinstance(clock, SpedClock) else 1.0
        self._stopping, self._turn = stopping or threading.Event(), threading.Condition()
        self._tasks = {each.name: list(self._tasks_of(each)) for each in exchanges}
        self._rounds = {each.name: (each.now(), each.now()) for each in exchanges}
        self._closed_until = dict.fromkeys(self._tasks, 0.0)
        self._compared: dict[int, int] = {}
        self._beyond: set[tuple[int, LostRows]] = set()
        self._down: set[str] = set()
        self._unusable: set[str] = set()
        self._threads = [
            threading.Thread(target=self._run, args=[each], daemon=True) for each in exchanges
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(_GRACE_S)  # it may wait for an answer, which is then dropped

    def catch_up(self, on_progress: Callable[[str, float], object] = lambda *_: None) -> None:
        """Return once all but the last minutes are known or lost.

        ``on_progress`` is called repeatedly with an exchange and its share that is.
        """
        behind, start = list(self._exchanges), self._archive.start
        while behind and not self._stopping.is_set():
            with self._turn:
                self._turn.wait(1.0)
            for exchange in list(behind):
                wanted_s = max(exchange.now() - LAG_S - start, 1.0)
                legs = self._legs(exchange)
                shares = [min((leg.known_until - start) / wanted_s, 1.0) for leg in legs] or [1.0]
                on_progress(exchange.name, sum(shares) / len(shares))
                if min(shares) == 1.0:
                    behind.remove(exchange)

    def round(self, exchange: Exchange) -> float:
        """Ask an exchange for what is due, and return when something is due next (s, its clock)."""
        name, now = exchange.name, exchange.now()
        began, planned = self._rounds[name]
        # A machine's sleep does not count.
        elapsed_s = min(max(now - began, 0.0), planned - began + _TIMEOUT_S)
        failures, why = 0, "it asked to wait"
        for task in sorted(self._tasks[name], key=lambda task: task.due):
            task.failing_s += elapsed_s if task.why else 0.0
            if task.due > exchange.now() or self._stopping.is_set():
                continue
            if failures < _FAILURES and exchange.now() >= self._closed_until[name]:
                try:
                    task.succeed(self._ask(exchange, task))
                except Exception as error:  # otherwise its thread ends and the clock stops
                    if isinstance(error, RailError) and not isinstance(error, (Outage, Refused)):
                        raise  # the archive can't be written
                    failures, why = failures + 1, str(error) or type(error).__name__
                    wait_s = getattr(error, "retry_after_s", None) or 0.0
                    self._closed_until[name] = exchange.now() + wait_s
                else:
                    failures = 0
                    continue
            task.fail(exchange.now(), why)
        self._lose(exchange)
        left_s = [LOST_AFTER_S - task.failing_s for task in self._tasks[name] if task.why]
        if not left_s and name in self._down:
            self._down.discard(name)
            self._tell(f"{name} answers again; what was lost is read again")
        due = min(task.due for task in self._tasks[name])
        due = min([due, *(exchange.now() + each for each in left_s if each > 0)])
        self._rounds[name] = (now, due)
        with self._turn:
            self._turn.notify_all()
        return due

    def _run(self, exchange: Exchange) -> None:
        while not self._stopping.is_set():
            try:
                due = self.round(exchange)
            except RailError as error:
                self._tell(str(error))
                due = exchange.now() + _LONGEST_WAIT_S
            self._stopping.wait(max(due - exchange.now(), 0.0) / self._speed)

    def _tasks_of(self, exchange: Exchange) -> Iterator[_Poll]:
        own = [key for key in self._archive.legs if key.leg.exchange == exchange.name]
        legs = [leg for leg in map(self._archive.legs.__getitem__, own) if leg.ended_at is None]
        yield from (_Poll("bars", leg) for leg in legs)
        yield from (_Poll("funding", leg) for leg in legs if leg.listed.funding)
        yield from (_Poll("again", leg) for leg in legs)
        yield _Poll("listing", due=exchange.now() + DAY_S)

    def _legs(self, exchange: Exchange) -> list[HeldLeg]:
        legs = [task.leg for task in self._tasks[exchange.name] if task.kind == "bars"]
        return [leg for leg in legs if leg is not None and leg.ended_at is None]

    def _ask(self, exchange: Exchange, task: _Poll) -> float:
        leg, kind = task.leg, task.kind
        if leg is None or kind == "listing":
            self._look(exchange)
            return exchange.now() + DAY_S
        if leg.ended_at is not None:
            return math.inf
        if kind == "again":
            return self._read_again(exchange, leg)
        try:
            return self._read(exchange, leg, kind)
        except Refused as refused:
            reach = _whole(refused.reach or 0, kind)
            if reach > leg.until[kind]:
                self._archive.lose(leg.listed.key, kind, reach, str(refused))
                return exchange.now()
            if not task.why:
                self._look(exchange)  # perhaps the leg is gone
            if leg in self._legs(exchange):
                raise
            return math.inf

    def _read(self, exchange: Exchange, leg: HeldLeg, kind: RowKind) -> float:
        """Read what is not known yet of a leg, and return when more is due (s)."""
        for answer in _answers(exchange, leg, kind, leg.until[kind]):
            if self._stopping.is_set():
                break
            self._archive.accept(leg.listed.key, answer)
            told = f"{leg.listed.market} of {exchange.name}: {', '.join(answer.refused)}"
            if answer.refused and not len(answer.rows.ts) and told not in self._unusable:
                self._unusable.add(told)
                self._tell(told)
        now = exchange.now()
        hour = now // HOUR_S * HOUR_S
        if kind == "bars":
            return _next_minute(now)
        if leg.until[kind] <= hour:
            return min(now + _PATIENCE_S, max(hour + PUBLISHED_S, now) + 1)
        settled = self._archive.settlements(leg.listed.key, heard=False)
        is_expected = settled.next_after(int(hour) + HOUR_S - 1) == hour + HOUR_S
        return hour + HOUR_S + (_ASKED_AFTER_S if is_expected else _UNEXPECTED_AFTER_S)

    def _read_again(self, exchange: Exchange, leg: HeldLeg) -> float:
        """Read a leg's lost rows, and once an hour compare the hour before the last and rates."""
        key, now = leg.listed.key, int(exchange.now())
        hour = now // HOUR_S * HOUR_S
        turn = hour + 180 + 37 * leg.id % 3_300  # spread over the hour
        is_time = self._compared.setdefault(leg.id, hour) < hour and now >= turn
        kinds: list[RowKind] = ["bars", "funding"] if is_time and leg.listed.funding else ["bars"]
        for kind in kinds:
            for lost in leg.lost[kind]:
                if (leg.id, lost) not in self._beyond:
                    self._find(exchange, leg, kind, lost, lost.start)
            if is_time:
                back_s = 2 * HOUR_S if kind == "bars" else DAY_S
                start = max(hour - back_s, self._archive.start)
                for answer in _answers(exchange, leg, kind, start, hour - HOUR_S):
                    self._archive.compare(key, start, answer)
                    start = answer.known_until
                self._compared[leg.id] = hour
        return _next_minute(now)

    def _find(
        self, exchange: Exchange, leg: HeldLeg, kind: RowKind, lost: LostRows, start: int
    ) -> None:
        try:
            for answer in _answers(exchange, leg, kind, start, lost.end):
                left = [each for each in leg.lost[kind] if each.end == lost.end]
                if self._stopping.is_set() or not left:
                    return
                self._archive.find_late(leg.listed.key, left[0], start, answer)
        except Refused as refused:
            reach = _whole(refused.reach or 0, kind)
            if reach <= start:
                raise
            if reach >= lost.end:
                self._beyond.add((leg.id, lost))
            else:
                self._find(exchange, leg, kind, lost, reach)

    def _lose(self, exchange: Exchange) -> None:
        """Declare lost what had no answer for too long, so that the clock of the others goes on."""
        name, now = exchange.name, int(exchange.now())
        for task in self._tasks[name]:
            leg, kind = task.leg, task.kind
            if leg is None or leg.ended_at is not None or task.failing_s < LOST_AFTER_S:
                continue
            if kind not in {"bars", "funding"}:
                continue
            why = f"no answer for {LOST_AFTER_S} s: {task.why}"
            until = now // BAR_S * BAR_S if kind == "bars" else now + 1
            self._archive.lose(leg.listed.key, kind, until, why)
            if name not in self._down:
                self._down.add(name)
                self._tell(f"{name}: {why}; its rows are lost until it answers")

    def _look(self, exchange: Exchange) -> None:
        listed = {leg.key: leg.market for leg in exchange.list(self._wanted)}
        for leg in self._legs(exchange):
            key = leg.listed.key
            if listed.get(key) != leg.listed.market:
                self._archive.end(key, int(exchange.now()))
                self._tell(f"{exchange.name} lists {leg.listed.market} no more; its rows end")


def _answers(
    exchange: Exchange, leg: HeldLeg, kind: RowKind, start: int, end: int | None = None
) -> Iterator[BarAnswer | RateAnswer]:
    """Yield an exchange's answers for a leg from ``start`` on, for rates always up to now.

    Settlements are on the hour: once the last hour's is there, or would be, rates are known up to
    the next.
    """
    now = int(exchange.now())
    if kind == "bars":
        yield from exchange.bars(leg.listed, start, min(end or now, now))
        return
    hour = now // HOUR_S * HOUR_S
    for answer in exchange.settlements(leg.listed, start, now + 1):
        until = answer.known_until
        if until >= hour:
            is_told = hour in answer.rows.ts or now >= hour + _UNEXPECTED_AFTER_S
            until = hour + HOUR_S - 1 if is_told else hour - 1
        yield answer._replace(known_until=until)


def _next_minute(now: float) -> float:
    return (now - _ASKED_AFTER_S) // BAR_S * BAR_S + BAR_S + _ASKED_AFTER_S


def _whole(ts: int, kind: RowKind) -> int:
    return -(-ts // BAR_S) * BAR_S if kind == "bars" else ts
