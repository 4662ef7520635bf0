"""A chart draws the rows of one trajectory, which the frame names, and over the frame's window."""

from __future__ import annotations

import polars as pl
import pytest

from toolkit.charts import coverage_chart, funding_chart, price_chart, spread_chart
from toolkit.errors import InputError
from toolkit.market import Source, Trajectory

MARCH = 1_677_628_800
SOURCE = Source("replay", "depeg")
PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"
SPREADS = pl.DataFrame(
    {
        "trajectory": [PAIR] * 3,
        "ts": [MARCH, MARCH + 60, MARCH + 120],
        "buy_price": [100.0] * 3,
        "sell_price": [101.0] * 3,
        "spread_log_bps": [99.5] * 3,
    }
)
PRICES = SPREADS.select("ts", price="buy_price", trajectory=pl.lit("BTC_USD:KRAKEN.spot"))
RATES = pl.DataFrame(
    {
        "trajectory": ["funding/BTC_USD:A.futures:B.futures"] * 2,
        "ts": [MARCH, MARCH + 28_800],
        "buy_rate": [0.0] * 2,
        "sell_rate": [1e-4] * 2,
        "buy_interval_hours": [8.0] * 2,
        "sell_interval_hours": [8.0] * 2,
    }
)
CHARTS = [(spread_chart, SPREADS), (price_chart, PRICES), (funding_chart, RATES)]


@pytest.mark.parametrize(("chart", "rows"), CHARTS)
def test_what_the_frame_knows_need_not_be_said(chart, rows) -> None:
    named = Trajectory.parse(rows["trajectory"][0])
    end = MARCH + 28_800 if chart is funding_chart else MARCH + 180
    start = MARCH - 28_800 if chart is funding_chart else MARCH
    said = chart(
        rows.drop("trajectory"), trajectory=named, start=start, end=end, source=SOURCE
    ).to_plotly_json()
    for figure in (
        chart(rows, source=SOURCE),
        chart(rows, trajectory=named.key, start=start, source=SOURCE),
        chart(rows, source=SOURCE, end=f"2023-03-01T{'08:00' if end > MARCH + 180 else '00:03'}"),
    ):
        assert str(figure.to_plotly_json()) == str(said)


@pytest.mark.parametrize(("chart", "rows"), CHARTS)
def test_rows_are_never_drawn_under_the_name_of_another_trajectory(chart, rows) -> None:
    other = rows["trajectory"][0].replace("BTC", "ETH")
    with pytest.raises(InputError, match=f"trajectory: '{other}' is not allowed; .* has"):
        chart(rows, trajectory=other, source=SOURCE)
    both = pl.concat([rows, rows.with_columns(trajectory=pl.lit(other))])
    with pytest.raises(InputError, match="rows of 2 trajectories"):
        chart(both, source=SOURCE)


@pytest.mark.parametrize(("chart", "rows"), CHARTS)
def test_a_frame_that_names_no_trajectory_needs_one(chart, rows) -> None:
    with pytest.raises(InputError, match="where the frame names none"):
        chart(rows.drop("trajectory"), source=SOURCE)
    with pytest.raises(InputError, match="where the frame names none"):
        chart(rows.clear(), source=SOURCE)


@pytest.mark.parametrize(("chart", "rows"), CHARTS)
def test_the_rows_of_another_family_are_refused(chart, rows) -> None:
    other = PAIR if chart is not spread_chart else "BTC_USD:KRAKEN.spot"
    with pytest.raises(InputError, match="trajectory"):
        chart(rows.with_columns(trajectory=pl.lit(other)), source=SOURCE)


def test_the_chart_of_a_ledger_takes_text() -> None:
    ledger = pl.DataFrame({"start_ts": [MARCH], "end_ts": [MARCH + 60], "state": ["held"]})
    figure = coverage_chart(
        ledger, trajectory=PAIR, start="2023-03-01", end="2023-03-01T00:01", source=SOURCE
    )
    assert figure.data[0].name.startswith("held")
    with pytest.raises(InputError, match="start"):
        coverage_chart(ledger, trajectory=PAIR, start=1000 * MARCH, end="2023-03-02", source=SOURCE)
