"""The page of events by mouse and keyboard: two clicks to what followed a pump, and the brush."""

from __future__ import annotations

import re

import polars as pl
from playwright.sync_api import expect

from toolkit.client import Client
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import NOW, dashboard_over, heading, leave, settled, visit, wear
from .test_pages import NO_WIDER_THAN, barriers

DAY_S = 86_400
COUNT_CLICKS = "window.clicks = 0; addEventListener('click', () => (window.clicks += 1), true)"


def test_what_followed_the_largest_pump_of_the_day_is_two_clicks_away(service, own, look):
    with Workspace(Client(service, "demo-pro"), Store(own)) as workspace:
        opened = workspace.events("splash", NOW - DAY_S, NOW).detections()
        legs = opened.filter(pl.col("direction") > 0)["trajectory"].unique().to_list()
        workspace.sync(legs, NOW - DAY_S - 7_200, NOW)
    with dashboard_over(own) as address:
        page = visit(look(), address, "Overview")
        page.evaluate(COUNT_CLICKS)
        page.get_by_role("link", name="Events").click()
        heading(page, "Events")
        page.get_by_role("button", name=re.compile(r"^Open pump")).first.click()
        expect(page).to_have_url(re.compile("event="))
        expect(page.get_by_text("30 min later: return (bps)")).to_be_visible()
        expect(page.locator(".st-key-event_around .js-plotly-plot")).to_be_visible()
        assert page.evaluate("window.clicks") == 2
        leave(page)


def test_a_row_opens_by_key_and_keys_step_to_its_neighbours(dashboard, look):
    page = visit(look(), f"{dashboard}/events?family=splash", "Events")
    rows = page.locator("table").nth(1).locator("tbody tr")
    rows.nth(1).locator("button").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("event="))
    settled(page)
    newest = page.url
    page.keyboard.press("p")  # to one that has events of its kind on both sides
    expect(page).not_to_have_url(newest)
    settled(page)
    expect(page.get_by_role("button", name=re.compile("^Next"))).to_be_enabled()
    first, visited = page.url, page.evaluate("history.length")
    page.keyboard.press("p")
    expect(page).not_to_have_url(first)
    expect(page).to_have_url(re.compile("event="))
    assert page.evaluate("history.length") == visited + 1  # Back leads to the event before
    page.keyboard.press("n")  # the page is still being drawn
    expect(page).to_have_url(first)
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("event="))


def test_a_stretch_is_brushed_in_the_strip_and_a_bar_opens_its_event(dashboard, look):
    page = visit(look(), f"{dashboard}/events", "Events")
    layers = page.locator(".st-key-timeline .nsewdrag")
    layers.first.wait_for()
    page.wait_for_timeout(500)  # until the chart is listened to
    strip = min((each.bounding_box() for each in layers.all()), key=lambda box: box["height"])
    y = strip["y"] + strip["height"] / 2
    page.mouse.move(strip["x"] + 0.3 * strip["width"], y)
    page.mouse.down()
    page.mouse.move(strip["x"] + 0.6 * strip["width"], y, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile("zoom="))
    expect(page.get_by_text("double-click to zoom out")).to_be_visible()
    settled(page)

    boxes = [bar.bounding_box() for bar in page.locator(".st-key-timeline .point path").all()]
    lanes = max(layers.all(), key=lambda each: each.bounding_box()["height"]).bounding_box()
    bar = next(b for b in boxes if b and b["y"] > lanes["y"] and b["width"] > 4)
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    expect(page).to_have_url(re.compile("event="))
    expect(page).to_have_url(re.compile("zoom="))
    page.get_by_role("button", name="Zoom out").click()
    expect(page).not_to_have_url(re.compile("zoom="))


def test_each_measure_of_a_kind_is_one_click_has_no_barrier_and_fits_a_phone(dashboard, look):
    page = visit(look(), f"{dashboard}/events?window=All", "Events")
    measures = page.locator(".st-key-event_measure button").all_inner_texts()
    assert measures[:3] == ["How long they live", "How often by symbol", "How often by legs"]
    for measure in measures:
        page.locator(".st-key-event_measure").get_by_text(measure, exact=True).click()
        expect(
            page.locator(".st-key-event_measured .js-plotly-plot .main-svg").first
        ).to_be_visible()
        settled(page)
        assert barriers(page, ".st-key-event_measure, .st-key-event_measured") == []
    assert barriers(page) == []
    wear(page, "narrow")
    settled(page)
    page.wait_for_function(NO_WIDER_THAN, arg=390)
    assert barriers(page) == []


def test_clock_and_refresh_are_chosen_behind_one_button_and_are_in_the_link(dashboard, look):
    page = visit(look(), f"{dashboard}/events", "Events")
    page.get_by_role("button", name="UTC ↻ 30 s").click()
    page.get_by_label("Refresh, where the store has changed").click()
    page.get_by_role("option", name="1 min").click()
    expect(page).to_have_url(re.compile(r"refresh=1(\+|%20)min"))
    expect(page.get_by_role("button", name="UTC ↻ 1 min")).to_be_visible()
    settled(page)
    assert barriers(page) == []
