"""A terminal for a program of a test."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys


def on_a_terminal(
    program: str, *arguments: str, columns: int, stdout: int | None = None, **environment: str
) -> tuple[int, str, str]:
    """Run a program of Python on a terminal, but for a ``stdout`` that is given.

    Return its exit code, what it wrote there, and what it wrote on the terminal.
    """
    ours, theirs = pty.openpty()
    known = {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=theirs,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        text=True,
        env=os.environ | known | environment,
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side was closed
        while part := os.read(ours, 65_536):
            written += part
    os.close(ours)
    said, _ = process.communicate(timeout=60)
    return process.returncode, said or "", written.decode()
