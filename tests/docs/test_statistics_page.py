"""The pages below docs/statistics have every statistic once, as its docstring has it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from toolkit.statistics.explanation import Documented

from .statistics_page import FOLDER, functions, statistics_pages

FUNCTIONS = dict(functions())


def test_the_pages_are_those_made_from_the_docstrings_and_have_each_function_once() -> None:
    made = statistics_pages()
    written = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == made, "run `make docs`"
    headings = re.findall(r"(?m)^## (\w+\.\w+)$", "".join(made.values()))
    assert sorted(headings) == sorted(FUNCTIONS)


@pytest.mark.parametrize(("name", "function"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_a_statistic_has_prose_and_an_example(name: str, function: Callable[..., Any]) -> None:
    page = Documented.of(function)
    assert page.prose, name
    assert "Examples" in page.sections, name
