"""`rail sync`: what it prints of a load, and of the same load again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Rail, refused

KEY = "BTC_USDT:AURORA.spot"
HOUR = ("--start", "2026-11-03T12:00:00Z", "--end", "2026-11-03T13:00:00Z")


def test_a_load_says_how_many_rows_are_new_and_the_same_again_says_none(
    rail: Rail, service: str
) -> None:
    first = rail("sync", KEY, *HOUR, base_url=service)
    again = rail("sync", KEY, *HOUR, base_url=service)

    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert "60 rows new" in first.stdout
    assert again.stdout.startswith("0 rows new")


def test_over_the_data_socket_the_same_rows_come_and_a_plan_without_it_is_named(
    rail: Rail, service: str
) -> None:
    done = rail("sync", KEY, *HOUR, "--over", "socket", base_url=service)
    again = rail("sync", KEY, *HOUR, base_url=service)
    assert "60 rows new" in done.stdout
    assert again.stdout.startswith("0 rows new")
    free = ("--over", "socket", "--store", "free.duckdb")
    small = rail("sync", KEY, *HOUR, *free, base_url=service, api_key="demo-free")
    assert small.returncode == 1
    assert "The lowest plan with the streams is builder" in small.stderr


def test_a_filter_without_a_list_is_refused(rail: Rail, service: str) -> None:
    line = refused(rail("sync", KEY, "--symbol", "BTC_USDT", base_url=service))

    assert "--symbol" in line


@pytest.mark.parametrize("option", ["--all-prices", "--all-spreads", "--all-funding"])
def test_a_symbol_that_the_list_has_not_is_refused(rail: Rail, service: str, option: str) -> None:
    line = refused(rail("sync", option, "--symbol", "NO_SUCH", base_url=service))

    assert "NO_SUCH" in line
    assert "BTC_USDT" in line


def test_symbols_without_legs_are_named_where_all_of_them_are_asked_for(
    rail: Rail, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('[listing]\nlegs = "nowhere"\n')
    monkeypatch.setenv("RAIL_PROFILE", str(profile))
    done = rail("sync", "--all-prices", *HOUR, base_url=service)
    assert done.returncode == 1
    assert "nothing of them that --all-… names can be read; name the" in done.stderr


@pytest.mark.parametrize(("key", "code"), [("demo-free", 3), ("demo-pro", 0)])
@pytest.mark.slow
def test_the_exit_code_is_3_where_some_streams_were_refused(
    rail: Rail, service: str, key: str, code: int
) -> None:
    done = rail("sync", KEY, "events/splash", "--store", "s.duckdb", base_url=service, api_key=key)
    assert done.returncode == code
    assert ("refused: events/splash " in done.stderr) == (code == 3)


def test_again_asks_for_what_is_held(rail: Rail, service: str) -> None:
    rail("sync", KEY, *HOUR, base_url=service)
    again = rail("sync", KEY, *HOUR, "--again", base_url=service)
    assert again.stdout.startswith("0 rows new, 60 held already")


def test_a_plan_lists_what_is_missing_in_every_form_and_loads_nothing(
    rail: Rail, service: str
) -> None:
    rail("sync", KEY, *HOUR, base_url=service)
    day = ("--start", "2026-11-02", "--end", "2026-11-03", "--plan")
    table = rail("sync", KEY, "events/splash", *day, base_url=service)
    lines = rail("sync", KEY, "events/splash", *day, "--format", "json", base_url=service)

    assert table.returncode == lines.returncode == 0, table.stderr + lines.stderr
    assert "about 3 requests, 2 or more of schemas" in table.stdout
    assert "leaves the archive within 24 h: " in table.stdout
    first, second = map(json.loads, lines.stdout.splitlines())
    assert (first["stream"], first["requests"], first["missing_s"]) == (KEY, 2, 86_400)
    assert (second["rows"], second["bound"]) == (None, "at least")
    again = rail("sync", KEY, *day, "--format", "json", base_url=service)
    assert json.loads(again.stdout)["missing_s"] == 86_400


def test_options_of_the_plan_s_table_are_refused_without_a_plan(rail: Rail, service: str) -> None:
    assert "--plan" in refused(rail("sync", KEY, "--top", "3", base_url=service))
