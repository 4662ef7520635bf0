"""The eight questions of docs/assistant.md are answered so, and as Python answers them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolkit.market import format_ts
from toolkit.workspace import Workspace

from .assistant_page import (
    PAGE,
    QUESTIONS,
    Asked,
    answers,
    every_row,
    loaded,
    python_answer,
    written,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assistant")


@pytest.fixture(scope="module")
def rail(folder: Path) -> Iterator[Workspace]:
    with loaded(folder) as found:
        yield found


@pytest.fixture(scope="module")
def found(folder: Path, rail: Workspace) -> list[dict[str, Any]]:
    assert rail.store.path.parent == folder
    return answers(folder)


def test_the_page_has_the_answers_as_they_are(found: list[dict[str, Any]]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page, found), "run `make docs`"


@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=[q.tool for q in QUESTIONS])
def test_every_figure_of_an_answer_is_that_of_python(
    found: list[dict[str, Any]], rail: Workspace, number: int
) -> None:
    asked: Asked = QUESTIONS[number]
    answer, frame = found[number], python_answer(asked, rail)
    assert len(answer["rows"]) == min(frame.height, asked.arguments.get("limit", frame.height))
    null = {name for line in answer["reason"] for name in line.partition(":")[0].split(", ")}
    for at, shown in enumerate(every_row(answer)):
        assert len(shown) >= 2
        for name, value in shown.items():
            assert value == _written(name, frame[name][at]), name
        assert all(frame[name][at] is None and name not in shown for name in null)


def _written(name: str, value: Any) -> Any:
    if name.endswith("_ts"):
        return format_ts(value)
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if hasattr(value, "strftime") else value
