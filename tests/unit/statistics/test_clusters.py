"""Clusters of events and their bootstrap, against loops, statsmodels and known processes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.duration.hazard_regression import PHReg

from toolkit.errors import InputError
from toolkit.statistics.events import (
    hazard_ratios,
    league,
    rate_changes,
    rates,
    survival,
    survival_curve,
)
from toolkit.statistics.events.clusters import (
    chosen_clusters,
    cluster_band,
    cluster_share_interval,
    clusters_of_lives,
    design_effect,
    dispersions,
)
from toolkit.statistics.events.exposure import Watched
from toolkit.statistics.events.hazards import Scores, clustered_errors
from toolkit.statistics.events.survival import with_clusters
from toolkit.statistics.numeric.life_curve import life_curve
from toolkit.statistics.numeric.tails import two_sided_95

from .event_lives import lives, openings

DAY = 86_400


def in_clusters(
    seed: int, clusters: int = 12, spread: float = 0.7, size: float = 20
) -> pl.DataFrame:
    """Lives of some symbols, of which each has its own level, some late and some cut off."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(clusters), rng.poisson(size, clusters) + 1)
    level = spread * rng.standard_normal(clusters)[of]
    ends = np.ceil(600 * np.exp(level + rng.standard_normal(of.size)))
    seen = np.ceil(rng.uniform(1, 8_000, of.size))
    entry = np.where(rng.random(of.size) < 0.2, np.minimum(ends - 1, 50.0), 0.0)
    rows = lives(
        np.minimum(ends, seen),
        ends <= seen,
        entry,
        opened=rng.integers(0, 30 * DAY, of.size),
        symbol=[f"S{each:03}" for each in of],
        legs=["X.spot"] * of.size,
        size=rng.standard_normal(of.size),
        venue=np.where(of % 3 == 0, "Y", "X"),
    )
    return rows.filter(pl.col("duration_s") > pl.col("entry_s"))


def numbered(rows: pl.DataFrame) -> pl.DataFrame:
    code = pl.col("symbol").rank("dense").cast(pl.Int64) - 1
    return rows.with_columns(
        pl.lit(0, pl.UInt32).alias("_number"), code.alias("_symbol"), code.alias("_trajectory")
    )


def test_the_error_of_a_curve_is_the_jackknife_over_clusters_of_what_lives_add():
    rows = numbered(in_clusters(1))
    curve, groups = with_clusters(life_curve(rows, ["_number"]), rows, "symbol")
    assert groups.row(0) == (0, "symbol", 12, False)
    ends, entry = rows["duration_s"].to_numpy(), rows["entry_s"].to_numpy()
    ended, of = rows["observed"].to_numpy() == 1, rows["_symbol"].to_numpy()
    sizes = np.bincount(of)
    freedom = sizes.sum() ** 2 / (sizes**2).sum() - 1
    added = np.zeros(ends.size)
    wanted = {}
    for age in np.unique(ends[ended]):
        watched, dying = (entry < age) & (ends >= age), ended & (ends == age)
        if watched.sum() == dying.sum():
            break
        share = dying.sum() / watched.sum()
        added += (dying - watched * share) / (watched.sum() - dying.sum())
        moved = np.bincount(of, added) / (1 - sizes / sizes.sum())
        error = np.sqrt((moved**2).sum() * 11 / 12)
        wanted[age] = error * np.interp(
            -1 / freedom, -1 / np.arange(1, 99), stats.t.ppf(0.975, np.arange(1, 99))
        )
    found = dict(curve.select("duration_s", "log_error").iter_rows())
    assert len(wanted) > 100
    for age, error in wanted.items():
        assert 1.959963984540054 * found[age] == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_the_kind_that_widens_most_is_chosen_and_none_where_events_are_apart(spread):
    rows = in_clusters(2, clusters=40, spread=spread)
    found = survival(rows).row(0, named=True)
    apart = survival(rows, cluster="none").row(0, named=True)
    by_symbol = survival(rows, cluster="symbol").row(0, named=True)

    def width(row: dict[str, object]) -> float:
        return row["median_life_upper_s"] - row["median_life_lower_s"]

    assert (apart["cluster"], apart["n_clusters"]) == ("none", apart["n_lives"])
    if spread:
        assert (found["cluster"], found["n_clusters"]) == ("symbol", 40)
        assert width(found) == width(by_symbol) > 1.5 * width(apart)
        curve = survival_curve(rows)
        assert set(curve["cluster"]) == {"symbol"}
    assert width(found) >= 0.8 * width(apart)
    assert [found[name] for name in ("median_life_s", "life_q25_s")] == [
        apart[name] for name in ("median_life_s", "life_q25_s")
    ]


