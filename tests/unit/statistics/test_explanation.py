"""What `explain` says of a figure is what the documentation of its statistic says."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import toolkit.statistics
from toolkit.columns import column, columns_of
from toolkit.errors import InputError
from toolkit.statistics import explain, spread

MINUTES = pl.DataFrame(
    {
        "trajectory": ["A_B:X.spot:Y.spot"] * 200,
        "ts": range(0, 12_000, 60),
        "spread_bps": [float((7 * i) % 23) for i in range(200)],
    }
)


def test_every_method_that_a_result_may_name_is_explained() -> None:
    folder = Path(toolkit.statistics.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    methods = set(re.findall(r'Question\(\s*"(\w+\.\w+/\d+)"', source))
    assert len(methods) > 15
    for method in methods:
        assert columns_of(method), method


def test_a_figure_of_another_column_has_the_longest_meaning_that_fits() -> None:
    row = spread.summary(MINUTES, 0, 12_000, column="spread_bps")
    text = explain(row, "spread_time_weighted_mean_bps")
    value = row["spread_time_weighted_mean_bps"][0]
    assert f"spread_time_weighted_mean_bps = {value:.2f} bps: sum(w x) / sum(w)" in text


def test_a_figure_is_explained_by_the_statistic_that_computes_it_with_its_source() -> None:
    row = spread.summary(MINUTES, 0, 12_000, column="spread_bps")
    assert "By half_life: Estimate the time" in explain(row, "half_life_s")
    assert "Source: Stock, J. H. (1991)" in explain(row, "half_life_s")
    assert "By half_life" not in explain(row, "spread_median_bps")


def test_what_cannot_be_explained_is_refused_in_one_line() -> None:
    both = pl.concat([spread.summary(MINUTES, 0, 12_000, column="spread_bps")] * 2)
    with pytest.raises(InputError, match=r"one row; result\.filter"):
        explain(both)
    with pytest.raises(InputError, match="nearest: half_life_s"):
        explain(both[:1], "half_life")
    with pytest.raises(InputError, match="which has its method"):
        explain(MINUTES)
    with pytest.raises(InputError, match="that of a statistic"):
        explain(both[:1].with_columns(method=pl.lit("os.system/1")))


def test_a_path_from_the_detection_has_the_meaning_of_its_figure_and_says_so() -> None:
    found = column("went_on_from_detection_share", "events.follow_through/2")
    assert (found.unit, found.type) == ("fraction", "Float64")
    assert found.meaning == "events with a return above 0, the event as start"
    assert column("run_up_to_detection_median_log_bps").unit == "bps"
    assert column("no_from_detection_share").meaning == ""
