"""Retracement after pumps: by a loop over events, and on pumps that are known."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.proportion import proportion_confint

from toolkit.errors import InputError
from toolkit.statistics.events.follow_through import follow_through

HOUR = 3_600


def minutes(rng, count=4_000):
    prices = np.exp(np.cumsum(rng.normal(0, 2e-3, count)))
    return pl.DataFrame({"trajectory": "a", "ts": 60 * np.arange(count), "price": prices})


def some_pumps(rng, count=50):
    return pl.DataFrame(
        {
            "trajectory": "a",
            "ts": np.sort(rng.choice(np.arange(2, 62), count, replace=False)) * HOUR + 30,
            "direction": rng.choice([1, -1], count),
            "size": rng.choice(["large", "small"], count),
        }
    )


NAMES = {
    False: ("return", "highest", "lowest", "went_on", "retraced"),
    True: tuple(
        f"{name}_from_detection" for name in ("return", "highest", "lowest", "went_on", "retraced")
    ),
}


@pytest.mark.parametrize("from_detection", [False, True])
def test_figures_are_those_of_a_loop_over_the_events(from_detection):
    rng = np.random.default_rng(31)
    bars, events = minutes(rng), some_pumps(rng)
    logs = np.log(bars["price"].to_numpy())
    options = {"horizons_s": [600, 1_800], "by": ["size"], "before_s": 900}
    found = follow_through(events, bars, **options, from_detection=from_detection)
    name, highest, lowest, went_on, share = NAMES[from_detection]
    run_up = f"run_up_{'to_detection_' * from_detection}median_log_bps"
    assert found.select("size", "horizon_s").rows() == [
        (size, horizon) for size in ("large", "small") for horizon in (600, 1_800)
    ]
    for row in found.iter_rows(named=True):
        paths, retraced, run_ups = [], [], []
        for ts, way in events.filter(size=row["size"]).select("ts", "direction").iter_rows():
            bar = ts // 60 - from_detection  # the first that ends then, the last that has ended
            path = way * 1e4 * (logs[bar : bar + row["horizon_s"] // 60 + 1] - logs[bar])
            before = way * 1e4 * (logs[bar - 15] - logs[bar])
            paths.append(path)
            run_ups.append(-before)
            if path.max() > before:
                retraced.append((path.max() - path[-1]) / (path.max() - before))
        last = [path[-1] for path in paths]
        assert row["n"] == len(paths)
        assert row[run_up] == pytest.approx(np.median(run_ups), abs=1e-8)
        assert row[f"{name}_median_log_bps"] == pytest.approx(np.median(last), abs=1e-8)
        assert row[f"{highest}_median_log_bps"] == pytest.approx(
            np.median([path.max() for path in paths]), abs=1e-8
        )
        assert row[f"{lowest}_median_log_bps"] == pytest.approx(
            np.median([path.min() for path in paths]), abs=1e-8
        )
        assert row[f"{went_on}_share"] == np.mean(np.array(last) > 0)
        assert (row["n_retraced"], row[f"{share}_q75"]) == (
            len(retraced),
            pytest.approx(np.quantile(retraced, 0.75)),
        )


def test_the_interval_of_the_share_is_the_exact_one():
    rng = np.random.default_rng(32)
    days = pl.DataFrame({"trajectory": "a", "ts": 86_400 * np.arange(1, 60)})
    prices = np.exp(np.cumsum(rng.normal(0, 1e-3, 61 * 24)))
    bars = pl.DataFrame({"trajectory": "a", "ts": HOUR * np.arange(61 * 24), "price": prices})
    row = follow_through(days, bars, horizons_s=[HOUR]).row(0, named=True)
    count = round(row["went_on_share"] * row["n"])
    low, high = proportion_confint(count, row["n"], method="beta")
    assert (row["went_on_lower"], row["went_on_upper"]) == pytest.approx((low, high), rel=1e-9)
    assert row["return_median_lower_log_bps"] < row["return_median_log_bps"]


@pytest.mark.parametrize("second", [0, 31])
def test_a_jump_that_goes_back_went_on_from_its_detection_alone(second):
    """Each hour up by 2 % in one bar, and from 20 minutes later on where it was."""
    ts = 60 * np.arange(62 * 60)
    rng = np.random.default_rng(35)
    level = np.where((ts % HOUR >= 600) & (ts % HOUR < 1_800), 0.02, 0.0)
    noise = np.cumsum(rng.normal(0, 1e-6, ts.size))
    bars = pl.DataFrame({"trajectory": "a", "ts": ts, "price": np.exp(level + noise)})
    events = pl.DataFrame({"trajectory": "a", "ts": HOUR * np.arange(1, 61) + 600 + second})
    options = {"horizons_s": [600, 1_500], "before_s": 300}
    after = follow_through(events, bars, **options)
    assert after["return_median_log_bps"].to_list() == pytest.approx([0, -200], abs=1)
    assert after["went_on_share"][0] == pytest.approx(0.5, abs=0.2)
    assert after["went_on_share"][1] == 0
    assert after["retraced_median"].to_list() == pytest.approx([0, 1], abs=0.01)
    assert after["run_up_median_log_bps"].to_list() == pytest.approx([200, 200], abs=1)
    since = follow_through(events, bars, **options, from_detection=True)
    assert since["return_from_detection_median_log_bps"].to_list() == pytest.approx([200, 0], abs=1)
    assert since["went_on_from_detection_share"][0] == 1
    assert since["run_up_to_detection_median_log_bps"][0] == pytest.approx(0, abs=1)
    renamed = ("return_", "went_on_", "highest_", "lowest_", "run_up_", "retraced_")
    other = [name for name in since.columns if name.startswith(renamed) and "detection" not in name]
    assert other == ["retraced_reason"]


def test_a_group_without_a_price_keeps_its_row_and_says_why():
    rng = np.random.default_rng(33)
    events = pl.DataFrame({"trajectory": ["a", "b"], "ts": [HOUR, HOUR]})
    found = follow_through(events, minutes(rng, 200), horizons_s=[300], by=["trajectory"])
    assert found.select("n", "path_reason", "band_reason").rows() == [
        (1, None, "too_few"),
        (0, "empty", "empty"),
    ]
    assert found["retraced_reason"][1] == "empty"
    assert math.isfinite(found["return_median_log_bps"][0])


@pytest.mark.parametrize(
    "options", [{"horizons_s": []}, {"horizons_s": [1.5]}, {"by": ["size"]}, {"before_s": 0}]
)
def test_options_that_cannot_be_are_refused(options):
    rng = np.random.default_rng(34)
    events = pl.DataFrame({"trajectory": ["a"], "ts": [HOUR]})
    with pytest.raises(InputError) as caught:
        follow_through(events, minutes(rng, 200), **options)
    assert caught.value.parameter == next(iter(options))
