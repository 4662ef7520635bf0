"""The law of exchanges: however they were read, the same rows and documents, none too early."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.exchanges.told import START, Desk, exchanges, truth_of
from tests.exchanges.truth import HOUR_S, Truth

EVENTFUL = Truth(hours={("SOL_USDT", "OKX.futures"): [(START, 1)]})
"""SOL settles on OKX every hour from the start on, which nobody expects."""


def at_once(path: Path, _: float, end: float) -> Desk:
    desk = Desk(path, exchanges(EVENTFUL), START - 2 * HOUR_S)
    desk.move(end)
    desk.catch_up()
    return desk


def by_minutes(path: Path, begin: float, end: float) -> Desk:
    """Read each minute from ``begin`` on, and hold that nothing is taken back or changed."""
    desk = Desk(path, exchanges(EVENTFUL), START - 2 * HOUR_S)
    desk.move(begin)
    desk.catch_up()
    desk.worst_lag_s = 0.0
    served: dict[str, Any] = {}
    for number, _ in enumerate(desk.run(end)):
        if number % 40 == 0:
            served = kept(served, desk)
    assert desk.worst_lag_s <= 150
    return desk


def at_random(path: Path, begin: float, end: float, seed: int = 0) -> Desk:
    """Read at random moments, and open the archive again between some of them."""
    desk, draw = Desk(path, exchanges(EVENTFUL), START - 2 * HOUR_S), random.Random(seed)
    desk.move(begin)
    served: dict[str, Any] = {}
    while desk.now < end:
        desk.move(min(desk.now + draw.choice([1.0, 7.5, 61.0, 600.0, 1800.0, 5000.0]), end))
        desk.catch_up()
        served = kept(served, desk)
        if draw.random() < 0.4:
            desk.restart()
    desk.catch_up()
    return desk


def kept(before: dict[str, Any], desk: Desk) -> dict[str, Any]:
    """Hold that what was served before begins what is served now."""
    found = {**desk.rows(), **desk.documents()}
    for name, rows in before.items():
        assert found[name][: len(rows)] == rows, name
    return found


def hold_law(folder: Path, begin: float, end: float, seeds: range) -> None:
    desks = [read(folder / read.__name__, begin, end) for read in (at_once, by_minutes)]
    desks += [at_random(folder / str(seed), begin, end, seed) for seed in seeds]
    least = min(desk.archive.known_until for desk in desks)
    assert least >= end - 150
    contents = []
    for desk in desks:
        assert desk.rows() == truth_of(desk, EVENTFUL)
        desk.archive.known_until = least  # compared up to where each of them knows
        contents.append(desk.content())
        desk.archive.close()
    for content in contents[1:]:
        assert content == contents[0]
    assert contents[0]["spread"]


def test_all_ways_of_reading_give_the_same_and_nothing_early(tmp_path: Path) -> None:
    hold_law(tmp_path, START + 3_200, START + 4_000, range(1))


@pytest.mark.slow
def test_all_ways_of_reading_for_hours_give_the_same_and_nothing_early(tmp_path: Path) -> None:
    hold_law(tmp_path, START - 6_000, START + 7_500, range(3))
