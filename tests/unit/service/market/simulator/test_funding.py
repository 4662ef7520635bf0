"""Calendars, rates and their shares, in 20 seeds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from toolkit.errors import InputError
from toolkit.market import Leg
from toolkit.service.market.simulator import CAP, CYCLE_DAYS, Simulated
from toolkit.service.market.simulator.processes import DAY_S, HOUR_S

from ...truth import Truth

SEEDS = range(20)
START, DAYS = 20_600 * DAY_S, 120
END = START + DAYS * DAY_S
YEARS_END = START + 720 * DAY_S  # a rate's memory is of weeks
EIGHT_HOURS = ["AURORA.futures", "BOREAS.futures", "CORONA.futures", "DRACO.futures"]
CHANGING = ("AVAX_USDT", Leg.parse("BOREAS.futures"))


@pytest.mark.parametrize(
    ("name", "interval_hours", "first_hour"),
    [
        ("AURORA.futures", 8, 0),
        ("BOREAS.futures", 8, 0),
        ("CORONA.futures", 8, 0),
        ("DRACO.futures", 8, 4),
        ("GALENE.futures", 4, 0),
        ("EQUINOX.futures", 1, 0),
    ],
)
def test_a_leg_settles_on_its_calendar(name: str, interval_hours: int, first_hour: int) -> None:
    simulator, leg = Simulated(1), Leg.parse(name)
    found = simulator.settlements("BTC_USDT", leg, START, END)
    first = START + first_hour * HOUR_S
    assert found.ts.tolist() == list(range(first, END, interval_hours * HOUR_S))
    assert set(found.interval_hours.tolist()) == {interval_hours}
    for ts in (START, START + 1, END - 1):
        following = simulator.next_settlement("BTC_USDT", leg, ts)
        assert ts < following <= ts + interval_hours * HOUR_S
        assert (following - first) % (interval_hours * HOUR_S) == 0


@pytest.mark.parametrize("name", EIGHT_HOURS)
def test_eight_hour_legs_sit_at_the_baseline_and_are_positive_in_the_known_shares(name) -> None:
    for seed in SEEDS:
        rate = Simulated(seed).settlements("BTC_USDT", Leg.parse(name), START, YEARS_END).rate
        assert 0.30 <= (rate == 0.0001).mean() <= 0.75, seed
        assert 0.60 <= (rate > 0).mean() <= 0.97, seed


def test_hourly_legs_have_no_atom_and_are_mostly_positive() -> None:
    for seed in SEEDS:
        leg = Leg.parse("EQUINOX.futures")
        found = Simulated(seed).settlements("BTC_USDT", leg, START, YEARS_END)
        _, counts = np.unique(found.rate[np.abs(found.rate) < CAP / 8], return_counts=True)
        assert counts.max() / len(found.rate) < 0.01
        assert 0.45 <= (found.rate > 0).mean() <= 0.97, seed


@pytest.mark.slow
def test_rates_are_capped_and_reach_the_cap_in_dislocations_only() -> None:
    reached = 0
    for seed in SEEDS:
        simulator, truth = Simulated(seed), Truth(seed)
        for name in ("AURORA.futures", "CORONA.futures", "DRACO.futures"):
            leg = Leg.parse(name)
            found = simulator.settlements("1000PEPE_USDT", leg, START, END)
            per_8h = np.abs(found.rate) * 8 / found.interval_hours
            assert per_8h.max() <= CAP * (1 + 1e-12)
            capped = found.ts[per_8h > CAP - 1e-7]
            planted = truth.dislocations("1000PEPE_USDT", leg, START, END)
            assert all(any(p.start <= ts < p.end for p in planted) for ts in capped)
            reached += len(capped)
    assert reached > 100


def test_no_venue_pays_far_more_than_the_others_over_a_year() -> None:
    for seed in SEEDS[:10]:
        simulator = Simulated(seed)
        for name in (*EIGHT_HOURS, "EQUINOX.futures", "GALENE.futures"):
            found = simulator.settlements("BTC_USDT", Leg.parse(name), START, START + 365 * DAY_S)
            assert -10 < 100 * found.rate.sum() < 35, (seed, name)  # % of the notional


def test_a_rate_is_the_same_in_any_window() -> None:
    simulator, leg = Simulated(2), Leg.parse("CORONA.futures")
    whole = simulator.settlements("ETH_USDT", leg, START, END)
    for place in (0, 100, len(whole.ts) - 1):
        ts = int(whole.ts[place])
        alone = simulator.settlements("ETH_USDT", leg, ts, ts + 1)
        assert alone.rate.tolist() == [whole.rate[place]]
    assert len(simulator.settlements("ETH_USDT", leg, START + 1, START + 2).ts) == 0


def test_interval_changes_are_recovered_from_the_settlements_in_20_seeds() -> None:
    for seed in SEEDS:
        ts = Simulated(seed).settlements(*CHANGING, START, END).ts
        hours = np.diff(ts) // HOUR_S
        at = np.flatnonzero(hours[1:] != hours[:-1])
        seen = [(int(ts[i + 1]), int(hours[i]), int(hours[i + 1])) for i in at]
        planted = Truth(seed).interval_changes(*CHANGING, START + DAY_S, END - DAY_S)
        assert [c for c in seen if START + DAY_S <= c[0] < END - DAY_S] == planted
        assert {change[1:] for change in planted} == {(8, 4), (4, 1), (1, 8)}


def test_a_row_carries_the_interval_that_ends_with_it() -> None:
    for seed in SEEDS:
        found = Simulated(seed).settlements(*CHANGING, START, END)
        assert (np.diff(found.ts) == found.interval_hours[1:] * HOUR_S).all()


def test_any_30_days_hold_a_change_from_8_to_4_and_then_to_1_hour() -> None:
    for seed in SEEDS:
        truth = Truth(seed)
        for shift in range(CYCLE_DAYS):
            now = START + 40 * DAY_S + shift * DAY_S + 12_345
            changes = truth.interval_changes(*CHANGING, now - 30 * DAY_S, now)
            kinds = [change[1:] for change in changes]
            assert ((8, 4), (4, 1)) in pairwise(kinds)


def test_legs_of_one_asset_share_a_part_of_their_premium() -> None:
    legs = [Leg.parse(name) for name in ("AURORA.futures", "CORONA.futures")]
    correlations = []
    for seed in SEEDS:
        simulator, truth = Simulated(seed), Truth(seed)
        one, two = (simulator.settlements("BTC_USDT", leg, START, END) for leg in legs)
        usual = np.full(len(one.ts), fill_value=True)
        for leg in legs:
            for pulse in truth.dislocations("BTC_USDT", leg, START, END):
                usual &= (one.ts <= pulse.start) | (one.ts >= pulse.end)
        correlations.append(np.corrcoef(one.rate[usual], two.rate[usual])[0, 1])
    assert min(correlations) > 0.1


def test_a_leg_that_is_no_future_settles_nothing() -> None:
    with pytest.raises(InputError, match=r"leg: 'AURORA\.spot' is not allowed; allowed: a futures"):
        Simulated(1).settlements("BTC_USDT", Leg.parse("AURORA.spot"), START, END)
