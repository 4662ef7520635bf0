"""Dispersion between venues and the persistence of their ranks, against numpy and scipy."""

from __future__ import annotations

import itertools
import random

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from toolkit.errors import InputError
from toolkit.statistics import funding
from toolkit.statistics.funding.dispersion import highest_leg, lowest_leg

HOUR, DAY, WEEK = 3600, 86400, 604_800
START = 1_700_006_400  # a midnight, UTC
MONDAY = 1_700_438_400


def pair(buy: str, sell: str) -> str:
    return f"funding/BTC_USDT:{buy}.futures:{sell}.futures"


def market(rates: dict[str, np.ndarray], joined, every, first: float = 0) -> pl.DataFrame:
    """Every pair of some venues of 8 h, as a service sends them."""
    return pl.concat(
        joined(every(8, rates[a], first=first), every(8, rates[b], first=first), pair(a, b))
        for a, b in itertools.combinations(rates, 2)
    )


def check_by_hand(found: pl.DataFrame, rates: dict[str, np.ndarray]) -> None:
    table = np.array(list(rates.values())) * 3 * 365 * 100
    assert found["n"].unique().to_list() == [len(rates)]
    upper, lower = np.quantile(table, [0.75, 0.25], axis=0)
    expected = {
        "mean_apr_pct": table.mean(axis=0),
        "range_apr_pct": np.ptp(table, axis=0),
        "iqr_apr_pct": upper - lower,
        "std_apr_pct": table.std(axis=0, ddof=1),
    }
    for name, values in expected.items():
        assert found[name].to_numpy() == pytest.approx(values, rel=1e-9, abs=1e-12)


def test_dispersion_is_that_of_numpy_over_the_venues_and_the_known_one(joined, every):
    rng = np.random.default_rng(1)
    rates = {name: rng.normal(1e-4, 1e-4, 30) for name in "ABCDE"}
    frame = market(rates, joined, every)
    window = START - 8 * HOUR, START + 29 * 8 * HOUR
    found = funding.dispersion(frame, *window)
    check_by_hand(found, rates)
    row = funding.dispersion_summary(frame, *window).row(0, named=True)
    assert (row["n"], row["coverage"], row["n_venues"]) == (30, 1.0, 5)
    assert row["range_mean_apr_pct"] == pytest.approx(found["range_apr_pct"].mean())
    assert row["range_q95_apr_pct"] == pytest.approx(np.quantile(found["range_apr_pct"], 0.95))
    # of five normal rates with a deviation of 10.95 % a year
    assert row["std_mean_apr_pct"] == pytest.approx(0.940 * 10.95, rel=0.15)
    assert row["range_mean_apr_pct"] == pytest.approx(2.326 * 10.95, rel=0.15)


def test_an_order_of_pairs_or_legs_changes_nothing(joined, every):
    rng = np.random.default_rng(2)
    rates = {name: rng.normal(1e-4, 1e-4, 12) for name in "ABC"}
    window = START - 8 * HOUR, START + 11 * 8 * HOUR
    found = funding.dispersion(market(rates, joined, every), *window)
    turned = market(dict(reversed(rates.items())), joined, every).reverse()
    assert funding.dispersion(turned, *window).equals(found)
    assert funding.dispersion(funding.legs(turned), *window).equals(found)


def test_the_venues_stay_the_same_and_a_bucket_that_lacks_one_has_no_figures(joined, every):
    rates = {name: np.full(20, (1 + place) * 1e-5) for place, name in enumerate("ABC")}
    gone = [row for row in every(8, rates["B"]) if row[0] != 80]
    late = every(8, rates["C"][:4], first=128)  # in a fifth of the window: no venue of the set
    frame = pl.concat(
        [
            joined(every(8, rates["A"]), gone, pair("A", "B")),
            joined(every(8, rates["A"]), late, pair("A", "C")),
        ]
    )
    found = funding.dispersion(frame, START - 8 * HOUR, START + 19 * 8 * HOUR)
    assert found["n_venues"].unique().to_list() == [2]
    lacking = found.filter(pl.col("range_apr_pct").is_null())
    assert lacking.select("ts", "n", "dispersion_reason").rows() == [
        (START + 72 * HOUR, 1, "low_coverage")
    ]
    alone = funding.dispersion_summary(
        funding.legs(frame).filter(pl.col("trajectory").str.contains(":A.")),
        START - 8 * HOUR,
        START + 19 * 8 * HOUR,
    )
    assert alone["dispersion_reason"].to_list() == ["too_few"]


def test_legs_come_once_without_spot_and_two_rates_of_one_are_refused(joined, every):
    one = joined(every(8, [1e-4] * 3), every(8, [2e-4] * 3), pair("A", "B"))
    spot = joined(None, every(8, [2e-4] * 3), "funding/BTC_USDT:A.spot:B.futures")
    found = funding.legs(pl.concat([one, spot]))
    names = ["funding/BTC_USDT:A.futures", "funding/BTC_USDT:B.futures"]
    assert found["trajectory"].unique().sort().to_list() == names
    assert found.height == 6
    assert funding.legs(found).equals(found)
    other = spot.with_columns(sell_rate=pl.col("sell_rate") * 2)
    with pytest.raises(InputError, match="two rates of funding"):
        funding.legs(pl.concat([one, other]))
    with pytest.raises(InputError, match="funding/SYMBOL"):
        funding.legs(one.with_columns(trajectory=pl.lit("a")))
    for wrong in ("7h", 0):
        with pytest.raises(InputError, match="bucket"):
            funding.dispersion(one, bucket=wrong)