def test_few_clusters_that_differ_for_sure_have_a_figure_but_no_interval():
    rows = in_clusters(3, clusters=4, spread=1.2, size=60)
    row = survival(rows).row(0, named=True)
    assert (row["cluster"], row["n_clusters"]) == ("symbol", 4)
    assert row["median_life_s"] is not None
    assert (row["median_life_lower_s"], row["median_life_lower_reason"]) == (None, "few_clusters")
    curve = survival_curve(rows)
    assert set(curve["band_reason"]) <= {"too_few", "few_clusters"}
    assert curve["survival_lower"].null_count() == curve.height
    alike = survival(in_clusters(4, clusters=4, spread=0.0, size=60)).row(0, named=True)
    assert alike["median_life_lower_reason"] is None


def test_a_kind_that_is_none_or_of_columns_that_are_not_there_is_refused():
    rows = in_clusters(1)
    for ask in (survival, survival_curve):
        with pytest.raises(InputError, match="cluster"):
            ask(rows, cluster="week")
        with pytest.raises(InputError, match="no symbol and legs"):
            ask(rows.drop("symbol", "legs"), cluster="trajectory")
    with pytest.raises(InputError, match="cluster"):
        rates(rows, cluster="symbol")
    assert survival(rows.drop("symbol", "legs"))["cluster"].item() in ("none", "path", "day")
    assert survival(rows.drop("legs"), cluster="trajectory")["n_clusters"].item() == 12


def test_scores_sum_up_to_those_of_statsmodels_by_cluster():
    """Without ties, where the rules for them agree."""
    rows = in_clusters(5).with_columns(pl.col("duration_s") + pl.int_range(pl.len()) * 1e-6)
    design = np.column_stack([rows["size"], rows["venue"] == "Y"])
    ends, ended = rows["duration_s"].to_numpy(), rows["observed"].to_numpy() == 1
    entry = rows["entry_s"].to_numpy()
    of = rows["symbol"].rank("dense").to_numpy().astype(int) - 1
    model = PHReg(ends, design, status=ended, entry=np.nextafter(entry, np.inf), ties="breslow")
    fit = model.fit(disp=0)
    scores = Scores(ends, entry, ended, design, fit.params)
    np.testing.assert_allclose(scores.of_lives.sum(axis=0), 0, atol=1e-6)
    whole = scores.information(np.ones(ends.size, dtype=bool))
    np.testing.assert_allclose(whole, -model.hessian(fit.params), rtol=1e-6)
    parts = sum(scores.information(of == each) for each in range(12))
    np.testing.assert_allclose(parts, whole, rtol=1e-9)
    # each cluster left out, by fits of all others
    left_out = np.array(
        [
            PHReg(
                ends[of != each],
                design[of != each],
                status=ended[of != each],
                entry=np.nextafter(entry, np.inf)[of != each],
                ties="breslow",
            )
            .fit(disp=0)
            .params
            for each in range(12)
        ]
    )
    refitted = np.sqrt(11 / 12 * ((left_out - fit.params) ** 2).sum(axis=0))
    errors, freedom = clustered_errors(scores, of, 12)
    np.testing.assert_allclose(errors, refitted, rtol=0.15)
    assert (freedom > 1).all()
    assert (freedom < 11).all()


def test_ratios_of_clusters_are_the_same_with_wider_bounds():
    rows = in_clusters(6, clusters=30)
    apart, found = (
        hazard_ratios(rows, ["size", "venue"], cluster=each) for each in ("none", "auto")
    )
    assert found["hazard_ratio"].to_list() == apart["hazard_ratio"].to_list()
    assert set(found["cluster"]) == {"symbol"}
    wider = [
        np.log(each["hazard_ratio_upper"] / each["hazard_ratio_lower"]).to_list()
        for each in (apart, found)
    ]
    assert wider[1][1] > 1.5 * wider[0][1], "the venue is that of a symbol"
    for row in found.iter_rows(named=True):
        bounds = row["hazard_ratio_lower"], row["hazard_ratio_upper"]
        assert (row["p_value"] < 0.05) == (not bounds[0] <= 1 <= bounds[1])


def test_a_ratio_that_few_clusters_tell_has_no_bounds():
    rows = in_clusters(7, clusters=12).with_columns(
        venue=pl.when(pl.col("symbol") <= "S001").then(pl.lit("Y")).otherwise(pl.lit("X"))
    )
    row = hazard_ratios(rows, ["venue"], cluster="symbol").row(0, named=True)
    assert row["hazard_ratio"] is not None
    assert row["hazard_ratio_reason"] == "few_clusters"
    assert [row[name] for name in ("hazard_ratio_lower", "p_value")] == [None, None]


