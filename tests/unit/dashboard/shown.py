"""What stands on a page that was run, in plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from streamlit.testing.v1 import AppTest


def texts(elements: Iterable[Any]) -> list[str]:
    """The words of elements such as a page's captions."""
    return [element.value for element in elements]


def figures(page: AppTest) -> list[dict[str, Any]]:
    """The charts of a page, as plotly reads them."""
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
