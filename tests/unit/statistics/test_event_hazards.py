"""Hazard ratios of events against the partial likelihood itself, and ratios that are known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import optimize

from toolkit.errors import InputError
from toolkit.statistics.events import hazard_ratios, survival

from .event_lives import lives


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
    [([], "columns of the lives"), (["when"], "columns of text or numbers"), (["no"], "by")],
)
def test_covariates_that_are_none_are_refused(covariates, words):
    rows = drawn(1).with_columns(when=pl.lit([1]))
    with pytest.raises(InputError, match=words):
        hazard_ratios(rows, covariates)


def test_too_many_ratios_are_refused():
    rows = drawn(1).with_columns(venue=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(InputError, match="at most 50"):
        hazard_ratios(rows, ["venue"])