def bursts(seed: int, days: int, a_day: float, size: int, apart_s: int = 60) -> np.ndarray:
    """Times of bursts of so many events, so long after each other."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, days * DAY, rng.poisson(days * a_day / size))
    times = (first[:, None] + rng.uniform(0, apart_s, (first.size, size))).ravel()
    return np.sort(times[times < days * DAY]).astype(int)


def test_the_fano_factor_is_that_of_the_counts_of_16_stretches_and_their_neighbours():
    times = bursts(1, 1, 200, 5)
    found = rates(openings(times, 0, DAY)).row(0, named=True)
    counts = np.bincount(times * 16 // DAY, minlength=16)
    apart = counts - counts.mean()
    next_one = (apart[1:] * apart[:-1]).sum() / (apart**2).sum() + 1 / 16
    fano = counts.var(ddof=1) / counts.mean() * (1 + 2 * max(next_one, 0))
    assert found["fano"] == pytest.approx(fano, rel=1e-12)
    assert (found["cluster"], found["n_clusters"]) == ("stretch", 16)
    point = stats.t.ppf(0.975, 8 if next_one > 0 else 15) / stats.norm.ppf(0.975)
    divisor = fano * point**2
    scaled = len(times) / divisor
    bounds = stats.gamma.ppf(0.025, scaled), stats.gamma.ppf(0.975, scaled + 1)
    given = found["rate_lower_per_day"], found["rate_upper_per_day"]
    assert given == pytest.approx([each * divisor for each in bounds], rel=1e-9)


def test_a_season_of_the_day_and_gaps_of_the_log_are_no_bursts():
    rng = np.random.default_rng(3)
    times = rng.integers(0, 10 * DAY, 6_000)
    busy = times[rng.random(6_000) < (1 + np.sin(times / DAY * 2 * np.pi)) / 2]
    gap = pl.DataFrame(
        {"family": ["spread"] * 2, "start_ts": [0, 6 * DAY], "end_ts": [4 * DAY, 10 * DAY]}
    )
    for held in (None, gap):
        assert rates(openings(busy, 0, 10 * DAY), held=held)["fano"].item() < 2
    one_day = busy[busy < DAY]
    assert rates(openings(one_day, 0, DAY))["fano"].item() > 4, "which nothing tells from bursts"


def test_days_of_an_unequal_hold_are_clusters_by_what_is_held_of_them():
    times = np.random.default_rng(4).integers(0, 20 * DAY, 2_000)
    held = pl.DataFrame(
        {"family": ["spread"] * 20, "start_ts": [DAY * day for day in range(20)]}
    ).with_columns(
        end_ts=pl.col("start_ts")
        + pl.when(pl.int_range(20) % 2 == 0).then(DAY // 2).otherwise(DAY // 4)
    )
    watched = Watched.of(openings(times, 0, 20 * DAY), [], held)
    row = dispersions(watched, watched.openings(), "day").row(0, named=True)
    assert (row["cluster"], row["n_clusters"], row["freedom"]) == ("day", 20, 19.0)
    assert 0.5 < row["fano"] < 1.7


@pytest.mark.parametrize("ask", [rates, rate_changes])
def test_one_burst_has_a_count_but_no_interval(ask):
    times = [*range(13 * DAY, 13 * DAY + 80), 100, 200]
    row = ask(openings(times, 0, 14 * DAY)).row(0, named=True)
    lower, reason = (
        ("rate_lower_per_day", "rate_reason") if ask is rates else ("p_value", "p_value_reason")
    )
    assert row["n"] == (82 if ask is rates else 80)
    assert row["cluster"] == "stretch"
    assert (row[lower], row[reason]) == (None, "few_clusters")
    apart = ask(openings(times, 0, 14 * DAY), cluster="none").row(0, named=True)
    assert apart[reason] is None


def test_a_change_that_bursts_explain_is_not_sure():
    early, late = bursts(8, 7, 10, 10), 7 * DAY + bursts(9, 7, 20, 10)
    frame = openings(np.concatenate([early, late]), 0, 14 * DAY)
    exact = rate_changes(frame, cluster="none").row(0, named=True)
    found = rate_changes(frame).row(0, named=True)
    assert exact["p_value"] < 0.01
    assert found["p_value"] > 0.05
    assert found["ratio"] == exact["ratio"]
    assert found["ratio_lower"] < 1 < exact["ratio_lower"]


def test_the_league_of_bursts_is_shrunk_as_if_each_burst_were_one_event():
    names, times = [], []
    for symbol in range(30):
        own = bursts(100 + symbol, 20, 5, 10)
        times.append(own)
        names += [f"S{symbol:02}"] * own.size
    frame = openings(np.concatenate(times), 0, 20 * DAY, symbol=names)
    ends = {
        each: league(frame, ["symbol"], cluster=each)["rate_shrunk_per_day"].drop_nulls()
        for each in ("none", "auto")
    }
    assert ends["none"].std() > 1, "the luck of a burst taken for a rate"
    assert ends["auto"].is_empty() or ends["auto"].std() < ends["none"].std() / 2


def test_a_share_of_events_apart_is_exact_and_of_clusters_as_wide_as_of_so_many():
    inside = np.random.default_rng(2).random(120) < 0.4
    exact = stats.binomtest(int(inside.sum()), 120).proportion_ci(method="exact")
    assert cluster_share_interval(np.arange(120), inside) == pytest.approx(exact, rel=1e-9)
    alike = np.repeat(inside[:24], 5)
    lower, upper = cluster_share_interval(np.repeat(np.arange(24), 5), alike)
    few = stats.binomtest(int(inside[:24].sum()), 24).proportion_ci(method="exact")
    assert lower == pytest.approx(few.low, abs=0.04)
    assert upper == pytest.approx(few.high, abs=0.04)


def test_the_design_effect_is_one_and_the_size_less_one_times_the_correlation():
    """Kish's, of clusters of 10 with a correlation of 0.3 within."""
    rng = np.random.default_rng(1)
    of = np.repeat(np.arange(4_000), 10)
    values = np.sqrt(0.3) * rng.standard_normal(4_000)[of] + np.sqrt(0.7) * rng.standard_normal(
        40_000
    )
    assert design_effect(of, values[:, None]) == pytest.approx(1 + 9 * 0.3, rel=0.1)


