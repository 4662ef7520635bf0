"""machine-rail.md, section 3: states and transitions."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

NOW = 1_795_953_607
DAY = {"start_time": NOW - 86_400, "end_time": NOW, "limit": 500}
FAMILIES = ["spread", "splash", "funding"]


def items(market: httpx.Client, family: str, **query: Any) -> list[dict[str, Any]]:
    answer = market.get(f"history/{family}-events", params=DAY | query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.slow
def test_the_event_logs_accept_a_lifecycle_filter_whose_value_may_be_open(
    market: httpx.Client, family: str
) -> None:
    found = items(market, family, lifecycle="open")
    assert {item["lifecycle"] for item in found} == {"open"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_lifecycle_that_there_is_none_of_is_a_bad_parameter(
    market: httpx.Client, family: str
) -> None:
    query = DAY | {"lifecycle": "ajar"}
    answer = market.get(f"history/{family}-events", params=query)
    assert answer.status_code == 400
    assert [error["parameter"] for error in answer.json()["errors"]] == ["lifecycle"]


def test_an_event_type_spread_opened_exists_and_begins_the_open_state(market: httpx.Client) -> None:
    found = items(market, "spread", event_type="spread.opened")
    assert found
    assert {item["lifecycle"] for item in found} == {"open"}


@pytest.mark.parametrize("family", ["spread", "funding"])
def test_an_event_is_open_until_its_one_closing_document(market: httpx.Client, family: str) -> None:
    lives: dict[str, list[dict[str, Any]]] = {}
    for item in reversed(items(market, family)):
        lives.setdefault(item["event_id"], []).append(item)
    ended = [life for life in lives.values() if life[-1]["lifecycle"] == "closed"]
    assert ended
    for life in lives.values():
        assert {item["lifecycle"] for item in life[:-1]} <= {"open"}
    assert {life[-1]["event_type"] for life in ended} == {f"{family}.closed"}
