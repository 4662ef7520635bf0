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


def figures(page: AppTest) -> list[dict[str, Any]]:
    """The charts of a page, as plotly reads them."""
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def sync(path: Path, *words: str, service: str | None = SERVICE) -> str:
    """The command that loads something into the store of a page, as the page shows it."""
    address = ["--base-url", service] if service else []
    return shlex.join(["rail", "sync", *words, "--store", str(path), *address])
