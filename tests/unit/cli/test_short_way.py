"""Few modules lie between a command and the statistic that answers it."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from toolkit.statistics import spread
from toolkit.store import Store

from .conftest import LOADED, Rail

MOST = 12


@pytest.mark.slow
def test_a_command_reaches_its_statistic_through_few_modules(held: Store, rail: Rail) -> None:
    """Count those on the call stack, from the entry of `rail`, where the statistic is entered."""
    ways: list[list[str]] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is spread.summary.__code__:
            ways.append(_modules(frame))

    sys.setprofile(watch)
    try:
        done = rail("stats", "spread", LOADED[1].key, "--store", str(held.path))
    finally:
        sys.setprofile(None)
    assert done.returncode == 0, done.stderr
    longest = max(ways, key=len)
    assert "toolkit.workspace.selection" in longest
    assert len(longest) <= MOST, longest


def _modules(frame: FrameType | None) -> list[str]:
    found = dict[str, None]()
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("toolkit"):
            found[name] = None
        frame = frame.f_back
    return list(found)
