"""The chances of pairs in one bucket, against all ways to place events and known moments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from toolkit.statistics.events.timing import drawn_squares, pairs_chance


@pytest.mark.parametrize(("count", "places"), [(2, 2), (5, 3), (7, 3), (4, 8)])
def test_the_chances_are_those_of_all_ways_to_place_the_events(count, places):
    ways = np.array(list(itertools.product(range(places), repeat=count)))
    held = np.stack([(ways == each).sum(axis=1) for each in range(places)])
    pairs = (held * (held - 1) // 2).sum(axis=0)
    chance = np.bincount(pairs, minlength=count * (count - 1) // 2 + 1).cumsum() / places**count
    found = pairs_chance(0, places)[count]
    np.testing.assert_allclose(found[: chance.size], chance, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("count", "places"), [(2, 5_000), (16, 2), (31, 4), (96, 48), (111, 14), (256, 32), (255, 900)]
)
def test_the_pairs_have_the_moments_of_events_that_are_placed_apart(count, places):
    """Two pairs do not depend on each other, even where they have an event in common."""
    chance = np.diff(pairs_chance(count // 16, places)[count % 16], prepend=0)
    pairs = np.arange(chance.size)
    mean = count * (count - 1) / 2 / places
    assert chance.sum() == pytest.approx(1, abs=1e-11)
    assert (chance * pairs).sum() == pytest.approx(mean, rel=1e-9, abs=1e-7)
    variance = (chance * (pairs - mean) ** 2).sum()
    assert variance == pytest.approx(mean * (1 - 1 / places), rel=1e-9, abs=1e-7)


def test_sums_of_squares_are_those_of_events_that_are_placed_one_by_one():
    events, places = np.array([0, 1, 40, 40, 90, 300, 50]), np.array([9, 9, 48, 48, 24, 48, 1])
    found = drawn_squares(events, places, 20_000)
    assert (found >= events.sum()).all()
    assert found.mean() == pytest.approx((events + events * (events - 1) / places).sum(), rel=1e-3)
    pairs = events * (events - 1) / 2 / places
    assert found.var() == pytest.approx((4 * pairs * (1 - 1 / places)).sum(), rel=0.05)
    assert (found == drawn_squares(events, places, 20_000)).all()
