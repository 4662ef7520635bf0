"""`rail sync` and `rail symbols`: loads, loads again, plans and listings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adversary import Adversary, RestSwitches, adverse
from toolkit.service import Config, Simulated, running

from .conftest import Rail, refused

KEY = "BTC_USDT:AURORA.spot"
HOUR = ("--start", "2026-11-03T12:00:00Z", "--end", "2026-11-03T13:00:00Z")


def test_a_load_says_how_many_rows_are_new_and_again_asks_for_what_is_held(
    rail: Rail, service: str
) -> None:
    asked = ("sync", KEY, *HOUR)
    first, second, again = (rail(*asked, *on, base_url=service) for on in ((), (), ("--again",)))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "60 rows new" in first.stdout
    assert second.stdout.startswith("0 rows new")
    assert again.stdout.startswith("0 rows new, 60 held already")


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


def test_a_plan_without_funding_is_told_so_in_one_line(rail: Rail, service: str) -> None:
    key = "funding/BTC_USDT:AURORA.futures:BOREAS.futures"
    line = refused(rail("sync", key, *HOUR, base_url=service, api_key="demo-free"))
    assert "is not in the key's plan free" in line


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


def test_a_part_of_a_name_finds_the_symbol_with_its_legs(rail: Rail, service: str) -> None:
    done = rail("symbols", "btc", base_url=service)
    assert done.returncode == 0, done.stderr
    first, _, row, *_ = done.stdout.splitlines()
    assert first.startswith("1 symbol, 12 legs · SIMULATED market")
    assert row.startswith("BTC_USDT")
    assert "AURORA.futures AURORA.spot BOREAS.futures" in done.stdout


def test_without_a_name_every_symbol_is_listed_once_and_in_order(rail: Rail, service: str) -> None:
    rows = rail("symbols", base_url=service).stdout.splitlines()
    names = [row.split()[0] for row in rows[2:] if row[:1].strip()]
    assert rows[0].startswith(f"{len(names)} symbols")
    assert names == sorted(set(names))


def test_a_listing_cut_without_a_word_is_shown_whole_with_the_finding(rail: Rail) -> None:
    adversary = Adversary(rest=RestSwitches(symbols_cap=10))
    with running(Config(Simulated(7), port=0, application=adverse(adversary))) as capped:
        done = rail("symbols", base_url=capped.base_url)
    assert done.stdout.startswith("15 symbols")
    assert "finding: the listing of symbols is cut (listing_cut, 1 time); first: " in done.stderr
    assert "10 symbols came of 1000 asked for; searched by letter there" in done.stderr
