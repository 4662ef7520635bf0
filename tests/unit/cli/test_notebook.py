"""`rail notebook` writes a notebook, the quickstart by default, and leaves alone what is there."""

from __future__ import annotations

from pathlib import Path

from .conftest import Rail, refused

SHIPPED = Path(__file__).parents[3] / "notebooks" / "00_quickstart.ipynb"


def test_the_notebook_is_written_here_and_never_over_another(rail: Rail, workdir: Path) -> None:
    done = rail("notebook")
    assert done.returncode == 0, done.stderr
    written = workdir / SHIPPED.name
    assert written.read_bytes() == SHIPPED.read_bytes()
    assert done.stdout.splitlines()[-1].endswith(f"-m jupyterlab {SHIPPED.name}")
    written.write_text("mine")
    assert "a new file; file exists" in refused(rail("notebook"))
    assert written.read_text() == "mine"


def test_a_folder_takes_the_notebook(rail: Rail, workdir: Path) -> None:
    (workdir / "notes").mkdir()
    assert rail("notebook", "--to", "notes").returncode == 0
    assert (workdir / "notes" / SHIPPED.name).is_file()


def test_any_notebook_is_written_by_how_its_name_begins_and_all_are_listed(
    rail: Rail, workdir: Path
) -> None:
    shipped = sorted(path.stem for path in SHIPPED.parent.glob("*.ipynb"))
    listed = rail("notebook", "--list").stdout
    assert [line.partition(":")[0] for line in listed.splitlines()] == shipped
    assert "What do I miss of a live market" in listed
    assert rail("notebook", "07").returncode == 0
    (written,) = workdir.iterdir()
    assert written.read_bytes() == (SHIPPED.parent / written.name).read_bytes()
