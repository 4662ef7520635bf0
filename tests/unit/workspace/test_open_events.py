"""What is open now is asked by the filter, and is right whatever the filter means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.unit.client.conftest import Asking, Scripted, ask, scripted
from tests.unit.workspace.conftest import NOW
from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.events.event_selection import open_events

__all__ = ["ask", "scripted"]  # fixtures

SCHEMAS = {"source": {"kind": "live", "id": "x"}}
DATE = {"Date": "Wed, 04 Nov 2026 00:00:00 GMT"}


@pytest.fixture(scope="module")
def rail(simulated: Workspace) -> Workspace:
    return simulated


def brute_force(rail: Workspace, family: EventFamily, since: int) -> dict[str, int]:
    """Return the events without a closing document by id, and when they opened, of all asked."""
    pages = list(rail.client.event_pages(family, (since, NOW)))
    documents = [
        json.loads(text) for text in pl.concat([page.frame for page in pages])["document"].to_list()
    ]
    closed = {each["event_id"] for each in documents if each["lifecycle"] == "closed"}
    return {
        each["event_id"]: each["ts"]
        for each in sorted(documents, key=lambda each: -each["ts_ms"])
        if each["event_id"] not in closed
    }


@pytest.mark.parametrize("family", EventFamily)
@pytest.mark.slow
def test_the_open_events_are_those_that_the_whole_log_leaves_open(
    rail: Workspace, family: EventFamily
) -> None:
    found = rail.open_events(family, "3d")
    assert dict(found.select("event_id", "since").rows()) == brute_force(
        rail, family, NOW - 3 * 86_400
    )
    assert found.select((pl.col("known_until") == NOW).all()).item()


def document(event: str, kind: str, lifecycle: str, ts: int) -> dict[str, object]:
    return {
        "schema": "svc.spread.v1",
        "event_type": f"spread.{kind}",
        "event_id": event,
        "lifecycle": lifecycle,
        "ts": ts,
        "ts_ms": ts * 1000,
        "instrument": {"symbol": "A_B"},
    }


OPENED = [document("e1", "opened", "open", NOW - 60), document("e2", "opened", "open", NOW - 90)]
CLOSED = [document("e2", "closed", "closed", NOW - 30)]


def page(documents: list[dict[str, object]]) -> dict[str, object]:
    return {"items": documents, "has_more": False}


@pytest.mark.parametrize(
    "answers",
    [
        [(200, page(OPENED)), (200, page(CLOSED))],  # of documents, by their own state
        [(200, page(OPENED[:1])), (200, page([*CLOSED, OPENED[1]]))],  # of events, by theirs
        [(200, page([*CLOSED, *OPENED]))] * 2,  # the filter is ignored
        [(400, {"error": "no such parameter"}), (200, page([*CLOSED, *OPENED]))],  # or refused
        [(200, page(OPENED)), (400, {}), (200, page([*CLOSED, *OPENED]))],  # or closed is no word
    ],
)
def test_what_is_open_is_right_whatever_the_filter_means(
    ask: Callable[..., Asking], scripted: Scripted, answers: list[tuple[int, dict[str, object]]]
) -> None:
    scripted.answer(200, SCHEMAS, headers=DATE)
    for status, body in answers:
        scripted.answer(status, body, headers=DATE)
    found = open_events(ask().client, "spread", "1h")
    assert found.rows["event_id"].to_list() == ["e1"]
    assert found.rows["duration_s"].to_list() == [60.0]
    assert scripted.asked[1].query["lifecycle"] == ["open"]
    assert len(scripted.asked) == len(answers) + 1


@pytest.mark.parametrize(
    ("family", "back"), [("pump", "1h"), ("spread", "week"), ("spread", "31d")]
)
def test_what_cannot_be_asked_is_refused(rail: Workspace, family: str, back: str) -> None:
    with pytest.raises(InputError):
        rail.open_events(family, back)


def test_a_log_without_an_open_event_gives_no_rows(
    ask: Callable[..., Asking], scripted: Scripted, tmp_path: Path
) -> None:
    scripted.answer(200, SCHEMAS, headers=DATE)
    scripted.answer(200, page([]), headers=DATE)
    with Workspace(ask().client, Store(tmp_path / "s.duckdb")) as rail:
        assert rail.open_events("splash").is_empty()
