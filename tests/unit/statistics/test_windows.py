"""A statistic takes any time, and without one the window is that of its frame."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.market import When
from toolkit.statistics import events, funding, spread
from toolkit.statistics.funding.differentials import service_differential

MARCH = 1_677_628_800
HOUR = [MARCH + 60 * minute for minute in range(60)]
SPREADS = pl.DataFrame(
    {"trajectory": "a", "ts": HOUR, "spread_log_bps": [float(number % 7) for number in range(60)]},
    schema_overrides={"trajectory": pl.String},
)
SETTLED = pl.DataFrame({"trajectory": ["a"] * 4, "ts": [MARCH + 28_800 * n for n in range(4)]})
FUNDING = SETTLED.with_columns(
    buy_rate=pl.lit(0.0),
    sell_rate=pl.lit(1e-4),
    buy_interval_hours=pl.lit(8),
    sell_interval_hours=pl.lit(8),
)
OF_SPREADS = {
    "coverage": spread.coverage,
    "half_life": spread.half_life,
    "summary": spread.summary,
    "time_above": lambda *args, **kwargs: spread.time_above(*args, threshold_bps=3, **kwargs),
    "episodes": lambda *args, **kwargs: spread.episodes(*args, enter_bps=3, **kwargs),
}


@pytest.mark.parametrize("name", OF_SPREADS)
def test_without_a_window_it_is_the_frame_s_own_to_the_end_of_its_last_bar(name: str) -> None:
    measured = OF_SPREADS[name]
    assert measured(SPREADS).equals(measured(SPREADS, MARCH, MARCH + 3600))
    assert measured(SPREADS.lazy()).equals(measured(SPREADS))
    row = measured(SPREADS).row(0, named=True)
    assert (row["window_start"], row["window_end"]) == (MARCH, MARCH + 3600)


@pytest.mark.parametrize(
    "start",
    [
        "2023-03-01",
        "2023-03-01 00:00 UTC",
        dt.date(2023, 3, 1),
        dt.datetime(2023, 3, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        np.int64(MARCH),
        np.datetime64("2023-03-01"),
        np.datetime64("2023-03-01", "ns"),
        pd.Timestamp("2023-03-01", tz="UTC"),
    ],
)
def test_any_time_that_names_a_second_is_read(start: When) -> None:
    assert spread.coverage(SPREADS, start).equals(spread.coverage(SPREADS, MARCH, MARCH + 3600))


@pytest.mark.parametrize("name", OF_SPREADS)
def test_each_statistic_reads_a_time(name: str) -> None:
    measured = OF_SPREADS[name]
    assert measured(SPREADS, "2023-03-01").equals(measured(SPREADS, MARCH, MARCH + 3600))


@pytest.mark.parametrize("start", [1000 * MARCH, float(MARCH), np.datetime64("NaT"), True, "soon"])
@pytest.mark.parametrize("name", OF_SPREADS)
def test_milliseconds_fractions_and_what_is_no_time_are_refused(name: str, start: When) -> None:
    with pytest.raises(InputError, match=r"start: .* is not allowed; allowed: ISO 8601 UTC"):
        OF_SPREADS[name](SPREADS, start)


@pytest.mark.parametrize("name", OF_SPREADS)
def test_a_frame_without_rows_has_no_window_of_its_own(name: str) -> None:
    with pytest.raises(InputError, match="for the frame has no row to take one from"):
        OF_SPREADS[name](SPREADS.clear())
    assert OF_SPREADS[name](SPREADS.clear(), MARCH, MARCH + 60).is_empty()


def test_of_settlements_the_window_begins_one_interval_before_the_first() -> None:
    row = funding.summary(FUNDING).row(0, named=True)
    assert (row["window_start"], row["window_end"]) == (MARCH - 28_800, MARCH + 3 * 28_800)
    assert (row["n"], row["coverage"], row["funding_bps"]) == (4, 1.0, pytest.approx(4.0))
    assert funding.carry(FUNDING).height == 4
    sent = SETTLED.with_columns(differential_pct_8h=pl.lit(0.01))
    assert service_differential(sent)["coverage"].item() == 1.0


def test_of_documents_the_window_ends_in_the_second_after_the_last() -> None:
    documents = pl.DataFrame(
        {
            "family": ["spread"] * 2,
            "event_type": ["spread.opened", "spread.closed"],
            "lifecycle": ["open", "closed"],
            "ts": [MARCH, MARCH + 90],
            "ts_ms": [None, None],
            "arrival": [0, 1],
            "event_id": ["e", "e"],
        },
        schema_overrides={"ts_ms": pl.Int64},
    )
    found = events.lifecycles(documents)
    assert found["duration_s"].to_list() == [90]
    assert (found["window_start"].item(), found["window_end"].item()) == (MARCH, MARCH + 91)
