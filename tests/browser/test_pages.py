"""Every page in light, in dark and on a narrow screen; the pictures stay in ci-output/screens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from toolkit.client import Client
from toolkit.dashboard.link import PAGES
from toolkit.service import Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import LOOKS, dashboard_over, heading, settled, visit, wear

ROOT = Path(__file__).parents[2]
SCREENS = ROOT / "ci-output" / "screens"
SPREAD = "BTC_USDT:AURORA.spot:CORONA.futures"
IS_DARK = "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme === 'dark'"
NO_WIDER_THAN = "width => document.querySelector('[data-testid=stMain]').scrollWidth <= width"
SHARE_OF_LAST_ROWS = """tables => tables.filter(each => each.scrollHeight > each.clientHeight)
  .map(each => {
    each.scrollTop = 0;
    const { bottom } = each.getBoundingClientRect();
    const places = [...each.querySelectorAll("tbody tr")].map(row => row.getBoundingClientRect());
    const last = places.find(place => place.bottom > bottom + 1);
    return (bottom - last.top) / last.height;
  })"""
LINKS = {"trajectory": f"?trajectory={SPREAD}"}


def unrolled(page: Page, width: int) -> None:
    """Make the window as high as what the page holds, so that a picture shows all of it."""
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": min(max(height, 844), 6000)})
    page.wait_for_timeout(600)


CONTRAST = "color-contrast"
"""The rule that takes four fifths of axe's time. Nothing else of a page differs in the dark."""


def barriers(page: Page, part: str | None = None, **options: object) -> list[str]:
    """What axe-core finds that keeps somebody from using a page: serious and critical faults."""
    given = {"resultTypes": ["violations"], **options}
    found = Axe().run(page, part, given).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:200]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


@pytest.mark.parametrize(("name", "title"), PAGES.items())
def test_a_page_shows_what_the_store_holds_and_whose_it_is(dashboard, look, name, title):
    """One load in three looks: a load evaluates seconds of scripts, and a page follows its look.

    Its colours are held to the contrast they need in light and dark, the rest in two widths.
    """
    rules = {
        "light": {},
        "dark": {"runOnly": [CONTRAST]},
        "narrow": {"rules": {CONTRAST: {"enabled": False}}},
    }
    path = "" if name == "overview" else name
    page = visit(look(), f"{dashboard}/{path}{LINKS.get(name, '')}", title)

    assert "SIMULATED" in page.locator("[data-testid=stMain]").inner_text()
    assert page.locator("[data-testid=stAlertContentError]").count() == 0
    SCREENS.mkdir(parents=True, exist_ok=True)
    for looks in LOOKS:
        wear(page, looks)
        page.wait_for_function(IS_DARK if looks == "dark" else f"!({IS_DARK})")
        settled(page)
        width = LOOKS[looks]["viewport"]["width"]
        page.wait_for_function(NO_WIDER_THAN, arg=width)
        assert barriers(page, **rules[looks]) == []
        for share in page.locator("#rows").evaluate_all(SHARE_OF_LAST_ROWS):
            assert 0.4 < share < 0.6, "that there are more rows is to be seen"
        unrolled(page, width)
        page.screenshot(path=SCREENS / f"{name}-{looks}.png")


def test_on_a_phone_the_choices_fold_away_and_a_switch_counts_and_unfolds_them(dashboard, look):
    page = visit(
        look("narrow"),
        f"{dashboard}/symbol?symbol=BTC_USDT&fees=example&clock=Europe/London",
        "Symbol",
    )
    choices = [page.get_by_text("Share", exact=True), page.get_by_text("30 d", exact=True)]
    expect(page.locator(".st-key-filters_row").get_by_role("combobox")).to_be_visible()
    for choice in choices:
        expect(choice).to_be_hidden()
    page.get_by_text("Options (2)").click()
    for choice in choices:
        expect(choice).to_be_visible()
    page.wait_for_function(NO_WIDER_THAN, arg=390)
    assert barriers(page) == []
    page.goto(f"{dashboard}/events?symbol=BTC_USDT")  # there a symbol is a filter, out of sight
    expect(page.get_by_text("Options (1)")).to_be_visible()


COUNT_TIMERS = """
  window.timers = new Set();
  const { setInterval: begin, clearInterval: end } = window;
  window.setInterval = (...given) => {
    const timer = begin(...given);
    timers.add(timer);
    return timer;
  };
  window.clearInterval = timer => { timers.delete(timer); end(timer); };
"""
COUNT_RUNS = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  window.runs = 0;
  new MutationObserver(() => { runs += app.dataset.testScriptState === "notRunning"; }).observe(
    app, { attributeFilter: ["data-test-script-state"] });
}"""


@pytest.mark.parametrize("name", ["overview", "trajectory"])
def test_a_page_that_runs_again_goes_on_with_no_more_timers(dashboard, look, name):
    page = look()
    page.add_init_script(COUNT_TIMERS)
    visit(page, f"{dashboard}/{'' if name == 'overview' else name}?refresh=off", PAGES[name])
    before = page.evaluate("timers.size")
    assert before > 0
    page.evaluate(COUNT_RUNS)
    for run in range(3):
        page.keyboard.press("r")
        page.wait_for_function("run => runs > run", arg=run)
        settled(page)
    assert page.evaluate("timers.size") == before


def test_ages_of_the_bar_and_of_rows_count_by_themselves_until_they_are_red(tmp_path, look):
    """A service whose clock stands has ages that stand: this one's clock runs."""
    path = tmp_path / "rail.duckdb"
    with (
        running(Config(Simulated(7), port=0)) as local,
        Workspace(Client(local.base_url, "demo-pro"), Store(path)) as workspace,
    ):
        workspace.sync(SPREAD, "1d")
    with dashboard_over(path) as address:
        page = visit(look(), f"{address}/spreads", "Spreads")
        page.evaluate("const now = Date.now; Date.now = () => now.call(Date) + 1800000")
        ages = page.locator("#age, td.age")
        old = page.locator("#age[data-state=old], td.age[data-state=old]")
        expect(old).to_have_count(ages.count())
        expect(ages.nth(1)).to_have_attribute(
            "title", re.compile("^The newest row ended .* stale$")
        )
        page.close()


def test_ages_of_a_service_whose_clock_stands_do_not_grow(dashboard, look):
    page = visit(look(), f"{dashboard}/spreads", "Spreads")
    shown = page.locator("td.age").first.inner_text()
    page.evaluate("const now = Date.now; Date.now = () => now.call(Date) + 1800000")
    page.wait_for_timeout(1500)  # ages are counted once a second
    assert page.locator("td.age").first.inner_text() == shown
    assert page.locator("td.age[data-state=none]").count() == page.locator("td.age").count()


FOCUSED = "document.activeElement.shadowRoot?.activeElement?.textContent"
WIDTHS = "table => [table.scrollWidth, table.parentElement.clientWidth]"


def test_a_row_of_the_overview_opens_its_own_chart(dashboard, look):
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


def test_a_heading_sorts_and_both_legs_are_seen_on_a_phone(dashboard, look):
    page = visit(look("narrow"), dashboard, "Overview")
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
