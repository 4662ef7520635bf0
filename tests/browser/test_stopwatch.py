"""Tasks of somebody at the desk, counted in clicks, over a real service and a real store."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from toolkit.store import Store
from toolkit.workspace.alerts import find_alerts

from .conftest import WINDOW, dashboard_over, heading, leave, visit
from .test_journey import sync

LEG = "BTC_USDT:AURORA.spot"
DAY_S = 86_400


@dataclass
class Hand:
    """A hand on the mouse that counts its clicks."""

    clicks: int = 0

    def click(self, place: Locator) -> None:
        place.click()
        self.clicks += 1


@pytest.fixture
def address(own: Path) -> Iterator[str]:
    with dashboard_over(own) as found:
        yield found


def test_what_is_missing_is_repaired_in_two_clicks(service, own, look, address):
    loading = sync(service, own, LEG, start=WINDOW.start - 3 * DAY_S, end=WINDOW.start - 2 * DAY_S)
    loading.communicate()
    assert loading.returncode == 0
    page, hand = look(), Hand()
    visit(page, address, "Overview")
    hand.click(page.get_by_role("link", name="Data health").first)
    heading(page, "Data health")
    expect(page.get_by_role("strong").filter(has_text="not requested yet")).to_be_visible()
    hand.click(page.get_by_role("button", name=re.compile("Repair all")))
    expect(page.get_by_text("Nothing that was requested is missing.")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Repair all: [\d,]+ new"))).to_be_visible()
    assert hand.clicks == 2
    leave(page)
    asked = (WINDOW.start - 3 * DAY_S, WINDOW.end - DAY_S)
    states = set(Store(own).coverage(LEG, asked)["state"])
    assert "missing" not in states


def test_a_view_is_shared_in_one_click(dashboard, look):
    page, hand = look(), Hand()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit(page, f"{dashboard}/spreads?window=24 hours&symbols=BTC_USDT&clock=Asia/Tokyo", "Spreads")
    hand.click(page.get_by_role("button", name="Share"))
    expect(page.get_by_text("Link copied")).to_be_visible()
    assert hand.clicks == 1
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    for chosen in ("window=24", "symbols=BTC_USDT", "clock=Asia"):
        assert chosen in copied
    page.goto("about:blank")
    visit(page, copied, "Spreads")
    expect(page.get_by_role("button", name="1 symbols")).to_be_visible()
    assert page.url == copied


@pytest.mark.parametrize("name", ["spreads", "health"])
def test_rows_are_exported_in_one_click(dashboard, look, name):
    page, hand = look(), Hand()
    page.goto(f"{dashboard}/{name}")
    page.get_by_role("button", name="CSV", exact=True).wait_for()
    with page.expect_download() as saving:
        hand.click(page.get_by_role("button", name="CSV", exact=True))
    assert hand.clicks == 1
    with saving.value.path().open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 5
    assert {row["source"].split(",")[0] for row in rows} == {"SIMULATED market"}


def test_only_my_coins_is_one_click_and_kept(address, own, look):
    page, hand = look(), Hand()
    visit(page, f"{address}/?symbols=BTC_USDT,ETH_USDT", "Overview")
    page.get_by_role("button", name="Views").click()
    page.get_by_label("Save what is shown as").fill("My coins")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("button", name="Delete My coins")).to_be_visible()
    leave(page)

    page.goto(f"{address}/spreads?min=1&clock=Asia/Tokyo")  # another day, in a new session
    heading(page, "Spreads")
    hand.click(page.get_by_role("link", name="★ My coins"))
    heading(page, "Overview")
    expect(page.get_by_role("button", name="2 symbols")).to_be_visible()
    assert hand.clicks == 1
    assert "clock=" not in page.url
    page.get_by_role("link", name="Spreads", exact=True).click()
    heading(page, "Spreads")
    expect(page.get_by_role("button", name="2 symbols")).to_be_visible()
    expect(page).to_have_url(re.compile("symbols=BTC_USDT(%2C|,)ETH_USDT"))
    leave(page)
    assert own.with_name("rail.duckdb.views.json").exists()


def test_an_alert_of_a_spread_above_50_bps_for_5_minutes_takes_three_clicks(own, address, look):
    page, hand = look(), Hand()
    visit(page, address, "Overview")
    hand.click(page.get_by_role("link", name="Alerts", exact=True).first)
    heading(page, "Alerts")
    hand.click(page.get_by_role("button", name="Add alert", exact=True).first)
    page.get_by_text("is in rail.toml").first.wait_for()
    assert hand.clicks <= 3
    (rule,) = find_alerts(own).rules
    assert str(rule) == "|spread| above 50 bps for 5 min, over at 40"