def test_clusters_in_time_that_hold_what_few_days_hold_are_preferred_to_the_few():
    rng = np.random.default_rng(5)
    opened = np.repeat(rng.integers(0, 3 * DAY, 40), 6) + rng.integers(0, 50, 240)
    rows = lives(
        60 * np.exp(np.repeat(rng.standard_normal(40), 6)), np.ones(240, int), opened=opened
    )
    kinds = clusters_of_lives(rows, "auto")
    found = chosen_clusters("auto", kinds, np.repeat(rng.standard_normal(40), 6)[:, None])
    assert found.kind == "path"
    assert not found.few


def drawn_one_by_one(clusters, values, figure):
    """Repeat the values of each cluster as often as a draw has it, and take the figure."""
    _, cluster = np.unique(clusters, return_inverse=True)
    count = cluster.max() + 1
    draws = np.random.default_rng(20_261_123).multinomial(count, np.full(count, 1 / count), 999)
    figures = [figure(np.repeat(values, draw[cluster])) for draw in draws]
    half = two_sided_95(count - 1) * np.sqrt(count / (count - 1)) * np.std(figures)
    return figure(values) - half, figure(values) + half


@pytest.mark.parametrize("seed", range(4))
def test_bands_are_those_of_values_repeated_one_by_one(seed):
    rng = np.random.default_rng(seed)
    clusters = 5 * rng.integers(0, 25, 160)
    values = np.round(rng.standard_t(3, 160), seed)  # with ties
    found = cluster_band(clusters, values)
    assert found is not None
    np.testing.assert_allclose(found.mean, drawn_one_by_one(clusters, values, np.mean), rtol=1e-12)
    np.testing.assert_allclose(
        found.median, drawn_one_by_one(clusters, values, np.median), rtol=1e-9, atol=1e-12
    )


def test_too_few_values_or_clusters_have_no_band():
    assert cluster_band(np.arange(19), np.ones(19)) is None
    assert cluster_band(np.arange(200) % 9, np.ones(200)) is None
    assert cluster_band(np.zeros(0, dtype=np.int64), np.zeros(0)) is None


def test_many_clusters_are_drawn_in_groups_of_neighbours():
    values = np.random.default_rng(2).normal(size=3_000)
    found = cluster_band(np.arange(3_000), values)
    assert found is not None
    error = values.std() / np.sqrt(3_000)
    assert (found.mean[1] - found.mean[0]) / (2 * 1.966 * error) == pytest.approx(1, abs=0.12)
