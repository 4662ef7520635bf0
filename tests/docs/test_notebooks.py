"""Each notebook is stripped, in step with its script, and runs in an empty folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIGURE = "application/vnd.plotly.v1+json"


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
    """What a run leaves in a notebook, and does not belong into a repository."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = [f"output of: {cell.source}" for cell in cells if cell.outputs]
    found += [f"number of: {cell.source}" for cell in cells if cell.execution_count is not None]
    found += [f"metadata of: {cell.source}" for cell in notebook.cells if cell.metadata]
    return found + sorted(set(notebook.metadata) - {"jupytext", "kernelspec"})


def run(notebook: NotebookNode, folder: Path) -> Iterator[NotebookNode]:
    """The outputs of a run in a folder; an error of a cell is raised."""
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_a_run_leaves_in_it(path: Path) -> None:
    assert output_faults(nbformat.read(path, 4)) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_an_empty_folder_without_error_or_warning(
    path: Path, empty: Path
) -> None:
    outputs = list(run(nbformat.read(path, 4), empty))
    assert warnings_of(outputs) == []
    assert [output for output in outputs if FIGURE in output.get("data", {})]
    finding = outputs[-1].text
    assert all(word in finding for word in ("SIMULATED", "n = ", "coverage", " UTC)")), finding
    assert [file.suffix for file in empty.iterdir()] == [".duckdb"]


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


@pytest.mark.slow
def test_what_a_run_leaves_in_a_notebook_is_found(empty: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(1)")])
    assert output_faults(notebook) == []
    assert [output.text for output in run(notebook, empty)] == ["1\n"]
    kinds = ["output of: print(1)", "number of: print(1)", "metadata of: print(1)"]
    assert output_faults(notebook) == [*kinds, "language_info"]


@pytest.mark.slow
def test_an_error_and_a_warning_in_a_cell_are_found(empty: Path) -> None:
    warns = nbformat.v4.new_code_cell("import warnings; warnings.warn('old')")
    outputs = list(run(nbformat.v4.new_notebook(cells=[warns]), empty))
    assert "UserWarning: old" in warnings_of(outputs)[0]
    fails = nbformat.v4.new_code_cell("1 / 0")
    with pytest.raises(CellExecutionError, match="division"):
        list(run(nbformat.v4.new_notebook(cells=[fails]), empty))
