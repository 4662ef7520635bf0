"""A command's table and its forms: for a reader, a file, a program.

A command's table is a `Sheet`: its rows, which columns a reader sees first, and where they are
from. What was asked of it is a `TableOptions`. `show` brings the two together.
"""

from __future__ import annotations

import functools
import io
import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from toolkit.cards import counted
from toolkit.cli.figures import Figure, cell_text, print_figures
from toolkit.cli.show import console, errors
from toolkit.cli.table_options import Format, TableOptions
from toolkit.errors import InputError
from toolkit.foreign import LONGEST, markdown, plain
from toolkit.intervals import Interval
from toolkit.market import format_ts, parse_ts
from toolkit.reasons import Reason
from toolkit.statistics.conditions import column
from toolkit.statistics.explanation import explain
from toolkit.workspace.csv_rows import csv_rows
from toolkit.workspace.terminal import Terminal

_FILE_WIDTH = 200
"""Columns of characters that a table in a file may take."""
_LEAST_KEY = 20
"""Characters of the first column that a narrow terminal leaves, at least."""
_LONGEST_LINE = 4_000
"""Characters of a paragraph of an explanation at most."""
_GAP = 2
_LEAST_COLUMNS = 3
_TEXTS = ("text", "words")
"""Units of columns that are text. Words are broken where they do not fit."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column for a reader: its heading, the column of the rows, and its unit as in `Figure`.

    ``shown`` writes the cell of a row that needs more than one of its values.
    """

    heading: str
    name: str
    unit: str
    shown: Callable[[dict[str, Any]], str] | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A command's table.

    ``columns`` are in the order of their weight: the key first, then as many as there is room for.
    ``source`` is that of the rows, with ``as_of`` where they are what was known at a time.
    ``order`` is as in ``--sort``, "" for that of the rows. ``figures`` list the one row of a table
    in full. ``window`` is what the rows were asked for, unless they name it themselves. ``notes``
    are lines for a reader, below the rows. ``printed`` prints the rows for a reader in another way
    than as a table.
    """

    heading: str
    source: str
    rows: pl.DataFrame
    columns: Sequence[TableColumn]
    order: str = ""
    figures: Sequence[Figure] = ()
    window: Interval | None = None
    notes: Sequence[str] = ()
    printed: Callable[[Terminal, pl.DataFrame], object] | None = None
    as_of: int | None = None

    @property
    def label(self) -> str:
        """The source, and the time as of which it is shown."""
        then = "" if self.as_of is None else f", as of {format_ts(self.as_of)}"
        return f"{self.source}{then}"


def show(view: TableOptions, sheet: Sheet) -> None:
    """Write a table as it was asked for, to the file that was named or to stdout.

    Rows that are not shown are counted: below the table, or on stderr beside another form.
    """
    if view.as_of is not None:
        sheet = replace(sheet, as_of=parse_ts(view.as_of, parameter="--as-of"))
    rows, left_out = _chosen(view, sheet)
    if view.form is Format.TABLE and view.output is None:
        _print(console, sheet, rows, left_out)
        return
    if view.output is None:
        sys.stdout.write(_written(view.form, sheet, rows).decode())
    else:
        _write_new(view.output, _written(view.form, sheet, rows))
        errors.print(f"{counted(rows.height, 'row')} in {view.output}")
    if left_out:
        errors.print(left_out)


def _chosen(view: TableOptions, sheet: Sheet) -> tuple[pl.DataFrame, str]:
    """Return the rows asked for in their order, and how many are left out and why.

    Raises `InputError` for a column that rows of another kind have.
    """
    sorts = [] if view.sort is None else [view.sort.removeprefix("-")]
    tests = [] if view.where is None else view.where.meta.root_names()
    for parameter, names in (("--sort", sorts), ("--where", tests)):
        for name in names:
            column(name, sheet.rows.schema, parameter=parameter)
    try:
        kept = sheet.rows if view.where is None else sheet.rows.filter(view.where)
    except PolarsError as error:
        why = str(error).splitlines()[0]
        raise InputError("--where", str(view.where), "a condition", advice=why) from None
    order = sheet.order if view.sort is None else view.sort
    if order:
        name, key = order.removeprefix("-"), sheet.columns[0].name
        kept = kept.sort(name, key, descending=[order.startswith("-"), False], nulls_last=True)
    rows = kept if view.top is None else kept.head(view.top)
    failed, beyond = sheet.rows.height - kept.height, kept.height - rows.height
    parts = [f"--where leaves out {failed:,}"] if failed else []
    parts += [f"--top {view.top:,} leaves out {beyond:,}"] if beyond else []
    shown = f"{rows.height:,} of {counted(sheet.rows.height, 'row')} shown"
    return rows, f"{shown}: {', '.join(parts)}" if parts else ""


def _written(form: Format, sheet: Sheet, rows: pl.DataFrame) -> bytes:
    """Return the rows as the bytes of a file."""
    if form is Format.TABLE:
        page = io.StringIO()
        _print(Terminal(file=page, width=_FILE_WIDTH, color_system=None), sheet, rows, "")
        return page.getvalue().encode()
    if form is Format.MARKDOWN:
        return _markdown(sheet, rows).encode()
    if form is Format.EXPLAIN:
        return _explained(rows).encode()
    named = _named(sheet, rows)
    if form is Format.JSON:
        lines = [json.dumps(row) for row in named.iter_rows(named=True)]
        return "".join(f"{line}\n" for line in lines).encode()
    if form is Format.CSV:
        return csv_rows(named.with_columns(pl.selectors.string().map_batches(_plain_cells)))
    file = io.BytesIO()
    named.write_parquet(file)
    return file.getvalue()


def _explained(rows: pl.DataFrame) -> str:
    """Return how the figures of each row came about, in lines of a terminal's width."""
    texts = [explain(rows[place]) for place in range(rows.height)]
    fill = functools.partial(textwrap.fill, width=min(console.width, 100), subsequent_indent="  ")
    lines = [[fill(plain(line, _LONGEST_LINE)) for line in text.splitlines()] for text in texts]
    return "\n\n\n".join("\n".join(each) for each in lines) + "\n"


