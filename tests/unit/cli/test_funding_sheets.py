"""`rail stats persistence` and `rail stats dispersion`: what they print is what is measured."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable

import pytest

from toolkit.statistics import funding
from toolkit.store import Store

from .conftest import LOADED, SETTLED, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]
FUNDING = LOADED[2]
TIMES = ("--start", str(SETTLED.start), "--end", str(SETTLED.end))


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_tables_are_those_of_the_statistics(rail: Rail, held: Store) -> None:
    rows = held.series(FUNDING)

    apart = rail("stats", "dispersion", *TIMES, "--bucket", "1d", "--format", "json")
    shown = printed(rail("stats", "persistence", *TIMES))

    source = {"source": held.source.label}
    expected = funding.dispersion_summary(rows, *SETTLED, bucket="1d").to_dicts()[0]
    assert json.loads(printed(apart)) == source | expected
    assert re.search(r"positive share\s+\d+\.\d\d %", shown)
    assert "APR range" in printed(rail("stats", "dispersion", *TIMES))


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("persistence", "--band", "-1"), "percent a year from 0"),
        (("dispersion", "--bucket", "7h"), "divides a day"),
        (("dispersion", "--min-coverage", "2"), "a part of the window"),
        (("persistence", "--start", "2020-01-01", "--end", "2020-02-01"), "holds nothing in"),
    ],
)
def test_what_cannot_be_measured_is_refused(rail: Rail, asked: tuple[str, ...], why: str) -> None:
    assert why in refused(rail("stats", *asked))
