"""What the heat map of funding draws and says."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import funding_heatmap
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics import funding

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


def test_without_a_known_bucket_it_is_a_sentence():
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
