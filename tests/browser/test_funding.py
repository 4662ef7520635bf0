"""The page of funding: cells and rows that open pairs, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from toolkit.client import Client
from toolkit.statistics.fees.fee_table import example_text
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import NOW, dashboard_over, heading, visit
from .test_pages import NO_WIDER_THAN, barriers

PAIR = "funding/BTC_USDT:AURORA.futures:BOREAS.futures"
FOCUSED = "document.activeElement.shadowRoot?.activeElement?.ariaLabel"
TOP = "table => table.getBoundingClientRect().top"


@pytest.mark.parametrize("how", ["click", "Enter", " "])
def test_a_cell_opens_its_pair(dashboard, look, how):
    page = visit(look(), f"{dashboard}/funding", "Funding")
    matrix = page.locator("#rates table")
    assert matrix.evaluate(TOP) < 200
    row = matrix.locator("tbody tr").first
    symbol = row.locator("th").inner_text()
    if how == "click":
        row.get_by_role("button", name=re.compile(", S$")).click()
    else:
        row.locator("th button").focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate(FOCUSED).startswith(f"{symbol} ")
        page.keyboard.press(how)
    expect(page).to_have_url(re.compile(rf"/funding\?.*trajectory=funding(%2F|/){symbol}"))
    heading(page, "Funding")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()


def test_a_heading_of_the_matrix_sorts_its_rows(dashboard, look):
    page = visit(look("narrow"), f"{dashboard}/funding?unit=8h", "Funding")
    matrix = page.locator("#rates table")
    for _ in range(2):
        matrix.get_by_role("button", name=re.compile("^difference")).click()
    texts = matrix.locator("tbody td:nth-child(2)").all_inner_texts()
    apart = [float(text) for text in texts if text != "–"]
    assert apart == sorted(apart)


@pytest.mark.parametrize("link", ["view=time", f"trajectory={PAIR}&fees=example"])
def test_its_other_views_have_no_barrier_and_fit_a_phone(own_fees, look, link):
    page = visit(look("narrow"), f"{own_fees}/funding?{link}", "Funding")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    assert barriers(page) == []
    page.wait_for_function(NO_WIDER_THAN, arg=390)


@pytest.fixture(scope="module")
def own_fees(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard over ten days of BTC's funding, with a fee table of the user's own."""
    folder = tmp_path_factory.mktemp("fees")
    (folder / "rail.toml").write_text('fees = "mine.toml"')
    (folder / "mine.toml").write_text(example_text(["AURORA", "BOREAS", "CORONA"]))
    with Workspace(Client(service, "demo-pro"), Store(folder / "rail.duckdb")) as workspace:
        prices = PAIR.removeprefix("funding/")
        workspace.sync([PAIR, prices, "snapshot/funding"], NOW - 10 * 86_400, NOW)
    with dashboard_over(folder / "rail.duckdb") as address:
        yield address


def test_what_a_pair_would_have_kept_last_week_at_my_fees_takes_two_clicks(own_fees, look):
    page = visit(look(), own_fees, "Overview")
    page.evaluate("addEventListener('click', () => { window.clicks = (window.clicks || 0) + 1 })")
    page.get_by_role("link", name="Funding").click()
    heading(page, "Funding")
    page.get_by_role("button", name=re.compile("^Open BTC_USDT, .* → ")).click()
    kept = page.get_by_text(re.compile(r"10,000 USDT would have (kept|lost) [\d.,]+ USDT"))
    expect(kept).to_be_visible()
    whole = page.locator("p").filter(has=kept).inner_text()
    assert re.search(r"in the 7 d to 2026-11-\d\d .* UTC, net of [\d.]+ for fees", whole)
    assert page.evaluate("window.clicks") == 2
