"""What stands on a page that was run, in plain values."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

SERVICE = "http://127.0.0.1:1"
"""Where the loads of the pages' stores were asked."""


def texts(elements: Iterable[Any]) -> list[str]:
    """The words of elements such as a page's captions."""
    return [element.value for element in elements]


def metrics(page: AppTest) -> dict[str, str]:
    """The figures of a page by their label."""
    return {metric.label: metric.value for metric in page.metric}


def words(page: AppTest) -> str:
    """The texts of a page."""
    return " ".join(texts(page.markdown))


def figures(page: AppTest) -> list[dict[str, Any]]:
    """The charts of a page, as plotly reads them."""
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def rows_of(page: AppTest, key: str) -> dict[str, list[str]]:
    """What the cells of a table of our own show, by heading; {} without it."""
    return {column["name"]: column["shown"] for column in _columns_of(page, key)}


def values_of(page: AppTest, key: str) -> list[dict[str, Any]]:
    """What the rows of such a table sort by, or show where it is text; [] without the table."""
    values = {each["name"]: each["values"] or each["shown"] for each in _columns_of(page, key)}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def drawn(page: AppTest, key: str) -> dict[str, Any]:
    """What the script of a part of the page of our own gets; {} without the part."""
    for part in page.get("bidi_component"):
        if part.proto.id.endswith(f"-{key}"):
            data: dict[str, Any] = json.loads(part.proto.json)
            return data
    return {}


def _columns_of(page: AppTest, key: str) -> list[dict[str, Any]]:
    columns: list[dict[str, Any]] = drawn(page, key).get("columns", [])
    return columns


def cells_of(page: AppTest, key: str) -> dict[str, dict[str, str]]:
    """What the cells of such a table show, by the key of the row and the heading."""
    data = drawn(page, key)
    shown = [(column["name"], column["shown"]) for column in data["columns"]]
    return {row: {name: cells[at] for name, cells in shown} for at, row in enumerate(data["keys"])}


def sync(path: Path, *words: str, service: str | None = SERVICE) -> str:
    """The command that loads something into the store of a page, as the page shows it."""
    address = ["--base-url", service] if service else []
    return shlex.join(["rail", "sync", *words, "--store", str(path), *address])
