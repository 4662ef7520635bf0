"""Figures where a notebook is looked at: a Jupyter of one's own, its HTML, and other front ends.

`make install-jupyter` makes an environment that holds Jupyter and nothing of ours. The kernel is
registered in a home of its own, by the line of the README.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as TooLate
from plotly.offline import get_plotlyjs

from tests.listening import free_port
from toolkit.charts.theme import BACKGROUND

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
JUPYTER = ROOT / ".jupyter" / "bin" / "jupyter"
KERNEL = {"name": "machine-rail", "display_name": "machine-rail", "language": "python"}
ROWS = """
import polars as pl, toolkit as tk
from toolkit.market import Source
source = Source("replay", "made up")
ts = list(range(0, 36_000, 60))
rows = pl.DataFrame({"ts": ts}).with_columns(price=100 + (pl.col("ts") / 3000).sin())
spreads = rows.select("ts", buy_price="price", sell_price=pl.col("price") + 0.1).with_columns(
    spread_log_bps=1e4 * (pl.col("sell_price") / pl.col("buy_price")).log())
ledger = pl.DataFrame({"start_ts": [0, 9000], "end_ts": [9000, 9900], "state": ["held", "empty"]})
rates = pl.DataFrame({"symbol": ["A_B", "A_B"], "exchange": ["X", "Y"], "market": ["futures"] * 2,
    "rate": [1e-4, -2e-4], "interval_hours": [8, 1], "next_funding_time": [28_800, 3600]})
one, two = "BTC_USD:KRAKEN.spot", "BTC_USD:COINBASE.spot:KRAKEN.spot"
"""
FIGURES = [
    "tk.charts.price_chart(rows, trajectory=one, source=source)",
    "tk.charts.spread_chart(spreads, trajectory=two, source=source, thresholds_bps=[9.99])",
    "tk.charts.coverage_chart(ledger, trajectory=one, start=0, end=36_000, source=source)",
    "tk.charts.funding_matrix(rates, unit='% per 8 h', ts=0, source=source)",
    "tk.charts.price_chart(rows, trajectory=one, source=source, theme='dark').show()",
]
TALL = {"width": 1280, "height": 4000}
FOLLOWING = len(FIGURES) - 1
PAPERS = """() => Array.from(document.querySelectorAll('.rail-figure'), (figure) => {
    const paper = figure.querySelector('.main-svg');
    return paper ? paper.style.backgroundColor : figure.innerText;
})"""


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def papers(theme: str) -> list[str]:
    """The colours behind the figures on a page of a theme."""
    return [rgb(BACKGROUND[theme])] * FOLLOWING + [rgb(BACKGROUND["dark"])]


def wait_for_papers(page: Page, wanted: list[str]) -> None:
    """Wait until exactly these figures are drawn, or state what is there instead."""
    script = f"(wanted) => JSON.stringify(({PAPERS})()) === wanted"
    try:
        page.wait_for_function(script, arg=json.dumps(wanted, separators=(",", ":")))
    except Exception as late:
        raise AssertionError(f"{page.evaluate(PAPERS)}, not {wanted}") from late


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home in which README's line has registered the kernel."""
    if not JUPYTER.is_file():
        pytest.skip("no Jupyter here; run: make install-jupyter")
    home = tmp_path_factory.mktemp("home")
    settings = home / ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    kept = {name: text for name, text in os.environ.items() if "JUPYTER" not in name}
    environment = kept | {"HOME": str(home), "JUPYTER_PLATFORM_DIRS": "0"}
    (line,) = re.findall(r"`\.venv/bin/python (-m ipykernel install [^`]+)`", README)
    subprocess.run([sys.executable, *shlex.split(line)], env=environment, check=True, timeout=60)
    return environment


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a notebook of five figures, none of which was run."""
    folder = tmp_path_factory.mktemp("notebooks")
    cells = [new_code_cell(ROWS), *map(new_code_cell, FIGURES)]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNEL}), folder / "new.ipynb")
    return folder


@pytest.fixture(scope="module")
def convert(environment: dict[str, str], folder: Path) -> Callable[..., Path]:
    """`jupyter nbconvert` of a notebook in the folder: the file it writes."""

    def converted(name: str, to: str, *options: str) -> Path:
        words = ["nbconvert", name, "--to", "notebook" if to == "ipynb" else to]
        argv = [JUPYTER, *words, "--output", f"out.{to}", *options]
        subprocess.run(argv, cwd=folder, env=environment, check=True, timeout=120)
        return folder / f"out.{to}"

    return converted


@pytest.fixture(scope="module")
def executed(convert: Callable[..., Path]) -> NotebookNode:
    """The notebook with its outputs, as the file out.ipynb as well."""
    return nbformat.read(convert("new.ipynb", "ipynb", "--execute"), 4)


@pytest.fixture(scope="module")
def lab(environment: dict[str, str], folder: Path) -> Iterator[str]:
    """The address of a JupyterLab over the folder."""
    port = free_port()
    options = {
        "port": port,
        "ServerApp.root_dir": folder,
        "IdentityProvider.token": "",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    argv = [JUPYTER, "lab", "--no-browser", "--allow-root"]
    argv += [f"--{name}={value}" for name, value in options.items()]
    with (folder.parent / "lab.log").open("w") as log:
        process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"{address}/api"):
                    break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail("JupyterLab did not start")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def choose(page: Page, menu: str, *items: str) -> None:
    """Click through JupyterLab's menus."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    for item in items[:-1]:
        page.get_by_text(item, exact=True).hover()
    page.get_by_text(items[-1], exact=True).click()


