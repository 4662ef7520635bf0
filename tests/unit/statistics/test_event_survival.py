"""Survival and hazards of events, against lifelines, statsmodels and known processes."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import optimize, stats
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

from toolkit.errors import InputError
from toolkit.statistics.events import hazard_ratios, log_rank, rates, survival, survival_curve

from .event_lives import END, START, lives


def some_lives(seed: int, *, late: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Durations in whole minutes with many ties, whether each ended, and entries."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(40, 200))
    ends = 60.0 * rng.integers(1, 60, count)
    seen = 60.0 * rng.integers(1, 80, count)
    entries = np.where(rng.random(count) < 0.4, 60.0 * rng.integers(0, 20, count), 0.0) * late
    durations, observed = np.minimum(ends, seen), (ends <= seen).astype(int)
    kept = durations > entries
    return durations[kept], observed[kept], entries[kept]


@pytest.mark.parametrize("seed", range(8))
def test_the_curve_and_its_band_are_those_of_scipy(seed):
    durations, observed, _ = some_lives(seed, late=False)
    found = survival_curve(lives(durations, observed))
    sample = stats.CensoredData.right_censored(durations, observed == 0)
    reference = stats.ecdf(sample).sf
    np.testing.assert_allclose(found["survival"], reference.probabilities, rtol=0, atol=1e-12)
    assert found["life_s"].to_list() == reference.quantiles.tolist()
    with warnings.catch_warnings():  # scipy has no band before the first end, nor have we
        warnings.simplefilter("ignore")
        band = reference.confidence_interval(method="log-log")
    inside = found["band_reason"].is_null().to_numpy()
    for name, end in (("survival_lower", band.low), ("survival_upper", band.high)):
        got = found[name].to_numpy()
        np.testing.assert_allclose(got[inside], end.probabilities[inside], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_events_that_come_under_watch_late_count_as_in_statsmodels(seed):
    durations, observed, entries = some_lives(100 + seed, late=True)
    found = survival_curve(lives(durations, observed, entries))
    reference = SurvfuncRight(durations, observed, entry=entries)
    ended = found.filter(pl.col("ended") > 0)
    assert ended["life_s"].to_list() == reference.surv_times.tolist()
    assert ended["n"].to_list() == reference.n_risk.tolist()
    assert ended["survival"].to_list() == pytest.approx(reference.surv_prob.tolist(), abs=1e-12)
    assert (ended["censored"] >= 0).all()


def test_one_that_comes_under_watch_as_another_ends_is_not_at_risk_there():
    """The case of lifelines issue 1385, decided by hand.

    Event b is seen alive at the age of 20 s, and no sooner than that is it watched: had it ended at
    20 s, it would not have been seen. So of the end of a at 20 s it says nothing, and 2 events are
    at risk there, a and c: S = 1/2. At 50 s these are b and c. R's survival has it so, from after
    the entry to the end. Event d ends at its own entry. It is never watched.
    """
    entries = [0.0, 20.0, 0.0, 30.0]
    found = survival_curve(lives([20.0, 50.0, 60.0, 30.0], [1, 1, 1, 1], entries))
    assert found.select("life_s", "n", "ended", "entering", "survival").rows() == [
        (20.0, 2, 1, 1, 0.5),
        (50.0, 2, 1, 0, 0.25),
        (60.0, 1, 1, 0, 0.0),
    ]


def test_from_the_age_on_at_which_nobody_was_watched_there_is_no_curve():
    """One short life from its opening, and nine that were seen only after their first hour."""
    durations, entries = [60.0, *(4_000.0 + 10 * k for k in range(12))], [0.0, *[3_600.0] * 12]
    row = survival(lives(durations, [1] * 13, entries)).row(0, named=True)
    assert (row["median_life_s"], row["median_life_reason"]) == (None, "too_few")
    assert (row["n_lives"], row["n_ended"], row["entered_late"]) == (13, 13, 12)
    curve = survival_curve(lives(durations, [1] * 13, entries))
    assert curve["survival"].null_count() == curve.height
    late = survival_curve(lives([4_000.0, 5_000.0], [1, 1], 3_600.0))
    assert set(late["survival_reason"]) == {"too_few"}


def test_the_bounds_of_each_quantile_are_those_of_statsmodels():
    durations, observed, _ = some_lives(7, late=False)
    row = survival(lives(durations, observed)).row(0, named=True)
    reference = SurvfuncRight(durations, observed)
    for name, share in {"median_life": 0.5, "life_q25": 0.25, "life_q75": 0.75}.items():
        with np.errstate(all="ignore"):
            lower, upper = reference.quantile_ci(share)
        assert (row[f"{name}_lower_s"], row[f"{name}_upper_s"]) == (lower, upper)
        assert row[f"{name}_lower_s"] <= row[f"{name}_s"] <= row[f"{name}_upper_s"]
    curve = survival_curve(lives(durations, observed))
    for end in ("lower", "upper"):  # where the band of the curve reaches a half
        reached = curve.filter(pl.col(f"survival_{end}") <= 0.5)["life_s"][0]
        assert reached == row[f"median_life_{end}_s"]


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("late", [False, True])
def test_the_log_rank_test_is_that_of_statsmodels_and_scipy(groups, late):
    durations, observed, entries = some_lives(40 + groups, late=late)
    group = np.arange(len(durations)) % groups
    frame = lives(durations, observed, entries, symbol=[f"S{each}" for each in group])
    row = log_rank(frame, ["symbol"]).row(0, named=True)
    chi_square, p_value = survdiff(durations, observed, group, entry=entries if late else None)
    assert (row["chi_square"], row["p_value"]) == pytest.approx((chi_square, p_value), rel=1e-9)
    assert (row["n_groups"], row["freedom"]) == (groups, groups - 1)
    if groups == 2 and not late:
        halves = [
            stats.CensoredData.right_censored(durations[group == k], observed[group == k] == 0)
            for k in (0, 1)
        ]
        assert row["p_value"] == pytest.approx(stats.logrank(*halves).pvalue, rel=1e-12)


def test_the_order_of_rows_changes_nothing_and_the_unit_of_time_scales_every_figure():
    durations, observed, entries = some_lives(16, late=True)
    names = [f"S{(7 * k) % 12}" for k in range(len(durations))]
    frame = lives(durations, observed, entries, symbol=names)
    assert survival(frame)["cluster"].item() == "symbol"
    found = survival(frame, ["symbol"])
    assert survival(frame.sample(fraction=1, shuffle=True, seed=1), "symbol").equals(found)
    longer = survival(lives(4 * durations, observed, 4 * entries, symbol=names), ["symbol"])
    for name in (each for each in found.columns if each.endswith("_s")):
        assert (longer[name] / found[name]).drop_nulls().eq(4).all()
    assert found["n"].sum() == survival(frame)["n"].item()
    apart = log_rank(frame.reverse(), "symbol")["chi_square"].item()
    assert apart == pytest.approx(log_rank(frame, "symbol")["chi_square"].item(), rel=1e-12)
    curve = survival_curve(frame)
    for seed in range(5):
        assert survival_curve(frame.sample(fraction=1, shuffle=True, seed=seed)).equals(curve)


def test_kinds_are_counted_apart_and_those_without_an_age_are_not_used():
    frame = lives([10.0, 20.0, 30.0, 5.0], [1, 0, 0, 1]).with_columns(
        pl.Series("kind", ["closed", "open", "reopened", "closed"])
    )
    orphans = frame.head(2).with_columns(
        pl.when(False).then(pl.col("t_open", "duration_s", "entry_s")),
        pl.Series("kind", ["orphan_close", "orphan_update"]),
        observed=pl.lit(0, pl.Int64),
    )
    row = survival(pl.concat([frame, orphans])).row(0, named=True)
    names = ("n", "closed", "open", "reopened", "orphans", "n_lives", "n_ended", "cut")
    assert [row[name] for name in names] == [6, 2, 1, 1, 2, 4, 2, 0]


def test_an_event_is_watched_up_to_the_next_gap_of_its_log():
    held = pl.DataFrame(
        {
            "family": ["spread"] * 2 + ["splash"],
            "start_ts": [START, START + 400, START],
            "end_ts": [START + 450, START + 700, END],
        }
    )
    opened = [START + 100, START + 600, START + 300, START + 900, START - 50]
    frame = lives([200.0, 400.0, 300.0, 50.0, 60.0], [1, 1, 1, 1, 1], opened=opened)
    row = survival(frame, held=held).row(0, named=True)
    # the first and the third close before the gap, which begins at 700, and the second after it;
    # the fourth opened inside the gap, the last before anything is held
    assert (row["n_lives"], row["n_ended"], row["cut"]) == (3, 2, 3)
    assert row["coverage"] == 700 / (END - START)
    curve = survival_curve(frame, held=held)
    assert curve.select("life_s", "ended", "censored").rows() == [
        (100.0, 0, 1),
        (200.0, 1, 0),
        (300.0, 1, 0),
    ]


def test_without_rows_there_are_none_and_wrong_frames_are_refused():
    empty = lives([], [])
    assert survival(empty, held=None).is_empty()
    assert survival_curve(empty).is_empty()
    assert log_rank(empty.with_columns(symbol=pl.lit("A_B")), "symbol").is_empty()
    frame = lives([1.0, 2.0], [1, 1])
    with pytest.raises(InputError, match="by: 'sybmol'"):
        survival(frame, ["sybmol"])
    with pytest.raises(InputError, match="tell groups apart"):
        log_rank(frame, [])
    with pytest.raises(InputError, match="2 windows"):
        survival(frame.with_columns(window_end=pl.Series([END, END + 1])))
    with pytest.raises(InputError, match="no end_ts"):
        survival(frame, held=pl.DataFrame({"family": ["spread"], "start_ts": [0]}))


def test_few_ends_one_group_and_no_common_time_have_a_reason():
    named = {"symbol": ["A"] * 6 + ["B"] * 6}
    ages = np.arange(1.0, 13.0)
    few = log_rank(lives(ages, [1] * 9 + [0] * 3, **named), ["symbol"])
    alone = log_rank(lives(ages, [1] * 12, symbol=["A"] * 12), ["symbol"])
    entries = np.repeat([0.0, 100.0], 6)
    apart = log_rank(lives(ages + entries, [1] * 12, entries, **named), ["symbol"])
    reasons = [each["log_rank_reason"].item() for each in (few, alone, apart)]
    assert reasons == ["too_few", "too_few", "degenerate"]
    with pytest.raises(InputError, match="at most 100 groups"):
        log_rank(lives([1.0] * 101, [1] * 101, symbol=[f"S{k}" for k in range(101)]), ["symbol"])


@pytest.mark.slow
def test_p_values_of_equal_groups_are_uniform():
    """1,000 pairs of groups of 60 lives, of which about a third had not ended."""
    rng = np.random.default_rng(5)
    ends, seen = rng.exponential(3_600, 120_000), rng.uniform(0, 3 * 3_600, 120_000)
    frame = lives(
        np.minimum(ends, seen),
        (ends <= seen).astype(int),
        symbol=np.tile(["A"] * 60 + ["B"] * 60, 1_000),
        family=np.repeat([f"run-{k:04}" for k in range(1_000)], 120),
    )
    found = log_rank(frame, ["symbol"])["p_value"]
    assert found.len() == 1_000
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert 0.03 < (found < 0.05).mean() < 0.07


def test_the_log_rank_test_of_more_ages_than_one_table_holds_is_that_of_statsmodels():
    rng = np.random.default_rng(71)
    durations, group = rng.exponential(1_000.0, 6_000), rng.integers(0, 3, 6_000)
    entries = np.where(rng.random(6_000) < 0.3, 0.5 * durations, 0.0)
    observed = (rng.random(6_000) < 0.9).astype(int)
    frame = lives(durations, observed, entries, symbol=[f"S{each}" for each in group])
    row = log_rank(frame, ["symbol"]).row(0, named=True)
    chi_square, p_value = survdiff(durations, observed, group, entry=entries)
    assert (row["chi_square"], row["p_value"]) == pytest.approx((chi_square, p_value), rel=1e-9)


@pytest.mark.slow
def test_a_group_among_many_rows_is_the_same_as_alone_and_a_scan_gives_what_rows_give():
    rng = np.random.default_rng(72)
    durations = 60.0 * rng.integers(1, 600, 150_000)
    observed = (rng.random(150_000) < 0.9).astype(int)
    symbols = np.where(rng.random(150_000) < 0.5, "S0", "S1")
    opened = rng.integers(START, END - 36_000, 150_000)
    frame = lives(durations, observed, opened=opened, symbol=symbols)
    gap = {"family": ["spread"] * 2, "start_ts": [START, 1_600_000], "end_ts": [1_500_000, END]}
    held = pl.DataFrame(gap)
    for analysis in (survival, survival_curve, rates):
        found = analysis(frame.lazy(), ["symbol"], held=held)
        assert found.equals(analysis(frame, ["symbol"], held=held))
        alone = analysis(frame.filter(symbol="S1"), ["symbol"], held=held)
        assert_frame_equal(found.filter(symbol="S1"), alone, rel_tol=1e-12)
    assert survival(frame, held=held)["cut"].item() > 1_000


def drawn(seed: int, count: int = 400) -> pl.DataFrame:
    """Lives in whole minutes whose hazard is that of size and venue, some late, some cut off."""
    rng = np.random.default_rng(seed)
    size, venue = rng.normal(size=count), rng.choice(["X", "Y", "Z"], count, p=[0.5, 0.3, 0.2])
    hazard = np.exp(0.5 * size + np.select([venue == "Y", venue == "Z"], [0.7, -0.7], 0.0))
    ends = 60 * np.ceil(rng.exponential(20 / hazard))
    seen = 60 * np.ceil(rng.exponential(60, count))
    entry = np.where(rng.random(count) < 0.3, 60.0 * rng.integers(0, 10, count), 0.0)
    rows = lives(np.minimum(ends, seen), (ends <= seen).astype(int), entry, size=size, venue=venue)
    return rows.filter(pl.col("duration_s") > pl.col("entry_s"))


def least(rows: pl.DataFrame, design: np.ndarray) -> np.ndarray:
    """The slopes at which the partial likelihood, with ties as by Efron, is largest."""
    ends, entry = rows["duration_s"].to_numpy(), rows["entry_s"].to_numpy()
    ended = rows["observed"].to_numpy() == 1

    def loss(slopes: np.ndarray) -> float:
        risk, total = np.exp(design @ slopes), 0.0
        for age in np.unique(ends[ended]):
            dying, watched = ended & (ends == age), (entry < age) & (ends >= age)
            tied = np.arange(dying.sum()) / dying.sum()
            total += (design[dying] @ slopes).sum()
            total -= np.log(risk[watched].sum() - tied * risk[dying].sum()).sum()
        return -total

    options = {"gtol": 1e-7}
    return optimize.minimize(loss, np.zeros(design.shape[1]), method="BFGS", options=options).x


@pytest.mark.parametrize("seed", range(3))
def test_ratios_are_where_the_partial_likelihood_is_largest(seed):
    rows = drawn(seed)
    found = hazard_ratios(rows, ["size", "venue"])
    assert found.select("covariate", "value", "baseline").rows() == [
        ("size", None, None),
        ("venue", "Y", "X"),
        ("venue", "Z", "X"),
    ]
    venue = rows["venue"].to_numpy()
    wanted = least(rows, np.column_stack([rows["size"], venue == "Y", venue == "Z"]))
    np.testing.assert_allclose(np.log(found["hazard_ratio"]), wanted, atol=1e-4)
    assert found["n"].unique().to_list() == [rows.height]


def test_a_ratio_turns_over_with_its_unit_and_with_its_baseline():
    rows = drawn(7)
    once, thousand = (
        hazard_ratios(rows.with_columns(size=pl.col("size") * unit), ["size"]).row(0, named=True)
        for unit in (1, 1_000)
    )
    assert thousand["hazard_ratio"] ** 1_000 == pytest.approx(once["hazard_ratio"])
    two = rows.filter(pl.col("venue") != "Z")
    swapped = two.with_columns(pl.col("venue").replace({"X": "Y", "Y": "X"}))
    ratio, turned = (
        hazard_ratios(each, ["venue"]).select("value", "hazard_ratio").row(0)
        for each in (two, swapped)
    )
    assert (ratio[0], turned[0]) == ("Y", "X")
    assert ratio[1] == pytest.approx(turned[1])


def test_a_value_of_which_none_ended_has_no_ratio_and_changes_no_other():
    rows = drawn(3)
    never = rows.head(20).with_columns(venue=pl.lit("W"), observed=pl.lit(0, pl.Int64))
    found = hazard_ratios(pl.concat([rows, never]), ["venue"])
    assert found.select("value", "hazard_ratio_reason").rows() == [
        ("Y", None),
        ("Z", None),
        ("W", "degenerate"),
    ]
    assert found["n_left_out"].unique().to_list() == [20]
    alone = hazard_ratios(rows, ["venue"])
    assert found["hazard_ratio"].drop_nulls().to_list() == alone["hazard_ratio"].to_list()


@pytest.mark.parametrize(
    ("rows", "covariates", "reason"),
    [
        (drawn(1).head(9), ["size"], "too_few"),
        (drawn(1).with_columns(venue=pl.lit("X")), ["venue"], "too_few"),
        (drawn(1).with_columns(twice=2 * pl.col("size")), ["size", "twice"], "degenerate"),
        (drawn(1).with_columns(size=pl.lit(1.0)), ["size"], "degenerate"),
        (drawn(1).with_columns(size=pl.lit(None, pl.Float64)), ["size"], "too_few"),
    ],
)
def test_what_gives_no_ratio_says_why(rows, covariates, reason):
    found = hazard_ratios(rows, covariates)
    assert found["hazard_ratio_reason"].unique().to_list() == [reason]
    assert found["hazard_ratio"].null_count() == found.height > 0


def test_lives_with_a_null_are_left_out_and_counted():
    rows = drawn(5)
    some = rows.with_columns(size=pl.when(pl.int_range(pl.len()) >= 50).then("size"))
    found = hazard_ratios(some, ["size"]).row(0, named=True)
    assert (found["n"], found["n_left_out"]) == (rows.height - 50, 50)
    assert found["hazard_ratio"] == hazard_ratios(rows[50:], ["size"])["hazard_ratio"].item()


def test_what_is_watched_is_what_survival_watches():
    rows = drawn(5)
    gap = pl.DataFrame({"family": ["spread"], "start_ts": [0], "end_ts": [1_000_600]})
    found = hazard_ratios(rows, ["size"], held=gap).row(0, named=True)
    watched = survival(rows, held=gap).row(0, named=True)
    assert (found["n"], found["n_ended"]) == (watched["n_lives"], watched["n_ended"])
    assert found["coverage"] == watched["coverage"]


@pytest.mark.parametrize(
    ("covariates", "words"),
    [
        ([], "columns of the lives"),
        (["when"], "columns of text or numbers"),
        (["no"], "by"),
        (["each"], "at most 50"),
    ],
)
def test_covariates_that_are_none_or_too_many_are_refused(covariates, words):
    each = pl.int_range(pl.len()).cast(pl.String)
    with pytest.raises(InputError, match=words):
        hazard_ratios(drawn(1).with_columns(when=pl.lit([1]), each=each), covariates)
