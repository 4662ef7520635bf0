"""`rail events together`: its JSON is the statistic's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from toolkit.cli.event_cooccurrence import together_columns
from toolkit.cli.event_logs import Logs, event_window
from toolkit.statistics import events as event_statistics
from toolkit.store import Store
from toolkit.store.connection import opened

from .conftest import refused
from .test_event_analyses import as_rows

Rail = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(("by", "same"), [([], []), (["symbol"], []), ([], ["symbol"])])
def test_events_that_come_together_are_those_of_the_statistic_the_surest_first(
    rail: Rail, held: Store, by: list[str], same: list[str]
) -> None:
    asked = event_window(held, None, None)
    logs = Logs.read(held, asked)
    expected = event_statistics.cooccurrence(
        logs.lives(), by, same=same, held=logs.held, within_s=600
    )
    options = [part for name in by for part in ("--by", name)]
    options += [part for name in same for part in ("--same", name)]
    found = as_rows(rail("events", "together", *options, "--within", "10m", "--format", "json"))
    order = [name for name in expected.columns if "family" in name or "symbol" in name]
    as_given = sorted(found, key=lambda row: [row[name] or "" for name in order])
    assert as_given == expected.sort(order).to_dicts()
    sure = [row["p_value"] for row in found if row["p_value"] is not None]
    assert sure == sorted(sure)
    assert all(row["p_value"] is None for row in found[len(sure) :])
    assert set(expected.columns) <= set(together_columns())


def test_one_log_alone_has_nothing_to_come_together_with_and_that_is_said(
    rail: Rail, held: Store
) -> None:
    with opened(held.path, writable=True, wait_s=10) as connection:
        connection.execute("DELETE FROM event WHERE family <> 'splash'")
    done = rail("events", "together", columns=240)
    assert done.returncode == 0
    assert "of one log, with nothing to come together with; `rail sync" in done.stdout


@pytest.mark.usefixtures("held")
def test_a_table_says_what_few_shifts_cannot_tell(rail: Rail) -> None:
    shown = rail("events", "together", columns=240)
    assert shown.returncode == 0
    assert "expected" in shown.stdout
    assert "--within: 'soon' is not allowed" in refused(
        rail("events", "together", "--within", "soon")
    )
