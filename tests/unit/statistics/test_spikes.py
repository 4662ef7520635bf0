from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import median_abs_deviation

from toolkit.statistics.spread.half_life import without_spikes


def rows_of(*paths) -> pl.DataFrame:
    number = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    return pl.DataFrame({"number": number, "value": np.concatenate(paths).astype(float)})


def test_a_spike_is_beyond_six_deviations_of_the_median():
    values = np.random.default_rng(2).standard_t(2, 2000)
    shares, kept = without_spikes(rows_of(values, np.arange(5)))
    apart = np.abs(values - np.median(values))
    spikes = apart > 6 * median_abs_deviation(values, scale="normal")
    assert spikes.any()
    share = (apart[spikes] ** 2).sum() / (apart**2).sum()
    assert shares["spike_share"].to_list() == [pytest.approx(share, rel=1e-12), 0.0]
    assert kept["number"].to_list() == [0] * (
        2000 - spikes.sum()
    )  # of the other nothing is left out
    assert kept["value"].to_list() == values[~spikes].tolist()


def test_a_tick_at_which_most_values_are_makes_no_spikes_of_the_next_ticks():
    values = np.round(0.6 * np.random.default_rng(3).standard_normal(3000))
    assert (values == 0).mean() > 0.5
    shares, kept = without_spikes(rows_of(values))
    assert shares["spike_share"].to_list() == [0.0]
    assert kept.is_empty()


def test_what_does_not_vary_has_no_share():
    assert without_spikes(rows_of([5, 5, 5]))[0]["spike_share"].to_list() == [None]
