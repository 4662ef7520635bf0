"""A table with a column for each trajectory: labels, numbers with units, reasons for nulls."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from rich.text import Text

from toolkit.cards import duration
from toolkit.cli.show import console, plain_table
from toolkit.statistics.contract import Reason

_LABEL_WIDTH, _COLUMN_WIDTH = 36, 22
"""Characters a label and a number take, which decides how many columns fit side by side."""

Figure = tuple[str, str, str]
"""A line of the table: its label, the result's column, and the unit it is shown in."""


def print_figures(rows: Sequence[dict[str, Any]], figures: Sequence[Figure]) -> None:
    """Print one column per row, as many side by side as the terminal is wide.

    Where a number is null, a letter stands for the reason, which follows the table.
    """
    fitting = max(1, (console.width - _LABEL_WIDTH) // _COLUMN_WIDTH)
    for first in range(0, len(rows), fitting):
        part = rows[first : first + fitting]
        table = plain_table("", *(_heading(row) for row in part))
        notes: dict[Reason, str] = {}
        for label, column, unit in figures:
            shown_unit = f" {unit}" if unit in ("bps", "%") else ""
            heading = Text.assemble(label, (shown_unit, "dim"))
            table.add_row(heading, *(_cell(row, column, unit, notes) for row in part))
        console.print(table)
        for reason, letter in notes.items():
            console.print(f"({letter}) {reason.words}")


def _heading(row: dict[str, Any]) -> str:
    symbol, buy, sell = row["trajectory"].split(":")
    return f"{symbol}\nbuy {buy}\nsell {sell}"


def _cell(row: dict[str, Any], column: str, unit: str, notes: dict[Reason, str]) -> str:
    """Format a number with its unit, or the letter of the reason for its absence."""
    value = row[column]
    if value is None:
        names = list(row)
        reasons = (n for n in names[names.index(column) :] if n.endswith("_reason"))
        found = row[next(reasons)]
        if not found:
            return "–"
        reason = Reason(found)
        letter = notes.setdefault(reason, ascii_lowercase[len(notes)])
        return f"{reason.in_place} ({letter})"
    if unit == "flag":
        return "yes" if value else "no"
    return {
        "count": lambda: f"{value:,}",
        "share": lambda: f"{value:.2%}",
        "s": lambda: duration(value),
        "bps": lambda: f"{value:,.2f}",
        "%": lambda: f"{value:,.2f}",
        "%8h": lambda: f"{value:,.4f} %",
        "plain": lambda: f"{value:.4f}",
        "text": lambda: f"{value}",
    }[unit]()
