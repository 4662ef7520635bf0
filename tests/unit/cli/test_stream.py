"""What `rail stream` refuses before it connects, and when the service does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

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
