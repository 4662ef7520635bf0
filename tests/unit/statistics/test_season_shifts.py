"""Shifts within what is held, against each second of it by itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from toolkit.statistics.season_shifts import SeasonShifts, _Placed

Stretches = list[tuple[int, int]]


def pairs_of_seconds(
    held: Stretches,
    season_s: int,
    moved: list[int],
    others: list[tuple[int, int]],
    *,
    groups: int,
    within_s: int,
) -> np.ndarray:
    """Count as the docstring says, with a list of the held seconds of each phase."""
    lines: dict[int, list[int]] = {}
    for second in sorted({t for start, end in held for t in range(start, end)}):
        lines.setdefault(second % season_s, []).append(second)
    sizes = sorted(len(line) for line in lines.values())
    shifts = sizes[(len(sizes) + 1) // 2 - 1]
    found = np.zeros((3, groups, shifts), int)
    for shift in range(shifts):
        for ts in moved:
            line = lines[ts % season_s]
            steps = math.floor(Fraction(shift * len(line), shifts) + Fraction(1, 2))
            at = line[(line.index(ts) + steps) % len(line)]
            for other, group in others:
                if abs(other - at) <= within_s:
                    found[(other >= at) + (other > at), group, shift] += 1
    return found


def drawn(rng: np.random.Generator) -> tuple[Stretches, int]:
    """Draw up to seven stretches, and a season that they hold in different parts."""
    cuts = np.sort(rng.choice(np.arange(-200, 500), 2 * int(rng.integers(1, 8)), replace=False))
    held = list(zip(cuts[::2].tolist(), cuts[1::2].tolist(), strict=True))
    return held, int(rng.choice([7, 20, 60]))


@pytest.mark.parametrize("seed", range(25))
def test_both_ways_count_what_each_second_by_itself_gives(seed):
    rng = np.random.default_rng(seed)
    held, season_s = drawn(rng)
    seconds = np.array(sorted({t for start, end in held for t in range(start, end)}))
    moved, others = (rng.choice(seconds, rng.integers(1, most)) for most in (20, 30))
    groups, within_s = rng.integers(0, 3, others.size), int(rng.integers(1, 2 * season_s))
    expected = pairs_of_seconds(
        held,
        season_s,
        moved.tolist(),
        list(zip(others.tolist(), groups.tolist(), strict=True)),
        groups=3,
        within_s=within_s,
    )
    shifts = SeasonShifts.of(held, season_s)
    assert np.array_equal(shifts.pair_counts(moved, others, groups, 3, within_s), expected)
    season, phase = np.divmod(moved, season_s)
    one = _Placed.ordered(phase, shifts._column(season), np.zeros_like(moved))
    other = shifts._around(others, groups, within_s)
    lags = ((-within_s, -1), (0, 0), (1, within_s))
    for way in (shifts._one_by_one, shifts._by_second):
        assert np.array_equal(np.stack(list(way(one, other, 3, lags))), expected)


def test_the_way_by_seconds_is_taken_for_many_events_and_gives_the_same():
    """In pieces: more pairs than are counted at once, and more seconds."""
    rng = np.random.default_rng(1)
    shifts = SeasonShifts.of([(0, 40_000), (43_000, 200_000)], 3_600)
    times = np.sort(
        np.concatenate([rng.integers(0, 40_000, 1_000), rng.integers(43_000, 200_000, 5_000)])
    )
    moved, others = times[::2], times[1::2]
    groups = rng.integers(0, 2, others.size)
    found = shifts.pair_counts(moved, others, groups, 2, 400)
    season, phase = np.divmod(moved, 3_600)
    one = _Placed.ordered(phase, shifts._column(season), np.zeros_like(moved))
    lags = ((-400, -1), (0, 0), (1, 400))
    other = shifts._around(others, groups, 400)
    assert np.array_equal(found, np.stack(list(shifts._one_by_one(one, other, 2, lags))))
    lag = np.subtract.outer(others, moved)
    for which, near in enumerate(((lag < 0) & (lag >= -400), lag == 0, (lag > 0) & (lag <= 400))):
        assert found[which, :, 0].tolist() == [near[groups == each].sum() for each in (0, 1)]


def test_nothing_held_has_one_shift_which_is_none():
    shifts = SeasonShifts.of([], 60)
    assert (shifts.shifts, shifts.sizes.tolist()) == (1, [0])
