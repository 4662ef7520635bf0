"""The MCP inspector, as a client of another make."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.judge

INSPECTOR = Path(__file__).parents[2] / ".judges/node_modules/.bin/mcp-inspector"
ERAS = ["modern", "legacy", "auto"]
PRICES = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot", "limit": "2"}


def asked(
    node: str, environment: dict[str, str], base_url: str, key: str, era: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """A run of the inspector."""
    address = (
        "--server-url",
        f"{base_url}/mcp",
        "--transport",
        "http",
        "--header",
        f"apikey: {key}",
    )
    return subprocess.run(
        [node, INSPECTOR, "--cli", *address, "--protocol-era", era, *arguments],
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
