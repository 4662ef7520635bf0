"""Commands of `rail` that the nursery forks are processes as any others."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.forked import RAIL

pytestmark = pytest.mark.slow


def test_a_forked_command_has_its_own_arguments_environment_folder_pipes_and_end(
    tmp_path: Path,
) -> None:
    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        argv = [RAIL, *words]
        return subprocess.run(
            argv,
            env=os.environ | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = run("status", RAIL_STORE="here.duckdb")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"rail: there is no store at {tmp_path}/here.duckdb;")
    assert run("--version").stdout.startswith("rail ")
    assert run("nothing").returncode == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_forked_command_is_ended_by_a_signal_as_its_own_process(number: signal.Signals) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    argv = [RAIL, "serve", "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as serving:
        assert serving.stdout is not None
        assert "SIMULATED" in serving.stdout.readline()
        assert serving.poll() is None
        shown = Path(f"/proc/{serving.pid}/cmdline").read_bytes().rstrip(b"\0")
        assert shown.split(b"\0") == [str(RAIL).encode(), b"serve", b"--port", b"0"]
        serving.send_signal(number)
        serving.communicate()
    assert serving.returncode == (-9 if number == signal.SIGKILL else 0)


def test_a_command_in_a_session_of_its_own_is_in_its_own_group_once_it_is_known() -> None:
    for _ in range(20):
        argv = [RAIL, "--version"]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True) as command:
            assert os.getpgid(command.pid) == command.pid
