"""How numbers, times and tables look on the terminal."""

from __future__ import annotations

import sys

from rich.table import Table

from toolkit.workspace.terminal import Terminal

_WIDTH_OF_A_PIPE = 160

console = Terminal(width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE)
errors = Terminal(stderr=True)


def plain_table(*headings: str) -> Table:
    """Make a table without lines. The first column is text, the others are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(headings[0], overflow="fold", min_width=20)
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
