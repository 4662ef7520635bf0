"""What `rail app` refuses before it starts the dashboard."""

from __future__ import annotations

import contextlib
import signal
import socket
from pathlib import Path

import pytest

from toolkit.cli.dashboard import claim_port, ended_by_signals, open_command
from toolkit.errors import InputError

from .conftest import Rail, refused


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing.duckdb", "nothing.duckdb; `rail sync --watchlist --store "),
        ("other.duckdb", "other.duckdb is not a store of this toolkit"),
        ("prices.csv", "prices.csv is not a store of this toolkit"),
        (".", "is a directory; name a file"),
    ],
)
def test_a_store_that_is_none_is_refused(rail: Rail, workdir: Path, name: str, says: str) -> None:
    for other in ("other.duckdb", "prices.csv"):
        (workdir / other).write_text("trajectory,ts\n" * 1000)

    done = rail("app", "--no-browser", "--store", name, "--port", "1")

    assert says in refused(done)
    assert done.stdout == ""


def test_a_port_is_kept_until_it_is_let_go_and_the_next_free_one_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with claim_port("127.0.0.1", port) as claimed, claim_port("127.0.0.1", port) as another:
            found = claimed.getsockname()[1]
            assert port < found < another.getsockname()[1] <= port + 19


def test_a_port_is_refused_where_neither_it_nor_one_of_those_after_it_is_free() -> None:
    with contextlib.ExitStack() as taken:
        sockets = [taken.enter_context(claim_port("127.0.0.1", 20_000)) for _ in range(20)]
        first = sockets[0].getsockname()[1]
        with pytest.raises(InputError, match=f"{first} is not allowed; allowed: a free port"):
            claim_port("127.0.0.1", first)


@pytest.mark.parametrize("port", ["-1", "65536"])
@pytest.mark.usefixtures("held")
def test_a_number_that_is_no_port_is_refused(rail: Rail, port: str) -> None:
    assert "a free port" in refused(rail("app", "--no-browser", "--port", port))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "an address of this machine alone; or add --share"),
        (["--host", "desk.lan"], "an address of this machine alone; or add --share"),
        (["--name", "desk.example"], "one with --share"),
        (["--proxy", "10.0.0.1"], "one with --share"),
        (["--share", "--proxy", "desk.example"], "an address or a network in numbers"),
        (["--share"], "a password or an OpenID Connect provider; `rail app --set-password`"),
        (["--share", "--name", "https://desk.example"], "a host name, such as"),
    ],
)
@pytest.mark.usefixtures("held")
def test_others_are_let_in_with_a_login_alone(rail: Rail, options: list[str], says: str) -> None:
    assert says in refused(rail("app", "--no-browser", *options))


@pytest.mark.usefixtures("held")
def test_opening_a_page_lets_nobody_else_in() -> None:
    with pytest.raises(InputError, match="an address of this machine alone"):
        open_command("events/spread", host="0.0.0.0", browser=False)


def a_library_that_is_interrupted() -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("interrupted system call") from None


def test_a_block_that_a_ctrl_c_ended_ends_as_such_whatever_a_library_made_of_it() -> None:
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        a_library_that_is_interrupted()
    with pytest.raises(RuntimeError, match="by itself"), ended_by_signals():
        raise RuntimeError("by itself")