def weekly(rng: np.random.Generator, venues: int, weeks: int) -> np.ndarray:
    return rng.normal(1e-4, 1e-4, (venues, weeks))


def legs_of(means: np.ndarray) -> pl.DataFrame:
    """Legs of 8 h with the same rate all week, one a row of ``means``."""
    rates = np.repeat(means, 21, axis=1)
    count, size = rates.shape
    return pl.DataFrame(
        {
            "trajectory": np.repeat(
                [f"funding/BTC_USDT:V{k:02}.futures" for k in range(count)], size
            ),
            "ts": np.tile(MONDAY + 8 * HOUR * (1 + np.arange(size)), count),
            "buy_rate": 0.0,
            "sell_rate": rates.ravel(),
            "buy_interval_hours": None,
            "sell_interval_hours": 8,
        }
    )


@pytest.mark.parametrize("venues", [3, 5, 12])
def test_ranks_are_correlated_as_by_scipy(venues):
    means = weekly(np.random.default_rng(3), venues, 4)
    means[1, 0] = means[0, 0]
    found = funding.rank_persistence(legs_of(means), MONDAY, MONDAY + 4 * WEEK)
    assert found["ts"].to_list() == [MONDAY + k * WEEK for k in range(3)]
    for week, row in enumerate(found.iter_rows(named=True)):
        first, second = means[:, week], means[:, week + 1]
        assert row["rank_correlation"] == pytest.approx(spearmanr(first, second).statistic)
        assert row["rank_reason"] is None
        if venues <= 7:
            orders = [spearmanr(first, order).statistic for order in itertools.permutations(second)]
            as_much = np.abs(orders) >= abs(row["rank_correlation"]) - 1e-9
            assert row["p_value"] == pytest.approx(as_much.mean())
        else:
            assert row["p_value"] == pytest.approx(spearmanr(first, second).pvalue, abs=0.05)
    of_pairs = funding.rank_persistence(legs_of(means), MONDAY, MONDAY + 4 * WEEK, of="pairs")
    assert of_pairs["rank_correlation"].to_list() == found["rank_correlation"].to_list()
    assert of_pairs["symbol"].null_count() == of_pairs.height


def test_ranks_of_too_few_or_equal_venues_are_null_for_a_reason():
    few = funding.rank_persistence(legs_of(np.full((2, 2), 1e-4)), MONDAY, MONDAY + 2 * WEEK)
    equal = funding.rank_persistence(legs_of(np.full((4, 2), 1e-4)), MONDAY, MONDAY + 2 * WEEK)
    assert (few["rank_reason"].item(), equal["rank_reason"].item()) == ("too_few", "degenerate")
    assert funding.rank_persistence(legs_of(np.ones((4, 2))), MONDAY + 1, MONDAY + WEEK).is_empty()


@pytest.mark.slow
def test_of_ranks_without_order_one_in_twenty_is_significant():
    rng = np.random.default_rng(4)
    found = funding.rank_persistence(legs_of(weekly(rng, 9, 401)), MONDAY, MONDAY + 401 * WEEK)
    assert found.height == 400
    assert 0.03 < (found["p_value"] <= 0.05).mean() < 0.07


LEG, VALUE = pl.col("leg"), pl.col("value")


def lowest_and_highest(rows):
    frame = pl.DataFrame(rows, schema=["leg", "value"], orient="row").with_columns(group=0)
    grouped = frame.group_by("group").agg(low=lowest_leg(LEG, VALUE), high=highest_leg(LEG, VALUE))
    return grouped.select("low", "high").row(0)


@pytest.mark.parametrize("seed", range(20))
def test_of_equal_figures_the_first_by_name_is_taken_in_any_order_of_rows(seed):
    drawn = random.Random(seed)
    rows = [(f"{name}.futures", float(drawn.randrange(3))) for name in "MKZXA"[: seed % 4 + 2]]
    low = min(rows, key=lambda row: (row[1], row[0]))
    high = min((row for row in rows if row != low), key=lambda row: (-row[1], row[0]))
    for order in (rows, sorted(rows), sorted(rows, key=lambda row: -row[1])):
        assert lowest_and_highest(order) == (low[0], high[0])


@pytest.mark.parametrize("falling", [True, False])
def test_a_column_that_is_known_to_be_sorted_names_the_same_legs(falling):
    rows = pl.DataFrame({"leg": ["K", "M", "X", "Z"], "value": [-1.0, -1.0, 1.0, 1.0]})
    ordered = rows.sort("value", "leg", descending=[falling, False])
    assert ordered.select(lowest_leg(LEG, VALUE), high=highest_leg(LEG, VALUE)).row(0) == ("K", "X")


def test_one_leg_is_the_lowest_and_the_highest():
    assert lowest_and_highest([("X.futures", 1.0)]) == ("X.futures", "X.futures")
