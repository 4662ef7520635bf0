"""A report is computed again from its snapshot: equal, or what differs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import toolkit as tk
from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.reports import read_recipe, verify
from toolkit.service import running
from toolkit.store import Store, StoreWriter
from toolkit.workspace import Workspace

from .conftest import KEY, NOW, PAIR, RATES, WINDOW, service_at


def test_a_report_is_equal_to_what_its_store_gives(made: Path, rail: Workspace) -> None:
    found = verify(made, rail.store)
    assert found.equal
    assert str(found).startswith("equal: 9 parts, computed again from rail.duckdb as known at ")


@pytest.mark.slow
def test_a_report_is_equal_after_the_store_was_synced_on_for_a_simulated_month(
    made: Path, rail: Workspace, tmp_path: Path
) -> None:
    store, later = Store(shutil.copy(rail.store.path, tmp_path / "rail.duckdb")), NOW + 30 * 86_400
    with running(service_at(later)) as service, Client(service.base_url, KEY) as client:
        more = Workspace(client, store)
        more.sync([PAIR, RATES], WINDOW[0], later, progress=False)
        more.sync("events/spread", WINDOW[0], NOW + 86_400, progress=False)
    rows = store.catalogue().filter(stream=PAIR)["rows"].item()
    assert rows > 30 * 1_300
    assert verify(made, store).equal


def test_a_figure_that_was_changed_is_named(brief: Path, rail: Workspace, tmp_path: Path) -> None:
    recipe, page = read_recipe(brief)
    mean = recipe.answers[0].shown[0]["spread_mean_log_bps"]
    changed = tmp_path / "changed.html"
    changed.write_text(page.replace(str(mean), "99.5"))
    found = verify(changed, rail.store)
    assert not found.equal
    (difference,) = found.differences
    assert difference.startswith(f"1. Figures, {PAIR}: figures in the file are not those of its")
    assert difference.endswith(f": spread_mean_log_bps 99.5, now {mean}")


def test_a_page_that_was_changed_beside_its_figures_is_not_equal(
    brief: Path, rail: Workspace, tmp_path: Path
) -> None:
    changed = tmp_path / "changed.html"
    changed.write_text(brief.read_text().replace("<h2>Figures", "<h2>Other figures"))
    found = verify(changed, rail.store)
    assert not found.equal
    assert "all figures are equal, and the page is not: it was changed after" in str(found)


def test_what_is_no_report_or_a_damaged_one_is_one_clear_error(brief: Path, tmp_path: Path) -> None:
    file, text = tmp_path / "r.html", brief.read_text()
    for content, why in (
        ("<html></html>", "it has no recipe in it"),
        (text.replace('"format":1', '"format":2'), "made by a newer toolkit"),
        (text.replace('"parts":[', '"parts":[7,'), "its recipe is damaged"),
    ):
        file.write_text(content)
        with pytest.raises(InputError, match=why):
            verify(file, tmp_path / "rail.duckdb")
    with pytest.raises(InputError, match="No such file"):
        verify(tmp_path / "none.html")


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ('"what":"summary"', '"what":"save"'),
        ('"what":"summary"', '"what":"__class__"'),
        ('"enter_bps":5', '"enter":5'),
    ],
)
def test_nothing_but_a_known_method_with_its_options_is_called_for_a_file(
    brief: Path, rail: Workspace, tmp_path: Path, said: str, instead: str
) -> None:
    file = tmp_path / "r.html"
    file.write_text(brief.read_text().replace(said, instead, 1))
    (difference,) = verify(file, rail.store).differences
    assert re.search(r"'(save|__class__|enter)' is not allowed", difference)


def test_a_store_of_another_source_or_none_is_refused(brief: Path, tmp_path: Path) -> None:
    with pytest.raises(tk.RailError, match="rail sync"):
        verify(brief, tmp_path / "none.duckdb")
    other = Store(tmp_path / "other.duckdb")
    StoreWriter(other).bind(Source("replay", "depeg"))
    with pytest.raises(InputError, match="the store of seed-7"):
        verify(brief, other)


def test_a_store_whose_past_is_gone_gives_what_is_missing_in_words(
    brief: Path, rail: Workspace, tmp_path: Path
) -> None:
    store = Store(tmp_path / "rail.duckdb")
    StoreWriter(store).bind(rail.store.source)
    found = verify(brief, store)
    assert not found.equal
    assert all("cannot be computed any more" in each for each in found.differences)