def open_in_lab(page: Page, lab: str, name: str) -> None:
    """Open a notebook in a workspace of its own, and wait for its kernel."""
    page.set_default_timeout(90_000)  # a kernel imports plotly and polars before it draws
    page.goto(address(lab, name))
    wait_for_kernel(page)


def address(lab: str, name: str) -> str:
    return f"{lab}/lab/workspaces/{name}/tree/{name}.ipynb"


def wait_for_kernel(page: Page) -> None:
    """Wait until the kernel is idle; a page that missed its first word is loaded again."""
    idle = page.get_by_text("machine-rail | Idle", exact=True)
    try:
        idle.wait_for(timeout=45_000)
    except TooLate:
        page.reload()
        idle.wait_for()


def run_cell(page: Page, number: int) -> None:
    """Run one cell, the first is 0, and wait until its output was replaced."""
    cell = page.locator(".jp-CodeCell").nth(number)
    cell.locator(".jp-InputPrompt").click()
    cell.locator(".rail-figure").evaluate("(figure) => { figure.dataset.old = '' }")
    page.keyboard.press("Control+Enter")
    cell.locator(".rail-figure[data-old]").wait_for(state="detached")
    cell.locator(".main-svg").first.wait_for()


def save_and_reload(page: Page) -> None:
    choose(page, "File", "Save Notebook")
    page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty").wait_for(state="detached")
    page.reload()
    wait_for_kernel(page)


def forms(cell: NotebookNode) -> dict[str, Any]:
    """The forms in which a cell shows its figure."""
    (output,) = cell.outputs
    return output.data


def test_a_jupyterlab_shows_every_figure_in_its_theme_and_again_when_reloaded(lab, look, folder):
    page = look(viewport=TALL)
    open_in_lab(page, lab, "new")
    choose(page, "Run", "Run All Cells")
    wait_for_papers(page, papers("light"))
    choose(page, "Settings", "Theme", "JupyterLab Dark")
    wait_for_papers(page, papers("dark"))
    run_cell(page, 1)  # whose output carried plotly.js
    save_and_reload(page)
    wait_for_papers(page, papers("dark"))
    cells = nbformat.read(folder / "new.ipynb", 4).cells[1:]
    sizes = [len(forms(cell)["text/html"]) for cell in cells]
    assert [size > 4_000_000 for size in sizes] == [True, False, False, False, False]


