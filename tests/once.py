"""What is made once in a run of the tests, though several workers want it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder that ``make`` filled for the first worker; the others wait for it.

    No test may change what is in it: one that has to, takes a copy.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has a folder of its own below the run's
        base = base.parent
    made, begun = base / name, base / f"{name}-begun"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(begun, ignore_errors=True)
            begun.mkdir()
            make(begun)
            begun.rename(made)
    return made


def store_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return this worker's copy of the store that ``make`` loaded, at a path, for the first one."""
    made = made_once(factory, name, lambda folder: make(folder / "rail.duckdb"))
    return Path(shutil.copy(made / "rail.duckdb", factory.mktemp(name)))


def distributions(factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the sdist as the build backend makes them."""

    def build(folder: Path) -> None:
        argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
        subprocess.run([*argv, "-d", str(folder)], cwd=ROOT, check=True, capture_output=True)

    return made_once(factory, "distributions", build)
