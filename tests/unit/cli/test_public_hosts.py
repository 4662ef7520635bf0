"""`rail serve` and `rail webhook` off this machine: a warning, for what they send is public."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.cli.show import warn_of_public
from toolkit.market import Source
from toolkit.store import Store, StoreWriter

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
COMMANDS = {
    "serve": ["serve", "--seed", "7"],
    "webhook": ["webhook", "--secret-env", "RAIL_WEBHOOK_SECRET", "--store", "s.duckdb"],
}


def warned(command: str, host: str, folder: Path, *more: str) -> list[str]:
    """Run a command until it listens. Return its warnings."""
    StoreWriter(Store(folder / "s.duckdb")).bind(Source("live", "x"))
    arguments = [*COMMANDS[command], "--port", "0", "--host", host, *more]
    with subprocess.Popen(
        [Path(sys.executable).with_name("rail"), *arguments],
        cwd=folder,
        env=os.environ | {"RAIL_WEBHOOK_SECRET": SECRET, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("listening at" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    return [line for line in said.splitlines() if "warning" in line]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_off_this_machine_warns_in_one_line(command: str, tmp_path: Path) -> None:
    (line,) = warned(command, "0.0.0.0", tmp_path)
    assert "0.0.0.0 is not this machine alone: over plain http" in line
    assert ("demo keys are known to everybody" in line) == (command == "serve")


def test_each_address_off_this_machine_and_no_other_is_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for host in ("127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"):
        warn_of_public(host, "all can be read")
        assert not capsys.readouterr().err
    for host in ("0.0.0.0", "::", "[::]", "192.168.1.20", "10.0.0.1", "box.lan"):
        warn_of_public(host, "all can be read")
        words = " ".join(capsys.readouterr().err.split())
        assert words.startswith(f"warning: {host} is not this machine alone: over plain http all")
