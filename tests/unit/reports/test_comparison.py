"""A report lists what changed since the report before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolkit as tk
from toolkit.errors import InputError
from toolkit.reports import read_recipe, verify
from toolkit.reports.page import page
from toolkit.reports.recipe import Earlier, Part, PartResult, Pin, Recipe
from toolkit.workspace import Workspace

from .conftest import NOW, OTHER, PAIR, WINDOW

PIN = Pin("replay", "depeg", "rail.duckdb", 0)


def recipe_of(rows: list[dict[str, float | str]], before: list[dict[str, float | str]]) -> Recipe:
    """A recipe of one screen, with one before of other rows."""
    parts = [Part("screen_spreads", 0, 60, streams=("a", "b"))]
    now, old = (PartResult(2, 1.0, "", "", "", len(e), "", list(e)) for e in (rows, before))
    return Recipe(1, "0", "t", PIN, "", parts, [now], Earlier(PIN, parts, [old]))


def text_of(recipe: Recipe) -> str:
    """The section of changes as text."""
    (section,) = re.findall(
        '<section id="changes">(.*?)</section>', page(recipe, [None] * len(recipe.parts)), re.DOTALL
    )
    return " ".join(re.sub("<[^>]+>", " ", section).split())


@pytest.mark.slow
def test_figures_that_changed_are_listed_with_what_they_rest_on(
    rail: Workspace, tmp_path: Path
) -> None:
    first, last = (NOW - 4 * 3_600, NOW - 7_200), (NOW - 7_200, NOW)
    before, now = rail.spread(PAIR, *first), rail.spread(PAIR, *last)
    tk.report(tmp_path / "before.html", before.summary(), rail.spread(OTHER, *first).summary())
    file = tk.report(
        tmp_path / "now.html", now.summary(), now.episodes(5), against=tmp_path / "before.html"
    )
    text = text_of(read_recipe(file)[0])
    means = [each.summary()["spread_mean_log_bps"].item() for each in (before, now)]
    assert f"mean {means[0]:,.2f} bps {means[1]:,.2f} bps" in text
    assert re.search(r"Before \[2026-11-03 20:00.*\), n = \d+, coverage .* %\. Now \[", text)
    assert f"Not in it any more: Figures, {OTHER}" in text
    assert f"New in this report: Episodes, {PAIR}" in text
    assert verify(file, rail.store).equal


def test_rows_of_a_table_are_compared_by_their_names_and_those_that_came_or_went_are_named() -> (
    None
):
    rows = [{"trajectory": "a", "x_bps": 2.5}, {"trajectory": "b", "x_bps": 1.0}]
    before = [{"trajectory": "c", "x_bps": 9.0}, {"trajectory": "a", "x_bps": 2.0}]
    assert "a 2.50 bps +0.50 bps" in text_of(recipe_of(rows, before))
    assert "New among the rows shown: b. Gone among the rows shown: c." in text_of(
        recipe_of(rows, before)
    )
    assert "Without a change: Spreads beside each other." in text_of(recipe_of(rows, rows))


def test_only_a_report_on_the_same_source_is_compared_with(
    rail: Workspace, brief: Path, tmp_path: Path
) -> None:
    other, file = tmp_path / "other.html", tmp_path / "r.html"
    other.write_text(brief.read_text().replace('"kind":"simulated"', '"kind":"live"'))
    summary = rail.spread(PAIR, *WINDOW).summary()
    for against in (other, tmp_path / "none.html"):
        with pytest.raises(InputError, match=r"against: |report: "):
            tk.report(file, summary, against=against)
    assert not file.exists()
