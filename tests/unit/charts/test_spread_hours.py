"""The mean spread of each hour of the week."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.charts import spread_hours_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.spread import hour_of_week

SOURCE = Source("simulated", "seed-7")
WEEK, MONDAY = 604_800, 345_600


def rows(key: str = "A_B:X.spot:Y.spot", weeks: int = 5) -> pl.DataFrame:
    """A spread of 5 bps more at each later hour of the week, and of 0 to 4 more by turns."""
    ts = MONDAY + 3_600 * np.arange(168 * weeks)
    level = 5.0 * (np.arange(ts.size) % 168) - 400 + np.arange(ts.size) * 7 % 5
    return pl.DataFrame({"trajectory": key, "ts": ts, "spread_log_bps": level})


def test_each_hour_is_a_cell_of_one_scale_around_nothing():
    found = hour_of_week(rows(), MONDAY, MONDAY + 5 * WEEK)
    figure = spread_hours_chart(found, source=SOURCE)
    (cells,) = figure.data
    assert (cells.y[0], cells.y[-1], cells.x[0]) == ("Sunday", "Monday", "00")
    assert cells.z[-1][:2].tolist() == [-398.0, -393.0]
    assert (cells.zmin, cells.zmax) == (-437.0, 437.0)
    assert cells.customdata[-1][0][0] == "5"
    assert " to " in cells.customdata[-1][0][1]
    assert "n = 840 rows" in figure.layout.title.subtitle.text
    assert "SIMULATED" in figure.layout.annotations[0].text


def test_an_hour_without_a_row_has_no_fill():
    found = hour_of_week(rows(weeks=1).head(3), MONDAY, MONDAY + WEEK)
    (cells,) = spread_hours_chart(found, source=SOURCE).data
    assert np.isfinite(cells.z.astype(float)).sum() == 3


def test_two_trajectories_and_no_row_are_no_chart():
    two = pl.concat([rows(), rows("A_B:X.spot:Z.spot")])
    with pytest.raises(InputError, match="168 hours of one"):
        spread_hours_chart(hour_of_week(two, MONDAY, MONDAY + WEEK), source=SOURCE)
    none = hour_of_week(rows(), MONDAY, MONDAY + WEEK).with_columns(
        spread_mean_log_bps=pl.lit(None, pl.Float64)
    )
    assert (
        "No hour of the week" in spread_hours_chart(none, source=SOURCE).layout.annotations[0].text
    )
