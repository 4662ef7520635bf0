"""A command that is shown acts on the store and the service it was shown for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from toolkit.commands import rail, shown_for


def test_a_store_in_the_environment_makes_the_usual_store_one_to_be_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert rail("status", store=Path("rail.duckdb")) == "rail status"
    monkeypatch.setenv("RAIL_STORE", "other.duckdb")
    assert rail("status", store=Path("rail.duckdb")) == "rail status --store rail.duckdb"


def test_what_a_thread_shows_its_commands_for_is_no_other_thread_s() -> None:
    found: list[str] = []

    def page() -> None:
        shown_for(Path("/data/b.duckdb"), "http://127.0.0.1:9000")
        found.append(rail("sync", "events/spread"))

    thread = threading.Thread(target=page)
    thread.start()
    thread.join()
    end = "--store /data/b.duckdb --base-url http://127.0.0.1:9000"
    assert found == [f"rail sync events/spread {end}"]
    assert rail("sync", "events/spread") == "rail sync events/spread"


def test_a_path_with_blanks_stays_one_word() -> None:
    assert rail("app", store=Path("my data/b.duckdb")) == "rail app --store 'my data/b.duckdb'"
