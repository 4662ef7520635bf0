"""What goes wrong is said in one line, with a non-zero exit and without a traceback."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.market import Source
from toolkit.store import Store, StoreWriter

from .conftest import Rail, refused

KEY = "BTC_USDT:AURORA.spot"


def test_a_wrong_key(rail: Rail, service: str) -> None:
    line = refused(rail("sync", KEY, base_url=service, api_key="sekrit-4711"))

    assert "refused the key (401)" in line
    assert "RAIL_API_KEY" in line
    assert "sekrit-4711" not in line


def test_no_service_at_the_address(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    line = refused(rail("sync", KEY, base_url=f"http://127.0.0.1:{port}"))

    assert f"no answer from http://127.0.0.1:{port}" in line
    assert "is the service running" in line


def test_an_address_that_is_none(rail: Rail) -> None:
    assert "allowed: http://HOST" in refused(rail("sync", KEY, base_url="rail", api_key="k"))


def test_no_key_for_an_address_elsewhere(rail: Rail) -> None:
    assert "set RAIL_API_KEY" in refused(rail("sync", KEY, base_url="https://rail.example"))


@pytest.mark.parametrize(
    "command",
    [
        ("sync", KEY),
        ("symbols",),
        ("follow", KEY),
        ("doctor",),
        ("webhook", "--secret-env", "RAIL_HOOK", "--base-url", "http://rail.example"),
    ],
    ids=lambda command: command[0],
)
def test_http_off_this_machine_is_refused_by_every_command_that_asks_a_service(
    rail: Rail, command: tuple[str, ...]
) -> None:
    given = {"api_key": "k9-secret-0042", "hook": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    said = refused(rail(*command, base_url="http://rail.example", **given))
    assert "base_url: 'http://rail.example' is not allowed" in said
    assert "--allow-http or RAIL_ALLOW_HTTP=1" in said
    assert "k9-secret-0042" not in said
    nowhere = "http://no.such.host.invalid"
    other = [nowhere if part == "http://rail.example" else part for part in command]
    allowed = rail(*other, "--allow-http", base_url=nowhere, **given)
    assert "is not allowed" not in allowed.stdout + allowed.stderr
    assert allowed.returncode != 0


def test_an_unknown_symbol(rail: Rail, service: str) -> None:
    line = refused(rail("sync", "BTC_USDX:AURORA.spot", base_url=service))

    assert f"BTC_USDX:AURORA.spot is not listed by the service; nearest: {KEY}" in line


def test_a_key_that_is_no_trajectory(rail: Rail, service: str) -> None:
    assert "SYMBOL:EXCHANGE.market" in refused(rail("sync", "BTC", base_url=service))


def test_a_profile_that_cannot_be_read(rail: Rail, service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[history.spread]\nfields.mid = { wire = 'm' }\n")

    for name in ("none.toml", "mine.toml"):
        assert name in refused(rail("sync", KEY, base_url=service, profile=name))


def test_nothing_to_sync(rail: Rail, service: str) -> None:
    assert "--all-prices" in refused(rail("sync", base_url=service))


def test_a_window_with_nothing_in_it(rail: Rail, service: str) -> None:
    window = ("--start", "2020-01-01", "--end", "2020-01-02")

    line = refused(rail("sync", KEY, *window, base_url=service))

    assert "nothing in [2020-01-01 00:00 UTC, 2020-01-02 00:00 UTC)" in line
    assert "its clock reads 2026-11-04 00:00 UTC" in line


@pytest.mark.parametrize("end", ["2026-11-01", "yesterday"])
def test_a_window_that_is_none(rail: Rail, service: str, end: str) -> None:
    window = ("--start", "2026-11-02", "--end", end)

    assert "allowed: " in refused(rail("sync", KEY, *window, base_url=service))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((KEY, "--start", "noon"), "--start: 'noon'"),
        ((KEY, "--end", "2026-13-01"), "--end: '2026-13-01'"),
        ((KEY, "--start", "2026-11-03", "--end", "2026-11-02"), "2026-11-03"),
        (("--all-spreads", "--start", "noon"), "--start: 'noon'"),
        (("BTC", "--start", "2026-11-03"), "'BTC'"),
    ],
)
def test_what_is_typed_wrong_is_refused_before_the_service_is_asked(
    rail: Rail, arguments: tuple[str, ...], named: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unasked:
        unasked.settimeout(0)
        port = unasked.getsockname()[1]
        line = refused(rail("sync", *arguments, base_url=f"http://127.0.0.1:{port}"))
        with pytest.raises(BlockingIOError):
            unasked.accept()

    assert named in line


@pytest.mark.slow  # it waits as long as a command does
def test_a_store_held_by_another_process(rail: Rail, service: str, tmp_path: Path) -> None:
    StoreWriter(Store(tmp_path / "rail.duckdb")).bind(Source("simulated", "held"))
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import duckdb, sys; c = duckdb.connect('rail.duckdb'); print(1, flush=True); input()",
        ],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.read(1)
    try:
        line = refused(rail("sync", KEY, base_url=service))
    finally:
        holder.communicate(b"\n")

    assert f"held open by process {holder.pid}" in line


def test_a_store_of_another_source(rail: Rail, service: str, tmp_path: Path) -> None:
    StoreWriter(Store(tmp_path / "rail.duckdb")).bind(Source("replay", "elsewhere"))

    line = refused(rail("sync", KEY, base_url=service))

    assert "elsewhere" in line
    assert "never mixes sources" in line


@pytest.mark.parametrize("command", ["sync", "status", "stats spread", "app --no-browser"])
def test_a_file_that_is_not_a_store(rail: Rail, service: str, tmp_path: Path, command: str) -> None:
    (tmp_path / "rail.duckdb").write_text("ts,price\n")
    arguments = [*command.split(), KEY] if command == "sync" else command.split()

    assert "is not a store of this toolkit" in refused(rail(*arguments, base_url=service))


@pytest.mark.parametrize("command", ["status", "stats spread", "app --no-browser"])
def test_no_store_yet(rail: Rail, command: str) -> None:
    assert "makes one, `rail demo` one to look at" in refused(rail(*command.split()))


def test_statistics_of_a_spread_that_was_never_loaded(rail: Rail, service: str) -> None:
    assert rail("sync", KEY, "--start", "2026-11-03", base_url=service).returncode == 0

    spread = f"{KEY}:BOREAS.spot"
    assert f"`rail sync {spread} --base-url http" in refused(rail("stats", "spread", spread))
