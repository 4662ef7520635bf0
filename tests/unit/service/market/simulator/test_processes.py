"""The processes have the law they claim, through midnight too."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from toolkit.errors import InputError
from toolkit.service.market.simulator.catalogue import Pulse, Slots, TimeSpan, planted_bps
from toolkit.service.market.simulator.processes import (
    Diffusion,
    Midnights,
    RandomStream,
    Reverting,
    brownian_bridge,
    reverting_bridge,
)

from ...truth import beyond

FIRST, DAYS = 20_500, 400


def within(estimates: np.ndarray, expected: float, *, errors: float = 4.0) -> bool:
    """Whether independent estimates have a mean that their own scatter allows."""
    standard_error = estimates.std(ddof=1) / len(estimates) ** 0.5
    return bool(abs(estimates.mean() - expected) < errors * standard_error)


@pytest.fixture(scope="module", params=[300, 3_600, 14_400])
def reverting(request: pytest.FixtureRequest) -> tuple[int, np.ndarray]:
    """A half-life, and 400 days of a process by minutes: one row a day, midnights included."""
    process = Reverting(RandomStream(1, "law"), half_life_s=request.param)
    return request.param, np.array([process.day(day) for day in range(FIRST, FIRST + DAYS)])


def test_bridges_have_the_covariance_of_their_process_given_its_ends() -> None:
    normals = np.random.default_rng(1).standard_normal((40_000, 4))
    zeros = np.zeros(len(normals))
    variances = np.array([1.0, 2.0, 3.0, 4.0])
    clock = np.cumsum(variances)
    brownian = brownian_bridge(zeros, zeros, variances, normals)[:, :3]
    expected = np.minimum.outer(clock, clock) - np.outer(clock, clock) / clock[-1]
    assert np.allclose(np.cov(brownian.T), expected[:3, :3], atol=0.06)
    decay, steps = 0.8, np.arange(5)
    joint = decay ** np.abs(np.subtract.outer(steps, steps))
    inner, ends = joint[1:4, 1:4], joint[1:4][:, [0, 4]]
    given = inner - ends @ np.linalg.inv(joint[np.ix_([0, 4], [0, 4])]) @ ends.T
    paths = reverting_bridge(zeros, zeros, decay, normals)[:, :3]
    assert np.allclose(np.cov(paths.T), given, atol=0.02)


def test_a_reverting_process_is_standard_at_every_minute(reverting: tuple[int, np.ndarray]) -> None:
    half_life_s, days = reverting
    for minute in (0, 1, 59, 720, 1_438):
        assert within(days[:, minute], 0.0), minute
        assert within(days[:, minute] ** 2, 1.0), minute
    assert within((days[:, :-1] ** 2).mean(axis=1), 1.0), half_life_s


@pytest.mark.parametrize("lag", [1, 30, 240])
def test_correlation_falls_with_the_half_life_and_midnight_leaves_no_mark(reverting, lag) -> None:
    half_life_s, days = reverting
    expected = 0.5 ** (60 * lag / half_life_s)
    path = np.concatenate([day[:-1] for day in days])
    within_day = days[:, 600] * days[:, 600 + lag]
    across = path[1_440 - lag // 2 - 1 :: 1_440][: DAYS - 1]
    later = path[1_440 - lag // 2 - 1 + lag :: 1_440][: DAYS - 1]
    assert within(within_day, expected)
    assert within(across * later, expected)


def test_the_steps_over_midnight_scatter_as_any_other(reverting: tuple[int, np.ndarray]) -> None:
    half_life_s, days = reverting
    decay = 0.5 ** (60 / half_life_s)
    for minute in (0, 1_439):
        kicks = days[:, minute + 1] - decay * days[:, minute]
        assert within(kicks**2, 1.0 - decay**2), minute
    kicks = (days[:, 1] - decay * days[:, 0])[1:] * (days[:, 1_440] - decay * days[:, 1_439])[:-1]
    assert within(kicks, 0.0)


def test_a_half_life_below_two_minutes_is_refused() -> None:
    with pytest.raises(InputError, match="half_life_s: 60 is not allowed; allowed: 120 or more"):
        Reverting(RandomStream(1, "x"), half_life_s=60)


@pytest.fixture(scope="module")
def diffusion() -> list[tuple[np.ndarray, np.ndarray]]:
    """The values and the minutes' variances of 400 days."""
    process = Diffusion(RandomStream(3, "law"), daily_volatility=0.03)
    found = [process.day(day) for day in range(FIRST, FIRST + DAYS)]
    return [(day.values, day.variances) for day in found]


def test_a_diffusions_steps_are_standard_normal_in_its_variances_at_midnight_too(diffusion) -> None:
    steps = np.array([np.diff(values) / variances**0.5 for values, variances in diffusion])
    for minute in (0, 1, 700, 1_439):
        assert within(steps[:, minute], 0.0), minute
        assert within(steps[:, minute] ** 2, 1.0), minute
        assert abs((steps[:, minute] ** 4).mean() - 3.0) < 4 * (96 / DAYS) ** 0.5, minute
    assert within(steps[1:, 0] * steps[:-1, -1], 0.0)
    assert within(steps[:, 700] * steps[:, 701], 0.0)


def test_a_day_ends_where_the_next_begins(diffusion: list[tuple[np.ndarray, np.ndarray]]) -> None:
    for (today, _), (tomorrow, _) in pairwise(diffusion):
        assert today[-1] == tomorrow[0]


def test_volatility_has_its_mean_and_clusters_over_minutes_and_days(diffusion) -> None:
    daily = np.array([variances.sum() for _, variances in diffusion])
    moves = np.array([values[-1] - values[0] for values, _ in diffusion])
    assert within(moves**2 / daily, 1.0)
    assert 0.02**2 < daily.mean() < 0.04**2
    assert 0.4 < np.log(daily).std() < 1.0
    assert np.corrcoef(np.log(daily[1:]), np.log(daily[:-1]))[0, 1] > 0.8
    logs = np.array([np.log(variances) for _, variances in diffusion])
    logs -= np.median(logs, axis=0)
    quarter_hour = np.mean([np.corrcoef(day[15:], day[:-15])[0, 1] for day in logs])
    assert quarter_hour > 0.4


def test_jumps_make_the_tails_heavy(diffusion: list[tuple[np.ndarray, np.ndarray]]) -> None:
    steps = np.concatenate([np.diff(values) / values.std() for values, _ in diffusion])
    scale = np.median(np.abs(steps)) * 1.4826
    share = (np.abs(steps) > 6 * scale).mean()
    assert share > 100 * 2e-9  # a normal's


def test_prices_stay_near_where_they_began_for_seventy_years() -> None:
    chain = Midnights(
        RandomStream(5, "x"), decay=0.5 ** (1 / 120), step=lambda _day: 0.03, first=0.0
    )
    logs = np.array([chain.at(day) for day in range(20_454, 47_482, 30)])
    assert 0.2 < logs.std() < 0.5
    assert np.abs(logs).max() < 2.0


def test_the_chain_of_midnights_does_not_depend_on_where_it_was_entered() -> None:
    late, early = (Midnights.stationary(RandomStream(6, "x"), decay=0.9) for _ in range(2))
    days = [20_454, 20_709, 20_710, 20_711, 47_482]
    assert [late.at(day) for day in reversed(days)][::-1] == [early.at(day) for day in days]


START = 1_800_000_000


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("peak_bps", [-80.0, 120.0])
def test_a_pulse_is_beyond_a_threshold_exactly_between_its_crossings(power, peak_bps) -> None:
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
