"""Stylised facts, real beside simulated: docs/simulated-market.md holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolkit.market import Leg
from toolkit.service.market.simulator import Simulator

from .stylised import (
    FACTS,
    LIQUID,
    PAGE,
    SEEDS,
    Minutes,
    Values,
    autocorrelation,
    half_lives,
    of_prices,
    of_stale_prices,
    page,
    recorded,
    simulated,
    simulated_minutes,
    summary,
)


@pytest.fixture(scope="module")
def by_seed() -> dict[int, Values]:
    """The facts of each seed."""
    return {seed: simulated(seed) for seed in SEEDS}


@pytest.mark.slow
def test_simulated_facts_lie_within_their_tolerances_on_five_seeds(
    by_seed: dict[int, Values],
) -> None:
    for seed, found in by_seed.items():
        assert set(found) == {fact.name for fact in FACTS}
        for fact in FACTS:
            median, low, high = summary(found[fact.name])
            assert fact.median[0] <= median <= fact.median[1], (seed, fact)
            assert fact.all[0] <= low <= high <= fact.all[1], (seed, fact)


@pytest.mark.slow
def test_the_page_shows_what_the_code_finds(by_seed: dict[int, Values]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(by_seed.values()), "run `make docs`"


def test_real_facts_are_those_that_the_table_holds(real_data: Path) -> None:
    found = recorded(real_data)
    for fact in FACTS:
        if fact.real is not None:
            assert summary(found[fact.name]) == pytest.approx(fact.real, rel=0.02, abs=0.005), fact


def test_the_tolerances_hold_for_the_real_values_as_well() -> None:
    for fact in FACTS:
        if fact.real is not None:
            median, low, high = fact.real
            assert fact.median[0] <= median <= fact.median[1]
            assert fact.all[0] <= low <= high <= fact.all[1]


@pytest.mark.slow
def test_a_planted_half_life_lies_in_the_interval_of_usual_minutes() -> None:
    """95 % are nominal; episodes and three weeks of a half-life of hours cost some."""
    hit = []
    for seed in SEEDS:
        simulator = Simulator(seed)
        for symbol in LIQUID:
            names = ("AURORA.spot", "BOREAS.spot", "CORONA.spot", "AURORA.futures")
            legs = {leg: simulated_minutes(simulator, symbol, leg) for leg in map(Leg.parse, names)}
            found = half_lives(seed, symbol, legs)
            upper = found["half_life_upper_s"].fill_null(np.inf)
            hit += ((found["half_life_lower_s"] < found["planted_s"]) & (
                found["planted_s"] < upper)).to_list()  # fmt: skip
    assert len(hit) == 30
    assert np.mean(hit) >= 0.8


def test_facts_of_a_plain_random_walk_are_those_of_the_normal_law() -> None:
    random, ts = np.random.default_rng(1), 60 * np.arange(40_001)
    walk = np.cumsum(random.standard_normal((2, 40_001)) * 1e-4, axis=1)
    legs = [Minutes(ts, np.exp(log), np.ones(40_001)) for log in walk]
    found = of_prices(legs)
    assert np.abs(found["kurtosis"]).max() < 0.1
    assert np.abs(found["size_acf_1"] + found["size_acf_30"]).max() < 0.03
    assert found["spread_sd"] == [pytest.approx(1e4 * (walk[1] - walk[0]).std())]
    assert found["spread_largest"] == [pytest.approx(1e4 * np.abs(walk[1] - walk[0]).max())]
    assert of_stale_prices(legs[0]) == {"stale": [0.0]}


def test_a_gap_is_no_return_and_no_neighbour() -> None:
    ts = 60 * np.concatenate([np.arange(100), np.arange(200, 300)])
    price = np.where(ts % 120 == 0, 1.0, 1.01) * np.where(ts < 9_000, 1.0, 100.0)
    found = of_prices([Minutes(ts, price, np.ones(200))])
    assert found["kurtosis"] == [pytest.approx(-2.0, abs=0.01)]
    known = np.array([True, True, False, True, True])
    assert autocorrelation(np.array([1.0, -1.0, 9.0, 1.0, -1.0]), known, 1) == pytest.approx(-1.0)
