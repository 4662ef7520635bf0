"""machine-rail.md, section 3: states and transitions."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .conftest import NOW


@pytest.mark.parametrize("family", ["spread", "funding"])
def test_an_event_is_open_from_its_opening_to_its_one_closing_document(
    market: httpx.Client, family: str
) -> None:
    window = {"start_time": NOW - 86_400, "end_time": NOW, "limit": 500}
    items = market.get(f"history/{family}-events", params=window).json()["items"]
    opened = [item for item in items if item["event_type"] == f"{family}.opened"]
    assert {item["lifecycle"] for item in opened} == {"open"}
    lives: dict[str, list[dict[str, Any]]] = {}
    for item in reversed(items):
        lives.setdefault(item["event_id"], []).append(item)
    ended = [life for life in lives.values() if life[-1]["lifecycle"] == "closed"]
    assert {life[-1]["event_type"] for life in ended} == {f"{family}.closed"}
    for life in lives.values():
        assert {item["lifecycle"] for item in life[:-1]} <= {"open"}
