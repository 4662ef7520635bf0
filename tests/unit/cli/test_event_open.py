"""`rail events open`: which events are open now."""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import CompletedProcess

from tests.unit.cli.conftest import refused

Rail = Callable[..., CompletedProcess[str]]


def test_open_events_are_listed_and_nothing_is_stored(rail: Rail, service: str) -> None:
    done = rail("events", "open", "spread", "--back", "2h", "--format", "json", base_url=service)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows
    assert {row["family"] for row in rows} == {"spread"}
    assert all(row["duration_s"] is None or row["duration_s"] > 0 for row in rows)
    assert "there is no store" in refused(rail("status", base_url=service))


def test_a_length_that_is_none_is_refused(rail: Rail) -> None:
    assert "back: 'week'" in refused(rail("events", "open", "spread", "--back", "week"))
