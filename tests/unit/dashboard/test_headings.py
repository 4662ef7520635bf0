"""No page writes a heading: those of its tables and of its figures are declared."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkit.dashboard
from toolkit import columns
from toolkit.columns import column
from toolkit.dashboard.pages.spreads.choice import COLUMNS
from toolkit.show.values import heading_of

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
