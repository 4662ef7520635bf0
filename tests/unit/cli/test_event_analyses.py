"""`rail events`: groups of events, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

from .conftest import refused

Rail = Callable[..., subprocess.CompletedProcess[str]]


def as_rows(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{name: value for name, value in row.items() if name != "source"} for row in rows]


@pytest.mark.usefixtures("held")
def test_a_table_names_groups_and_the_test_between_them(rail: Rail) -> None:
    shown = rail("events", "survival", "--by", "symbol", columns=240).stdout
    assert "median lifetime" in shown
    assert "log-rank test of" in shown
    kept = as_rows(rail("events", "survival", "--where", "n > 0", "--format", "json"))
    assert {row["family"] for row in kept} == {"spread", "splash", "funding"}


@pytest.mark.usefixtures("held")
def test_groups_and_columns_that_are_none_are_refused(rail: Rail) -> None:
    done = rail("events", "rates", "--by", "hour")
    assert done.returncode == 2
    assert "'symbol', 'legs', 'exchange', 'size'" in done.stderr
    assert "rank" in refused(rail("events", "rates", "--sort", "rank"))
    assert "--start: 'noon' is not allowed" in refused(
        rail("events", "survival", "--start", "noon", store="no.duckdb")
    )


def test_a_store_that_is_not_there_is_refused(rail: Rail) -> None:
    assert "makes one, `rail demo` one to look at" in refused(rail("events", "rates"))


@pytest.mark.usefixtures("held")
def test_the_counts_of_events_are_asked_as_a_statistic_too(rail: Rail) -> None:
    assert rail("stats", "events").stdout == rail("events", "summary").stdout
