"""`rail stats episodes`: its rows are those of the statistic, and none is an answer too."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from toolkit.statistics import spread
from toolkit.store import Store

from .conftest import LOADED, WINDOW, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]
PAIR = LOADED[1]
ASKED = ("stats", "episodes", PAIR.key, "--enter-bps")


@pytest.mark.parametrize(
    "more", [{}, {"absolute": True}, {"leave_bps": 4.0, "merge_gap_s": 600, "min_duration_s": 60}]
)
def test_the_json_is_what_the_statistic_says_of_the_store(
    rail: Rail, held: Store, more: dict[str, Any]
) -> None:
    options = {f"--{name.replace('_', '-')}": of for name, of in more.items()}
    given = [
        p for name, of in options.items() for p in ((name,) if of is True else (name, str(of)))
    ]
    done = rail(*ASKED, "8", *given, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row.pop("source") for row in rows} == {held.source.label}
    expected = spread.episodes(held.series(PAIR), *WINDOW, enter_bps=8, **more)
    assert expected.height > 0
    assert rows == expected.to_dicts()


@pytest.mark.usefixtures("held")
def test_a_spread_that_is_never_so_far_from_zero_is_counted_and_no_error(rail: Rail) -> None:
    done = rail(*ASKED, "5000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 1 spreads have no episode" in done.stdout
    assert rail(*ASKED, "5000", "--format", "json").stdout == ""


@pytest.mark.usefixtures("held")
def test_what_makes_no_episode_is_one_clear_line(rail: Rail) -> None:
    assert "enter_bps: -1.0 is not allowed" in refused(rail(*ASKED, "-1"))
    beyond = rail(*ASKED, "1", "--start", "2020-01-01", "--end", "2020-01-02")
    assert "holds nothing in [2020-01-01" in (why := refused(beyond))
    assert re.search(r"; held: 20\d\d-\d\d-\d\d .* to 20\d\d-", why)
