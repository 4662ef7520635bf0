"""docs/statistics.md has every statistic, as its docstring has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolkit.statistics.explanation import Documented

from .statistics_page import PAGE, functions, statistics_page

FUNCTIONS = dict(functions())


def test_the_page_of_the_statistics_is_the_one_made_from_their_docstrings() -> None:
    assert PAGE.read_text(encoding="utf-8") == statistics_page(), "run `make docs`"


@pytest.mark.parametrize(("name", "function"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_a_statistic_has_prose_and_an_example(name: str, function: Callable[..., Any]) -> None:
    page = Documented.of(function)
    assert page.prose, name
    assert "Examples" in page.sections, name
