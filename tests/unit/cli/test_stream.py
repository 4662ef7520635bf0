"""What `rail stream` refuses before it connects, and when the service does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from toolkit.service import Adversary, Config, Simulated, SpedClock, running

from .conftest import refused

Rail = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "trajectories and event logs"),
        (["events/spread", "--for", "5x"], "--for: '5x' is not allowed"),
        (["events/spread", "--for", "0s"], "--for: '0s' is not allowed"),
        (["BTC"], "stream: 'BTC' is not allowed"),
        (["events/spread", "--sweep", "0"], "sweep_every_s: 0.0 is not allowed"),
    ],
)
def test_what_cannot_be_captured_is_refused_in_one_line(
    rail: Rail, arguments: list[str], said: str
) -> None:
    assert said in refused(rail("stream", *arguments, api_key="demo-pro"))


def test_a_free_key_is_refused_the_streams(rail: Rail, service: str) -> None:
    done = rail("stream", "events/spread", base_url=service, api_key="demo-free")

    assert done.returncode == 1
    assert "is not in the key's plan (403)" in done.stderr.splitlines()[-1]
    assert "demo-free" not in done.stderr


@pytest.mark.slow
def test_each_gap_that_was_recorded_is_listed_at_the_end(rail: Rail) -> None:
    config = Config(
        Simulated(7),
        port=0,
        clock=SpedClock(start=1_795_046_400, speed=1.0),
        adversary=Adversary(accept_then_close=1001),
    )
    with running(config) as service:
        done = rail(
            "stream", "events/splash", "--for", "2s", base_url=service.base_url, api_key="demo-pro"
        )
    assert done.returncode == 0, done.stderr
    gaps = [line for line in done.stdout.splitlines() if line.startswith("events/splash")]
    assert gaps
    assert all("closed with 1001" in gap and "2026-11-19" in gap for gap in gaps)
    assert all(gap.split()[-1] in ("open", "repaired") for gap in gaps)
    assert f"{len(gaps)} gaps (" in done.stdout
