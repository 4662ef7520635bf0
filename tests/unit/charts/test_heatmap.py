"""What heat maps draw and say: funding through time, hours of the week, co-occurrence."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import cooccurrence_chart, funding_heatmap, spread_hours_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics import funding
from toolkit.statistics.events import cooccurrence
from toolkit.statistics.spread import hour_of_week

from .test_event_rates import watched

START = 1_678_406_400  # 2023-03-10 00:00 UTC
SOURCE = Source("simulated", "seed-7")


def settled() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "trajectory": "funding/BTC_USDT:AURORA.futures:BOREAS.futures",
            "ts": [START + 28_800 * k for k in (1, 2, 4)],
            "buy_rate": [1e-4, 1e-4, 2e-4],
            "sell_rate": [3e-4, -1e-4, 3e-4],
            "buy_interval_hours": 8,
            "sell_interval_hours": 8,
        }
    )


def test_each_leg_and_pair_is_a_row_with_a_cell_per_bucket():
    rows = pl.concat([settled(), funding.legs(settled())], how="diagonal_relaxed")
    figure = funding_heatmap(funding.heatmap(rows, START, START + 4 * 28_800), source=SOURCE)
    (cells,) = figure.data
    assert cells.y == (
        "BTC_USDT:BOREAS.futures",
        "BTC_USDT:AURORA.futures:BOREAS.futures",
        "BTC_USDT:AURORA.futures",
    )
    expected = np.array([[3, -1, np.nan, 3], [2, -2, np.nan, 1], [1, 1, np.nan, 2]]) * 10.95
    assert np.allclose(cells.z, expected, equal_nan=True)
    assert cells.x[0] == "2023-03-10 04:00"
    assert cells.customdata[0][0][0] == "2023-03-10 00:00"
    subtitle = figure.layout.title.subtitle.text
    assert "n = 9 of 12 buckets" in subtitle
    assert "SIMULATED market, seed-7" in subtitle


def test_the_rates_and_the_ends_of_the_colours_are_in_the_unit():
    found = funding.heatmap(settled(), START, START + 28_800)
    figure = funding_heatmap(found, source=SOURCE, unit="% per 8 h")
    (cells,) = figure.data
    assert np.allclose(cells.z, [[0.02]])
    assert (cells.zmin, cells.zmax) == (-0.05, 0.05)
    assert figure.layout.title.text == "Funding through time (% per 8 h)"
    with pytest.raises(InputError, match="unit"):
        funding_heatmap(found, source=SOURCE, unit="% a week")
    found = funding.heatmap(settled(), START + 10 * 86_400, START + 12 * 86_400)
    figure = funding_heatmap(found, source=SOURCE)
    assert not figure.data
    assert "has known funding" in figure.layout.annotations[0].text


def test_too_many_cells_and_missing_columns_are_refused():
    found = funding.heatmap(settled(), START, START + 86_400)
    with pytest.raises(InputError, match="at most 50,000 cells"):
        funding_heatmap(pl.concat([found] * 20_000), source=SOURCE)
    with pytest.raises(InputError, match="coverage"):
        funding_heatmap(found.drop("coverage"), source=SOURCE)


WEEK, MONDAY = 604_800, 345_600


def hourly(key: str = "A_B:X.spot:Y.spot", weeks: int = 5) -> pl.DataFrame:
    """A spread of 5 bps more at each later hour of the week, and of 0 to 4 more by turns."""
    ts = MONDAY + 3_600 * np.arange(168 * weeks)
    level = 5.0 * (np.arange(ts.size) % 168) - 400 + np.arange(ts.size) * 7 % 5
    return pl.DataFrame({"trajectory": key, "ts": ts, "spread_log_bps": level})


def test_each_hour_is_a_cell_of_one_scale_around_nothing_and_has_no_fill_without_a_row():
    found = hour_of_week(hourly(), MONDAY, MONDAY + 5 * WEEK)
    figure = spread_hours_chart(found, source=SOURCE)
    (cells,) = figure.data
    assert (cells.y[0], cells.y[-1], cells.x[0]) == ("Sunday", "Monday", "00")
    assert cells.z[-1][:2].tolist() == [-398.0, -393.0]
    assert (cells.zmin, cells.zmax) == (-437.0, 437.0)
    assert cells.customdata[-1][0][0] == "5"
    assert " to " in cells.customdata[-1][0][1]
    assert "n = 840 rows" in figure.layout.title.subtitle.text
    assert "SIMULATED" in figure.layout.annotations[0].text
    found = hour_of_week(hourly(weeks=1).head(3), MONDAY, MONDAY + WEEK)
    (cells,) = spread_hours_chart(found, source=SOURCE).data
    assert np.isfinite(cells.z.astype(float)).sum() == 3


def test_two_trajectories_and_no_row_are_no_chart():
    two = pl.concat([hourly(), hourly("A_B:X.spot:Z.spot")])
    with pytest.raises(InputError, match="168 hours of one"):
        spread_hours_chart(hour_of_week(two, MONDAY, MONDAY + WEEK), source=SOURCE)
    none = hour_of_week(hourly(), MONDAY, MONDAY + WEEK).with_columns(
        spread_mean_log_bps=pl.lit(None, pl.Float64)
    )
    assert (
        "No hour of the week" in spread_hours_chart(none, source=SOURCE).layout.annotations[0].text
    )


DAY = 86_400


def lives(**times: np.ndarray) -> pl.DataFrame:
    parts = [
        pl.DataFrame({"symbol": [name] * each.size, "t_open": each}) for name, each in times.items()
    ]
    same = {"family": pl.lit("spread"), "duration_s": 30.0, "observed": pl.lit(1, pl.Int64)}
    return watched(pl.concat(parts).with_columns(**same), 150 * DAY)


@pytest.fixture(scope="module")
def found() -> pl.DataFrame:
    """Return figures in which B opens a minute after A, and C apart from both."""
    rng = np.random.default_rng(1)
    first, third = (np.sort(rng.integers(0, 149 * DAY, 300)) for _ in range(2))
    few = np.arange(5)
    return cooccurrence(lives(A=first, B=first + 60, C=third, D=few), ["symbol"])


def test_a_cell_is_the_logarithm_of_the_ratio_and_grey_where_chance_explains_it(found):
    figure = cooccurrence_chart(found, source=SOURCE)
    cells, marks = figure.data
    assert list(cells.x) == list(cells.y)[::-1] == ["A", "B", "C"]
    ratio = found.filter(symbol="A", other_symbol="B")["ratio"].item()
    assert cells.z[2][1] == cells.z[1][0] == pytest.approx(np.log2(ratio))
    assert np.isnan(cells.z[2][0])
    assert cells.z[2][2] == cells.z[0][0] == 0
    assert "expected" in cells.customdata[2][1][0]
    assert set(zip(marks.x, marks.y, strict=True)) == {("A", "B"), ("B", "A")}
    text = figure.layout.title.subtitle.text
    assert "pairs of 3 groups" in text
    assert "shifted by a whole day" in text
    assert [note.text for note in figure.layout.annotations] == ["SIMULATED"]


def test_of_pairs_in_one_order_the_column_opened_after_the_row(found):
    (cells, marks) = cooccurrence_chart(found, source=SOURCE, after=True).data
    assert set(zip(marks.x, marks.y, strict=True)) == {("B", "A")}
    assert cells.z[2][1] > 2
    assert "%{x} after %{y}" in cells.hovertemplate


def test_groups_with_the_most_events_are_drawn_and_nothing_known_is_a_sentence(found):
    assert len(cooccurrence_chart(found, source=SOURCE, limit=2).data[0].y) == 2
    none = found.filter(pl.col("ratio").is_null())
    nothing = cooccurrence_chart(none, source=SOURCE)
    assert "No pair of groups" in nothing.layout.annotations[0].text
    with pytest.raises(InputError, match="q_value"):
        cooccurrence_chart(found.drop("q_value"), source=SOURCE)
    with pytest.raises(InputError, match="one row of each pair"):
        cooccurrence_chart(pl.concat([found, found]), source=SOURCE)
