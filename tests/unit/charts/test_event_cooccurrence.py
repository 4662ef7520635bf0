"""What the chart of events that come together draws and says."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.charts import cooccurrence_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.events import cooccurrence

SOURCE = Source("simulated", "seed-7")
DAY = 86_400


def lives(**times: np.ndarray) -> pl.DataFrame:
    parts = [
        pl.DataFrame({"symbol": [name] * each.size, "t_open": each}) for name, each in times.items()
    ]
    same = {"family": "spread", "duration_s": 30.0, "entry_s": 0.0, "kind": "closed"}
    whole = {"observed": 1, "known_until": 150 * DAY, "window_start": 0, "window_end": 150 * DAY}
    return pl.concat(parts).with_columns(
        *(pl.lit(value).alias(name) for name, value in same.items()),
        *(pl.lit(value, pl.Int64).alias(name) for name, value in whole.items()),
    )


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
