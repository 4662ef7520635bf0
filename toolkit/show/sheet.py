"""A table for a reader, a file or a program: rows, and the columns that come first.

Headings, units and formats are those of `toolkit.columns`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from typing import Any

import polars as pl

from toolkit.columns import Column, column
from toolkit.foreign import LONGEST, csv_cell, markdown, plain
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.reasons import Reason
from toolkit.show.values import UNRELIABLE, doubt_of, heading_of, null_text, reason_of, value_text


def csv_rows(rows: pl.DataFrame) -> bytes:
    r"""Write rows as CSV. A cell that a spreadsheet would take for a formula begins with "'".

    >>> csv_rows(pl.DataFrame({"symbol": ["A_B", "=1+1"], "n": [1, None]}))
    b"symbol,n\nA_B,1\n'=1+1,\n"
    """
    cells = pl.selectors.string().replace(_harmless(rows))
    return rows.with_columns(cells).write_csv().encode()


def _harmless(rows: pl.DataFrame) -> dict[str, str]:
    """Return the texts that must be escaped, with their replacement."""
    texts = rows.select(pl.selectors.string().unique().implode()).row(0) if rows.width else ()
    return {text: csv_cell(text) for part in texts for text in part if text is not None}


Name = str | tuple[str, ...]
"""A column of a table, or several whose values share a cell."""

Cells = Mapping[str, Callable[[dict[str, Any]], str]]
"""Writers of cells that need more than one value of their row."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table.

    ``columns`` are names by weight: the key first, then as many as fit. Names in a tuple share a
    cell. ``as_of`` is the time of what was known, if not now. ``order`` is as in ``--sort``, "" for
    that of the rows. ``figures`` list a table's one row in full. ``window`` is that of the request,
    unless the rows have it. ``notes`` are lines below the rows. ``cells`` write some columns.
    ``printed`` prints the rows on a terminal in another form. ``result`` is used if the rows have
    no method. A terminal shows evenly spaced rows of a ``path``.
    """

    heading: str
    source: str
    rows: pl.DataFrame
    columns: Sequence[Name]
    order: str = ""
    figures: Sequence[str] = ()
    window: Interval | None = None
    notes: Sequence[str] = ()
    cells: Cells = field(default_factory=dict)
    printed: Callable[[Any, pl.DataFrame], object] | None = None
    as_of: int | None = None
    result: str = ""
    path: bool = False

    @property
    def label(self) -> str:
        """The source and its ``as_of``."""
        then = "" if self.as_of is None else f", as of {format_ts(self.as_of)}"
        return f"{self.source}{then}"

    def ordered(self, rows: pl.DataFrame | None = None, order: str = "") -> pl.DataFrame:
        """Return rows, by default all, sorted as by ``--sort``.

        Ties are in the order of the first column, nulls last.
        """
        found, order = self.rows if rows is None else rows, order or self.order
        if not order:
            return found
        name, first = order.removeprefix("-"), self.columns[0]
        by = [name, first if isinstance(first, str) else first[0]]
        falling = [order.startswith("-"), False]
        return found.sort(by, descending=falling, nulls_last=True, maintain_order=True)

    def column(self, name: Name) -> Column:
        """Return the declaration of a column in the result of the rows."""
        if isinstance(name, tuple):
            parts = [self.column(each) for each in name]
            heading, short = (", ".join(words) for words in zip(*map(_words, parts), strict=True))
            return replace(parts[0], heading=heading, short=short)
        known = "method" in self.rows.columns and self.rows.height
        return column(name, str(self.rows["method"][0]) if known else self.result)


def _words(one: Column) -> tuple[str, str]:
    return one.heading, one.short


@dataclass(slots=True)
class Notes:
    """Letters in cells for the reasons why a figure is null or unreliable."""

    letters: dict[str, str] = field(default_factory=dict)

    def letter(self, reason: str) -> str:
        """Return the letter of a reason: a to z for the first ones, then aa, ab and so on.

        >>> notes = Notes()
        >>> [notes.letter(str(number)) for number in range(28)][-3:], notes.letter("0")
        (['z', 'aa', 'ab'], 'a')
        """
        round_, place = divmod(len(self.letters), len(ascii_lowercase))
        before = ascii_lowercase[round_ - 1] if round_ else ""
        return self.letters.setdefault(reason, before + ascii_lowercase[place])

    @property
    def lines(self) -> list[str]:
        """A line per reason, in the order of their letters."""
        words = {code: Reason(code).words if code in set(Reason) else code for code in self.letters}
        return [f"({letter}) {words[code]}" for code, letter in self.letters.items()]


def cell_text(row: dict[str, Any], one: Column, notes: Notes) -> str:
    """Write a value, or a null with the letter of its reason.

    >>> row, notes = {"half_life_s": None, "half_life_reason": "too_few"}, Notes()
    >>> cell_text(row, column("half_life_s"), notes), notes.lines
    ('– (a)', ['(a) too few observations for this statistic'])
    """
    value = row[one.name]
    if value is None:
        code = reason_of(row, one.name)
        return f"{null_text(row, one.name)} ({notes.letter(code)})" if code else "–"
    doubt = doubt_of(row, one.name)
    text = value_text(value, one)
    return f"{text}, {UNRELIABLE} ({notes.letter(doubt)})" if doubt else text


def cells_of(
    sheet: Sheet, rows: pl.DataFrame, names: Sequence[Name]
) -> tuple[list[list[str]], list[str]]:
    """Write the cells of columns, row by row, and the notes on their nulls."""
    notes, columns = Notes(), {name: sheet.column(name) for name in names}

    def written(row: dict[str, Any], name: Name) -> str:
        if isinstance(name, tuple):
            return " ".join("–" if row[each] is None else plain(str(row[each])) for each in name)
        own = sheet.cells.get(name)
        return own(row) if own else cell_text(row, columns[name], notes)

    return [
        [written(row, name) for name in names] for row in rows.iter_rows(named=True)
    ], notes.lines


def markdown_of(sheet: Sheet, rows: pl.DataFrame) -> str:
    """Write rows as Markdown with all columns of the table."""
    cells, notes = cells_of(sheet, rows, sheet.columns)
    columns = [sheet.column(name) for name in sheet.columns]
    foreign = [each.type == "String" for each in columns]
    lines = [f"{sheet.heading} · {markdown(sheet.label)}", ""]
    table = [[heading_of(each) for each in columns], [":--" if t else "--:" for t in foreign]]
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


def json_of(sheet: Sheet, rows: pl.DataFrame) -> str:
    """Write rows as JSON, an object per line, with every column."""
    lines = [json.dumps(row) for row in _named(sheet, rows).iter_rows(named=True)]
    return "".join(f"{line}\n" for line in lines)


def csv_of(sheet: Sheet, rows: pl.DataFrame) -> bytes:
    """Write rows as CSV with every column."""
    named = _named(sheet, rows)
    return csv_rows(named.with_columns(pl.selectors.string().map_batches(_plain_cells)))


def parquet_of(sheet: Sheet, rows: pl.DataFrame) -> bytes:
    """Write rows as Parquet with every column."""
    file = io.BytesIO()
    _named(sheet, rows).write_parquet(file)
    return file.getvalue()


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
