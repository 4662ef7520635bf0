"""Tables of commands: their options, and their rows in the chosen order and format."""

from __future__ import annotations

import functools
import inspect
import io
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from polars.exceptions import PolarsError

from toolkit.cards import counted
from toolkit.cli.options import StoredWindow, grouped, signed
from toolkit.cli.show import console, errors, write_new
from toolkit.errors import InputError
from toolkit.foreign import plain
from toolkit.market import parse_ts
from toolkit.show.printed import print_sheet
from toolkit.show.sheet import Sheet, csv_of, json_of, markdown_of, parquet_of
from toolkit.show.terminal import Terminal
from toolkit.statistics.core.conditions import Schema, column, condition

if TYPE_CHECKING:
    from toolkit.store import Store

_FILE_WIDTH = 200  # characters of a line of a table in a file
_PATH_ROWS = 16  # at most, of a path in a table
_LONGEST_LINE = 4_000  # characters of a paragraph of an explanation


class Format(StrEnum):
    """A format of a table."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    EXPLAIN = "explain"


_BY_ENDING = {"": Format.TABLE, ".txt": Format.TABLE, ".md": Format.MARKDOWN} | {
    f".{form}": form for form in (Format.JSON, Format.CSV, Format.PARQUET)
}

AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Answer from what the store had committed by this second of the local clock, UTC.",
    ),
]
_FormatOption = typer.Option(
    "--format",
    help="table or markdown to read. json (one object per line), csv or parquet: every column in "
    "full. explain: how each figure was computed, in words. Default: by the ending of --output, "
    "else table.",
)
_SortOption = typer.Option(
    "--sort", metavar="COLUMN", help="Sort by this column; -COLUMN: the largest first."
)
_TopOption = typer.Option("--top", min=1, help="Show the first N rows.")
_WhereOption = typer.Option(
    "--where",
    metavar="CONDITION",
    help='Show the rows that meet it: "coverage >= 0.95 and half_life_s < 3600".',
)
_OutputOption = typer.Option("--output", metavar="FILE", help="Write to this new file.")


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Checked options of a table. ``as_of`` is as typed."""

    form: Format
    sort: str | None = None
    top: int | None = None
    where: pl.Expr | None = None
    output: Path | None = None
    as_of: str | None = None

    def opened(self, within: StoredWindow) -> Store:
        """Check the times of a window, and return its store as of `as_of`."""
        within.check()
        return store_as_of(within.store, self.as_of)


def store_as_of(path: Path | None, as_of: str | None) -> Store:
    """Return the store of a path as of a time, see `Store.known`."""
    from toolkit.workspace import named_store  # noqa: PLC0415 - a help needs none of it

    held = named_store(path)
    return held if as_of is None else held.known(as_of, parameter="--as-of")


@dataclass(frozen=True, slots=True)
class _Typed:
    form: Annotated[Format | None, _FormatOption] = None
    sort: Annotated[str | None, _SortOption] = None
    top: Annotated[int | None, _TopOption] = None
    where: Annotated[str | None, _WhereOption] = None
    output: Annotated[Path | None, _OutputOption] = None

    def checked(self, columns: Schema) -> TableOptions:
        """Check the options against the columns of the rows, before rows are read.

        Raises `InputError` for an unknown column, an invalid condition, an existing file, Parquet
        without a file, and an explanation of rows that are not statistics.
        """
        output = self.output
        form = self.form or _form_of(output)
        if self.sort is not None:
            column(self.sort.removeprefix("-"), columns, parameter="--sort")
        if output is None and form is Format.PARQUET:
            raise InputError("--format", "parquet", "with --output FILE", advice="it is not text")
        if form is Format.EXPLAIN and "method" not in columns:
            raise InputError("--format", "explain", "for statistics, whose rows have a method")
        if output is not None and (output.exists() or not output.parent.is_dir()):
            there = f"there is no folder {output.parent}"
            why = "it is there already" if output.exists() else there
            allowed = "a new file in a folder that is there"
            raise InputError("--output", str(output), allowed, advice=why)
        keep = None if self.where is None else condition(self.where, columns, parameter="--where")
        return TableOptions(form, self.sort, self.top, keep, output)


