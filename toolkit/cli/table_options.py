"""The options of a command's table, and the store as of the time that is asked for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cli.options import StoredWindow, grouped, signed
from toolkit.errors import InputError
from toolkit.market import parse_ts
from toolkit.statistics.core.conditions import Schema, column, condition
from toolkit.store import Store
from toolkit.workspace import named_store


class Format(StrEnum):
    """A form in which a table is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    EXPLAIN = "explain"


_BY_ENDING = {
    "": Format.TABLE,
    ".txt": Format.TABLE,
    ".json": Format.JSON,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".md": Format.MARKDOWN,
}

_FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="table or markdown to read. json (one object per line), csv or parquet with every "
        "column, in full. explain: in words, how each figure of each row came about. Default: by "
        "the ending of --output, else table.",
    ),
]
_SortOption = Annotated[
    str | None,
    typer.Option("--sort", metavar="COLUMN", help="Sort by it; -COLUMN: the largest first."),
]
_TopOption = Annotated[int | None, typer.Option("--top", min=1, help="Show the first N rows.")]
_WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help='Show the rows of which it is true: "coverage >= 0.95 and half_life_s < 3600".',
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Answer from the store as it was at that second of the local clock, UTC: from what it "
        "had committed by then.",
    ),
]
_OutputOption = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Write to this new file.")
]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What is asked of a table, checked: which rows, in which order, how many, in which form.

    ``as_of`` is the time as of which the store is read, as it was typed, None for now.
    """

    form: Format
    sort: str | None = None
    top: int | None = None
    where: pl.Expr | None = None
    output: Path | None = None
    as_of: str | None = None

    def opened(self, within: StoredWindow) -> Store:
        """Check the times of a window, and return its store as of the time that was asked for."""
        within.check()
        return store_as_of(within.store, self.as_of)


def store_as_of(path: Path | None, as_of: str | None) -> Store:
    """Return the store of a path, as it was known at a time. Raises as `Store.known`."""
    held = named_store(path)
    return held if as_of is None else held.known(as_of, parameter="--as-of")


@dataclass(frozen=True, slots=True)
class _Typed:
    """The options of a table as they were typed."""

    form: _FormatOption = None
    sort: _SortOption = None
    top: _TopOption = None
    where: _WhereOption = None
    output: _OutputOption = None

    def checked(self, columns: Schema) -> TableOptions:
        """Check them before rows are read. ``columns`` are those of the rows.

        Raises `InputError` for a column that is not there, a condition that is none, a file that
        is there already, Parquet without a file, and an explanation of rows that are no statistics.
        """
        output = self.output
        form = self.form or _form_of(output)
        if self.sort is not None:
            column(self.sort.removeprefix("-"), columns, parameter="--sort")
        if output is None and form is Format.PARQUET:
            raise InputError("--format", "parquet", "with --output FILE", advice="it is no text")
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
    """The same of a table that shows what a store holds, which may be as of a time."""

    as_of: AsOf = None

    def checked(self, columns: Schema) -> TableOptions:
        view = _Typed.checked(self, columns)
        if self.as_of is not None:
            parse_ts(self.as_of, parameter="--as-of")
        return replace(view, as_of=self.as_of)


def tabled(
    columns: Callable[[], Schema], *, of_now: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a table. It takes them, checked, as its ``view``.

    ``columns`` returns those of the rows. A table ``of_now`` is not one of a store, or of what it
    cannot show as of a time. Other dataclasses of options are taken as `grouped` has it.
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
    """Return the form that a file's ending asks for. Raises `InputError` for one of no form."""
    ending = "" if output is None else output.suffix.lower()
    if ending not in _BY_ENDING:
        endings = ", ".join(filter(None, _BY_ENDING))
        raise InputError(
            "--output", str(output), f"a name that ends in {endings}", advice="or give --format"
        )
    return _BY_ENDING[ending]
