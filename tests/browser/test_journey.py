"""From page to page by click, while a sync writes into the same store; and the other states."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from toolkit.dashboard.link import PAGES
from toolkit.market import Source
from toolkit.store import Store, StoreWriter

from .conftest import WINDOW, dashboard_over, heading, leave, settled

RAIL = Path(sys.executable).with_name("rail")


def sync(
    service: str, store: Path, *wanted: str, start: int = WINDOW.start, end: int = WINDOW.end
) -> subprocess.Popen:
    window = ("--start", str(start), "--end", str(end))
    argv = [RAIL, "sync", *wanted, *window, "--store", store, "--base-url", service]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_one_walks_from_overview_to_an_event_and_back_while_a_sync_runs(
    service: str, store: Path, look: Callable[..., Page], tmp_path: Path
) -> None:
    own = Path(shutil.copy(store, tmp_path / "rail.duckdb"))
    loading = ("--all-prices", "--symbol", "SOL_USDT", "--symbol", "XRP_USDT", "--workers", "1")
    with (
        dashboard_over(own) as address,
        sync(service, own, *loading, start=WINDOW.end - 30 * 86_400) as running,
    ):
        page = look()
        page.goto(address)
        heading(page, "Overview")
        page.get_by_role("link", name="Spreads").click()
        heading(page, "Spreads")
        page.goto(f"{address}/spreads?exchange=AURORA,DEX-SOLARIS")  # where events are
        heading(page, "Spreads")
        page.locator("#rows tbody button").first.press("Enter")
        heading(page, "Trajectory")
        expect(page).to_have_url(re.compile(r"/trajectory\?.*trajectory=[A-Z0-9_]+(%3A|:)"))
        page.locator("#rows tbody button").first.press("Enter")
        heading(page, "Events")
        expect(page).to_have_url(re.compile(r"/events\?.*event="))
        expect(page.get_by_text("svc.spread.v1").first).to_be_attached()
        for title in ("Trajectory", "Spreads"):
            page.go_back()
            page.go_back()  # Streamlit writes a change of page and of its link as two steps
            heading(page, title)
        leave(page)
        running.send_signal(signal.SIGINT)  # all of the month is not needed
        said = running.communicate()[0]
        assert "Traceback" not in said
    assert Store(own).catalogue().height > Store(store).catalogue().height


def test_each_page_over_an_empty_store_says_what_to_do(
    look: Callable[..., Page], tmp_path: Path
) -> None:
    path = tmp_path / "rail.duckdb"
    StoreWriter(Store(path)).bind(Source("simulated", "seed-7"))
    with dashboard_over(path) as address:
        page = look()
        page.goto(address)
        for name, title in PAGES.items():
            page.get_by_role("link", name=title, exact=True).click()
            heading(page, title)
            said = page.locator("[data-testid=stMain]").inner_text()
            assert name == "alerts" or re.search("rail sync|Load 7 days", said), title
        leave(page)


def test_a_service_that_is_down_leaves_what_is_held_and_a_load_that_did_not_finish(
    store: Path, look: Callable[..., Page], tmp_path: Path
) -> None:
    own = Path(shutil.copy(store, tmp_path / "rail.duckdb"))
    failed = sync("http://127.0.0.1:9", own, "BTC_USDT:AURORA.spot")
    said = failed.communicate(timeout=600)[0]
    assert failed.returncode == 1
    assert len(said.strip().splitlines()) == 1
    with dashboard_over(own) as address:
        page = look()
        page.goto(f"{address}/health")
        heading(page, "Data health")
        main = page.locator("[data-testid=stMain]").inner_text()
        leave(page)
    assert re.search(r"the newest began at .* UTC", main)
    assert "Held (%)" in main


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("trajectory?trajectory=NO_SUCH:AURORA.spot", "NO_SUCH"),
        ("events?event=nothing-of-this-name", "nothing-of-this-name"),
        ("funding?unit=furlongs", "furlongs"),
        ("?clock=Mars/Olympus", "Mars/Olympus"),
    ],
)
def test_a_wrong_deep_link_says_what_is_wrong_and_shows_the_page(
    dashboard: str, look: Callable[..., Page], link: str, says: str
) -> None:
    page = look("dark")
    page.goto(f"{dashboard}/{link}")
    page.locator("[data-testid=stAlert]").first.wait_for()
    settled(page)
    assert says in page.locator("[data-testid=stAlert]").first.inner_text()
