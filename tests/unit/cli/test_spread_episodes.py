"""`rail stats episodes`: none is an answer, and what makes none is refused."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest

from .conftest import LOADED, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]
PAIR = LOADED[1]
ASKED = ("stats", "episodes", PAIR.key, "--enter-bps")


@pytest.mark.usefixtures("held")
def test_a_spread_that_is_never_so_far_from_zero_is_counted_and_no_error(rail: Rail) -> None:
    done = rail(*ASKED, "5000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is found in 1 of 1 series" in done.stdout
    assert rail(*ASKED, "5000", "--format", "json").stdout == ""


@pytest.mark.usefixtures("held")
def test_what_makes_no_episode_is_one_clear_line(rail: Rail) -> None:
    assert "enter_bps: -1.0 is not allowed" in refused(rail(*ASKED, "-1"))
    beyond = rail(*ASKED, "1", "--start", "2020-01-01", "--end", "2020-01-02")
    assert "holds nothing in [2020-01-01" in (why := refused(beyond))
    assert re.search(r"; held: 20\d\d-\d\d-\d\d .* to 20\d\d-", why)
