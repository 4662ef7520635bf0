"""Rates and counts of events, against scipy, counts by hand and known processes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

from toolkit.errors import InputError
from toolkit.statistics.events import event_lifecycles, league, rates, survival
from toolkit.statistics.events.rates import summary

from .event_lives import openings

DAY = 86_400


def held(*stretches: tuple[int, int]) -> pl.DataFrame:
    """What is held of the log of spreads."""
    starts, ends = zip(*stretches, strict=True)
    return pl.DataFrame({"family": "spread", "start_ts": list(starts), "end_ts": list(ends)})


@pytest.mark.parametrize("seed", range(5))
def test_a_rate_is_the_openings_over_the_time_held_with_the_exact_interval(seed):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 3 * DAY, int(rng.integers(0, 60))))
    stretches = [(1_000, 40_000), (90_000, 200_000), (150_000, 230_000)]
    found = rates(openings(times, 0, 3 * DAY), held=held(*stretches), cluster="none")
    inside = [t for t in times if 1_000 <= t < 40_000 or 90_000 <= t < 230_000]
    days = (39_000 + 140_000) / DAY
    if not len(times):
        assert found.is_empty()
        return
    row = found.row(0, named=True)
    assert (row["n"], row["n_not_held"], row["held_s"]) == (
        *(len(inside), len(times) - len(inside)),
        179_000,
    )
    assert row["coverage"] == pytest.approx(179_000 / (3 * DAY), rel=1e-15)
    n = len(inside)
    lower, upper = (
        stats.chi2.ppf(0.025, 2 * n) / 2 if n else 0,
        stats.chi2.ppf(0.975, 2 * n + 2) / 2,
    )
    for unit, length in (("per_day", days), ("per_h", 24 * days)):
        got = [row[f"{name}_{unit}"] for name in ("rate", "rate_lower", "rate_upper")]
        assert got == pytest.approx([n / length, lower / length, upper / length], rel=1e-12)
    first = [t for t in inside if t < 40_000]
    between = np.concatenate([np.diff(first), np.diff(inside[len(first) :])])
    assert row["n_between"] == len(between)
    expected = np.quantile(between, [0.25, 0.5, 0.75])
    assert [row[f"between_{q}_s"] for q in ("q25", "median", "q75")] == expected.tolist()


def test_a_gap_of_the_log_is_no_quiet_time():
    lives = openings([10, 20, 30, 40], 0, DAY)
    whole = rates(lives).row(0, named=True)
    part = rates(lives, held=held((0, DAY // 24))).row(0, named=True)
    assert part["rate_per_h"] == 24 * whole["rate_per_h"] == 4.0
    later = rates(openings([10], 0, DAY, known_until=DAY // 2)).row(0, named=True)
    assert (later["held_s"], later["coverage"]) == (DAY // 2, 0.5)
    none = rates(lives, held=held((-DAY, 0))).row(0, named=True)
    assert (none["n"], none["rate_per_h"], none["rate_reason"]) == (0, None, "empty")
    assert (none["between_median_s"], none["between_reason"]) == (None, "too_few")


def test_what_the_order_of_rows_the_clock_and_the_split_of_stretches_change_is_nothing():
    times = np.random.default_rng(1).integers(0, DAY, 50)
    names = [f"S{k % 3}" for k in range(50)]
    lives = openings(times, 0, DAY, symbol=names)
    expected = rates(lives, ["symbol"], held=held((0, 50_000)))
    assert rates(lives.reverse(), "symbol", held=held((20_000, 50_000), (0, 20_000))).equals(
        expected
    )
    moved = rates(openings(times + DAY, DAY, 2 * DAY, symbol=names), ["symbol"])
    assert moved.drop("window_start", "window_end").equals(
        rates(lives, ["symbol"]).drop("window_start", "window_end")
    )
    assert rates(lives)["n"].item() == expected["n"].sum() + expected["n_not_held"].sum()


def counted(counts: list[int] | np.ndarray, **columns: object) -> pl.DataFrame:
    """So many openings of each symbol within a day."""
    names = np.repeat([f"S{k:03}" for k in range(len(counts))], counts)
    times = np.random.default_rng(0).integers(0, DAY, len(names))
    return openings(times, 0, DAY, symbol=names.tolist(), **columns)


def test_shrunk_rates_are_those_of_the_most_likely_gamma_prior():
    counts = np.random.default_rng(4).negative_binomial(1.5, 1.5 / (1.5 + 6), 80)
    groups = pl.DataFrame({"family": ["spread"] * 80, "symbol": [f"S{k:03}" for k in range(80)]})
    found = league(counted(counts), ["symbol"], all_groups=groups, cluster="none")

    def unlikely(logs: np.ndarray) -> float:
        shape, mean = np.exp(logs)
        return -stats.nbinom.logpmf(counts, shape, shape / (shape + mean)).sum()

    fit = optimize.minimize(unlikely, [0.0, 1.0], method="Nelder-Mead", tol=1e-12)
    shape, mean = np.exp(fit.x)
    posterior = stats.gamma(counts + shape, scale=1 / (1 + shape / mean))
    ordered = found.sort("symbol")
    for name, expected in {
        "rate_shrunk_per_day": posterior.mean(),
        "rate_shrunk_lower_per_day": posterior.ppf(0.025),
        "rate_shrunk_upper_per_day": posterior.ppf(0.975),
    }.items():
        np.testing.assert_allclose(ordered[name], expected, rtol=1e-5)
    assert ordered["n"].to_list() == counts.tolist()
    assert ordered["share"].sum() == pytest.approx(1)
    assert found["rank"].to_list() == sorted(found["rank"])
    assert found["rate_shrunk_per_day"].to_list() == sorted(
        found["rate_shrunk_per_day"], reverse=True
    )


def test_rates_are_not_shrunk_where_nothing_tells_the_groups_apart():
    assert set(league(counted([5] * 9), ["symbol"])["shrunk_reason"]) == {"too_few"}
    alike = league(counted([5] * 12), ["symbol"])
    assert set(alike["shrunk_reason"]) == {"degenerate"}
    assert set(alike["rank"]) == {1}
    nothing = league(counted([5] * 12), ["symbol"], held=held((-9, 0)))
    assert set(nothing["shrunk_reason"]) == set(nothing["share_reason"]) == {"empty"}
    assert league(counted([5] * 12).clear(), ["symbol"]).is_empty()


def test_a_league_without_groups_and_of_groups_of_another_type_is_refused():
    with pytest.raises(InputError, match="tell groups apart"):
        league(counted([1, 2]), [])
    with pytest.raises(InputError, match="all_groups: 'no symbol"):
        league(counted([1, 2]), ["symbol"], all_groups=pl.DataFrame({"family": ["spread"]}))


@pytest.mark.parametrize("times", [[3 * DAY], [DAY, 5 * DAY], [10, 2 * DAY, 6 * DAY]])
def test_few_events_apart_have_the_exact_interval(times: list[int]) -> None:
    row = rates(openings(np.array(times), 0, 7 * DAY)).row(0, named=True)
    exact = stats.chi2.ppf([0.025, 0.975], [2 * len(times), 2 * len(times) + 2]) / 2 / 7
    assert [row["rate_lower_per_day"], row["rate_upper_per_day"]] == pytest.approx(exact, rel=1e-12)
    assert (row["cluster"], row["n_clusters"], row["rate_reason"]) == ("none", len(times), None)


def test_few_events_of_one_burst_have_no_interval() -> None:
    row = rates(openings(np.array([100, 200, 300]), 0, 7 * DAY)).row(0, named=True)
    assert (row["rate_lower_per_day"], row["rate_reason"]) == (None, "few_clusters")


def documents(*rows: tuple[str, str, int]) -> pl.DataFrame:
    """Documents of the spread log: event id, type, time (s)."""
    return pl.DataFrame(
        {
            "family": ["spread"] * len(rows),
            "event_id": [row[0] for row in rows],
            "event_type": [row[1] for row in rows],
            "lifecycle": [None] * len(rows),
            "ts": [row[2] for row in rows],
            "ts_ms": [1000 * row[2] for row in rows],
            "arrival": list(range(len(rows))),
            "symbol": ["A_B"] * len(rows),
            **dict.fromkeys(
                ("buy_exchange", "buy_market", "sell_exchange", "sell_market"), ["X"] * len(rows)
            ),
        },
        schema_overrides={"lifecycle": pl.String}
        | dict.fromkeys(("ts", "ts_ms", "arrival"), pl.Int64),
    )


def test_events_are_counted_by_what_became_of_them() -> None:
    log = documents(
        ("a", "spread.opened", 10),
        ("a", "spread.closed", 40),
        ("b", "spread.opened", 20),
        ("c", "spread.closed", 30),
        ("d", "spread.winked", 35),
        ("e", "spread.winked", 500),
    )
    row = summary(log, 0, 100).row(0, named=True)
    assert {name: row[name] for name in ("n", "closed", "open", "reopened", "orphans")} == {
        "n": 3,
        "closed": 1,
        "open": 1,
        "reopened": 0,
        "orphans": 1,
    }
    assert (row["n_unknown"], row["unknown_types"]) == (1, "spread.winked")
    assert row["median_life_s"] == 30.0


def test_no_document_is_no_row() -> None:
    assert summary(documents(), 0, 100).is_empty()


def test_a_gap_of_the_log_ends_lives_as_it_does_in_survival() -> None:
    log = documents(
        ("a", "spread.opened", 10),
        ("a", "spread.closed", 40),
        ("b", "spread.opened", 20),
        ("b", "spread.closed", 90),
        ("c", "spread.opened", 70),
    )
    held = pl.DataFrame({"family": ["spread"] * 2, "start_ts": [0, 80], "end_ts": [60, 100]})
    row = summary(log, 0, 100, held=held).row(0, named=True)
    # a is seen to close, b up to the gap alone, c opens inside it
    assert (row["n"], row["closed"], row["open"]) == (3, 2, 1)
    assert (row["cut"], row["n_lives"], row["n_ended"], row["coverage"]) == (2, 2, 1, 0.8)
    assert row["median_life_s"] == 30.0
    lives = event_lifecycles(log, 0, 100)
    expected = survival(lives, held=held).row(0, named=True)
    assert row.items() - {"n_unknown": 0, "unknown_types": None}.items() <= expected.items()
