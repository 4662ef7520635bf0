"""The figures of one trajectory, a line each: labels, numbers with units, reasons for nulls."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from rich.text import Text

from toolkit.cards import duration
from toolkit.cli.show import plain_table
from toolkit.market import Pair, format_ts
from toolkit.reasons import Reason
from toolkit.show.half_life import NOT_BELIEVED, half_life_doubt
from toolkit.workspace.terminal import Terminal

HALF_LIFE = "half-life"
"""The unit of a half-life in seconds, whose row has its bounds and reasons."""

Figure = tuple[str, str, str]
"""A line of the list: its label, the result's column, and the unit it is shown in."""


def print_figures(page: Terminal, row: dict[str, Any], figures: Sequence[Figure]) -> None:
    """Print one line per figure of a row that has a ``trajectory``.

    Where a number is null, a letter stands for the reason, which follows the list.
    """
    table = plain_table("", _heading(row))
    notes: dict[Reason, str] = {}
    for label, column, unit in figures:
        shown_unit = f" {unit}" if unit in ("bps", "%") else ""
        heading = Text.assemble(label, (shown_unit, "dim"))
        table.add_row(heading, cell_text(row, column, unit, notes))
    page.print(table)
    for reason, letter in notes.items():
        page.print(Text(f"({letter}) {reason.words}"), soft_wrap=False)


def _heading(row: dict[str, Any]) -> str:
    if row["trajectory"].startswith("pair/"):
        two = Pair.parse(row["trajectory"])
        fx = [] if two.fx is None else [f"by {two.fx}"]
        return "\n".join([f"buy {two.buy}", f"sell {two.sell}", *fx])
    symbol, *legs = row["trajectory"].split(":")
    named = [f"buy {legs[0]}", f"sell {legs[1]}"] if len(legs) == 2 else legs
    return "\n".join([symbol, *named])


def cell_text(row: dict[str, Any], column: str, unit: str, notes: dict[Reason, str]) -> str:
    """Format a value in its unit, or the letter of the reason for its absence.

    ``notes`` keeps the letters that were given. Units: count, share, s, days, bps, %, %8h,
    number, plain, time (Unix seconds), flag, text and words, and `HALF_LIFE`, which says of a
    half-life that is not believed so.
    """
    value = row[column]
    if value is None:
        names = list(row)
        reasons = (n for n in names[names.index(column) :] if n.endswith("_reason"))
        found = row.get(next(reasons, ""))
        if not found:
            return "–"
        reason = Reason(found)
        return f"{reason.in_place} ({_letter(reason, notes)})"
    if unit == HALF_LIFE:
        return duration(value) + _doubt(row, notes)
    if unit == "flag":
        return "yes" if value else "no"
    return {
        "count": lambda: f"{value:,}",
        "share": lambda: f"{value:.2%}",
        "s": lambda: duration(value),
        "bps": lambda: f"{value:,.2f}",
        "%": lambda: f"{value:,.2f}",
        "number": lambda: f"{value:,.2f}",
        "days": lambda: f"{value:,.1f}",
        "%8h": lambda: f"{value:,.4f} %",
        "plain": lambda: f"{value:.4f}",
        "time": lambda: format_ts(value).removesuffix(" UTC"),
        "text": lambda: f"{value}",
        "words": lambda: f"{value}",
    }[unit]()


def _letter(reason: Reason, notes: dict[Reason, str]) -> str:
    return notes.setdefault(reason, ascii_lowercase[len(notes)])


def _doubt(row: dict[str, Any], notes: dict[Reason, str]) -> str:
    reason = half_life_doubt(row)
    return f", {NOT_BELIEVED} ({_letter(reason, notes)})" if reason else ""
