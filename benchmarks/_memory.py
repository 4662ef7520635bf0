"""The largest memory of a process, as Linux knows it."""

from __future__ import annotations

from pathlib import Path


def peak_mb() -> float:
    """Return the largest memory of this program, in MB.

    `resource.getrusage` would count that of the parent before exec: the same figure for each child
    of a large one.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
