"""The local service of a script: it is shared, and it ends with the script."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import textwrap
import time

import httpx
import pytest

import toolkit as tk
from toolkit.workspace import simulated_service

OPENED = """
import signal, sys, time
import toolkit as tk
rail = tk.open("s.duckdb")
rail.client.discover()

def sync(on_progress=None):
    rail.sync(["BTC_USDT:*", "events/spread"], "25d", progress=False, on_progress=on_progress)

def end(progress):
    if progress.pages > 2:
        sys.exit(3)

def fail(progress):
    raise LookupError("mine")

"""

pytestmark = [pytest.mark.usefixtures("workdir"), pytest.mark.slow]


def script(ending: str) -> subprocess.Popen[str]:
    """A Python process that opens a workspace without an address and goes on with ``ending``."""
    return subprocess.Popen(
        [sys.executable, "-c", OPENED + textwrap.dedent(ending)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("ending", "status", "shown"),
    [
        ("print('done')", 0, ""),
        ("second = tk.open('t.duckdb'); del rail", 0, ""),
        ("rail.client.close(); rail.close()", 0, ""),
        # A route that answers in a worker thread, which is no daemon.
        ("rail.sync(['BTC_USDT:AURORA.spot'], progress=False)", 0, ""),
        ("sync(end)", 3, ""),
        ("sync(fail)", 1, "LookupError: mine"),
    ],
)
def test_a_script_that_does_not_close_its_workspace_ends(
    ending: str, status: int, shown: str
) -> None:
    with script(ending) as process:
        _, errors = process.communicate()
    assert process.returncode == status, errors
    assert errors.strip().splitlines()[-1:] == ([shown] if shown else [])


def ended_in_a_terminal(code: str, after_s: float) -> tuple[int, str]:
    """Press Ctrl-C in a terminal so long after a script says it is ready: its status and text."""
    takes_the_terminal = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    terminal, inside = pty.openpty()
    ends = {"stdin": inside, "stdout": inside, "stderr": inside}
    argv = [sys.executable, "-c", f"{takes_the_terminal}\n{code}"]
    with subprocess.Popen(argv, start_new_session=True, **ends) as process:
        os.close(inside)
        text, pressed = b"", False
        with contextlib.suppress(OSError):  # nobody has the other end any more
            while part := os.read(terminal, 65_536):
                text += part
                if b"ready" in text and not pressed:
                    time.sleep(after_s)
                    os.write(terminal, b"\x03")
                    pressed = True
    os.close(terminal)
    return process.returncode, text.decode(errors="replace")


@pytest.mark.parametrize("after_s", [0.0, 3.0])
def test_one_ctrl_c_in_a_terminal_ends_a_sync_and_the_service_it_started(after_s: float) -> None:
    code = """
import toolkit as tk
opened = tk.open  # imports duckdb, which turns a Ctrl-C of that moment into an ImportError
print("ready", flush=True)
opened("s.duckdb").sync(["BTC_USDT:*", "events/spread"], "25d")
"""
    status, text = ended_in_a_terminal(code, after_s)
    assert "\nKeyboardInterrupt" in text, text
    if "Error calling __set_name__" not in text:  # Python 3.11 where a class is made at that moment
        assert status == -signal.SIGINT, text
        assert text.strip().endswith("KeyboardInterrupt")
        assert text.count("Traceback") == 1
    with tk.open("s.duckdb") as rail:
        rail.sync("BTC_USDT:AURORA.spot", "1h", progress=False)


def test_workspaces_of_one_process_share_one_service() -> None:
    with tk.open("one.duckdb") as one:
        two = tk.open("two.duckdb")
        base_url = two.client.base_url
        assert base_url == one.client.base_url
    try:
        assert two.client.discover()
    finally:
        two.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(base_url)
    with pytest.raises(tk.RailError, match="this workspace was closed"):
        two.sync("BTC_USDT:AURORA.spot")


def test_services_of_two_seeds_are_two() -> None:
    with simulated_service(1) as one, simulated_service(2) as two:
        assert one != two


def test_a_service_starts_anew_after_the_last_user_has_gone() -> None:
    for _ in range(2):
        with simulated_service() as base_url:
            assert httpx.get(base_url).status_code == 404
