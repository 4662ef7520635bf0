"""`rail notebook`: write a notebook to the current folder."""

from __future__ import annotations

import json
import sys
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import typer

from toolkit.cli.options import asks
from toolkit.cli.show import console, write_new
from toolkit.errors import InputError
from toolkit.foreign import command


@asks(
    name=typer.Argument(
        metavar="[NAME]", help="The beginning of its name. Default: the quickstart."
    ),
    to="The new file, or the folder for it.",
    listed="--list: Print each name with its question, then exit.",
)
def notebook_command(name: str = "00_quickstart", to: Path = Path(), listed: bool = False) -> None:
    """Write a notebook to the current folder. An existing file is never replaced.

    Each notebook answers one question and comes with its outputs. It starts the local service
    itself.

    Example: rail notebook

    Example: rail notebook --list

    Example: rail notebook 08
    """
    notebooks = _notebooks()
    if listed:
        for each, content in notebooks.items():
            console.print(f"{each}: {_question(content)}")
        return
    found = [each for each in notebooks if each.startswith(name)]
    if len(found) != 1:
        raise InputError("NAME", name, f"the beginning of one of {', '.join(notebooks)}")
    path = to / f"{found[0]}.ipynb" if to.is_dir() else to
    write_new("--to", path, notebooks[found[0]], private=False)
    console.print(f"{path} is written; to open it:")
    if find_spec("jupyterlab") is None:
        console.print(command(sys.executable, "-m", "pip", "install", "jupyterlab"))
    console.print(command(sys.executable, "-m", "jupyterlab", str(path)))


def _notebooks() -> dict[str, bytes]:
    with as_file(files("toolkit")) as package:
        packed = package / "notebooks"
        folder = packed if packed.is_dir() else package.parent / "notebooks"
        return {path.stem: path.read_bytes() for path in sorted(folder.glob("*.ipynb"))}


def _question(notebook: bytes) -> str:
    cells = json.loads(notebook)["cells"]
    return "".join(cells[0]["source"]).partition("\n")[0].removeprefix("# ")
