"""What the survival chart draws and says."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.charts import survival_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.events import survival_curve

SOURCE = Source("simulated", "seed-7")


def curve(symbols: int = 2, rows: int = 40) -> pl.DataFrame:
    count = symbols * rows
    lives = pl.DataFrame(
        {
            "family": ["spread"] * count,
            "symbol": [f"S{k % symbols}" for k in range(count)],
            "t_open": [0] * count,
            "duration_s": [60.0 * (1 + k // symbols) for k in range(count)],
            "entry_s": [0.0] * count,
            "observed": [int(k % 5 > 0) for k in range(count)],
            "kind": ["closed"] * count,
            "known_until": [60 * rows] * count,
            "window_start": [0] * count,
            "window_end": [60 * rows] * count,
        }
    )
    return survival_curve(lives, ["symbol"])


def test_each_group_is_a_line_of_steps_from_all_with_a_band_and_its_counts_below():
    found = curve()
    figure = survival_chart(found, source=SOURCE, subject="spread events")
    lines = [trace for trace in figure.data if trace.mode != "text" and trace.name]
    assert [line.name for line in lines] == ["S0", "S1"]
    own = found.filter(symbol="S0")
    assert lines[0].x.tolist() == [0.0, *(own["life_s"] / 60).to_list()]
    assert lines[0].y.tolist() == [1.0, *own["survival"].to_list()]
    assert lines[0].line.shape == "hv"
    counts = [trace for trace in figure.data if trace.mode == "text"]
    expected = [own.filter(pl.col("life_s") >= 60 * age)["n"].max() for age in counts[0].x]
    assert [int(text) for text in counts[0].text] == expected
    assert counts[0].text[0] == "40"
    bands = [trace for trace in figure.data if trace.fill == "tonexty"]
    assert len(bands) == 2
    subtitle = figure.layout.title.subtitle.text
    assert "n = 80 events at risk, 64 seen to end" in subtitle
    assert "log coverage at least 100.00 %" in subtitle
    assert "SIMULATED market, seed-7" in subtitle
    assert figure.layout.xaxis.title.text == "age (min)"


def test_a_line_ends_where_the_share_is_not_known_and_many_ages_are_thinned():
    broken = curve(1).with_columns(
        pl.when(pl.col("life_s") < 600).then("survival").alias("survival")
    )
    figure = survival_chart(broken, source=SOURCE)
    line = next(trace for trace in figure.data if trace.name)
    assert line.x.max() < 10
    many = survival_chart(curve(1, 900), source=SOURCE)
    line = next(trace for trace in many.data if trace.name)
    assert len(line.x) == 301
    assert line.x.max() == 900 * 60 / 3_600
    assert "drawn at 300 of the ages of a group" in many.layout.title.subtitle.text


def test_nothing_known_is_a_sentence_and_too_many_groups_are_refused():
    nothing = survival_chart(curve().clear(), source=SOURCE)
    assert "Survival is not known" in nothing.layout.annotations[0].text
    with pytest.raises(InputError, match="at most 6 groups"):
        survival_chart(curve(7), source=SOURCE)
    with pytest.raises(InputError, match="survival_lower"):
        survival_chart(curve().drop("survival_lower"), source=SOURCE)
    assert np.isfinite(survival_chart(curve(6), source=SOURCE).layout.height)
