"""A key never shows: not in a log at DEBUG, output, store, traceback or message of MCP."""

from __future__ import annotations

import logging
import os
import subprocess
import traceback
from pathlib import Path

import pytest

from tests import miniature
from tests.forked import PYTHON
from toolkit.client import Client
from toolkit.client.mcp import McpClient
from toolkit.errors import RailError
from toolkit.market import Plan
from toolkit.service import Clock, Config, Owner, running
from toolkit.store import Store
from toolkit.workspace import Settings, Workspace

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


def test_the_service_never_logs_a_key(
    config: Config, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with running(config) as service:
        with Client(service.base_url, KEY) as client:
            client.symbols()
        with (
            Client(service.base_url, STRANGER) as client,
            pytest.raises(RailError) as refused,
        ):
            client.symbols()
    said = caplog.text + "".join(capfd.readouterr())
    said += "".join(traceback.format_exception(refused.value))
    assert KEY not in said
    assert STRANGER not in said
    assert KEY not in repr(config)


def test_no_repr_shows_the_key(tmp_path: Path) -> None:
    settings = Settings.read({}, base_url="http://127.0.0.1:1", api_key=KEY)
    with Workspace(Client(settings.base_url, KEY), Store(tmp_path / "s.duckdb")) as workspace:
        shown = repr(settings) + repr(workspace) + repr(workspace.client)
        assert KEY not in shown + str(vars(workspace.client)["_http"])


def test_neither_side_of_mcp_shows_a_key(
    config: Config, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said = repr(config)
    with running(config) as service:
        client = McpClient(service.base_url, KEY)
        said += f"{client!r} {client.listing()}"
        with pytest.raises(RailError) as refused:
            McpClient(service.base_url, OF_FREE).listing()
        with pytest.raises(RailError) as unknown:
            McpClient(service.base_url, STRANGER).listing()
    for error in (refused, unknown):
        said += "".join(traceback.format_exception(error.value)) + f"{vars(error.value)}"
    said += caplog.text + "".join(capfd.readouterr())
    assert "DEBUG" in caplog.text
    assert "data.get_schemas" in caplog.text
    for key in (KEY, OF_FREE, STRANGER):
        assert key not in said