def _write_new(path: Path, content: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError("--output", str(path), "a new file", advice=why) from None


def _named(sheet: Sheet, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with their source and its time, and the window unless they name it."""
    window = {} if sheet.window is None or "window_start" in rows.columns else sheet.window
    limits = dict(zip(("window_start", "window_end"), window, strict=False))
    then = {} if sheet.as_of is None else {"as_of": sheet.as_of}
    return rows.select(
        pl.lit(sheet.source).alias("source"),
        *(pl.lit(ts, pl.Int64).alias(name) for name, ts in then.items()),
        pl.all(),
        *(pl.lit(ts, pl.Int64).alias(name) for name, ts in limits.items()),
    )


def _plain_cells(texts: pl.Series) -> pl.Series:
    return pl.Series([None if text is None else plain(text) for text in texts], dtype=pl.String)


def _cells(sheet: Sheet, rows: pl.DataFrame) -> tuple[list[list[str]], list[str]]:
    """Write the cells of each row, and the notes on what is missing in them."""
    notes: dict[Reason, str] = {}
    cells = [
        [
            each.shown(row) if each.shown else cell_text(row, each.name, each.unit, notes)
            for each in sheet.columns
        ]
        for row in rows.iter_rows(named=True)
    ]
    return cells, [f"({letter}) {reason.words}" for reason, letter in notes.items()]


def _markdown(sheet: Sheet, rows: pl.DataFrame) -> str:
    """Write the rows as Markdown with the columns of the table, all of them."""
    cells, notes = _cells(sheet, rows)
    foreign = [each.unit in _TEXTS for each in sheet.columns]
    lines = [f"{sheet.heading} · {markdown(sheet.label)}", ""]
    table = [[each.heading for each in sheet.columns], [":--" if t else "--:" for t in foreign]]
    table += [
        [
            markdown(cell, LONGEST).replace("|", "\\|") if is_foreign else cell
            for cell, is_foreign in zip(row, foreign, strict=True)
        ]
        for row in cells
    ]
    lines += [f"| {' | '.join(row)} |" for row in table]
    notes += [markdown(note, LONGEST) for note in sheet.notes]
    return "".join(f"{line}\n" for line in [*lines, *([""] if notes else []), *notes])


def _print(page: Terminal, sheet: Sheet, rows: pl.DataFrame, left_out: str) -> None:
    """Print the rows for a reader: a line for each, or the figures of the only one.

    A key that all rows have is a line above them, with its heading, and no column.
    """
    page.print(Text(plain(f"{sheet.heading} · {sheet.label}")), soft_wrap=False)
    notes: list[str] = []
    if sheet.figures and sheet.rows.height == rows.height == 1:
        print_figures(page, rows.row(0, named=True), sheet.figures)
    elif sheet.printed:
        sheet.printed(page, rows)
    elif rows.height:
        cells, notes = _cells(sheet, rows)
        key, *others = sheet.columns
        if len(cells) > 1 and key.unit in _TEXTS and len({row[0] for row in cells}) == 1:
            page.print(Text(f"{key.heading}: {cells[0][0]}"), soft_wrap=False)
            sheet = replace(sheet, columns=others)
            cells = [row[1:] for row in cells]
        widths = _fitting(sheet, cells, page.width)
        hidden = len(sheet.columns) - len(widths)
        if hidden and notes:  # the notes of what is shown alone
            cells, notes = _cells(replace(sheet, columns=sheet.columns[: len(widths)]), rows)
        page.print(_table(sheet, cells, widths))
        if hidden:
            notes.append(f"{counted(hidden, 'more column')}: a wider terminal, or --format")
    for line in (*notes, left_out, *sheet.notes):
        if line:
            page.print(Text(plain(line)), soft_wrap=False)


def _fitting(sheet: Sheet, cells: list[list[str]], width: int) -> list[int]:
    """Return the widths of the columns that fit side by side: the key and at least two more.

    Where not even those fit, the key is folded.
    """
    needed = [
        max(cell_len(text) for text in (each.heading, *(row[place] for row in cells)))
        for place, each in enumerate(sheet.columns)
    ]
    left = width - sum(wide + _GAP for wide in needed[1:_LEAST_COLUMNS])
    widths = [min(needed[0], max(left, _LEAST_KEY))]
    for each, wide in zip(sheet.columns[1:], needed[1:], strict=True):
        room = width - sum(widths) - _GAP * len(widths)
        if wide > room and each.unit == "words" and room >= _LEAST_KEY:
            widths.append(room)
        elif wide <= room or len(widths) < _LEAST_COLUMNS:
            widths.append(wide)
        else:
            break
    return widths


def _table(sheet: Sheet, cells: list[list[str]], widths: list[int]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for each, wide in zip(sheet.columns, widths, strict=False):
        left = each.unit in _TEXTS
        table.add_column(
            each.heading, justify="left" if left else "right", width=wide, overflow="fold"
        )
    for row in cells:
        table.add_row(*row[: len(widths)])
    return table
