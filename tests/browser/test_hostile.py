"""A store full of hostile strings in a real browser: nothing is asked for, followed or run."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from toolkit.dashboard.link import PAGES

from ..hostile import store_of, streams, texts
from .conftest import dashboard_over, heading


class Trap:
    """An address that counts who connects to it."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked: list[bytes] = []
        self.thread = Thread(target=self._listen)
        self.thread.start()

    def _listen(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            with connection:
                connection.settimeout(2)
                asked = connection.recv(200)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            if asked == b"end":
                return
            self.asked.append(asked)

    def close(self) -> None:
        with socket.create_connection(self.socket.getsockname()) as last:
            last.send(b"end")
        self.thread.join()
        self.socket.close()


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    made = Trap()
    yield made
    made.close()


@pytest.fixture(scope="module")
def hostile(trap: Trap, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard over the hostile store."""
    path: Path = tmp_path_factory.mktemp("hostile") / "rail.duckdb"
    store_of(path, trap.address)
    with dashboard_over(path) as address:
        yield address


LINKS: list[tuple[str, dict[str, str]]] = [
    ("trajectory", {"trajectory": str(streams()[1])}),
    ("funding", {"trajectory": f"funding/{streams()[1]}"}),
    ("events", {"event": "image", "symbol": "label", "exchange": "html", "clock": "fence"}),
    ("events", {"event": "label"}),
    ("spreads", {"exclude": "label", "matrix": "image", "above": "fence", "window": "image"}),
]


@pytest.mark.parametrize(("name", "params"), LINKS)
def test_a_link_to_what_is_hostile_asks_nobody_for_anything(hostile, trap, look, name, params):
    page = look()
    strings = texts(trap.address)
    link = urlencode({key: strings.get(value, value) for key, value in params.items()})
    page.goto(f"{hostile}/{name}?{link}")
    check_quiet(page, trap, PAGES[name])


def test_no_page_over_a_hostile_store_asks_anybody_for_anything(hostile, trap, look):
    page = look()
    page.goto(hostile)
    for title in PAGES.values():
        page.get_by_role("link", name=title, exact=True).click()
        check_quiet(page, trap, title)
    page.set_content(f'<img src="{trap.address}/seen.png">')
    page.wait_for_timeout(500)
    assert b"seen.png" in trap.asked.pop(), "the trap counts who comes"


def check_quiet(page: Page, trap: Trap, title: str) -> None:
    """The page with that title asks for nothing, also under the mouse, and shows no error."""
    heading(page, title)
    for chart in page.locator(".js-plotly-plot").all():
        chart.hover(force=True)
    page.wait_for_timeout(300)

    assert trap.asked == []
    assert page.locator(f"[src*='{trap.address}'], [href*='{trap.address}']").count() == 0
    assert page.locator("[data-testid=stAlertContentError]").count() == 0
