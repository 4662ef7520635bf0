"""`rail doctor` as a person runs it: what works, what does not, what to do, and the exit code."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests import miniature

from .conftest import RAIL, serving

Rail = Callable[..., subprocess.CompletedProcess[str]]


def told(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The report, on one line, with nothing beside it."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr == ""
    return " ".join(done.stdout.split())


def test_the_faithful_service_is_usable_and_everything_is_as_expected(
    rail: Rail, miniature_service: str, tmp_path: Path
) -> None:
    said = told(rail("doctor", "--profile-out", "d.toml", base_url=miniature_service), 0)

    assert "SIMULATED market" in said
    assert "4 of 4 fields found" in said
    assert "11 of 11 tools found" in said
    assert said.count(" ok opens at ") == 4
    assert "failed" not in said
    assert "Usable: data can be loaded" in said
    assert "there is nothing to put here" in (tmp_path / "d.toml").read_text()


def test_each_plans_key_is_told_by_the_routes_that_answer(
    rail: Rail, miniature_service: str
) -> None:
    for plan, refused in (("free", 11), ("builder", 0)):
        said = told(rail("doctor", base_url=miniature_service, api_key=f"demo-{plan}"), 0)
        assert f"plan ok {plan};" in said
        assert said.count(" not in plan 403: ") == refused


def test_a_wrong_key_ends_it_with_advice_and_is_not_shown(
    rail: Rail, miniature_service: str
) -> None:
    said = told(rail("doctor", base_url=miniature_service, api_key="sekrit-4711"), 1)

    assert "key failed not accepted" in said
    assert "→ put the key, as issued, into RAIL_API_KEY" in said
    assert "Not usable yet" in said
    assert "sekrit-4711" not in said


def test_nothing_listening_says_how_to_start_a_service(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    said = told(rail("doctor", "--base-url", f"http://127.0.0.1:{port}"), 1)

    assert "reachable failed no answer (ConnectError" in said
    assert "`rail serve` starts the local one" in said


def test_a_web_page_in_the_services_place_is_called_one(rail: Rail, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text("[[rest.accidents]]\nkind = 'html'\n")
    market = ("--replay", str(miniature.write(tmp_path / "prices.parquet")), "--now", "2026-11-04")
    with serving(*market, "--adversary", str(tmp_path / "odd.toml")) as base_url:
        said = told(rail("doctor", base_url=base_url), 1)

    assert "/schemas failed a web page came, no data" in said
    assert "what stands before /api/v1/data" in said


def test_a_draft_never_takes_the_place_of_a_file(
    rail: Rail, miniature_service: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text("# mine\n")
    for path, why in (("mine.toml", "not there yet"), ("none/d.toml", "a file to write")):
        done = rail("doctor", "--profile-out", path, base_url=miniature_service)
        assert done.returncode == 1
        assert why in done.stderr
    assert (tmp_path / "mine.toml").read_text() == "# mine\n"


def test_an_address_that_is_none_and_a_profile_that_is_none_are_said_in_one_line(
    rail: Rail, miniature_service: str
) -> None:
    for settings in ({"base_url": "rail"}, {"base_url": miniature_service, "profile": "no.toml"}):
        done = rail("doctor", api_key="k", **settings)
        assert done.returncode == 1
        assert done.stderr.startswith("rail: ")
        assert done.stderr.count("\n") == 1


def test_at_debug_level_the_key_is_in_nothing_that_is_said(
    miniature_service: str, tmp_path: Path
) -> None:
    loud = (
        "import logging, sys; logging.basicConfig(level=logging.DEBUG);"
        "from toolkit.cli import main; sys.argv = ['rail', 'doctor']; main()"
    )
    key = "demo-builder"
    settings = {"RAIL_BASE_URL": miniature_service, "RAIL_API_KEY": key}
    done = subprocess.run(
        [sys.executable, "-c", loud],
        capture_output=True,
        text=True,
        env=os.environ | settings,
        cwd=tmp_path,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "DEBUG:" in done.stderr
    assert key not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_serve_says_that_it_behaves_otherwise(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text("[rest]\npage_cap = 3\n")
    process = subprocess.Popen(
        [RAIL, "serve", "--port", "0", "--adversary", "odd.toml"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert said[1] == "it behaves otherwise than agreed, as its file of switches says\n"


def test_an_unknown_switch_is_refused_by_serve(rail: Rail, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text("[rest]\nat_ende = 'echo'\n")

    done = rail("serve", "--port", "0", "--adversary", "odd.toml")

    assert done.returncode == 1
    assert "'rest.at_ende' is not allowed; allowed: end_time, next_end_time, at_end" in done.stderr
