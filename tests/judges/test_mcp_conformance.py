"""The MCP conformance suite, over the ``/mcp`` of the service and of a store, and over our client.

By hand, in ``.judges``: ``node_modules/.bin/conformance server --url URL --scenario NAME
--spec-version VERSION --expected-failures ../tests/judges/conformance.yml``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.assistant.server import application as store_application
from toolkit.service import Clock, Simulated
from toolkit.service.accounts import Policy
from toolkit.service.api.calls import Service
from toolkit.service.transports.rest import application
from toolkit.serving import ServerSettings, run_in_thread
from toolkit.workspace import Workspace

pytestmark = pytest.mark.judge

FOLDER = Path(__file__).parent
SUITE = FOLDER.parents[1] / ".judges/node_modules/@modelcontextprotocol/conformance/dist/index.js"
SERVER = [
    ("2025-06-18", "server-initialize"),
    ("2025-06-18", "ping"),
    ("2025-06-18", "tools-list"),
    ("2025-11-25", "server-initialize"),
    ("2025-11-25", "ping"),
    ("2025-11-25", "tools-list"),
    ("2025-11-25", "dns-rebinding-protection"),
    ("2026-07-28", "tools-list"),
    ("2026-07-28", "http-header-validation"),
    ("2026-07-28", "dns-rebinding-protection"),
    ("2026-07-28", "server-sse-multiple-streams"),
    ("2026-07-28", "server-stateless"),
    ("2026-07-28", "caching"),
]
CLIENT = [
    "initialize",
    "sse-retry",
    "request-metadata",
    "http-standard-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
]


def judged(
    node: str, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """A run of the suite, its expected failures in mind."""
    return subprocess.run(
        [node, SUITE, *arguments, "--expected-failures", FOLDER / "conformance.yml"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=600,
    )


class Keyed:
    """The service with a key on every request: the suite can send none of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"apikey", b"demo-pro")]}
        await self.app(scope, receive, send)


@pytest.fixture(scope="module", params=["service", "store"])
def endpoint(request: pytest.FixtureRequest, loaded: Workspace) -> Iterator[str]:
    """The address of a keyed service's ``/mcp``, and that of the tools over a store."""
    app = store_application(loaded)
    if request.param == "service":
        app = Keyed(application(Service(Simulated(7), Clock(), Policy(quota=1_000_000))))
    with run_in_thread(ServerSettings(app, grace_s=3), "127.0.0.1", 0) as base_url:
        yield f"{base_url}/mcp"


@pytest.mark.parametrize(("version", "scenario"), SERVER)
def test_each_server_of_tools_passes_each_scenario_that_fits_one(
    node: str, environment: dict[str, str], endpoint: str, version: str, scenario: str
) -> None:
    chosen = ("--scenario", scenario, "--spec-version", version)
    done = judged(node, environment, "server", "--url", endpoint, *chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED: scenario" not in done.stdout


@pytest.mark.parametrize("scenario", CLIENT)
def test_the_client_passes_each_scenario_that_fits_a_look_at_tools(
    node: str, environment: dict[str, str], scenario: str
) -> None:
    command = f"{sys.executable} {FOLDER / 'conformance_client.py'}"
    done = judged(node, environment, "client", "--command", command, "--scenario", scenario)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_suite_finds_fault_with_a_server_that_is_none(
    node: str, environment: dict[str, str], service: str
) -> None:
    """So that a pass above says something."""
    url = f"{service}/api/v1/data/schemas"
    done = judged(node, environment, "server", "--url", url, "--scenario", "tools-list")
    assert done.returncode == 1
