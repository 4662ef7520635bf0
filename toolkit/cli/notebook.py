"""`rail notebook`: the quickstart notebook, written to the current folder."""

from __future__ import annotations

import sys
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.show import console
from toolkit.errors import InputError
from toolkit.foreign import command

NAME = "00_quickstart.ipynb"


def notebook_command(
    to: Annotated[
        Path, typer.Option("--to", help="The new file, or the folder to write it to.")
    ] = Path(),
) -> None:
    """Write the quickstart notebook to the current folder. A file that is there is left alone.

    The notebook starts the local service by itself, and needs no other.

    Example: rail notebook
    """
    path = to / NAME if to.is_dir() else to
    try:
        with path.open("xb") as file:
            file.write(_notebook())
    except FileExistsError:
        raise InputError(
            "--to", str(path), "a file that is not there yet", advice="yours is left as it is"
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError("--to", str(path), "a file to write", advice=reason) from None
    console.print(f"{path} is written; to open it:")
    if find_spec("jupyterlab") is None:
        console.print(command(sys.executable, "-m", "pip", "install", "jupyterlab"))
    console.print(command(sys.executable, "-m", "jupyterlab", str(path)))


def _notebook() -> bytes:
    """Return the notebook of the wheel, or of the checkout that is installed in place."""
    packed = files("toolkit").joinpath("notebooks", NAME)
    if packed.is_file():
        return packed.read_bytes()
    with as_file(files("toolkit")) as package:
        return (package.parent / "notebooks" / NAME).read_bytes()
