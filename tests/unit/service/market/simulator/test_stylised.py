"""Stylised facts, real beside simulated: docs/simulated-market.md holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from .stylised import (
    FACTS,
    SEEDS,
    Minutes,
    Values,
    autocorrelation,
    of_funding,
    of_leading,
    of_prices,
    of_pumps,
    of_spread,
    of_stale_prices,
    recorded,
    simulated,
    summary,
    weekend,
)
from .stylised_page import PAGE, page


@pytest.fixture(scope="module")
def measured() -> dict[int, tuple[Values, pl.DataFrame]]:
    """The facts of each seed, and the half-lives of its pairs."""
    return {seed: simulated(seed) for seed in SEEDS}


@pytest.fixture
def by_seed(measured: dict[int, tuple[Values, pl.DataFrame]]) -> dict[int, Values]:
    """The facts of each seed."""
    return {seed: values for seed, (values, _) in measured.items()}


@pytest.mark.slow
def test_simulated_facts_lie_within_their_tolerances_on_five_seeds(by_seed) -> None:
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
def test_a_planted_half_life_lies_in_the_interval_of_usual_minutes(measured) -> None:
    """95 % are nominal; episodes and three weeks of a half-life of hours cost some.

    Where the episodes are told from the rest, there is a reason in place of an interval.
    """
    names = ["AURORA.spot", "BOREAS.spot", "CORONA.spot", "CORONA.futures"]
    legs = pl.col("trajectory").str.split(":")
    found = pl.concat(estimates for _, estimates in measured.values())
    found = found.filter(legs.list.eval(pl.element().is_in(names)).list.all())
    assert found.height == 30
    found = found.drop_nulls("half_life_lower_s")
    upper = found["half_life_upper_s"].fill_null(np.inf)
    hit = (found["half_life_lower_s"] < found["planted_s"]) & (found["planted_s"] < upper)
    assert len(hit) >= 24
    assert hit.mean() >= 0.8


def test_facts_of_a_plain_random_walk_are_those_of_the_normal_law() -> None:
    random, ts = np.random.default_rng(1), 60 * np.arange(40_001)  # four weeks
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
    ts, values = np.array([0, 60, 180, 240]), np.array([1.0, -1.0, 1.0, -1.0])
    assert autocorrelation(ts, values, 60) == pytest.approx(-1.0)
    assert autocorrelation(ts, values, 180) == pytest.approx(1.0)


def test_noise_is_told_from_what_reverts_and_a_venue_that_leads_from_one_that_follows() -> None:
    random, n = np.random.default_rng(2), 60_000
    ts, kicks, slow = 60 * np.arange(n), random.standard_normal(n), np.empty(n)
    slow[0] = kicks[0]
    for place in range(1, n):
        slow[place] = 0.99 * slow[place - 1] + (1 - 0.99**2) ** 0.5 * kicks[place]
    noise = of_spread(ts, 3.0 * slow + 4.0 * random.standard_normal(n))
    assert noise["spread_noise"] == [pytest.approx(16 / 25, abs=0.03)]
    assert noise["spread_sd"] == [pytest.approx(5.0, rel=0.05)]
    returns = 1e-4 * random.standard_normal(n)
    late = 0.8 * returns + 0.2 * np.concatenate([[0.0], returns[:-1]])
    legs = [Minutes(ts, np.exp(np.cumsum(each)), np.ones(n)) for each in (returns, late)]
    for pair in (legs, legs[::-1]):
        found = of_leading(*pair)
        assert found["lead"] == [pytest.approx(0.2 / (0.8**2 + 0.2**2) ** 0.5, abs=0.02)]
        assert found["lead_back"] == [pytest.approx(0.0, abs=0.02)]


def test_a_weekend_is_saturday_and_sunday_and_a_pump_on_the_hour_is_in_its_first_minute() -> None:
    friday = 1_795_132_800  # 2026-11-20
    days = friday + 86_400 * np.arange(4)
    assert weekend(days).tolist() == [False, True, True, False]
    assert weekend(days + 86_399).tolist() == [False, True, True, False]
    assert of_pumps(friday + np.array([0, 59, 60, 3_599])) == {"pumps_on_the_hour": [0.5]}


def test_rates_apart_are_those_of_common_settlements() -> None:
    ts, rate = 28_800 * np.arange(40), np.tile([1e-4, 3e-4], 20)
    found = of_funding([(ts, rate), (ts[:30] + 5 * 28_800, rate[:30] + 2e-4)])
    assert found["funding_apart"] == [pytest.approx(21.9)]  # 0 and 4e-4 in turn
    assert found["funding_baseline"] == [0.5, 0.0]
    assert found["funding_mean"] == [pytest.approx(21.9), pytest.approx(43.8)]
    assert found["funding_acf_1"] == [pytest.approx(-1.0), pytest.approx(-1.0)]
