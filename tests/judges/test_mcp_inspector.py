"""The MCP inspector, as a client of another make, of the service and of the tools over a store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolkit.assistant.tools import TOOLS
from toolkit.workspace import Workspace

pytestmark = pytest.mark.judge

INSPECTOR = Path(__file__).parents[2] / ".judges/node_modules/.bin/mcp-inspector"
ERAS = ["modern", "legacy", "auto"]
PRICES = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot", "limit": "2"}


def asked(
    node: str, environment: dict[str, str], base_url: str, key: str, era: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """A run of the inspector, over the service."""
    address = ("--server-url", f"{base_url}/mcp", "--transport", "http")
    address += ("--header", f"apikey: {key}")
    return inspected(node, environment, *address, "--protocol-era", era, *arguments)


def inspected(
    node: str, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """A run of the inspector."""
    return subprocess.run(
        [node, INSPECTOR, "--cli", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_finds_nothing_wrong_with_the_schemas_of_eleven_tools(
    node: str, environment: dict[str, str], service: str, era: str
) -> None:
    arguments = ("--method", "tools/list", "--strict")
    done = asked(node, environment, service, "demo-builder", era, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(json.loads(done.stdout)["tools"]) == 11


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_gets_the_body_that_rest_gives(
    node: str, environment: dict[str, str], service: str, era: str
) -> None:
    pairs = [f"{name}={value}" for name, value in PRICES.items()]
    arguments = ("--method", "tools/call", "--tool-name", "data.get_price_history")
    done = asked(node, environment, service, "demo-pro", era, *arguments, "--tool-arg", *pairs)
    assert done.returncode == 0, done.stderr
    called: dict[str, Any] = json.loads(done.stdout)
    url = f"{service}/api/v1/data/history/price"
    body = httpx.get(url, params=PRICES, headers={"apikey": "demo-pro"}).json()
    assert called["structuredContent"] == body
    assert not called["isError"]


@pytest.mark.parametrize(
    "refusal", [("demo-free", 1, "Insufficient scope"), ("nobody", 3, "auth_required")]
)
def test_the_inspector_says_why_it_was_refused(
    node: str, environment: dict[str, str], service: str, refusal: tuple[str, int, str]
) -> None:
    key, code, said = refusal
    done = asked(node, environment, service, key, "auto", "--method", "tools/list")
    assert done.returncode == code
    assert said in done.stderr


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_the_inspector_finds_nothing_wrong_with_rail_mcp_over_stdio(
    node: str, environment: dict[str, str], loaded: Workspace, era: str
) -> None:
    rail = str(Path(sys.executable).with_name("rail"))
    command = (rail, "mcp", "--store", str(loaded.store.path))
    asks = ("--protocol-era", era, "--method")
    listed = inspected(node, environment, *command, *asks, "tools/list", "--strict")
    assert listed.returncode == 0, listed.stderr
    assert listed.stderr == ""
    assert len(json.loads(listed.stdout)["tools"]) == len(TOOLS)
    given = ("--tool-name", "sql", "--tool-arg", "query=SELECT count(*) AS n FROM spreads")
    called = inspected(node, environment, *command, *asks, "tools/call", *given)
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["structuredContent"]["rows"] == [{"n": 60}]
