"""`rail events together`: which is first, and what is said of few days."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from toolkit.store import Store
from toolkit.store.file.connection import opened

from .conftest import refused
from .test_event_analyses import as_rows

Rail = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.usefixtures("held")
def test_events_that_come_together_are_the_surest_first(rail: Rail) -> None:
    found = as_rows(rail("events", "together", "--same", "symbol", "--format", "json"))
    sure = [row["p_value"] for row in found if row["p_value"] is not None]
    assert sure == sorted(sure)
    assert all(row["p_value"] is None for row in found[len(sure) :])


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
