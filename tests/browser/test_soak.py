"""Browsers stay on pages beside `rail follow`: nothing fails, grows or stays behind.

RAIL_WATCHED_S says for how long; `make soak` sets ten minutes, for four pages in place of two. The
market's clock runs six times as fast as time, so that rows come all the while. No page may be older
than its refresh: it shows what the store has had for that long and for two of its own runs, as one
may be under way when rows come, and the next one then shows them.
"""

from __future__ import annotations

import datetime as dt
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
from playwright.sync_api import Page

from toolkit.client import Client
from toolkit.dashboard.link import PAGES
from toolkit.service import Config, Simulated, SpedClock, running
from toolkit.store import Store
from toolkit.workspace import Workspace, watchlist

from .conftest import NOW, PATIENCE_MS, Watch, dashboard_over, leave, visit

LOG = logging.getLogger(__name__)
SECONDS = float(os.environ.get("RAIL_WATCHED_S", "5"))
WATCHED = (
    ("overview", "spreads", "trajectory", "events") if SECONDS > 60 else ("overview", "events")
)
SPEED, LOOK_EVERY_S, REFRESH_S = 6.0, 0.5, 5
LEAST_LOOKS, MOST_GROWTH = 6, 1.25
DAY_S = 86_400
RAIL = Path(sys.executable).with_name("rail")
ASKED = re.compile(r"last answer as of (\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?)")
RULES = """
[follow]
streams = ["BTC_USDT:AURORA.spot:CORONA.futures", "events/spread", "events/splash"]
open_now = true
poll_s = 5
sweep_s = 5
"""
TIME_RUNS = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  let began = null;
  window.runs_s = [];
  new MutationObserver(() => {
    const runs = app.dataset.testScriptState === "running";
    if (runs) began ??= performance.now();
    if (runs || began === null) return;
    runs_s.push((performance.now() - began) / 1000);
    began = null;
  }).observe(app, { attributeFilter: ["data-test-script-state"] });
}"""


@dataclass
class Answers:
    """When (s, monotonic) the store was first seen with each newest answer (s, service's clock)."""

    path: Path
    seen: list[tuple[float, int]] = field(default_factory=list)

    def look(self) -> int:
        """Return the moment of the newest answer by the service's clock."""
        newest = Store(self.path, wait_s=60).catalogue()["served_at"].cast(int).max()
        assert isinstance(newest, int)
        if not self.seen or newest > self.seen[-1][1]:
            self.seen.append((time.monotonic(), newest))
        return newest

    def late_s(self, shown: int) -> float:
        """Return for how long the store has had a newer answer than the one that is shown."""
        newer = [first for first, served_at in self.seen if served_at > shown]
        return time.monotonic() - newer[0] if newer else 0.0


@dataclass
class Seen:
    """A page: how long the store had more than it showed, at each look; what it said amiss."""

    page: Page
    late_s: list[float] = field(default_factory=list)
    amiss: list[str] = field(default_factory=list)

    def look(self, answers: Answers) -> None:
        alerts = self.page.locator("[data-testid=stException], [data-testid=stAlertContentError]")
        self.amiss += alerts.all_inner_texts()
        self.late_s.append(answers.late_s(self.asked()))

    def asked(self) -> int:
        """The moment of the newest answer that the page knows, as its open source says."""
        said = ASKED.search(self.page.get_by_text(ASKED).inner_text())
        assert said
        return int(dt.datetime.fromisoformat(said[1]).replace(tzinfo=dt.UTC).timestamp())

    def allowed_s(self) -> float:
        """How long the store may have had more than the page shows."""
        return REFRESH_S + 2 * max(self.runs_s())

    def runs_s(self) -> list[float]:
        """How long each run of the page took so far."""
        runs: list[float] = self.page.evaluate("runs_s")
        return runs


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


def opened(page: Page, address: str, name: str) -> Seen:
    """A page whose source is open: it says there what the newest answer is."""
    visit(
        page, f"{address}/{'' if name == 'overview' else name}?refresh={REFRESH_S} s", PAGES[name]
    )
    page.get_by_text("SIMULATED", exact=True).first.click()
    page.get_by_text(ASKED).wait_for()
    page.evaluate(TIME_RUNS)
    return Seen(page)


@pytest.mark.timeout(int(SECONDS) + 1500)
def test_pages_left_open_beside_a_follow_keep_up_without_a_fault(browser, tmp_path):
    path = tmp_path / "rail.duckdb"
    (tmp_path / "rail.toml").write_text(RULES)
    with ExitStack() as closing:
        clock = SpedClock(start=NOW, speed=SPEED)
        market = Config(Simulated(7), port=0, quota=1_000_000, clock=clock)
        local = closing.enter_context(running(market))
        with Workspace(Client(local.base_url, "demo-pro"), Store(path)) as workspace:
            now = workspace.client.served_at()
            workspace.sync(watchlist(workspace.client.symbols(), symbols=1), now - DAY_S, now)
        address, watch = closing.enter_context(dashboard_over(path)), Watch()
        answers, seen = Answers(path), []
        for name in WATCHED:
            context = closing.enter_context(browser.new_context())
            context.set_default_timeout(PATIENCE_MS)
            watch.over(context)
            seen.append(opened(context.new_page(), address, name))
        follow = subprocess.Popen(
            [RAIL, "follow", "--store", path, "--base-url", local.base_url],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        closing.enter_context(follow)
        closing.callback(follow.kill)
        resident = watch_pages(answers, server_over(path), seen, follow)
        follow.send_signal(signal.SIGTERM)
        said = follow.communicate(timeout=120)[1]
        assert (follow.returncode, "Traceback" in said) == (0, False), said
        for each in seen:
            catch_up(answers, each)
        report(seen, resident)
        assert [each for each in seen if max(each.late_s) > each.allowed_s()] == []
        for each in seen:
            leave(each.page)
    assert [each.amiss for each in seen] == [[]] * len(seen)
    assert watch.faults == []
    part = len(resident) // 3
    first, last = (statistics.median(some) for some in (resident[part:-part], resident[-part:]))
    assert last / first < MOST_GROWTH


def watch_pages(
    answers: Answers, server: int, seen: list[Seen], follow: subprocess.Popen[str]
) -> list[int]:
    """Look at each page again and again, from the follow's first answers on.

    Returns the server's resident memory each time (kB).
    """
    resident: list[int] = []
    before, began = answers.look(), None
    while began is None or time.monotonic() < began + SECONDS or len(resident) < LEAST_LOOKS:
        assert follow.poll() is None
        if answers.look() > before:
            began = began or time.monotonic()
            resident.append(resident_kb(server))
        for each in seen:
            each.look(answers)
        seen[0].page.wait_for_timeout(1000 * LOOK_EVERY_S)
    return resident


def catch_up(answers: Answers, each: Seen) -> None:
    """Wait until a page shows the newest answer, now that nothing is written any more."""
    newest, until = answers.look(), time.monotonic() + PATIENCE_MS / 1000
    while each.asked() < newest:
        assert time.monotonic() < until, "the page stays behind"
        each.page.wait_for_timeout(500)


def report(seen: list[Seen], resident: list[int]) -> None:
    """Say how far the pages were behind at most, and how large the server was."""
    for name, each in zip(WATCHED, seen, strict=True):
        late, runs = sorted(each.late_s), each.runs_s()
        LOG.info(
            "%s: %d looks, %.1f s behind the store in the median, %.1f s at 95 %%, %.1f s at most; "
            "%d runs of %.1f s in the median, %.1f s at most",
            *(name, len(late), statistics.median(late)),
            *(late[int(0.95 * len(late))], late[-1]),
            *(len(runs), statistics.median(runs), max(runs)),
        )
    sizes = [round(resident[at] / 1024) for at in (0, len(resident) // 2, -1)]
    LOG.info("server: %d, %d, %d MiB at the begin, middle and end", *sizes)
