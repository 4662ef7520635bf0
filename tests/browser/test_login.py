"""A dashboard that others reach, in a browser: the password's form, and a provider's login."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserType, Page, expect

from tests.listening import free_port
from toolkit.dashboard.link import PAGES
from toolkit.workspace.login import PasswordFile

from .conftest import LOOKS, dashboard_over, heading, profile_in, settled, wear
from .provider import CLIENT, provider_of
from .test_pages import SCREENS, barriers

_BY_POLICY = re.compile("Content.Security.Policy", re.IGNORECASE).search
PASSWORD = "correct horse battery staple"


@pytest.fixture
def page(chromium: BrowserType, tmp_path: Path) -> Iterator[Page]:
    """A page of a profile of its own, whose cookies end with the test."""
    with profile_in(tmp_path / "profile", chromium) as context:
        yield context.new_page()


def test_the_password_opens_the_page_asked_for_and_it_stays_open_over_a_reload(own, page):
    home = own.parent
    PasswordFile(home / "machine-rail" / "dashboard-password").write(PASSWORD)
    given = {"XDG_CONFIG_HOME": str(home), "HOME": str(home)}
    with dashboard_over(own, "--share", **given) as address:
        page.goto(f"{address}/spreads?symbols=BTC_USDT")
        SCREENS.mkdir(parents=True, exist_ok=True)
        page.get_by_label("Password").fill("wrong horse battery staple")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("That is not the password.")
        for looks in LOOKS:
            wear(page, looks)
            assert barriers(page) == []
            page.screenshot(path=SCREENS / f"login-{looks}.png")
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        heading(page, "Spreads")
        expect(page).to_have_url(re.compile("symbols=BTC_USDT"))
        page.reload()
        heading(page, "Spreads")
        refused: list[str] = []
        page.on("console", lambda said: refused.append(said.text) if _BY_POLICY(said.text) else 0)
        for name in PAGES:  # what it says of scripts and frames leaves each page whole
            page.goto(f"{address}/{name}")
            settled(page)
        assert refused == []
        page.goto(f"{address}/logout")
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Password").wait_for()


@pytest.mark.parametrize(("allowed", "lets_in"), [("*@desk.example", True), ("joe@a.com", False)])
def test_a_provider_lets_its_members_in_and_no_other(own, page, allowed, lets_in):
    home, port = own.parent, free_port()
    secrets = home / ".streamlit" / "secrets.toml"
    secrets.parent.mkdir()
    with provider_of("jane@desk.example") as provider:
        secrets.write_text(
            f"""
[auth]
redirect_uri = "http://localhost:{port}/oauth2callback"
cookie_secret = "a-secret-of-the-test-that-is-long-enough"
client_id = "{CLIENT}"
client_secret = "s"
server_metadata_url = "{provider}/.well-known/openid-configuration"
[rail]
allowed = ["{allowed}"]
"""
        )
        with dashboard_over(own, "--share", port=port, HOME=str(home)):
            page.goto(f"http://localhost:{port}")
            page.get_by_role("button", name="Log in").wait_for()
            assert shows_nothing_of_the_store(settled(page))
            page.get_by_role("button", name="Log in").click()
            if lets_in:
                heading(page, "Overview")
                page.reload()
                heading(page, "Overview")
            else:
                expect(page.get_by_text("may not open this dashboard")).to_be_visible()
                assert shows_nothing_of_the_store(settled(page))


def shows_nothing_of_the_store(page: Page) -> bool:
    """Whether neither its source nor a way to its pages is there."""
    ways = page.get_by_role("link", name="Spreads").count()
    return "SIMULATED" not in page.content() and not ways
