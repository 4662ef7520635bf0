"""Each notebook is in step with its script, runs in an empty folder, and has those outputs."""

from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

import toolkit as tk

from .notebooks import (
    FIGURE,
    NOTEBOOKS,
    OF_REAL_DATA,
    RAN,
    ROOT,
    code_hash,
    over_a_standing_market,
    run,
    texts,
)

SIZE_AT_MOST = 1_500_000
WRITTEN = {".duckdb", ".pages", ".parquet", ".toml"}
"""How files are called that a notebook may leave in the folder where it was run."""
PICTURES = {"image/png", "text/plain"}
OF_A_PUBLICATION = {"04_pumps_and_dumps"}
"""A notebook that is run a second time, over the store published, where nothing is loaded."""
LIVE = {"07_live": "the store lacks none"}
"""Notebooks over a market that goes on meanwhile, and words of their finding in every run."""
_OPENS, _LOADS = re.compile(r'tk\.open\(".*"\)'), re.compile(r"(?m)^(?:\w+ = )?rail\.sync\(.*\)$")


def content(notebook: NotebookNode) -> list[tuple[str, str]]:
    """What a notebook and its script have in common: each cell's kind and text."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def pair_faults(folder: Path) -> list[str]:
    """Notebooks and scripts that differ, or stand alone."""
    names = {path.stem for path in folder.iterdir() if path.suffix in {".py", ".ipynb"}}
    found = []
    for name in sorted(names):
        notebook, script = folder / f"{name}.ipynb", folder / f"{name}.py"
        if not (notebook.is_file() and script.is_file()):
            found.append(f"{name}: a notebook and a script of this name are needed")
        elif content(nbformat.read(notebook, 4)) != content(jupytext.read(script)):
            found.append(f"{name}: not in step; run jupytext --sync on the script")
    return found


def output_faults(notebook: NotebookNode) -> list[str]:
    """Outputs that are not of the code, not of one run, or of a kind that is not kept."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = [] if notebook.metadata.get(RAN) == code_hash(notebook) else ["outputs of other code"]
    numbers = [cell.execution_count for cell in cells]
    found += [] if numbers == [*range(1, len(cells) + 1)] else [f"cells run as {numbers}"]
    kinds = {kind for cell in cells for output in cell.outputs for kind in output.get("data", {})}
    found += [f"output of kind {kind}" for kind in sorted(kinds - PICTURES - {"text/html"})]
    found += [f"metadata of: {cell.source}" for cell in notebook.cells if cell.metadata]
    return found + sorted(set(notebook.metadata) - {"jupytext", "kernelspec", RAN})


def warnings_of(outputs: list[NotebookNode]) -> list[str]:
    """What was written to standard error."""
    return [output.text for output in outputs if output.get("name") == "stderr"]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder; what Jupyter keeps of its own goes beside it."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    folder = tmp_path / "reader"
    folder.mkdir()
    return folder


def test_there_are_notebooks_and_each_is_in_step_with_its_script() -> None:
    assert NOTEBOOKS
    assert pair_faults(ROOT / "notebooks") == []


