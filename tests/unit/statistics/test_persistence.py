"""Signs, runs, autocorrelation and caps of funding, against loops over hours and statsmodels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from statsmodels.regression.linear_model import OLS
from statsmodels.tsa.stattools import acf

from toolkit.errors import InputError
from toolkit.statistics import funding

from .conftest import only

HOUR, DAY = 3600, 86400
START = 1_700_006_400  # a midnight, UTC


def in_force(leg, intervals, hour: int) -> float | None:
    """The rate per hour in force from an hour on, by a loop over the settlements."""
    if leg is None:
        return 0.0
    past = [place for place, row in enumerate(leg) if row[0] <= hour]
    hours = intervals[past[-1]] if past else None
    if hours is None or hour >= leg[past[-1]][0] + 2 * hours:
        return None
    return leg[past[-1]][1] / hours


def signs_by_hand(differential: list[float | None], times: set[int], band: float) -> dict:
    """Shares, flips, runs and the sign of the next settlement, from one value an hour."""
    signs = [None if d is None else (d > band) - (d < -band) for d in differential]
    known = [sign for sign in signs if sign is not None]
    runs = [(sign, len(list(group))) for sign, group in itertools.groupby(signs) if sign in (1, -1)]
    flips, last = 0, 0
    for sign in signs:
        flips += sign is not None and sign * last < 0
        last = 0 if sign is None else sign or last
    # a differential changes where a leg settles, where it runs out and where the window begins
    cuts = [hour for hour in range(len(signs)) if signs[hour] is not None and hour in times]
    pairs = [
        (signs[a], signs[b])
        for a, b in itertools.pairwise(cuts)
        if signs[a] and None not in signs[a:b]
    ]
    return {
        "coverage": len(known) / len(signs),
        "positive_share": known.count(1) / len(known),
        "negative_share": known.count(-1) / len(known),
        "within_band_share": known.count(0) / len(known),
        "flips": flips,
        "flips_per_day": flips / (len(known) / 24),
        "longest_run_s": 3600.0 * max((length for _, length in runs), default=0),
        "n_next": len(pairs),
        "same_sign_share": sum(a == b for a, b in pairs) / len(pairs) if pairs else None,
    }


@pytest.mark.parametrize("seed", range(6))
def test_signs_runs_and_flips_equal_a_loop_over_the_hours(seed, joined, read_off, some_leg):
    rng = np.random.default_rng(seed)
    buy, sell = some_leg(rng), None if seed % 3 == 0 else some_leg(rng)
    first, hours, band_pct = int(rng.integers(0, 9)), 120, float(rng.choice([0.0, 8.0]))
    read = {"buy": read_off(buy), "sell": read_off(sell or [])}
    differential = []
    for hour in range(first, first + hours):
        rates = in_force(sell, read["sell"], hour), in_force(buy, read["buy"], hour)
        differential.append(None if None in rates else rates[0] - rates[1])
    settled = {round(row[0]) - first for leg in (buy, sell or []) for row in leg}
    expected = signs_by_hand(differential, settled | {0}, band_pct / 876_000)
    window = START + first * HOUR, START + (first + hours) * HOUR
    row = only(funding.persistence(joined(buy, sell), *window, band_apr_pct=band_pct))
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, rel=1e-12), name


def test_a_gap_ends_a_run_and_hides_a_flip(joined):
    sell = [(8 * k, 1e-4, 8) for k in range(4)] + [(8 * k, -1e-4, 8) for k in range(9, 12)]
    row = only(funding.persistence(joined(None, sell), START, START + 96 * HOUR))
    assert (row["flips"], row["longest_run_s"], row["longest_run_censored"]) == (0, 40 * HOUR, True)
    assert row["coverage"] == pytest.approx(64 / 96)
    near = [(8 * k, sign * 1e-4, 8) for k, sign in enumerate([1, -1, -1, -1, 0, 1, 1])]
    row = only(funding.persistence(joined(None, near), START, START + 56 * HOUR))
    assert (row["flips"], row["longest_run_s"], row["longest_run_censored"]) == (
        2,
        24 * HOUR,
        False,
    )
    assert row["within_band_share"] == pytest.approx(1 / 7)


def test_correlation_and_carry_to_noise_are_those_of_statsmodels(joined, every, autoregressive):
    rates = 1e-5 + 1e-4 * autoregressive(0.7, 240, seed=4)[0]
    row = only(
        funding.persistence(joined(None, every(8, rates)), START - 8 * HOUR, START + 80 * DAY)
    )
    assert row["n_8h"] == 240
    expected = acf(rates, adjusted=True, nlags=9, fft=False)
    found = [row[name] for name in ("acf_8h", "acf_24h", "acf_72h")]
    assert found == pytest.approx(expected[[1, 3, 9]], rel=1e-9)
    fit = OLS(rates, np.ones(240)).fit(cov_type="HAC", cov_kwds={"maxlags": 8})
    assert row["carry_to_noise"] == pytest.approx(fit.tvalues[0] * math.sqrt(1095 / 240), rel=1e-9)


def test_legs_of_other_intervals_add_up_to_the_same_buckets(joined, every):
    rng = np.random.default_rng(8)
    hourly = rng.normal(0, 1e-5, 8 * 100)
    summed = hourly.reshape(100, 8).sum(axis=1)
    window = START, START + 100 * 8 * HOUR
    fine = only(funding.persistence(joined(None, every(1, hourly, first=1)), *window))
    coarse = only(funding.persistence(joined(None, every(8, summed, first=8)), *window))
    names = ["n_8h", "acf_8h", "acf_24h", "acf_72h", "carry_to_noise"]
    assert [fine[name] for name in names] == pytest.approx([coarse[name] for name in names])
    assert fine["n_8h"] == 100


def test_caps_and_the_baseline_are_counted_by_leg_and_interval(joined, every):
    sell = every(8, [1e-4, 1e-4, 75e-4, 75e-4, -3e-4, 2e-4])
    buy = every(1, [1.25e-5] * 12 + [3e-5] * 2)
    row = only(funding.persistence(joined(buy, sell), START - 8 * HOUR, START + 40 * HOUR))
    assert row["sell_at_cap_share"] == pytest.approx(2 / 6)  # the smallest came only once
    assert row["sell_at_baseline_share"] == pytest.approx(2 / 6)
    assert row["buy_at_baseline_share"] == pytest.approx(12 / 14)
    assert row["at_baseline_share"] == pytest.approx(14 / 20)
    assert row["buy_at_cap_share"] == 1.0


def test_every_null_has_a_reason_and_wrong_input_is_refused(joined, every):
    frames = [
        joined(None, every(8, [1e-4]), "short"),
        joined(None, every(8, [1e-4] * 200), "flat"),
        joined(every(8, [1e-4] * 3), [(800, 1e-4, 8)], "apart"),
        joined(every(8, [1e-4] * 30), every(8, np.arange(30) * 1e-5), "pair"),
    ]
    found = funding.persistence(pl.concat(frames), START - 8 * HOUR, START + 60 * DAY)
    for row in found.iter_rows(named=True):
        names = list(row)
        for place, name in enumerate(names):
            if row[name] is None and not name.endswith("_reason"):
                reason = next(each for each in names[place:] if each.endswith("_reason"))
                assert row[reason] or name in ("t_first", "t_last"), (row["trajectory"], name)
    reasons = dict(found.select("trajectory", "acf_reason").rows())
    assert reasons == {
        "short": "too_few", "flat": "degenerate", "apart": "too_few", "pair": None
    }  # fmt: skip
    for wrong in (-1.0, math.nan, "1"):
        with pytest.raises(InputError, match="percent a year from 0"):
            funding.persistence(frames[0], band_apr_pct=wrong)


@pytest.mark.slow
def test_a_chain_of_known_persistence_is_recovered(joined, every):
    rng = np.random.default_rng(11)
    stay, size = 0.85, 20_000
    signs = np.cumprod(np.where(rng.random(size) < stay, 1, -1))
    frame = joined(None, every(8, 1e-4 * signs * rng.uniform(0.5, 1.5, size)))
    row = only(funding.persistence(frame, START, START + size * 8 * HOUR))
    assert row["same_sign_share"] == pytest.approx(stay, abs=0.01)
    assert row["flips_per_day"] == pytest.approx(3 * (1 - stay), abs=0.03)
    scale = 1 / (13 / 12)  # of a square of signs in that of their sizes
    for name, lag in (("acf_8h", 1), ("acf_24h", 3), ("acf_72h", 9)):
        assert row[name] == pytest.approx(scale * (2 * stay - 1) ** lag, abs=0.03)
