"""A report as its reader sees it, from a file and without a network: drawn, nothing cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import toolkit as tk
from tests.once import store_once
from tests.unit.reports.conftest import KEY, OTHER, PAIR, RATES, WINDOW, load
from toolkit.client import Client
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import LOOKS, Watch

BEYOND = """
[...document.querySelectorAll("body *")]
  .filter((each) => !each.closest("svg, .unseen"))
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))
"""
FOLDED = 'document.querySelectorAll("details").forEach((each) => (each.open = true))'


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with charts, figures, tables and what changed since the one before."""
    folder = tmp_path_factory.mktemp("report")
    store = Store(store_once(tmp_path_factory, "reports", load))
    with Workspace(Client("http://127.0.0.1:9", KEY), store) as rail:
        early = (WINDOW[0], WINDOW[1] - 7_200)
        before = tk.report(
            folder / "before.html", rail.screen(*early), rail.spread(PAIR, *early).summary()
        )
        spread = rail.spread(PAIR, *WINDOW)
        funding = rail.funding(RATES, WINDOW[1] - 2 * 86_400, WINDOW[1])
        given = (rail.screen(*WINDOW), spread, spread.hour_of_week(), funding, funding.holdings())
        return tk.report(folder / "r.html", *given, against=before)


@pytest.mark.parametrize("look", LOOKS)
def test_a_report_is_drawn_without_a_network_and_nothing_of_it_is_cut_off(browser, report, look):
    watch = Watch()
    context = browser.new_context(**LOOKS[look], offline=True)  # type: ignore[arg-type]  # a dict of them
    watch.over(context)
    page = context.new_page()
    page.goto(report.as_uri())

    expect(page.locator(".rail-figure .xaxislayer-above").first).to_be_attached()
    expect(page.locator(".rail-figure .plotly")).to_have_count(3)
    page.evaluate(FOLDED)
    assert page.evaluate(BEYOND) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator("#changes")).to_contain_text("Changed since the report before")
    expect(page.locator("#changes")).to_contain_text(OTHER)
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    page.evaluate('dispatchEvent(new Event("beforeprint"))')
    assert page.locator("summary").count() == page.locator("details[open]").count()
    on_paper = 'document.querySelector(".js-plotly-plot")._fullLayout'
    assert page.evaluate(f"({on_paper}).paper_bgcolor") == "#ffffff"
    assert page.evaluate(f"({on_paper}).width") < 700
    assert watch.faults == [f"request outside: {report.as_uri()}"]
    context.close()
