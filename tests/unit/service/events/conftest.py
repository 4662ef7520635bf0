"""The simulated market, one day of its events, and detectors written the slow way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest

from toolkit.market import EventFamily
from toolkit.service.events.detectors import funding_lives, splash_lives, spread_lives
from toolkit.service.events.documents import Document
from toolkit.service.events.lives import Life, Rule
from toolkit.service.market.simulator import Simulated

DAY_S = 86_400
DAY = 20_776  # 2026-11-19


class Found(NamedTuple):
    """A life, by times: when it opened, its updates, and how it ended."""

    opened_at: int
    updates: tuple[tuple[int, float], ...]
    closed_at: int | None
    reason: str | None
    peak: float


class Machine:
    """One series, row by row, in the words of the module `lives`."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.found: list[Found] = []
        self.opened_at: int | None = None
        self.muted = False
        self.updates: list[tuple[int, float]] = []
        self.peak = 0.0
        self.last_high = 0

    def pause(self, since: int, until: int) -> None:
        """No row between two moments, themselves excluded."""
        if until > since + self.rule.lost_after_s:
            if self.opened_at is not None:
                self.close(since + self.rule.lost_after_s, "leg_lost")
            self.muted = False

    def row(self, now: int, value: float) -> None:
        if self.opened_at is not None:
            self.live(now, value)
        if self.muted and (value < self.rule.close or now - self.last_high > self.rule.max_age_s):
            self.muted = False
        if value >= self.rule.open:
            self.last_high = now
            if self.opened_at is None and not self.muted:
                self.opened_at, self.updates, self.peak = now, [], value
                self.told_at, self.told = now, value

    def live(self, now: int, value: float) -> None:
        self.peak = max(self.peak, value)
        if value < self.rule.close:
            self.close(now, "converged")
        elif now - self.opened_at >= self.rule.max_age_s:
            self.close(now, "expired")
            self.muted = True
        elif self.rule.step is not None:
            grown = self.peak >= self.told + self.rule.step
            if grown and now - self.told_at >= self.rule.every_s:
                self.updates.append((now, self.peak))
                self.told_at, self.told = now, self.peak

    def close(self, at: int | None, reason: str | None) -> None:
        self.found.append(Found(self.opened_at, tuple(self.updates), at, reason, self.peak))
        self.opened_at = None


def machine(ts: Sequence[int], values: Sequence[float], rule: Rule, end: int) -> list[Found]:
    """All lives of a series whose rows are known up to ``end``."""
    series, before = Machine(rule), None
    for now, value in zip(ts, values, strict=True):
        if before is not None:
            series.pause(before, now)
        series.row(now, value)
        before = now
    if before is not None:
        series.pause(before, end)
    if series.opened_at is not None:
        series.close(None, None)
    return series.found


@pytest.fixture(scope="session")
def brute_force() -> Callable[..., list[Found]]:
    return machine


@pytest.fixture(scope="session")
def day() -> int:
    return DAY


@pytest.fixture(scope="session")
def source() -> Simulated:
    return Simulated(7)


@pytest.fixture(scope="session")
def detect() -> dict[EventFamily, Callable[..., list[Life]]]:
    return {
        EventFamily.SPREAD: spread_lives,
        EventFamily.SPLASH: splash_lives,
        EventFamily.FUNDING: funding_lives,
    }


@pytest.fixture(scope="session")
def lives_of(source, detect) -> Callable[..., dict[int, list[Life]]]:
    """The lives of a family by day, over some days from DAY on; each day is detected once."""
    kept: dict[tuple[EventFamily, int], list[Life]] = {}

    def lives(family: EventFamily, days: int = 1) -> dict[int, list[Life]]:
        for number in range(DAY, DAY + days):
            if (family, number) not in kept:
                kept[family, number] = detect[family](source, number)
        return {number: kept[family, number] for number in range(DAY, DAY + days)}

    return lives


@pytest.fixture(scope="session")
def stories(lives_of) -> Callable[..., dict[str, list[Document]]]:
    """All documents of each event, by id and in the order of time, over three days."""

    def tell(family: EventFamily) -> dict[str, list[Document]]:
        told: dict[str, list[Document]] = {}
        for lives in lives_of(family, 3).values():
            for document in (each for life in lives for each in life.documents):
                told.setdefault(document.event_id, []).append(document)
        return told

    return tell
