"""`rail stats`: statistics of what the store holds."""

from __future__ import annotations

import typer

from toolkit.cli.analyses import Stats

app = typer.Typer(cls=Stats, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Print statistics of the data in the store."""
