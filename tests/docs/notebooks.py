"""The notebooks with the outputs they are shipped with: `make notebooks` runs and writes them.

They run over a simulated market whose clock stands, so that each run has the same outputs. Figures
are kept as pictures: those are small, and show where no script runs.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from playwright.sync_api import Page, sync_playwright

from toolkit.service import Clock, Config, Simulated, running

from ..browser.conftest import CHROMIUM, FLAGS, NOW
from ..conftest import REAL_DATA

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
OF_REAL_DATA = {"10_the_depeg_of_march_2023"}
"""Notebooks over data that not everybody has: without it they end with a sentence that says so."""
FIGURE = "application/vnd.plotly.v1+json"
WIDTH_PX = 900
_PAGE = "<style>body { margin: 0 } .modebar-container { display: none }</style>"
RAN = "outputs_of"
"""The notebook's metadata in which the hash of the code is kept that its outputs are of."""

# What a run over the same market has of its own: where the service listens, and how long it took.
_OF_A_RUN = re.compile(
    r"http://127\.0\.0\.1:\d+|\d[\d.]* (?:s|ms|min|kB|MB)\b|begun .*|\d[\d,]* left\b"
    r"|\d+ requests: .*"
)


@contextmanager
def over_a_standing_market(folder: Path) -> Iterator[None]:
    """Let what is run find the service of a simulated market, at the moment of the pictures."""
    kept = dict(os.environ)
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10_000_000)
    with running(config) as service:
        os.environ |= {"RAIL_BASE_URL": service.base_url, "RAIL_API_KEY": "demo-pro", "TZ": "UTC"}
        os.environ |= {"IPYTHONDIR": str(folder / "ipython"), "RAIL_REAL_DATA": str(REAL_DATA)}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= kept


def run(notebook: NotebookNode, folder: Path) -> list[NotebookNode]:
    """Run a notebook in a folder, and return its outputs. An error of a cell is raised."""
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        coalesce_streams=True,  # a busy machine prints a line in parts
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def code_hash(notebook: NotebookNode) -> str:
    """Return a hash of all that is run."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256("\n# %%\n".join(code).encode()).hexdigest()


def texts(notebook: NotebookNode) -> list[list[str]]:
    """What each cell put out as text, without what each run has of its own."""
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return [[_OF_A_RUN.sub("#", _text(output)) for output in cell] for cell in outputs]


def _text(output: NotebookNode) -> str:
    return str(output.text if "text" in output else output.data["text/plain"])


def as_shipped(notebook: NotebookNode, page: Page) -> NotebookNode:
    """Return a notebook that was run, as it is kept: figures as pictures, without its run's own."""
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", []):
            if FIGURE in output.get("data", {}):
                picture = base64.b64encode(_picture(output.data["text/html"], page)).decode()
                output.data = {"image/png": picture, "text/plain": output.data["text/plain"]}
    notebook.metadata.pop("language_info", None)
    notebook.metadata[RAN] = code_hash(notebook)
    return notebook


def _picture(html: str, page: Page) -> bytes:
    """Draw a figure on a page. plotly.js is still there where an earlier one carried it."""
    page.evaluate(
        """(html) => {
            const figure = document.createRange().createContextualFragment(html);
            document.body.replaceChildren(figure);
        }""",
        html,
    )
    figure = page.locator(".rail-figure")
    figure.locator(".main-svg").first.wait_for()
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)
    return figure.screenshot(animations="disabled")


def to_run(names: Sequence[str]) -> list[Path]:
    """Return the notebooks whose names begin so, all without a name, but those that lack data."""
    here = (REAL_DATA / "prices.parquet").is_file()
    wanted = [path for path in NOTEBOOKS if path.name.startswith(tuple(names) or "")]
    return [path for path in wanted if here or path.stem not in OF_REAL_DATA]


def main() -> None:
    """Run each notebook, or those whose names begin as is said, and write it with its outputs."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = chromium.new_page(viewport={"width": WIDTH_PX, "height": 900}, color_scheme="light")
        page.set_content(_PAGE)
        for path in to_run(sys.argv[1:]):
            notebook = nbformat.read(path, 4)
            with over_a_standing_market(Path(folder)):
                run(notebook, Path(folder))
            nbformat.write(as_shipped(notebook, page), path)
            sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
