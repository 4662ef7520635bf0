"""What the kill loops share: loads as processes that are ended at random moments, and how often."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from .conftest import RAIL

KILLS = int(os.environ.get("RAIL_KILLS", "4"))
"""How often a load is killed; `make kill-loop` sets 50."""


@dataclass(frozen=True)
class Loads:
    """One `rail` command, run again and again into a store to be named.

    What a run printed lies beside its store, in ``.out`` and ``.err``.
    """

    arguments: Sequence[str]
    settings: Mapping[str, str]

    def start(self, store: Path) -> subprocess.Popen[bytes]:
        with store.with_suffix(".out").open("w") as out, store.with_suffix(".err").open("w") as err:
            return subprocess.Popen(
                [RAIL, *self.arguments, "--store", store],
                stdout=out,
                stderr=err,
                env=os.environ | self.settings,
            )

    def finish(self, store: Path) -> float:
        """Load undisturbed; gives the seconds it took."""
        began = time.monotonic()
        assert self.start(store).wait(900) == 0, store.with_suffix(".err").read_text()
        return time.monotonic() - began

    def kill(self, store: Path, after_s: float) -> bool:
        """Load and kill -9 the load after so long; whether it was still at work."""
        process = self.start(store)
        time.sleep(after_s)
        process.kill()
        return process.wait() != 0


def check_same(wanted: Mapping[str, pl.DataFrame], found: Mapping[str, pl.DataFrame]) -> None:
    """All frames of the one are those of the other, row by row."""
    assert found.keys() == wanted.keys()
    for name, frame in wanted.items():
        assert found[name].equals(frame), name
