"""`rail status`: what it prints of a store, and what it refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from .conftest import LOADED, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.usefixtures("held")
def test_each_trajectory_has_its_line_under_the_source(rail: Rail) -> None:
    done = rail("status")

    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout.splitlines()[0]
    for trajectory in LOADED:
        assert trajectory.legs_key in done.stdout


def test_a_store_that_is_not_there_is_refused(rail: Rail) -> None:
    assert "`rail sync` makes one" in refused(rail("status"))
