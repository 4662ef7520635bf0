"""Print a table on a terminal: as many columns as fit, or the figures of its only row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from rich.cells import cell_len, chop_cells
from rich.table import Table
from rich.text import Text

from toolkit.cards import counted
from toolkit.columns import Column
from toolkit.foreign import plain
from toolkit.market import Pair
from toolkit.show.sheet import Notes, Sheet, cell_text, cells_of
from toolkit.show.terminal import Terminal
from toolkit.show.values import heading_of

_LEAST_KEY = 20
"""Characters of the first column that a narrow terminal leaves, at least."""
_GAP = 2
_LEAST_COLUMNS = 3


def print_sheet(page: Terminal, sheet: Sheet, rows: pl.DataFrame, left_out: str) -> None:
    """Print rows for a reader: a line for each, or the figures of the only one.

    A key common to all rows is a line above them.
    """
    page.print(Text(plain(f"{sheet.heading} · {sheet.label}")), soft_wrap=False)
    notes: list[str] = []
    if sheet.figures and sheet.rows.height == rows.height == 1:
        print_figures(page, sheet, rows.row(0, named=True))
    elif sheet.printed:
        sheet.printed(page, rows)
    elif rows.height:
        notes, hidden = _print_table(page, sheet, rows)
        if hidden:
            notes.append(f"{counted(hidden, 'more column')}: a wider terminal, or --format")
    for line in (*notes, left_out, *sheet.notes):
        if line:
            page.print(Text(plain(line)), soft_wrap=False)


def print_rows(page: Terminal, sheet: Sheet, rows: pl.DataFrame) -> int:
    """Print rows of a frame, and return how many of the columns fit.

    A single row is a line per figure, with the name of its column.
    """
    if rows.height > 1:
        lines, hidden = _print_table(page, sheet, rows)
        for line in lines:
            page.print(Text(line), soft_wrap=False)
        return len(sheet.columns) - hidden
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=False)
    notes, row = Notes(), rows.row(0, named=True)
    key, *figures = map(sheet.column, sheet.columns)
    page.print(Text(f"{heading_of(key)}: {cell_text(row, key, notes)}"), soft_wrap=False)
    for one in figures:
        table.add_row(heading_of(one), cell_text(row, one, notes), one.name)
    page.print(table)
    for line in notes.lines:
        page.print(Text(line), soft_wrap=False)
    return len(sheet.columns)


def print_figures(page: Terminal, sheet: Sheet, row: dict[str, Any]) -> None:
    """Print one line per figure of a row that has a ``trajectory``.

    A null has the letter of its reason, listed below.
    """
    table = plain_table("", _subject(row))
    notes = Notes()
    for name in sheet.figures:
        one = sheet.column(name)
        unit = heading_of(one).removeprefix(one.heading)
        heading = Text.assemble(one.heading, (unit, "dim"))
        own = sheet.cells.get(name)
        table.add_row(heading, own(row) if own else cell_text(row, one, notes))
    page.print(table)
    for line in notes.lines:
        page.print(Text(line), soft_wrap=False)


def plain_table(*headings: str) -> Table:
    """Make a table without lines. The first column is text, the others are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column(headings[0], overflow="fold", min_width=20)
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _subject(row: dict[str, Any]) -> str:
    if row["trajectory"].startswith("pair/"):
        two = Pair.parse(row["trajectory"])
        fx = [] if two.fx is None else [f"by {two.fx}"]
        return "\n".join([f"buy {two.buy}", f"sell {two.sell}", *fx])
    symbol, *legs = row["trajectory"].split(":")
    named = [f"buy {legs[0]}", f"sell {legs[1]}"] if len(legs) == 2 else legs
    return "\n".join([symbol, *named])


def _print_table(page: Terminal, sheet: Sheet, rows: pl.DataFrame) -> tuple[list[str], int]:
    """Print rows as a table. Return the notes on nulls, and the number of hidden columns."""
    names = list(sheet.columns)
    cells, notes = cells_of(sheet, rows, names)
    key = sheet.column(names[0])
    if len(cells) > 1 and key.type == "String" and len({row[0] for row in cells}) == 1:
        page.print(Text(f"{heading_of(key, short=True)}: {cells[0][0]}"), soft_wrap=False)
        names, cells = names[1:], [row[1:] for row in cells]
    columns = [sheet.column(name) for name in names]
    widths = _fitting(columns, cells, page.width)
    hidden = len(names) - len(widths)
    if hidden and notes:  # the notes of what is shown alone
        cells, notes = cells_of(sheet, rows, names[: len(widths)])
    page.print(_table(columns, cells, widths))
    return notes, hidden


def _fitting(columns: Sequence[Column], cells: list[list[str]], width: int) -> list[int]:
    """Return the widths of the columns that fit: the key and at least two more.

    A key or a text that does not fit is folded.
    """
    needed = [
        max(cell_len(text) for text in (heading_of(each, short=True), *(r[place] for r in cells)))
        for place, each in enumerate(columns)
    ]
    left = width - sum(wide + _GAP for wide in needed[1:_LEAST_COLUMNS])
    widths = [min(needed[0], max(left, _LEAST_KEY))]
    for each, wide in zip(columns[1:], needed[1:], strict=True):
        room = width - sum(widths) - _GAP * len(widths)
        if wide > room and each.type == "String" and room >= _LEAST_KEY:
            widths.append(room)
        elif wide <= room or len(widths) < _LEAST_COLUMNS:
            widths.append(wide)
        else:
            break
    return widths


def _table(columns: Sequence[Column], cells: list[list[str]], widths: list[int]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for each, wide in zip(columns, widths, strict=False):
        justify = "left" if each.type == "String" else "right"
        table.add_column(
            heading_of(each, short=True),
            justify=justify,  # type: ignore[arg-type]  # one of rich's words
            width=wide,
            overflow="fold",
        )
    for row in cells:
        table.add_row(_folded(row[0], widths[0]), *row[1 : len(widths)])
    return table


def _folded(key: str, width: int) -> str:
    """Fold a key that is too wide, with an indent from its second line on."""
    if cell_len(key) <= width:
        return key
    first, *_ = chop_cells(key, width)
    return "\n  ".join([first, *chop_cells(key.removeprefix(first), width - 2)])
