"""Rates in force before settlements against what was settled, by loops and known processes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics import funding

HOUR = 3600
START = 1_700_006_400  # a midnight, UTC
KEY = "funding/BTC_USDT:A.futures:B.futures"


def polled(rates: dict[int, float], leg: str, hours: float | None = 8) -> pl.DataFrame:
    """Rates in force of a leg at some seconds after START."""
    return pl.DataFrame(
        {
            "trajectory": [f"snapshot-funding/BTC_USDT:{leg}.futures"] * len(rates),
            "ts": [START + at for at in rates],
            "rate": list(rates.values()),
            "interval_hours": [hours] * len(rates),
        },
        schema_overrides={"interval_hours": pl.Float64},
    )


def test_the_last_rate_before_a_settlement_is_compared_with_it(joined, every):
    frame = joined(every(8, [1e-4, -2e-4, 0.0, 3e-4]), every(8, [1e-4] * 4), KEY)
    rates = polled(
        {
            -7200: 9e-4,  # older than an hour
            8 * HOUR - 600: -1e-4,
            8 * HOUR - 60: -3e-4,
            8 * HOUR: 8e-4,  # at the settlement: the next one's
            16 * HOUR - 3600: 2e-4,
            24 * HOUR - 30: float("nan"),
            24 * HOUR - 40: -1e-4,
        },
        "A",
    )
    found = funding.prediction_errors(frame, rates, START - 1, START + 24 * HOUR)
    row, other = found.rows(named=True)
    assert (row["trajectory"], row["n"], row["coverage"]) == ("funding/BTC_USDT:A.futures", 3, 0.75)
    errors = [1.0, -2.0, 4.0]
    assert row["error_mean_bps"] == pytest.approx(np.mean(errors))
    assert row["error_median_bps"] == pytest.approx(1.0)
    assert row["error_std_bps"] == pytest.approx(np.std(errors, ddof=1))
    assert row["age_mean_s"] == pytest.approx((60 + 3600 + 40) / 3)
    assert (row["n_signed"], row["same_sign_share"]) == (2, 0.5)
    assert (other["n"], other["coverage"]) == (0, 0.0)
    assert {other[f"{name}_reason"] for name in ("prediction", "error", "sign")} == {"empty"}


def test_a_prediction_is_scaled_to_the_interval_that_was_settled(joined, every):
    frame = joined(every(8, [8e-4]), every(8, [8e-4]), KEY)
    for hours, error in ((1, 0.0), (None, 7.0)):
        rates = polled({-60: 1e-4}, "A", hours)
        row = funding.prediction_errors(frame, rates, START - 1, START).row(0, named=True)
        assert row["error_mean_bps"] == pytest.approx(error, abs=1e-9)
        assert (row["error_std_bps"], row["error_reason"]) == (None, "too_few")


def test_rows_of_the_frame_that_are_rates_in_force_predict_its_own_settlements(joined, every):
    rng = np.random.default_rng(2)
    rates = np.repeat(rng.normal(0, 1e-4, 30), 8)
    frame = joined(every(8, [1e-4] * 30), [(k, rate, 8) for k, rate in enumerate(rates)], KEY)
    found = funding.prediction_errors(frame, None, START, START + 29 * 8 * HOUR)
    row = found.row(1, named=True)
    errors = 1e4 * np.diff(rates[::8])
    assert (row["n"], row["coverage"], row["age_mean_s"]) == (29, 1.0, HOUR)
    assert row["error_mean_bps"] == pytest.approx(errors.mean())
    assert row["error_std_bps"] == pytest.approx(errors.std(ddof=1))
    same = np.sign(rates[8::8]) == np.sign(rates[:-8:8])
    assert row["same_sign_share"] == pytest.approx(same.mean())


def test_a_known_error_is_recovered_whatever_the_order_of_rows(joined, every):
    rng = np.random.default_rng(3)
    settled = rng.normal(1e-4, 2e-4, 3000)
    predicted = settled - rng.normal(1e-5, 5e-5, settled.size)
    frame = joined(None, every(8, settled), "funding/BTC_USDT:S.spot:B.futures")
    rates = polled({8 * HOUR * k - 300: rate for k, rate in enumerate(predicted)}, "B")
    window = START - 1, START + 3000 * 8 * HOUR
    found = funding.prediction_errors(frame, rates, *window)
    assert found["error_mean_bps"].item() == pytest.approx(0.1, abs=0.03)
    assert found["error_std_bps"].item() == pytest.approx(0.5, abs=0.02)
    mixed = funding.prediction_errors(frame.reverse(), rates.reverse(), *window)
    assert mixed.equals(found)


def test_rates_that_are_none_are_refused(joined, every):
    frame, rates = joined(every(8, [1e-4]), every(8, [1e-4]), KEY), polled({-60: 1e-4}, "A")
    with pytest.raises(InputError, match="no rate"):
        funding.prediction_errors(frame, rates.drop("rate"))
    with pytest.raises(InputError, match="already there"):
        funding.prediction_errors(frame, pl.concat([rates, rates]))
    with pytest.raises(InputError, match="max_age"):
        funding.prediction_errors(frame, rates, max_age="soon")
