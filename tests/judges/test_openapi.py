"""Schemathesis, over the REST routes as the service's OpenAPI document describes them.

By hand: ``st --config-file tests/judges/schemathesis.toml run URL/openapi.json -H 'apikey: KEY'
--checks all -n 100 --seed 1``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.judge

FOLDER = Path(__file__).parent


def judged(
    base_url: str, config: str, routes: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """A run of schemathesis over some routes with every check it has, and no stopwatch."""
    program = Path(sys.executable).with_name("st")
    checks = ["--checks", "all", "--max-response-time", "240", "-n", "12", "--seed", "1"]
    checks += ["--include-path-regex", routes, "--no-color", "-H", "apikey: demo-pro"]
    checks += ["--request-timeout", "120"]  # the first answer detects a month of events
    return subprocess.run(
        [program, "--config-file", FOLDER / config, "run", f"{base_url}/openapi.json", *checks],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=1500,
    )


@pytest.mark.parametrize(
    ("config", "routes", "tested"),
    [("schemathesis.toml", "^/", 11), ("schemathesis_answers.toml", "/history/", 6)],
)
def test_no_check_of_schemathesis_finds_fault_with_any_route(
    service: str, tmp_path: Path, config: str, routes: str, tested: int
) -> None:
    done = judged(service, config, routes, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Tested: {tested}" in done.stdout
