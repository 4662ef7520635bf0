"""From page to page by click, while a sync writes into the same store."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

from toolkit.store import Store

from .conftest import WINDOW, dashboard_over, heading, leave, visit

RAIL = Path(sys.executable).with_name("rail")


def sync(
    service: str, store: Path, *wanted: str, start: int = WINDOW.start, end: int = WINDOW.end
) -> subprocess.Popen:
    window = ("--start", str(start), "--end", str(end))
    argv = [RAIL, "sync", *wanted, *window, "--store", store, "--base-url", service]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_one_walks_from_overview_to_an_event_and_back_while_a_sync_runs(service, store, own, look):
    loading = ("--all-prices", "--symbol", "SOL_USDT", "--symbol", "XRP_USDT", "--workers", "1")
    with (
        dashboard_over(own) as address,
        sync(service, own, *loading, start=WINDOW.end - 30 * 86_400) as running,
    ):
        page = visit(look(), address, "Overview")
        page.get_by_role("link", name="Spreads").click()
        heading(page, "Spreads")
        visit(page, f"{address}/spreads?exchange=AURORA,DEX-SOLARIS", "Spreads")  # where events are
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
