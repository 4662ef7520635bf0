"""`tk.report`: what a report has in it, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import toolkit as tk
from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.reports import read_recipe, verify
from toolkit.service import running
from toolkit.show.values import basis_text
from toolkit.statistics.fees.fee_table import example_text
from toolkit.store import Store
from toolkit.store.publish import publish
from toolkit.workspace import Workspace

from .conftest import KEY, NOW, OTHER, PAIR, WINDOW, service_at


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a report goes."""
    return tmp_path / "r.html"


@pytest.mark.slow
def test_five_charts_are_one_file_of_less_than_three_megabytes_that_asks_for_nothing(
    made: Path,
) -> None:
    page = made.read_text()
    assert page.count('class="rail-figure"') == 5
    assert made.stat().st_size < 3_000_000
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "default-src 'none'" in page


def test_each_part_has_what_it_rests_on_its_definition_and_its_code(made: Path) -> None:
    page, (recipe, _) = made.read_text(), read_recipe(made)
    assert page.count("Definition and code") == len(recipe.parts) == 9
    assert page.count("rows SHA-256") == page.count(" · SIMULATED market, seed-7") == 9
    for part, answer in zip(recipe.parts, recipe.answers, strict=True):
        assert answer.data_hash in page
        assert basis_text(answer.n, answer.coverage) in page
        assert str(part.window) in page
    assert "positive where long the buy leg, short the sell leg earns it" in page
    assert "parameters: enter_bps=5" in page


def test_the_code_in_a_report_makes_its_result_again(
    made: Path, rail: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rail.store.path.parent)
    recipe, page = read_recipe(made)
    code = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)[3]
    *before, last = code.replace("&quot;", '"').splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    assert eval(last, names).height == recipe.answers[3].rows
    assert recipe.parts[3].what == "episodes"


@pytest.mark.slow
def test_what_followed_events_is_a_part_that_its_code_makes_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(service_at(NOW)) as service, Client(service.base_url, KEY) as client:
        rail = Workspace(client, Store(tmp_path / "rail.duckdb"))
        rail.sync("events/spread", *WINDOW, progress=False)
        events = rail.events("spread", *WINDOW)
        rail.sync(events.detections()["trajectory"][0], *WINDOW, progress=False)
    study = events.study(rail.around(events), before_s=600, after_s=600)
    page = tk.report(file, study).read_text()
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    *before, last = code.replace("&quot;", '"').splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    assert eval(last, names).equals(study)
    assert page.count('class="rail-figure"') == 1
    assert verify(file, rail.store).equal


def test_no_key_is_in_a_report(made: Path) -> None:
    assert KEY not in made.read_text()


def test_text_of_a_source_and_a_title_cannot_leave_their_place(rail: Workspace, file: Path) -> None:
    hostile = "</title><script>alert(1)</script>"
    page = tk.report(file, rail.spread(PAIR, *WINDOW).summary(), title=hostile).read_text()
    assert "<script>alert" not in page
    assert read_recipe(file)[0].title == hostile


def test_a_report_on_published_data_names_the_publication(
    rail: Workspace, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    publish(rail.store, tmp_path / "archive")
    with tk.open(tmp_path / "archive") as published:
        tk.report(file, published.spread(PAIR, *WINDOW).summary())
    recipe, page = read_recipe(file)
    assert len(recipe.pin.publication) == 64
    assert f'tk.open("archive/manifests/{recipe.pin.publication}.json")' in page.replace(
        "&quot;", '"'
    )
    assert str(verify(file, tmp_path / "archive")).startswith(
        f"equal: 1 part, computed again from publication {recipe.pin.publication}"
    )
    with pytest.raises(InputError, match="name the place that it was published to"):
        verify(file, rail.store)
    next((tmp_path / "archive" / "manifests").glob("*.json")).unlink()
    with pytest.raises(tk.RailError, match=r"manifests/.*\.json"):
        verify(file, tmp_path / "archive")


def test_what_is_no_unchanged_result_is_refused_and_nothing_is_written(
    rail: Workspace, file: Path
) -> None:
    spread = rail.spread(PAIR, *WINDOW)
    for given in (
        [],
        ["spread"],
        [pl.DataFrame({"n": [1]})],
        [spread.summary().head(1)],
        [spread.resample("5m")],
        [spread, rail.as_of(NOW + 10**9).spread(OTHER, *WINDOW)],
    ):
        with pytest.raises(InputError, match="series_or_results"):
            tk.report(file, *given)  # type: ignore[arg-type]  # that is the point
    assert not file.exists()


def test_a_path_that_is_no_place_for_a_report_is_refused(rail: Workspace, file: Path) -> None:
    summary = rail.spread(PAIR, *WINDOW).summary()
    for path in (file.with_suffix(".pdf"), file.parent / "none" / "r.html"):
        with pytest.raises(InputError, match="path: "):
            tk.report(path, summary)


def test_net_figures_name_their_fee_table_and_are_verified_by_the_same_one_alone(
    rail: Workspace, file: Path, tmp_path: Path
) -> None:
    table = tmp_path / "fees.toml"
    table.write_text(example_text({"AURORA", "CORONA"}))
    priced = Workspace(rail.client, rail.store, fees=table)
    page = tk.report(file, priced.spread(PAIR, *WINDOW).summary()).read_text()
    assert f"Net figures by the fee table {html(read_recipe(file)[0].fees)}." in page
    assert "# by the fee table EXAMPLE VALUES" in page
    assert verify(file, rail.store, fees=table).equal
    with pytest.raises(InputError, match="fees: nothing is given; allowed: the report's table"):
        verify(file, rail.store)
