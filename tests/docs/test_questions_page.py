"""docs/questions.md: each question is one call, and has the answer that the call gives."""

from __future__ import annotations

import ast

import pytest

from .questions_page import PAGE, QUESTIONS, questions_page


@pytest.mark.slow
def test_the_page_has_what_the_calls_return() -> None:
    assert PAGE.read_text(encoding="utf-8") == questions_page(), "run `make docs`"


def test_there_are_ten_questions_and_each_is_one_call() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(QUESTIONS) == 10
    for asked in QUESTIONS:
        assert isinstance(ast.parse(asked.call, mode="eval").body, ast.Call)
        assert f"| `{asked.call}`<br>" in page
