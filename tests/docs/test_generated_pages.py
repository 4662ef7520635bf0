"""The pages and tables that `make docs` writes are those of today's code and figures."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.scheduler import busy_share
from toolkit.statistics.explanation import Documented
from toolkit.store.reading.views import VIEWS
from toolkit.tables import TABLES

from . import capacity_page, questions_page, statistics_page, store_page

FUNCTIONS = dict(statistics_page.functions())


def test_the_capacity_page_has_the_tables_of_its_figures() -> None:
    text = capacity_page.PAGE.read_text(encoding="utf-8")
    assert capacity_page.sizes_table() in text
    assert capacity_page.shares_table() in text
    assert capacity_page.page(text) == text, "run `make docs`"


@pytest.mark.parametrize(("workers", "part_s"), [(100, 0.01), (100, 10.0), (1_000, 0.4)])
def test_a_scheduler_is_the_limit_where_parts_are_shorter_than_it_takes_for_a_round(
    workers: int, part_s: float
) -> None:
    part_ms = capacity_page.PART_MS[workers]
    found = busy_share(part_ms, part_s, workers, 20 * workers)
    assert found == pytest.approx(min(1.0, part_s / (workers * part_ms / 1_000)), rel=0.1)


@pytest.mark.slow
def test_the_page_of_questions_has_what_the_calls_return() -> None:
    written = questions_page.PAGE.read_text(encoding="utf-8")
    assert written == questions_page.questions_page(), "run `make docs`"


def test_there_are_ten_questions_and_each_is_one_call() -> None:
    page = questions_page.PAGE.read_text(encoding="utf-8")
    assert len(questions_page.QUESTIONS) == 10
    for asked in questions_page.QUESTIONS:
        assert isinstance(ast.parse(asked.call, mode="eval").body, ast.Call)
        assert f"| `{asked.call}`<br>" in page


def test_the_pages_of_statistics_are_made_from_docstrings_and_have_each_function_once() -> None:
    made = statistics_page.statistics_pages()
    pages = statistics_page.FOLDER.glob("*.md")
    written = {path.stem: path.read_text(encoding="utf-8") for path in pages}
    assert written == made, "run `make docs`"
    headings = re.findall(r"(?m)^## (\w+\.\w+)$", "".join(made.values()))
    assert sorted(headings) == sorted(FUNCTIONS)


@pytest.mark.parametrize(("name", "function"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_a_statistic_has_prose_and_an_example(name: str, function: Callable[..., Any]) -> None:
    page = Documented.of(function)
    assert page.prose, name
    assert "Examples" in page.sections, name


def test_the_page_of_the_store_has_a_line_that_explains_each_table_and_column() -> None:
    page = store_page.store_page()
    assert store_page.PAGE.read_text(encoding="utf-8") == page, "run `make docs`"
    for table in (*TABLES, *VIEWS):
        assert f"\n{'##' if table in TABLES else '###'} {table.name}\n" in page
        assert table.meaning
        for column in table.columns:
            assert f"| `{column.name}` | {column.type} | {column.unit} | " in page
            assert column.meaning
