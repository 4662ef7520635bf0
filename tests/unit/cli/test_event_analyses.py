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

COLUMNS = {"size": "size_from"}
Rail = Callable[..., subprocess.CompletedProcess[str]]


def as_rows(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{name: value for name, value in row.items() if name != "source"} for row in rows]


@pytest.mark.parametrize("by", [[], ["symbol"], ["legs", "hour"], ["exchange", "size"]])
def test_lives_are_those_of_the_statistic_by_any_group(
    rail: Rail, held: Store, by: list[str]
) -> None:
    read = Logs.read(held, WINDOW)
    columns = [COLUMNS.get(name, name) for name in by]
    expected = event_statistics.survival(read.lives(), columns, held=read.held)
    options = [part for name in by for part in ("--by", name)]
    window = ("--start", str(WINDOW.start), "--end", str(WINDOW.end))
    found = as_rows(rail("events", "survival", *options, *window, "--format", "json"))
    assert found == expected.to_dicts()
    assert set(expected.columns) <= set(survival_columns())


@pytest.mark.parametrize("by", [[], ["symbol"], ["legs", "hour"]])
def test_magnitudes_are_those_of_the_statistic_by_any_group(
    rail: Rail, held: Store, by: list[str]
) -> None:
    read = Logs.read(held, event_window(held, None, None))
    expected = event_statistics.magnitudes(read.lives(), by, held=read.held)
    options = [part for name in by for part in ("--by", name)]
    found = as_rows(rail("events", "magnitudes", *options, "--format", "json"))
    assert found == expected.to_dicts()
    assert set(expected.columns) <= set(magnitude_columns())


@pytest.mark.parametrize("by", [[], ["symbol", "legs"], ["size"]])
def test_rates_are_those_of_the_statistic_and_by_group_a_league(
    rail: Rail, held: Store, by: list[str]
) -> None:
    asked = event_window(held, None, None)
    read = Logs.read(held, asked, [EventFamily.SPREAD])
    columns = [COLUMNS.get(name, name) for name in by]
    expected = (
        event_statistics.league(read.lives(), columns, held=read.held)
        if by
        else event_statistics.rates(read.lives(), held=read.held)
    )
    options = [part for name in by for part in ("--by", name)]
    found = as_rows(rail("events", "stats", "spread", *options, "--format", "json"))
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
