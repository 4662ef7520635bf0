"""Shifts within what is held, against each second of it by itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from toolkit.statistics.numeric.season_shifts import SeasonShifts

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
def test_bins_of_each_width_count_what_each_second_by_itself_gives(seed):
    rng = np.random.default_rng(seed)
    held, season_s = drawn(rng)
    seconds = np.array(sorted({t for start, end in held for t in range(start, end)}))
    moved, others = (rng.choice(seconds, rng.integers(1, most)) for most in (20, 30))
    groups, within_s = rng.integers(0, 3, others.size), int(rng.integers(1, 2 * season_s))
    rows = rng.integers(0, 2, moved.size)
    of = list(zip(others.tolist(), groups.tolist(), strict=True))
    expected = [
        pairs_of_seconds(
            held, season_s, moved[rows == row].tolist(), of, groups=3, within_s=within_s
        )
        for row in (0, 1)
    ]
    shifts = SeasonShifts.of(held, season_s)
    logs = (moved, rows), (others, groups)
    assert np.array_equal(shifts.pair_counts(*logs, (2, 3), within_s), np.stack(expected, axis=1))
    for bin_s in {1, 2, 3, within_s // 3 + 1, within_s, within_s + 1}:
        found = shifts.pair_counts(*logs, (2, 3), within_s, bin_s)
        assert np.array_equal(found, np.stack(expected, axis=1)), bin_s


@pytest.mark.parametrize("seed", range(10))
def test_a_log_with_itself_counts_what_it_does_with_a_copy(seed):
    rng = np.random.default_rng(seed)
    held, season_s = drawn(rng)
    seconds = np.array(sorted({t for start, end in held for t in range(start, end)}))
    log = rng.choice(seconds, 200), rng.integers(0, 3, 200)
    shifts, within_s = SeasonShifts.of(held, season_s), int(rng.integers(1, 2 * season_s))
    for bin_s in {1, within_s // 3 + 1, within_s + 1}:
        found = shifts.pair_counts(log, log, (3, 3), within_s, bin_s)
        copied = shifts.pair_counts(log, (log[0], log[1]), (3, 3), within_s, bin_s)
        assert np.array_equal(found, copied)


def test_bins_are_taken_for_many_events_and_give_the_same():
    """In pieces: more pairs than are counted at once, and more bins."""
    rng = np.random.default_rng(1)
    shifts = SeasonShifts.of([(0, 40_000), (43_000, 200_000)], 3_600)
    times = np.sort(
        np.concatenate([rng.integers(0, 40_000, 1_000), rng.integers(43_000, 200_000, 5_000)])
    )
    moved, others = times[::2], times[1::2]
    groups = rng.integers(0, 2, others.size)
    logs = (moved, np.zeros_like(moved)), (others, groups)
    found = shifts.pair_counts(*logs, (1, 2), 400)
    for bin_s in (1, 401):
        assert np.array_equal(found, shifts.pair_counts(*logs, (1, 2), 400, bin_s))
    lag = np.subtract.outer(others, moved)
    for which, near in enumerate(((lag < 0) & (lag >= -400), lag == 0, (lag > 0) & (lag <= 400))):
        assert found[which, 0, :, 0].tolist() == [near[groups == each].sum() for each in (0, 1)]


def test_nothing_held_has_one_shift_which_is_none():
    shifts = SeasonShifts.of([], 60)
    assert (shifts.shifts, shifts.sizes.tolist()) == (1, [0])
