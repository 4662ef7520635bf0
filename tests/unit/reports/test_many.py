"""Parts of a report over many streams: a screen, in this process and on a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolkit as tk
from toolkit.errors import InputError
from toolkit.reports import read_recipe, verify
from toolkit.store.publish import publish
from toolkit.workspace import Workspace

from .conftest import OTHER, PAIR, WINDOW


@pytest.mark.slow
def test_a_screen_is_reported_with_its_options_and_its_code(
    rail: Workspace, tmp_path: Path
) -> None:
    screen = rail.screen(*WINDOW, where="coverage > 0.5", sort="-spread_std_log_bps")
    file = tk.report(tmp_path / "r.html", screen)
    recipe, page = read_recipe(file)
    assert {row["trajectory"] for row in recipe.answers[0].shown} == {PAIR, OTHER}
    code = 'where="coverage > 0.5", sort="-spread_std_log_bps")'
    assert code in page.replace("&quot;", '"').replace("&gt;", ">")
    assert verify(file, rail.store).equal
    with pytest.raises(InputError, match="unchanged"):
        tk.report(file, screen.head(1))


def test_no_other_option_of_a_screen_is_taken_from_a_file(rail: Workspace, tmp_path: Path) -> None:
    file = tk.report(tmp_path / "r.html", rail.screen(*WINDOW, top=1))
    file.write_text(file.read_text().replace('"top":1', '"fees":"secret.toml"'))
    (difference,) = verify(file, rail.store).differences
    assert "option of screen: 'fees' is not allowed" in difference


@pytest.mark.slow
def test_a_report_made_on_a_cluster_is_that_of_one_process(
    rail: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    publish(rail.store, tmp_path / "archive")
    with tk.open(tmp_path / "archive") as published:
        screen = published.screen(*WINDOW)
        one = tk.report(tmp_path / "one.html", screen)
        many = tk.report(tmp_path / "many.html", screen, cluster=2)
    assert one.read_bytes() == many.read_bytes()
    assert verify(one, tmp_path / "archive", cluster=2).equal
