"""`rail doctor` as a person runs it: what works, what does not, what to do, and the exit code."""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import miniature
from tests.adversary import adversary_of, adverse
from toolkit.service import Clock, Config, Simulated, running

from .conftest import Rail


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """Three days of a small market, whose event logs are read at once."""
    clock = Clock(fixed_at=miniature.END)
    with running(Config(miniature.source(), port=0, clock=clock, quota=10**6)) as local:
        yield local.base_url


def told(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The report, on one line, with nothing beside it."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr == ""
    return " ".join(done.stdout.split())


def test_the_faithful_service_is_usable_and_everything_is_as_expected(
    rail: Rail, service: str, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        said = told(rail("doctor", "--profile-out", "d.toml", base_url=service), 0)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "d.toml").stat().st_mode) == 0o600
    assert "SIMULATED market" in said
    assert "4 of 4 fields found" in said
    assert "11 of 11 tools found" in said
    assert said.count(" ok opens at ") == 4
    assert "failed" not in said
    assert "Usable: data can be loaded" in said
    assert "there is nothing to put here" in (tmp_path / "d.toml").read_text()


def test_the_checks_are_rows_for_a_program(rail: Rail, service: str) -> None:
    done = rail("doctor", "--format", "json", base_url=service)
    checks = [json.loads(line) for line in done.stdout.splitlines()]
    assert {check["base_url"] for check in checks} == {service}
    assert all(check["usable"] for check in checks)
    assert checks[0] | {"says": ""} == {
        "source": checks[0]["source"],
        "base_url": service,
        "usable": True,
        "group": "service",
        "check": "reachable",
        "state": "ok",
        "says": "",
        "advice": "",
    }


def test_a_wrong_key_ends_it_with_advice_and_checks_are_chosen_and_written_to_a_file(
    rail: Rail, service: str, tmp_path: Path
) -> None:
    argv = ["doctor", "--where", "state <> 'ok'", "--sort", "check", "--output", "checks.csv"]
    said = told(rail("doctor", base_url=service, api_key="sekrit-4711"), 1)
    assert "key failed not accepted" in said
    assert "→ put the key, as issued, into RAIL_API_KEY" in said
    assert "Not usable yet" in said
    assert "sekrit-4711" not in said
    done = rail(*argv, base_url=service, api_key="sekrit-4711")
    assert done.returncode == 1
    _, *rows = (tmp_path / "checks.csv").read_text().splitlines()
    assert len(rows) == 1
    assert "put the key, as issued, into RAIL_API_KEY" in rows[0]
    assert "--where leaves out 1" in done.stderr


def test_nothing_listening_says_how_to_start_a_service(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = told(rail("doctor", "--base-url", f"http://127.0.0.1:{port}"), 1)
    assert "reachable failed no answer (ConnectError" in said
    assert "`rail serve` starts a local one" in said
    assert "`rail demo`" in said


def test_a_web_page_in_the_services_place_is_called_one(rail: Rail) -> None:
    fault = adversary_of({"rest": {"accidents": [{"kind": "html"}]}})
    with running(Config(Simulated(7), port=0, application=adverse(fault))) as odd:
        said = told(rail("doctor", base_url=odd.base_url), 1)
    assert "/schemas failed a web page came, no data" in said
    assert "what stands before /api/v1/data" in said


def test_a_draft_never_takes_the_place_of_a_file(rail: Rail, service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("# mine\n")
    for path, why in (("mine.toml", "not there yet"), ("none/d.toml", "a new file; no such file")):
        done = rail("doctor", "--profile-out", path, base_url=service)
        assert done.returncode == 1
        assert why in done.stderr
    assert (tmp_path / "mine.toml").read_text() == "# mine\n"


def test_at_debug_level_the_key_is_in_nothing_that_is_said(
    rail: Rail, service: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = "demo-builder"
    done = rail("doctor", base_url=service, api_key=key)
    assert done.returncode == 0, done.stderr
    assert "DEBUG" in caplog.text
    assert key not in done.stdout + done.stderr + caplog.text
    assert list(tmp_path.iterdir()) == []
