"""The dashboard as a person sees it: its own process, a real store, Debian's Chromium.

Every page that a test opens is watched: an error on the console, a request that leaves the
machine or an exception shown on the page fails the test. RAIL_CHROMIUM names another browser;
with RAIL_BROWSER=required a missing one is a failure instead of a skip.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    BrowserType,
    ConsoleMessage,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.listening import free_port
from tests.once import made_once
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store, StoreWriter
from toolkit.workspace import Workspace, front_page, watchlist

NOW = 1_795_132_800
"""2026-11-20 00:00 UTC: the same pictures whenever they are taken."""
WINDOW = Interval(NOW - 3 * 86_400, NOW)
CHROMIUM = os.environ.get("RAIL_CHROMIUM") or shutil.which("chromium")
REQUIRED = os.environ.get("RAIL_BROWSER") == "required"
PATIENCE_MS = 180_000
"""A page that has not come by then never comes, however busy the machine is."""
expect.set_options(timeout=PATIENCE_MS)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Opened by a deep link, Streamlit's page first asks whether the server lives below that path, and
# the browser writes the two 404 to the console.
PROBE = re.compile(r"//127\.0\.0\.1:\d+/[a-z]+/_stcore/(health|host-config)$")
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[BrowserType]:
    if not CHROMIUM:
        told = "no Chromium here: install Debian's package chromium or name one in RAIL_CHROMIUM"
        pytest.fail(told) if REQUIRED else pytest.skip(told)
    with sync_playwright() as playwright:
        yield playwright.chromium


@pytest.fixture(scope="session")
def browser(chromium: BrowserType) -> Iterator[Browser]:
    """A browser for contexts that share nothing."""
    launched = chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
    yield launched
    launched.close()


def profile_in(folder: Path, chromium: BrowserType, **given: str) -> BrowserContext:
    """A browser with a profile on disk, which keeps what it compiled: 1 s of CPU for each load."""
    context = chromium.launch_persistent_context(
        folder, executable_path=CHROMIUM, args=list(FLAGS), **given
    )
    context.set_default_timeout(PATIENCE_MS)
    return context


@dataclass
class Watch:
    """What a context's pages did that they must not do."""

    faults: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", lambda error: self.faults.append(f"page: {error.error}"))
        context.on("request", lambda request: self._request(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not PROBE.search(message.location["url"]):
            self.faults.append(f"console: {message.text} {message.location['url']}")

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("about", "data", "blob") and parts.hostname != "127.0.0.1":
            self.faults.append(f"request outside: {url}")


@dataclass
class Profiles:
    """Profiles, one per time zone, and what went wrong in their pages.

    Pages of one profile share its cache: Streamlit and plotly are megabytes of scripts, which a
    profile of its own would load and compile for each test.
    """

    chromium: BrowserType
    folder: Path
    watch: Watch = field(default_factory=Watch)
    contexts: dict[str, BrowserContext] = field(default_factory=dict)

    def page(self, looks: str, zone: str, viewport: ViewportSize | None) -> Page:
        if zone not in self.contexts:
            folder = self.folder / zone.replace("/", "-")
            self.contexts[zone] = profile_in(folder, self.chromium, timezone_id=zone)
            self.watch.over(self.contexts[zone])
        page = self.contexts[zone].new_page()
        wear(page, looks)
        if viewport:
            page.set_viewport_size(viewport)
        return page

    def end(self) -> list[str]:
        """Close the pages of a test; what went wrong in them. The first keeps the browser open."""
        pages = [page for context in self.contexts.values() for page in context.pages[1:]]
        try:
            for page in pages:
                leave(page)
        finally:
            for page in pages:
                page.close()
            found, self.watch.faults = self.watch.faults, []
        return found


@pytest.fixture(scope="session")
def profiles(chromium: BrowserType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profiles]:
    made = Profiles(chromium, tmp_path_factory.mktemp("profiles"))
    yield made
    for context in made.contexts.values():
        context.close()


@pytest.fixture
def look(profiles: Profiles) -> Iterator[Callable[..., Page]]:
    """A page in one of `LOOKS`; afterwards nothing may have gone wrong in it."""

    def opened(
        name: str = "light", *, zone: str = "Europe/London", viewport: ViewportSize | None = None
    ) -> Page:
        return profiles.page(name, zone, viewport)

    yield opened
    assert profiles.end() == []


def wear(page: Page, looks: str) -> None:
    """Give a page one of `LOOKS`."""
    page.emulate_media(color_scheme=LOOKS[looks]["color_scheme"])
    page.set_viewport_size(LOOKS[looks]["viewport"])


def leave(page: Page) -> None:
    """Go from a page that shows no exception, before the dashboard behind it may end."""
    assert page.locator("[data-testid=stException]").all_inner_texts() == []
    page.evaluate("if (origin !== 'null') { localStorage.clear(); sessionStorage.clear(); }")
    page.goto("about:blank")


@contextmanager
def dashboard_over(
    store: Path, *more: str, port: int | None = None, **environment: str
) -> Iterator[str]:
    """The address of a dashboard over a store, a process of its own in the store's folder."""
    port = port or free_port()
    argv = ["-m", "toolkit.dashboard", "--store", str(store), "--port", str(port), "--headless"]
    process = subprocess.Popen(
        [sys.executable, *argv, *more], cwd=store.parent, env=os.environ | environment
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(3000):
            try:
                with urllib.request.urlopen(f"{address}/_stcore/health") as answer:
                    if answer.status == 200:
                        break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail("the dashboard did not start")
        yield address
    finally:
        process.terminate()
        process.wait(120)


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """A SIMULATED market whose clock stands at NOW."""
    with running(Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=1_000_000)) as local:
        yield local.base_url


@pytest.fixture(scope="session")
def store(service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of two symbols, of what the first page lists, of the event logs and snapshots."""

    def load(folder: Path) -> None:
        store = Store(folder / "rail.duckdb")
        with Workspace(Client(service, "demo-pro"), store) as workspace:
            workspace.sync(watchlist(workspace.client.symbols(), symbols=2), *WINDOW)
            with StoreWriter(store).writing() as connection:  # answers apart show that it stands
                connection.execute("UPDATE edge SET asked_at = asked_at - 60")
            workspace.sync(front_page(workspace.store), *WINDOW)

    made = made_once(tmp_path_factory, "browser", load)
    folder = shutil.copytree(made, tmp_path_factory.mktemp("browser"), dirs_exist_ok=True)
    path = Path(folder) / "rail.duckdb"
    with StoreWriter(Store(path)).writing() as connection:  # another worker's service may have gone
        connection.execute("UPDATE load SET base_url = ?", [service])
    return path


@pytest.fixture
def own(store: Path, tmp_path: Path) -> Path:
    """A copy of the store in a folder of its own."""
    return Path(shutil.copy(store, tmp_path / "rail.duckdb"))


@pytest.fixture(scope="session")
def dashboard(store: Path) -> Iterator[str]:
    with dashboard_over(store) as address:
        yield address


def settled(page: Page) -> Page:
    """Wait until the script has run and what it shows has been drawn."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.wait_for_function("document.querySelectorAll('[data-testid=stSkeleton]').length === 0")
    page.wait_for_timeout(400)  # a figure fades in
    return page


def visit(page: Page, address: str, title: str) -> Page:
    """Open a page of the dashboard, and wait for its title and the end of its run."""
    page.goto(address)
    heading(page, title)
    return page


def heading(page: Page, title: str) -> None:
    """Wait for the page with that title, run to its end."""
    page.get_by_role("heading", name=re.compile(rf"^{re.escape(title)}$")).wait_for()
    settled(page)
