"""`rail events`: how long events last, how often they open, how large they are, what followed."""

from __future__ import annotations

import typer

from toolkit.cli.analyses import Events, with_help
from toolkit.cli.event_channels import CHANNELS, channels_command
from toolkit.cli.event_open import open_columns, open_command
from toolkit.cli.table_options import tabled

app = typer.Typer(cls=Events, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Print how long events last, how often they open, how large they are, and what followed."""


of_channels = with_help(channels_command, CHANNELS, "events channels")
app.command("channels")(tabled(CHANNELS.schema, of_now=True)(of_channels))
app.command("open")(tabled(open_columns, of_now=True)(open_command))
