"""An alert of a spread is made in three clicks, on the page and by a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from toolkit.workspace.alerts import find_alerts

from .conftest import dashboard_over, heading, settled


@pytest.fixture
def own(store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(store, tmp_path / "rail.duckdb"))


@pytest.fixture
def over_own(own: Path) -> Iterator[str]:
    with dashboard_over(own) as address:
        yield address


def test_tell_me_when_a_spread_exceeds_50_bps_for_5_minutes_takes_three_clicks(
    own: Path, over_own: str, look: Callable[..., Page]
) -> None:
    page, clicks = look(), 0
    page.goto(over_own)
    heading(page, "Overview")
    for name in ("Alerts", "Add alert"):
        kind = "link" if name == "Alerts" else "button"
        page.get_by_role(kind, name=name, exact=True).first.click()
        clicks += 1
        if name == "Alerts":
            heading(page, "Alerts")
            settled(page)
    page.get_by_text("is in rail.toml").first.wait_for()
    assert clicks <= 3
    (rule,) = find_alerts(own).rules
    assert str(rule) == "|spread| above 50 bps for 5 min, over at 40"