def test_the_quickstart_is_short_and_names_window_source_and_theme_at_most_once() -> None:
    cells = content(nbformat.read(ROOT / "notebooks" / "00_quickstart.ipynb", 4))
    assert len(cells) <= 12
    code = "\n".join(source for kind, source in cells if kind == "code")
    for word in ("window", "source", "theme", "start", "7d"):
        assert len(re.findall(rf"\b{word}\b", code)) <= 1, word


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_the_outputs_of_its_code(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    assert output_faults(notebook) == [], "`make notebooks` runs and writes them"
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if set(output.get("data", {})) == PICTURES]
    assert warnings_of(outputs) == []
    assert path.stat().st_size < SIZE_AT_MOST


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_an_empty_folder_with_the_outputs_it_is_kept_with(
    path: Path, empty: Path, request: pytest.FixtureRequest
) -> None:
    source = "SIMULATED"
    if path.stem in OF_REAL_DATA:
        request.getfixturevalue("real_data")  # skips where there is none
        source = "Own data"
    kept, notebook = (nbformat.read(path, 4) for _ in range(2))
    with over_a_standing_market(empty.parent):
        outputs = run(notebook, empty)
    assert warnings_of(outputs) == []
    figures = [output.data for output in outputs if FIGURE in output.get("data", {})]
    assert figures
    assert all({"text/html", "text/plain"} < set(forms) for forms in figures)
    finding = outputs[-1].text
    assert all(word in finding for word in (source, "n = ", "coverage", " UTC)")), finding
    assert {file.suffix for file in empty.iterdir() if file.is_file()} <= WRITTEN
    assert len(list(empty.glob("*.duckdb"))) == (path.stem not in OF_REAL_DATA)
    ran, shipped = texts(notebook), texts(kept)
    if path.stem in LIVE:
        assert all(LIVE[path.stem] in said[-1][-1] for said in (ran[:-1], shipped[:-1]))
        ran, shipped = ([len(cell) for cell in said] for said in (ran, shipped))
    assert ran == shipped, "`make notebooks` writes the outputs of today's code"
    if path.stem in OF_A_PUBLICATION:
        tk.open(next(empty.glob("*.duckdb"))).publish(empty / "archive")
        for cell in kept.cells:
            if cell.cell_type == "code":
                cell.source = _LOADS.sub("", _OPENS.sub('tk.open("archive")', cell.source))
        ends = [cell[-1:] for cell in texts(notebook)]
        run(kept, empty)
        assert [cell[-1:] for cell in texts(kept)] == ends


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OF_REAL_DATA))
def test_a_notebook_without_its_data_ends_with_a_sentence(
    name: str, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAIL_REAL_DATA", str(empty))
    outputs = run(nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4), empty)
    (sentence,) = [output.text for output in outputs]
    assert sentence.startswith(f"Skipped: there is no {empty}/prices.parquet.")


def test_a_notebook_out_of_step_or_alone_is_found(tmp_path: Path) -> None:
    for name, text in (("a", "1 + 1"), ("b", "1 + 1"), ("c", "1 + 1")):
        cells = [nbformat.v4.new_code_cell(text)]
        jupytext.write(nbformat.v4.new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
        jupytext.write(nbformat.v4.new_notebook(cells=cells), tmp_path / f"{name}.py")
    (tmp_path / "b.py").write_text("# %%\n1 + 2\n")
    (tmp_path / "c.py").unlink()
    assert [fault.split(",")[0].split(";")[0] for fault in pair_faults(tmp_path)] == [
        "b: not in step",
        "c: a notebook and a script of this name are needed",
    ]


def test_outputs_of_other_code_or_of_several_runs_are_found() -> None:
    cells = [nbformat.v4.new_code_cell(text) for text in ("1", "2")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert output_faults(notebook) == ["outputs of other code", "cells run as [None, None]"]
    for number, cell in enumerate(cells, 1):
        cell.execution_count = number
    notebook.metadata[RAN] = code_hash(notebook)
    assert output_faults(notebook) == []
    data = {FIGURE: {}, "text/plain": "Figure"}
    cells[0].outputs = [nbformat.v4.new_output("display_data", data)]
    cells[1].execution_count, cells[1].metadata["collapsed"] = 7, True
    assert output_faults(notebook) == [
        "cells run as [1, 7]",
        f"output of kind {FIGURE}",
        "metadata of: 2",
    ]
    cells[1].source = "3"
    assert output_faults(notebook)[0] == "outputs of other code"


@pytest.mark.slow
def test_an_error_and_a_warning_in_a_cell_are_found(empty: Path) -> None:
    warns = nbformat.v4.new_code_cell("import warnings; warnings.warn('old')")
    outputs = run(nbformat.v4.new_notebook(cells=[warns]), empty)
    assert "UserWarning: old" in warnings_of(outputs)[0]
    fails = nbformat.v4.new_code_cell("1 / 0")
    with pytest.raises(CellExecutionError, match="division"):
        run(nbformat.v4.new_notebook(cells=[fails]), empty)
