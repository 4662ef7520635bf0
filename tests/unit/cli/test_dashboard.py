"""What `rail app` refuses before it starts the dashboard."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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
