"""What is planted: its shape, and where it may lie."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from toolkit.service.market.simulator.processes import RandomStream
from toolkit.service.market.simulator.schedule import Pulse, Slots, TimeSpan, planted_bps

from ...truth import beyond

START = 1_800_000_000


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("peak_bps", [-80.0, 120.0])
def test_a_pulse_is_beyond_a_threshold_exactly_between_its_crossings(
    power: int, peak_bps: float
) -> None:
    pulse = Pulse(START, 40, 100, 600, peak_bps, power)
    ts = np.arange(START - 10, pulse.end + 10)
    height = np.abs(pulse.height_bps(ts))
    assert height.max() == abs(peak_bps)
    for threshold in (1.0, 40.0, 79.0):
        opened, closed = beyond(pulse, threshold)
        inside = (ts > opened + 1e-6) & (ts < closed - 1e-6)
        assert (height[inside] >= threshold).all()
        outside = (ts < opened - 1e-6) | (ts > closed + 1e-6)
        assert (height[outside] < threshold).all()
    assert beyond(pulse, abs(peak_bps) + 1) is None


def test_a_pulse_is_nothing_outside_its_time() -> None:
    pulse = Pulse(START, 5, 0, 5, 50.0)
    assert (
        pulse.height_bps(np.array([START - 1, START, pulse.end, pulse.end + 1])).tolist() == [0] * 4
    )


def drawn(random: np.random.Generator, at: int, length: int) -> TimeSpan:
    first = at + int(random.integers(length - 99))
    return TimeSpan(first, first + 100)


def test_slots_hold_their_share_and_each_thing_lies_in_its_own() -> None:
    slots = Slots(RandomStream(1, "x"), 3_600, 0.3, drawn)
    found = slots.between(START, START + 3_000 * 3_600)
    assert abs(len(found) / 3_000 - 0.3) < 4 * (0.3 * 0.7 / 3_000) ** 0.5
    gaps = [b.start - a.end for a, b in pairwise(found)]
    assert min(gaps) >= 0


def test_a_window_sees_what_touches_it_however_it_is_cut() -> None:
    slots = Slots(RandomStream(2, "x"), 3_600, 0.8, drawn)
    whole = slots.between(START, START + 86_400)
    pieces = {
        (each.start, each.end)
        for at in range(START, START + 86_400, 700)
        for each in slots.between(at, min(at + 700, START + 86_400))
    }
    assert sorted(pieces) == [(each.start, each.end) for each in whole]
    edge = whole[0]
    assert edge in slots.between(edge.end - 1, edge.end)
    assert edge not in slots.between(edge.end, edge.end + 1)
    assert edge not in slots.between(edge.start - 1, edge.start)


def test_heights_add_up() -> None:
    def pulse(_random: np.random.Generator, at: int, _length: int) -> Pulse:
        return Pulse(at, 60, 3_000, 60, 10.0)

    ts = np.arange(START, START + 86_400, 60)
    one, two = (Slots(RandomStream(seed, "x"), 3_600, 1.0, pulse) for seed in (1, 2))
    total = planted_bps([one, two], ts)
    assert np.allclose(total, planted_bps([one], ts) + planted_bps([two], ts))
    assert total.max() == 20.0
