"""`rail symbols`: what the service lists, and what it refuses."""

from __future__ import annotations

from tests.adversary import Adversary, RestSwitches, adverse
from toolkit.service import Config, Simulated, running

from .conftest import Rail, refused


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


def test_a_name_that_nothing_has_is_refused(rail: Rail, service: str) -> None:
    line = refused(rail("symbols", "NOSUCH", base_url=service))

    assert "lists no symbol with 'NOSUCH' in its name" in line


def test_a_wrong_key_is_refused_and_not_shown(rail: Rail, service: str) -> None:
    line = refused(rail("symbols", base_url=service, api_key="sekrit-4711"))

    assert "RAIL_API_KEY" in line
    assert "sekrit" not in line
