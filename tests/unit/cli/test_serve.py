"""What `rail serve` refuses before it listens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from .conftest import Rail, refused


def test_a_port_that_is_taken(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "a free port" in refused(rail("serve", "--port", port))


def test_a_data_set_that_is_not_there(rail: Rail, tmp_path: Path) -> None:
    assert "there is no such file" in refused(rail("serve", "--replay", str(tmp_path / "none")))


@pytest.mark.parametrize("text", ["BTC_USD", "=BTC_USDT", "BTC_USD="])
def test_a_new_name_that_is_not_a_pair(rail: Rail, text: str) -> None:
    line = refused(rail("serve", "--port", "0", "--rename", text))

    assert "--rename" in line
    assert "OLD=NEW, e.g. BTC_USD=BTC_USDT" in line


def test_a_time_that_is_none(rail: Rail) -> None:
    assert "--now: 'noon' is not allowed" in refused(rail("serve", "--port", "0", "--now", "noon"))


def test_owners_that_cannot_be_read(rail: Rail) -> None:
    assert "none.toml" in refused(rail("serve", "--port", "0", "--owners", "none.toml"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--exchanges binanse", "exchanges: 'binanse' is not allowed; allowed: usual, binance, "),
        ("--exchanges binanse", "nearest: binance"),
        ("--exchanges ,", "exchanges: '' is not allowed"),
        ("--exchanges okx --symbols BTCUSDT", "symbol: 'BTCUSDT' is not allowed"),
        ("--exchanges okx --days 0", "days: 0 is not allowed; allowed: 1 to 366"),
        ("--exchanges okx --seed 8", "seed: '8' is not allowed; allowed: none beside exchanges"),
        ("--exchanges okx --now 2026-11-01", "now: '"),
        ("--exchanges okx --replay there", "replay: 'there' is not allowed"),
        (
            "--symbols BTC_USDT",
            "--symbols: 'BTC_USDT' is not allowed; allowed: one with --exchanges",
        ),
        ("--days 2", "--days: '2' is not allowed; allowed: one with --exchanges"),
        ("--save a.jsonl", "--save: 'a.jsonl' is not allowed; allowed: one with --check-exchanges"),
    ],
)
def test_a_choice_of_exchanges_that_cannot_be_read(rail: Rail, words: str, said: str) -> None:
    assert said in refused(rail("serve", "--port", "0", *words.split()))
