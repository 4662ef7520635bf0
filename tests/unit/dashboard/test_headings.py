"""No page writes a heading: those of its tables and of its figures are declared."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import toolkit.dashboard
from toolkit import columns
from toolkit.columns import column
from toolkit.dashboard.pages.spreads.choice import COLUMNS
from toolkit.dashboard.pages.trajectory.below import statistics_rows
from toolkit.show.values import NULL, heading_of
from toolkit.statistics.spread import summary

from .conftest import PAIR

NAMED = {"RowColumn": 0, "row_column": 1, "time_column": 1, "show_metric": 1, "heading": 0}
"""What heads something by the name of a column, and at which place the name is."""

HEADINGS = {
    heading_of(each, short=short)
    for _, each in columns._first().values()
    for short in (True, False)
} | {heading_of(column(each.figure, each.result), short=True) for each in COLUMNS.values()}


def named() -> Iterator[tuple[str, str]]:
    """Each name of a column that a module of the pages has heading something, and the module."""
    for path in sorted(Path(toolkit.dashboard.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                at = NAMED.get(call.func.id, len(call.args))
                for each in call.args[at : at + 1]:
                    if isinstance(each, ast.Constant):
                        yield path.name, each.value


def test_what_heads_a_column_or_a_figure_is_the_name_of_a_declared_column():
    found = set(named())
    assert len(found) > 60
    assert {(module, name) for module, name in found if not column(name).meaning} == set()


def declared(heading: str) -> bool:
    """Whether it is a declared heading, with a zone, a window or a level beside it or without."""
    words, bracket, unit = heading.partition(" (")
    return not HEADINGS.isdisjoint({heading, words, words.partition(", ")[0] + bracket + unit})


@pytest.mark.parametrize("name", ["overview", "spreads", "symbol", "trajectory", "health"])
def test_each_heading_of_a_page_is_that_of_its_column(page, full, name):
    asked = {"trajectory": PAIR} if name == "trajectory" else {}
    shown = page(full.path, name, fees="example", **asked)
    tables = [json.loads(part.proto.json) for part in shown.get("bidi_component")]
    drawn = [one["name"] for table in tables for one in table.get("columns", ())]
    drawn += [str(name) for table in shown.dataframe for name in table.value.columns]
    drawn += [metric.label for metric in shown.metric]
    assert drawn
    assert [heading for heading in drawn if not declared(heading)] == []


def lines_of(values, column="spread_log_bps", half_life=True):
    frame = pl.DataFrame(
        {
            "trajectory": ["a"] * len(values),
            "ts": [60 * i for i in range(len(values))],
            column: pl.Series(values, dtype=pl.Float64),
        }
    )
    row = summary(frame, 0, 60 * len(values), column=column).row(0, named=True)
    return {line["statistic"]: line for line in statistics_rows(row, "USD", half_life=half_life)}


def test_every_statistic_of_a_spread_has_a_value_or_a_reason():
    for values in ([None], [1.0], [2.0] * 300, [float(i % 17) for i in range(300)]):
        for line in lines_of(values).values():
            assert (line["value"] in (NULL, "under 1 step")) == bool(line["reason"])
    lines = lines_of([2.0] * 300)
    assert lines["standard deviation"]["value"] == "0.00 bps"
    assert lines["half-life"]["value"] == NULL
    assert lines["half-life"]["reason"] == "the values do not vary"
    rng = random.Random(1)
    lines = lines_of([rng.gauss(0, 1) for _ in range(300)])
    for label in ("half-life", "half-life by AR(1)"):
        assert lines[label]["value"] == "under 1 step"
        assert lines[label]["reason"] == "shorter than the spacing of the observations can show"
    lines = lines_of([0.0000123, 0.0000123], column="price", half_life=False)
    assert "half-life" not in lines
    assert lines["mean"]["value"] == "0.0000123 USD"
