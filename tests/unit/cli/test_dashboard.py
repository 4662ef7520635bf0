"""What `rail app` refuses before it starts the dashboard."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.cli.dashboard import claim_port
from toolkit.errors import InputError

from .conftest import refused

Rail = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "nothing.duckdb",
            "nothing.duckdb; `rail sync --watchlist --store ",
        ),
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


@pytest.mark.usefixtures("held")
def test_a_port_that_is_taken_is_refused(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = refused(rail("app", "--no-browser", "--port", port))

    assert f"--port: {port} is not allowed; allowed: a free port" in line


def test_a_port_is_kept_until_it_is_let_go_and_the_next_free_one_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with claim_port("127.0.0.1", port, tries=20) as claimed:
            found = claimed.getsockname()[1]
            assert port < found <= port + 19
            with pytest.raises(InputError, match="a free port"):
                claim_port("127.0.0.1", found)


@pytest.mark.parametrize("port", ["-1", "65536"])
@pytest.mark.usefixtures("held")
def test_a_number_that_is_no_port_is_refused(rail: Rail, port: str) -> None:
    assert "a free port" in refused(rail("app", "--no-browser", "--port", port))