def test_where_plotly_was_cleared_a_figure_says_what_to_do_and_that_helps(lab, look, folder):
    cells = [new_code_cell(text) for text in (ROWS, *FIGURES[:3])]
    path = folder / "cleared.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNEL}), path)
    page = look(viewport=TALL)
    open_in_lab(page, lab, "cleared")
    choose(page, "Run", "Run All Cells")
    page.wait_for_function("document.querySelectorAll('.rail-figure .main-svg').length >= 3 * 3")
    page.locator(".jp-CodeCell").nth(1).locator(".jp-InputPrompt").click()
    choose(page, "Edit", "Clear Cell Output")
    save_and_reload(page)
    page.get_by_text("is gone. Reload the notebook, then run this cell again.").nth(1).wait_for()
    assert page.locator(".main-svg").count() == 0
    page.locator(".jp-CodeCell").nth(3).locator(".jp-InputPrompt").click()
    page.keyboard.press("Control+Enter")
    page.wait_for_function("document.querySelectorAll('.rail-figure .main-svg').length >= 2 * 3")
    choose(page, "File", "Save Notebook")
    page.wait_for_timeout(500)


def test_a_notebook_that_is_not_trusted_says_so_in_the_place_of_its_figures(lab, look, executed):
    assert len(executed.cells) == len(FIGURES) + 1
    page = look(viewport=TALL)
    page.goto(address(lab, "out"))  # its outputs are shown whether or not its kernel runs
    words = "BTC_USD: price: an interactive figure. It shows where scripts run"
    page.get_by_text(words).first.wait_for(timeout=90_000)
    advice = page.get_by_text("trust the notebook or run this cell")
    advice.nth(len(FIGURES) - 1).wait_for()
    assert advice.count() == len(FIGURES)


def test_html_that_nbconvert_makes_shows_every_figure_without_a_request(convert, executed, look):
    assert len(executed.cells) == len(FIGURES) + 1
    text = convert("out.ipynb", "html").read_text(encoding="utf-8")
    # nbconvert's own page asks for these whatever the notebook holds.
    own = re.findall(r'<script[^>]* src="https://[^"]*/(?:require.min|latest).js[^"]*">', text)
    for tag in own:
        text = text.replace(tag, "<script>")
    assert len(own) == 2
    page = look("dark")  # the theme of the page counts, not the browser's
    page.set_content(text)
    wait_for_papers(page, papers("light"))
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    wait_for_papers(page, papers("dark"))


def test_a_front_end_that_knows_html_alone_shows_every_figure_in_its_theme(executed, look):
    page = look("light")
    for cell in executed.cells[1:]:
        page.evaluate(
            """(html) => {
                const place = document.body.appendChild(document.createElement("div"));
                place.appendChild(document.createRange().createContextualFragment(html));
            }""",
            forms(cell)["text/html"],
        )
    wait_for_papers(page, papers("light"))
    page.emulate_media(color_scheme="dark")
    wait_for_papers(page, papers("dark"))
    page.evaluate("document.body.dataset.vscodeThemeKind = 'vscode-light'")
    wait_for_papers(page, papers("light"))


def test_a_front_end_that_knows_plotlys_json_alone_shows_every_figure(executed, look):
    page = look("dark")
    page.add_script_tag(content=get_plotlyjs())
    for cell in executed.cells[1:]:
        page.evaluate(
            """({data, layout, config}) => {
                const plot = document.body.appendChild(document.createElement("div"));
                plot.className = "rail-figure";
                return Plotly.newPlot(plot, data, layout, config).then(() => null);
            }""",
            forms(cell)["application/vnd.plotly.v1+json"],
        )
    wait_for_papers(page, papers("light"))
