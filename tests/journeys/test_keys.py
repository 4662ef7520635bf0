"""A key never shows: not in a log at DEBUG, output, store, traceback or message of MCP."""

from __future__ import annotations

import logging
import os
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import miniature
from tests.forked import PYTHON
from toolkit.client import Client
from toolkit.client.mcp import McpClient
from toolkit.errors import RailError
from toolkit.market import Plan
from toolkit.service import Clock, Config, Owner, running

KEY, OF_FREE = "k9-very-secret-0042", "k9-very-secret-0043"
STRANGER = "another-secret-77"
LOUD = (
    "import logging, sys; logging.basicConfig(level=logging.DEBUG);"
    "from toolkit.cli import main; sys.argv = ['rail', *sys.argv[1:]]; main()"
)


@pytest.fixture
def config() -> Config:
    owners = (Owner("ann", Plan.PRO, (KEY,)), Owner("ben", Plan.FREE, (OF_FREE,)))
    return Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END), owners=owners)


@pytest.mark.parametrize("debug", ["", "1"])
@pytest.mark.parametrize("key", [KEY, KEY + "-wrong"])
def test_a_sync_at_debug_level_never_shows_the_key(
    tmp_path: Path, config: Config, key: str, debug: str
) -> None:
    with running(config) as service:
        settings = {"RAIL_BASE_URL": service.base_url, "RAIL_API_KEY": key, "RAIL_DEBUG": debug}
        done = subprocess.run(
            [PYTHON, "-c", LOUD, "sync", "--all-prices", "--start", "2026-11-03"],
            capture_output=True,
            env=os.environ | settings,
            cwd=tmp_path,
            check=False,
        )
    assert (done.returncode == 0) == (key == KEY), done.stderr
    assert b"DEBUG:" in done.stderr
    assert key.encode() not in done.stdout + done.stderr
    for file in tmp_path.iterdir():
        assert key.encode() not in file.read_bytes()


def test_no_log_or_error_of_either_side_shows_a_key_by_rest_or_by_mcp(
    config: Config, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said = repr(config)
    with running(config) as service:
        client = McpClient(service.base_url, KEY)
        said += f"{client!r} {client.listing()}"
        with Client(service.base_url, KEY) as rest, Client(service.base_url, STRANGER) as stranger:
            rest.symbols()
            asked: list[Callable[[], object]] = [stranger.symbols]
            asked += [McpClient(service.base_url, key).listing for key in (OF_FREE, STRANGER)]
            for ask in asked:
                with pytest.raises(RailError) as refused:
                    ask()
                said += "".join(traceback.format_exception(refused.value))
                said += f"{vars(refused.value)}"
    said += caplog.text + "".join(capfd.readouterr())
    assert "DEBUG" in caplog.text
    assert "data.get_schemas" in caplog.text
    for key in (KEY, OF_FREE, STRANGER):
        assert key not in said
