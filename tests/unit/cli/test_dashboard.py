"""What `rail app` refuses before it starts the dashboard."""

from __future__ import annotations

import contextlib
import signal
import socket

import pytest

from toolkit.cli.dashboard import claim_port, ended_by_signals
from toolkit.errors import InputError


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
