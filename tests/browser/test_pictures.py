"""Pictures of the documents: taken by `make pictures` from the simulator, and of today's pages.

Beside each view lie the words that stood on its page, numbers left out: where a page says
something else today, its pictures have grown old.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from .conftest import visit

ROOT = Path(__file__).parents[2]
SHOWN = "".join((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/dashboard.md"))
PICTURES = ROOT / "docs" / "pictures"
TAKING = os.environ.get("RAIL_PICTURES") == "1"
SPREAD = "BTC_USDT:AURORA.spot:DEX-SOLARIS.dex"
VIEWS = {
    "overview": ("", "Overview", 1280),
    "trajectory": (f"trajectory?trajectory={SPREAD}", "Trajectory", 1120),
    "events": ("events", "Events", 1180),
}


def test_the_documents_show_the_pictures_there_are_each_in_light_and_dark():
    wanted = {f"{name}-{looks}" for name in VIEWS for looks in ("light", "dark")}
    assert set(re.findall(r"pictures/([\w-]+)\.png", SHOWN)) == wanted
    assert {path.stem for path in PICTURES.glob("*.png")} == wanted


def opened(page: Page, dashboard: str, name: str) -> str:
    """Show a view, and give the words on it."""
    link, title, _ = VIEWS[name]
    visit(page, f"{dashboard}/{link}", title)
    page.wait_for_timeout(1_500)
    said = page.locator("[data-testid=stMain]").inner_text()
    heads = page.locator("th").all_inner_texts()  # of tables, whose text is not part of the page's
    said += "\nColumns: " + ", ".join(heads).replace("\u00ad", "")
    said = re.sub(r"\d[\w ]* old", "# old", said)
    said = re.sub(r"(?<=\t)\d+ (s|min|h|d)(?=\s)", "# long", said)  # ages of streams in their rows
    said = re.sub(r"rail sync .* loads", "rail sync # loads", said)  # it names the store's place
    lines = (re.sub(r"[-+]?\d[\d,.:]*", "#", line).strip() for line in said.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


@pytest.mark.parametrize("name", VIEWS)
def test_the_pages_of_the_pictures_still_say_what_they_said(dashboard, look, name):
    said = opened(look(zone="UTC"), dashboard, name)
    assert "SIMULATED" in said
    written = (PICTURES / f"{name}.txt").read_text(encoding="utf-8")
    assert said == written, "`make pictures` takes them anew"


@pytest.mark.parametrize("looks", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS if TAKING else [])
def test_a_picture_is_taken_of_the_simulated_market(dashboard, look, name, looks):
    size = {"width": 1100, "height": VIEWS[name][2]}
    page = look(looks, zone="UTC", viewport=size)
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.txt").write_text(opened(page, dashboard, name), encoding="utf-8")
    page.screenshot(path=PICTURES / f"{name}-{looks}.png")
