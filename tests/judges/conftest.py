"""Outside judges: programs of others that hold the service and the client to what they claim."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

NODE_MODULES = Path(__file__).parents[2] / ".judges" / "node_modules"
NOW = 1_793_750_400
OLDEST_NODE = (22, 19)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "judge: holds us to the word of a program of others")


@pytest.fixture(scope="session")
def node() -> str:
    """A Node that is new enough: the one that `make judges` installs, or the machine's own."""
    if not (NODE_MODULES / "@modelcontextprotocol").is_dir():
        pytest.skip("the judges of MCP are not installed here; run: make judges")
    for found in (NODE_MODULES / ".bin" / "node", shutil.which("node")):
        if found is None or not Path(found).exists():
            continue
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
        version = tuple(int(part) for part in re.findall(r"\d+", said.stdout)[:2])
        if version >= OLDEST_NODE:
            return str(found)
    pytest.skip("the judges of MCP need Node 22.19 or newer, which is not here")


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The address of a service on the simulated market, at one moment."""
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=1_000_000)
    with running(config) as found:
        yield found.base_url


@pytest.fixture(scope="session")
def loaded(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A store with an hour of one spread."""
    store = Store(tmp_path_factory.mktemp("loaded") / "rail.duckdb")
    with Workspace(Client(service, "demo-pro"), store) as rail:
        rail.sync("BTC_USDT:AURORA.spot:CORONA.futures", NOW - 3_600, NOW, progress=False)
        yield rail


@pytest.fixture
def environment(tmp_path: Path, node: str) -> dict[str, str]:
    """Node on the path, and a home that a judge may write to."""
    path = f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"HOME": str(tmp_path), "PATH": path, "NO_COLOR": "1"}
