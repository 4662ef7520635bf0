"""wscat, as a WebSocket client of another make."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.service import Config, Simulated, SpedClock, running

pytestmark = pytest.mark.judge

WSCAT = Path(__file__).parents[2] / ".judges/node_modules/.bin/wscat"
START = 1_795_046_400


@pytest.fixture(scope="module")
def stream() -> Iterator[str]:
    """The address of the spread stream of a service whose minutes last ten milliseconds."""
    config = Config(Simulated(7), port=0, clock=SpedClock(start=START, speed=6_000.0))
    with running(config) as service:
        yield f"ws{service.base_url.removeprefix('http')}/api/v1/spreadbot/ws"


@pytest.fixture
def listening(
    node: str, environment: dict[str, str], stream: str, request: pytest.FixtureRequest
) -> Iterator[subprocess.Popen[str]]:
    """wscat on the stream with a key header, whose own input stays open."""
    if not WSCAT.exists():
        pytest.skip("wscat is not installed here; run: make judges")
    with subprocess.Popen(
        [node, WSCAT, "--connect", stream, "--header", request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(
    "listening", ["apikey: demo-pro", "Authorization: Bearer demo-builder"], indirect=True
)
def test_wscat_with_a_key_header_receives_event_documents(listening: subprocess.Popen[str]) -> None:
    assert listening.stdout is not None
    documents = [json.loads(listening.stdout.readline()) for _ in range(5)]
    assert {document["schema"] for document in documents} == {"svc.spread.v1"}
    assert all(document["ts"] >= START - 60 for document in documents)


@pytest.mark.parametrize(
    ("listening", "status"),
    [("apikey: wrong", 401), ("apikey: demo-free", 403)],
    indirect=["listening"],
)
def test_wscat_prints_the_status_of_a_refused_upgrade(
    listening: subprocess.Popen[str], status: int
) -> None:
    assert listening.stdout is not None
    assert listening.stdout.read().strip() == f"error: Unexpected server response: {status}"
    assert listening.wait(timeout=60) != 0
