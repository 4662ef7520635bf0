"""Write a command's table as it was asked for: its rows, their order and the form."""

from __future__ import annotations

import functools
import io
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from toolkit.cards import counted
from toolkit.cli.show import console, errors
from toolkit.cli.table_options import Format, TableOptions
from toolkit.errors import InputError
from toolkit.foreign import plain
from toolkit.market import parse_ts
from toolkit.show.printed import print_sheet
from toolkit.show.sheet import Sheet, csv_of, json_of, markdown_of, parquet_of
from toolkit.show.terminal import Terminal
from toolkit.statistics.core.conditions import column
from toolkit.statistics.explanation import explain

_FILE_WIDTH = 200
"""Columns of characters that a table in a file may take."""
_PATH_ROWS = 16
"""Rows of a path in a table at most."""
_LONGEST_LINE = 4_000
"""Characters of a paragraph of an explanation at most."""


def show(view: TableOptions, sheet: Sheet) -> None:
    """Write a table as it was asked for, to the file that was named or to stdout.

    Rows that are not shown are counted: below the table, or on stderr beside another form.
    """
    if view.as_of is not None:
        sheet = replace(sheet, as_of=parse_ts(view.as_of, parameter="--as-of"))
    rows, left_out = _chosen(view, sheet)
    if view.form is Format.TABLE and view.output is None:
        print_sheet(console, sheet, rows, left_out)
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
        name, first = order.removeprefix("-"), sheet.columns[0]
        key = first if isinstance(first, str) else first[0]
        kept = kept.sort(name, key, descending=[order.startswith("-"), False], nulls_last=True)
    every = _spacing(view, sheet, kept.height)
    rows = kept.gather_every(every) if view.top is None else kept.head(view.top)
    failed, beyond = sheet.rows.height - kept.height, kept.height - rows.height
    parts = [f"--where leaves out {failed:,}"] if failed else []
    if beyond:
        parts.append(f"--top {view.top:,} leaves out {beyond:,}" if view.top else f"one in {every}")
    shown = f"{rows.height:,} of {counted(sheet.rows.height, 'row')} shown"
    return rows, f"{shown}: {', '.join(parts)}" if parts else ""


def _spacing(view: TableOptions, sheet: Sheet, height: int) -> int:
    """Return which of a path's rows a table shows: one in so many, the middle one among them."""
    if not sheet.path or view.form is not Format.TABLE or view.sort or view.where is not None:
        return 1
    middle = height // 2
    least = -(-height // _PATH_ROWS)
    return next((n for n in range(least, 2 * least + 1) if middle % n == 0), least)


def _written(form: Format, sheet: Sheet, rows: pl.DataFrame) -> bytes:
    """Return the rows as the bytes of a file."""
    match form:
        case Format.TABLE:
            page = io.StringIO()
            print_sheet(Terminal(file=page, width=_FILE_WIDTH, color_system=None), sheet, rows, "")
            return page.getvalue().encode()
        case Format.MARKDOWN:
            return markdown_of(sheet, rows).encode()
        case Format.EXPLAIN:
            return _explained(rows).encode()
        case Format.JSON:
            return json_of(sheet, rows).encode()
        case Format.CSV:
            return csv_of(sheet, rows)
        case Format.PARQUET:
            return parquet_of(sheet, rows)


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
