"""Commands that are shown name the store and the service they are for; exit codes never change."""

from __future__ import annotations

import shlex
import threading
from pathlib import Path

import pytest

from toolkit.commands import ExitCode, rail, shown_for


def test_a_store_in_the_environment_makes_the_usual_store_one_to_be_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert rail("status", store=Path("rail.duckdb")) == "rail status"
    monkeypatch.setenv("RAIL_STORE", "other.duckdb")
    assert rail("status", store=Path("rail.duckdb")) == "rail status --store rail.duckdb"
    assert rail("app", store=Path("my data/b.duckdb")) == "rail app --store 'my data/b.duckdb'"


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


def test_the_numbers_of_exit_codes_never_change() -> None:
    numbers = {"DONE": 0, "REFUSED": 1, "USAGE": 2, "PARTLY": 3, "FAULT": 70}
    assert {code.name: code.value for code in ExitCode} == {**numbers, "STOPPED": 130, "ENDED": 143}


@pytest.mark.parametrize(
    "written", ["", "x y", "ftp://h", "http://h'; reboot", "http://h\n", f"http://{'h' * 2_000}"]
)
def test_what_a_store_keeps_in_the_place_of_an_address_is_left_out(written: str) -> None:
    shown = rail("sync", "A_B:X.spot", store=Path("b.duckdb"), base_url=written)
    assert shown == "rail sync A_B:X.spot --store b.duckdb"


@pytest.mark.parametrize(
    "address", ["https://rail.example/v1", "http://[::1]:8700", "http://10.0.0.1:80/"]
)
def test_an_address_is_named(address: str) -> None:
    shown = rail("symbols", base_url=address)
    assert shlex.split(shown) == ["rail", "symbols", "--base-url", address]
