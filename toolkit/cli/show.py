"""How numbers, times and tables look on the terminal."""

from __future__ import annotations

from rich.table import Table

from toolkit.wire.address import is_loopback
from toolkit.workspace.terminal import Terminal

console = Terminal()
errors = Terminal(stderr=True)


def warn_of_public(host: str, public: str) -> None:
    """Warn on stderr where a server listens off this machine, by http, of what is public there."""
    if not is_loopback(host.strip("[]")):
        errors.print(
            f"warning: {host} is not this machine alone: over plain http {public}; "
            "put an https proxy in front, or listen at 127.0.0.1"
        )


def plain_table(*headings: str) -> Table:
    """Make a table without lines. The first column is text, the others are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(headings[0], overflow="fold", min_width=20)
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
