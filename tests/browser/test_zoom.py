"""A part of a chart that is dragged over is read anew, and stays in sight while others commit."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from toolkit.dashboard.link import read_zoom
from toolkit.store import Store

from .conftest import WINDOW, dashboard_over, leave, settled, visit
from .test_journey import sync

SPREAD = "BTC_USDT:AURORA.spot:CORONA.futures"
DRAWN = """() => {
  const chart = document.querySelector(".st-key-chart .js-plotly-plot");
  const values = chart?._fullData?.[0]?.y;
  return values ? [...values].filter(Number.isFinite).length : 0;
}"""
COUNT_RUNS = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  const count = () => {
    if (app.dataset.testScriptState === "running") window.runs = (window.runs ?? 0) + 1;
  };
  new MutationObserver(count).observe(app, {attributeFilter: ["data-test-script-state"]});
}"""


def drag(page: Page, since: float, until: float) -> None:
    """Drag over a part of the chart, given as shares of its width."""
    place = page.locator(".st-key-chart .nsewdrag[data-subplot=xy2]").bounding_box()
    assert place is not None
    y = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + since * place["width"], y)
    page.mouse.down()
    page.mouse.move(place["x"] + until * place["width"], y, steps=5)
    page.mouse.up()


LEVEL_AT = """level => {
  const chart = document.querySelector(".st-key-chart .js-plotly-plot");
  const { xaxis, yaxis2 } = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  const x = box.left + xaxis._offset + 0.6 * xaxis._length;
  return [x, box.top + yaxis2._offset + yaxis2.l2p(level)];
}"""


def test_a_threshold_that_is_dragged_is_measured_and_in_the_link(dashboard, look):
    page = visit(
        look(), f"{dashboard}/trajectory?trajectory={SPREAD}&threshold=5&refresh=off", "Trajectory"
    )
    page.wait_for_function(f"({DRAWN})() > 1000")
    page.wait_for_timeout(500)  # until the chart is listened to
    page.mouse.move(*page.evaluate(LEVEL_AT, 5))
    page.mouse.down()
    page.mouse.move(*page.evaluate(LEVEL_AT, -20), steps=5)
    page.mouse.up()
    expect(page).not_to_have_url(re.compile("threshold=5&"))
    asked = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
    level = asked.get("threshold", "20")  # the usual one is not in the link
    assert abs(float(level) - 20) < 2
    assert "zoom" not in asked
    expect(page.get_by_text(f"time, ≥ {level} bps")).to_be_visible()
    leave(page)


def test_a_zoom_shows_every_row_and_outlives_a_commit_elsewhere_and_a_reload(service, own, look):
    with dashboard_over(own) as address:
        page = visit(look(), f"{address}/trajectory?trajectory={SPREAD}&refresh=5 s", "Trajectory")
        page.locator(".st-key-chart .nsewdrag[data-subplot=xy2]").wait_for()
        page.wait_for_function(f"({DRAWN})() > 1000")
        held = Store(own).series(SPREAD, WINDOW)["spread_pct"].count()
        assert page.evaluate(DRAWN) < held
        page.wait_for_timeout(500)  # until the chart is listened to

        drag(page, 0.4, 0.5)
        expect(page).to_have_url(re.compile("zoom="))
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
        assert asked["window"] == "7 days"
        zoom = read_zoom(asked, [])
        assert zoom is not None
        rows = Store(own).series(SPREAD, zoom)["spread_pct"].count()
        page.wait_for_function(f"({DRAWN})() === {rows}")
        expect(page.get_by_text(f"Every one of {rows:,} rows is drawn.")).to_be_visible()

        settled(page)
        page.evaluate(COUNT_RUNS)
        loading = sync(service, own, "SOL_USDT:AURORA.spot", start=WINDOW.end - 3600)
        loading.communicate()
        assert loading.returncode == 0
        page.wait_for_function("window.runs > 0")
        settled(page)
        assert page.evaluate(DRAWN) == rows
        page.reload()
        page.wait_for_function(f"({DRAWN})() === {rows}")

        page.wait_for_timeout(500)
        place = page.locator(".st-key-chart .nsewdrag[data-subplot=xy2]").bounding_box()
        assert place is not None
        page.mouse.dblclick(place["x"] + 20, place["y"] + 20)
        expect(page).not_to_have_url(re.compile("zoom="))
        page.wait_for_function(f"({DRAWN})() > 1000")
        leave(page)


HOVERED = """() => [...document.querySelectorAll(".st-key-symbol_chart .hoverlayer .legendtext")]
  .map(each => each.textContent)"""
FAINT = """() => {
  const lines = document.querySelectorAll(".st-key-symbol_chart .scatterlayer .trace");
  return [...lines].filter(each => each.style.opacity === "0.2").length;
}"""


def test_the_legs_of_a_symbol_are_in_one_box_with_the_time_and_one_stands_out(dashboard, look):
    page = visit(look(), f"{dashboard}/symbol?symbol=BTC_USDT&refresh=off", "Symbol")
    plot = page.locator(".st-key-symbol_chart .nsewdrag[data-subplot=xy]")
    plot.wait_for()
    box = plot.bounding_box()
    assert box is not None
    for share in (0.5, 0.51):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
    page.wait_for_function(f"({HOVERED})().length > 1")
    page.wait_for_function(f"({FAINT})() > 0")
    words = page.evaluate(HOVERED)
    found = [re.search(r"(\S+\.\w+) ([\d,.]+) · \d\d:\d\d", each) for each in words]
    values = [float(each[2].replace(",", "")) for each in found if each]
    assert len(values) > 1
    assert values == sorted(values, reverse=True)
    page.mouse.move(5, 5)
    page.wait_for_function(f"({FAINT})() === 0")
