"""`rail events`: its JSON is the statistics', over what the ledger holds of the logs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

from toolkit.cli.event_analyses import magnitude_columns, rate_columns, survival_columns
from toolkit.cli.event_logs import Logs, event_window
from toolkit.market import EventFamily
from toolkit.statistics import events as event_statistics
from toolkit.store import Store

from .conftest import WINDOW, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]


def as_rows(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{name: value for name, value in row.items() if name != "source"} for row in rows]


def test_lives_are_those_of_the_statistic_by_two_groups(rail: Rail, held: Store) -> None:
    read = Logs.read(held, WINDOW)
    expected = event_statistics.survival(read.lives(), ["exchange", "size_from"], held=read.held)
    window = ("--start", str(WINDOW.start), "--end", str(WINDOW.end))
    asked = ("events", "survival", "--by", "exchange", "--by", "size", *window)
    assert as_rows(rail(*asked, "--format", "json")) == expected.to_dicts()
    assert set(expected.columns) <= set(survival_columns())


def test_magnitudes_are_those_of_the_statistic_by_two_groups(rail: Rail, held: Store) -> None:
    read = Logs.read(held, event_window(held, None, None))
    expected = event_statistics.magnitudes(read.lives(), ["legs", "hour"], held=read.held)
    asked = ("events", "magnitudes", "--by", "legs", "--by", "hour")
    assert as_rows(rail(*asked, "--format", "json")) == expected.to_dicts()
    assert set(expected.columns) <= set(magnitude_columns())


def test_rates_by_a_group_are_a_league(rail: Rail, held: Store) -> None:
    read = Logs.read(held, event_window(held, None, None), [EventFamily.SPREAD])
    expected = event_statistics.league(read.lives(), ["size_from"], held=read.held)
    found = as_rows(rail("events", "stats", "spread", "--by", "size", "--format", "json"))
    assert found == expected.to_dicts()
    assert {row["family"] for row in found} == {"spread"}
    assert set(expected.columns) <= set(rate_columns())


@pytest.mark.usefixtures("held")
def test_a_table_names_groups_and_the_test_between_them(rail: Rail) -> None:
    shown = rail("events", "survival", "--by", "symbol", columns=240).stdout
    assert "median lifetime" in shown
    assert "log-rank test of" in shown
    kept = as_rows(rail("events", "survival", "--where", "n > 0", "--format", "json"))
    assert {row["family"] for row in kept} == {"spread", "splash", "funding"}


@pytest.mark.usefixtures("held")
def test_groups_and_columns_that_are_none_are_refused(rail: Rail) -> None:
    done = rail("events", "stats", "--by", "hour")
    assert done.returncode == 2
    assert "'symbol', 'legs', 'exchange', 'size'" in done.stderr
    assert "rank" in refused(rail("events", "stats", "--sort", "rank"))
    assert "--start: 'noon' is not allowed" in refused(
        rail("events", "survival", "--start", "noon", store="no.duckdb")
    )


def test_a_store_that_is_not_there_is_refused(rail: Rail) -> None:
    assert "makes one, `rail demo` one to look at" in refused(rail("events", "stats"))
