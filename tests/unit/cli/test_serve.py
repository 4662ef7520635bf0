"""What `rail serve` refuses before it listens."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import refused

Rail = Callable[..., subprocess.CompletedProcess[str]]


def test_a_port_that_is_taken(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "a free port" in refused(rail("serve", "--port", port))


def test_a_data_set_that_is_not_there(rail: Rail, tmp_path: Path) -> None:
    assert "there is no such file" in refused(rail("serve", "--replay", str(tmp_path / "none")))


def test_an_unknown_switch_of_the_adversary(rail: Rail, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text("[rest]\nat_ende = 'echo'\n")

    line = refused(rail("serve", "--port", "0", "--adversary", "odd.toml"))

    assert "'rest.at_ende' is not allowed; allowed: end_time, next_end_time, at_end" in line


@pytest.mark.parametrize("text", ["BTC_USD", "=BTC_USDT", "BTC_USD="])
def test_a_new_name_that_is_not_a_pair(rail: Rail, text: str) -> None:
    line = refused(rail("serve", "--port", "0", "--rename", text))

    assert "--rename" in line
    assert "OLD=NEW, e.g. BTC_USD=BTC_USDT" in line


def test_a_time_that_is_none(rail: Rail) -> None:
    assert "--now: 'noon' is not allowed" in refused(rail("serve", "--port", "0", "--now", "noon"))


def test_owners_that_cannot_be_read(rail: Rail) -> None:
    assert "none.toml" in refused(rail("serve", "--port", "0", "--owners", "none.toml"))
