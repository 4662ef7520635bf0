"""Four browsers stay on pages beside `rail follow`: nothing fails, grows or stays behind.

RAIL_WATCHED_S says for how long; `make soak` sets ten minutes.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from toolkit.client import Client
from toolkit.dashboard.formatting import newest_end
from toolkit.dashboard.navigation import PAGES
from toolkit.service import Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace, front_page, watchlist

from .conftest import PATIENCE_MS, Watch, dashboard_over, heading, leave

LOG = logging.getLogger(__name__)
SECONDS = float(os.environ.get("RAIL_WATCHED_S", "30"))
WATCHED = ("overview", "spreads", "trajectory", "events")
EVERY_S, REFRESH_S = 2.0, 5
LEAST_LOOKS, MOST_GROWTH = 3, 1.25
DAY_S = 86_400
RAIL = Path(sys.executable).with_name("rail")
UNITS = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}
RULES = """
[follow]
streams = ["BTC_USDT:AURORA.spot:CORONA.futures", "events/spread", "events/splash"]
open_now = true
poll_s = 5
sweep_s = 5
"""


@dataclass
class Seen:
    """What was seen of a page: how far it was behind the store (s), and what it said amiss."""

    page: Page
    behind_s: list[int] = field(default_factory=list)
    amiss: list[str] = field(default_factory=list)

    def look(self, newest: int | None) -> None:
        alerts = self.page.locator("[data-testid=stException], [data-testid=stAlertContentError]")
        self.amiss += alerts.all_inner_texts()
        if newest is not None:
            self.behind_s.append(newest - self.newest())

    def newest(self) -> int:
        """The end of the newest row that the page knows, by the age that it shows."""
        words = self.page.locator("#age").first.inner_text()  # a trajectory has its own below
        parts = re.findall(r"(\d+) (d|h|min|s)\b", words)
        return int(time.time()) - sum(int(count) * UNITS[unit] for count, unit in parts)


def resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0])


def server_over(store: Path) -> int:
    """The process of our own that serves the store's dashboard."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    lines = {int(pid): Path(f"/proc/{pid}/cmdline").read_text() for pid in children}
    ours = ("toolkit.dashboard", str(store))
    (found,) = (pid for pid, line in lines.items() if all(part in line for part in ours))
    return found


@pytest.mark.skipif("RAIL_WATCHED_S" not in os.environ, reason="make soak watches open pages")
@pytest.mark.timeout(int(SECONDS) + 1500)
def test_pages_left_open_beside_a_follow_keep_up_without_a_fault(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "rail.duckdb"
    (tmp_path / "rail.toml").write_text(RULES)
    with ExitStack() as closing:
        local = closing.enter_context(running(Config(Simulated(7), port=0, quota=1_000_000)))
        with Workspace(Client(local.base_url, "demo-pro"), Store(path)) as workspace:
            now = workspace.client.served_at()
            workspace.sync(watchlist(workspace.client.symbols(), symbols=1), now - DAY_S, now)
            workspace.sync(front_page(workspace.store), now - DAY_S, now)
        follow = subprocess.Popen(
            [RAIL, "follow", "--store", path, "--base-url", local.base_url],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        closing.enter_context(follow)
        closing.callback(follow.kill)
        address, watch = closing.enter_context(dashboard_over(path)), Watch()
        server, seen = server_over(path), []
        for name in WATCHED:
            context = closing.enter_context(browser.new_context())
            context.set_default_timeout(PATIENCE_MS)
            watch.over(context)
            page = context.new_page()
            page.goto(f"{address}/{'' if name == 'overview' else name}?refresh={REFRESH_S} s")
            heading(page, PAGES[name])
            seen.append(Seen(page))
        resident = watch_pages(path, server, seen)
        follow.send_signal(signal.SIGTERM)
        said = follow.communicate(timeout=120)[1]
        assert (follow.returncode, "Traceback" in said) == (0, False), said
        for each in seen:
            catch_up(path, each)
            leave(each.page)
    report(seen, resident)
    assert [each.amiss for each in seen] == [[]] * len(seen)
    assert watch.faults == []
    part = len(resident) // 3
    first, last = (statistics.median(some) for some in (resident[part:-part], resident[-part:]))
    assert last / first < MOST_GROWTH


def watch_pages(path: Path, server: int, seen: list[Seen]) -> list[int]:
    """Look at each page again and again. Returns the server's resident memory each time (kB)."""
    resident, until = [], time.monotonic() + SECONDS
    while time.monotonic() < until or len(resident) < LEAST_LOOKS:
        for each in seen:
            each.look(newest_end(Store(path, wait_s=60).catalogue()))
        resident.append(resident_kb(server))
        seen[0].page.wait_for_timeout(1000 * EVERY_S)
    return resident


def catch_up(path: Path, each: Seen) -> None:
    """Wait until a page shows the newest row, now that nothing is written any more."""
    newest = newest_end(Store(path, wait_s=60).catalogue())
    assert newest is not None
    until = time.monotonic() + PATIENCE_MS / 1000
    while each.newest() < newest - 2:
        assert time.monotonic() < until, "the page stays behind"
        each.page.wait_for_timeout(500)


def report(seen: list[Seen], resident: list[int]) -> None:
    """Say how far the pages were behind at most, and how large the server was."""
    for name, each in zip(WATCHED, seen, strict=True):
        late = sorted(each.behind_s)
        LOG.info(
            "%s: %d looks, behind the store by %d s in the median, %d s at 95 %%, %d s at most",
            *(name, len(late), statistics.median(late)),
            *(late[int(0.95 * len(late))], late[-1]),
        )
    sizes = [round(resident[at] / 1024) for at in (0, len(resident) // 2, -1)]
    LOG.info("server: %d, %d, %d MiB at the begin, middle and end", *sizes)