@dataclass(frozen=True, slots=True)
class _TypedOfStore(_Typed):
    """Options of a table over a store, which may be as of a time."""

    as_of: AsOf = None

    def checked(self, columns: Schema) -> TableOptions:
        view = _Typed.checked(self, columns)
        if self.as_of is not None:
            parse_ts(self.as_of, parameter="--as-of")
        return replace(view, as_of=self.as_of)


def tabled(
    columns: Callable[[], Schema], *, of_now: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a table, which it takes, checked, as ``view``.

    ``columns`` returns the schema of the rows. A table ``of_now`` has no --as-of. Other dataclasses
    of options are as in `grouped`.
    """
    options = _Typed if of_now else _TypedOfStore

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(typed: _Typed, **given: Any) -> None:
            command(**given, view=typed.checked(columns()))

        own = dict(inspect.signature(command, eval_str=True).parameters)
        own["view"] = own["view"].replace(name="typed", annotation=options)
        return grouped(signed(run, own.values()))

    return with_options


def _form_of(output: Path | None) -> Format:
    ending = "" if output is None else output.suffix.lower()
    if ending not in _BY_ENDING:
        endings = ", ".join(filter(None, _BY_ENDING))
        raise InputError(
            "--output", str(output), f"a name that ends in {endings}", advice="or give --format"
        )
    return _BY_ENDING[ending]


def show(view: TableOptions, sheet: Sheet) -> None:
    """Write a table to a file or to stdout, in the chosen order and format.

    Rows left out are counted below the table, or on stderr for another format.
    """
    if view.as_of is not None:
        sheet = replace(sheet, as_of=parse_ts(view.as_of, parameter="--as-of"))
    rows, left_out = _chosen(view, sheet)
    if view.form is Format.TABLE and view.output is None:
        print_sheet(console, sheet, rows, left_out)
        return
    content = _written(view.form, sheet, rows)
    if view.output is None:
        sys.stdout.write(content.decode())
    else:
        write_new("--output", view.output, content, private=False)
        errors.print(f"{counted(rows.height, 'row')} in {view.output}")
    if left_out:
        errors.print(left_out)


def _chosen(view: TableOptions, sheet: Sheet) -> tuple[pl.DataFrame, str]:
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
    kept = sheet.ordered(kept, view.sort or "")
    every = _spacing(view, sheet, kept.height)
    rows = kept.gather_every(every) if view.top is None else kept.head(view.top)
    failed, beyond = sheet.rows.height - kept.height, kept.height - rows.height
    parts = [f"--where leaves out {failed:,}"] if failed else []
    if beyond:
        parts.append(f"--top {view.top:,} leaves out {beyond:,}" if view.top else f"one in {every}")
    shown = f"{rows.height:,} of {counted(sheet.rows.height, 'row')} shown"
    return rows, f"{shown}: {', '.join(parts)}" if parts else ""


def _spacing(view: TableOptions, sheet: Sheet, height: int) -> int:
    if not sheet.path or view.form is not Format.TABLE or view.sort or view.where is not None:
        return 1
    middle = height // 2
    least = -(-height // _PATH_ROWS)
    return next((n for n in range(least, 2 * least + 1) if middle % n == 0), least)


def _written(form: Format, sheet: Sheet, rows: pl.DataFrame) -> bytes:
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
    from toolkit.statistics.explanation import explain  # noqa: PLC0415 - seldom asked for

    texts = [explain(rows[place]) for place in range(rows.height)]
    fill = functools.partial(textwrap.fill, width=min(console.width, 100), subsequent_indent="  ")
    lines = [[fill(plain(line, _LONGEST_LINE)) for line in text.splitlines()] for text in texts]
    return "\n\n\n".join("\n".join(each) for each in lines) + "\n"
