"""The tables of the first page: rows that open by click and by keyboard, sorted and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from .conftest import heading, settled

FOCUSED = "document.activeElement.shadowRoot?.activeElement?.textContent"
WIDTHS = "table => [table.scrollWidth, table.parentElement.clientWidth]"


def test_a_row_opens_its_own_chart(dashboard: str, look: Callable[..., Page]) -> None:
    page = look()
    page.goto(dashboard)
    for how in ("click", "Enter", " "):
        heading(page, "Overview")
        apart = page.locator("table").filter(has_text="short → long").locator("tbody tr")
        second = apart.nth(1)
        symbol = second.locator("button").inner_text()
        if how == "click":
            second.locator("td").nth(2).click()
        else:
            apart.first.locator("button").focus()
            page.keyboard.press("ArrowDown")
            assert page.evaluate(FOCUSED) == symbol
            page.keyboard.press(how)
        heading(page, "Funding")
        expect(page).to_have_url(re.compile(rf"/funding\?.*trajectory=(funding(%2F|/))?{symbol}"))
        page.get_by_role("link", name="Overview", exact=True).click()


def test_a_heading_sorts_and_both_legs_are_seen_on_a_phone(
    dashboard: str, look: Callable[..., Page]
) -> None:
    page = look("narrow")
    page.goto(dashboard)
    heading(page, "Overview")
    settled(page)
    table = page.locator("table").filter(has_text="short → long")
    rates = table.locator("tbody td:nth-child(3)")
    before = [float(text.replace(",", "")) for text in rates.all_inner_texts()]
    assert before == sorted(before, reverse=True)
    for _ in range(2):
        table.get_by_role("button", name=re.compile(r"APR \(%\)")).click()
    after = [float(text.replace(",", "")) for text in rates.all_inner_texts()]
    assert after == sorted(before)
    for each in page.locator("table").all():
        needs, has = each.evaluate(WIDTHS)
        assert needs <= has
