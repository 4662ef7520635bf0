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

from toolkit.errors import InputError
from toolkit.market import parse_ts
from toolkit.statistics.conditions import Schema, column, condition
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

    def store(self, path: Path | None) -> Store:
        """Return the store of a path, as of the time that was asked for. See `store_as_of`."""
        return store_as_of(path, self.as_of)


def store_as_of(path: Path | None, as_of: str | None) -> Store:
    """Return the store of a path, as it was known at a time. Raises as `Store.known`."""
    held = named_store(path)
    return held if as_of is None else held.known(as_of, parameter="--as-of")


def tabled(
    columns: Callable[[], Schema], *, of_now: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a table. It takes them, checked, as its ``view``.

    ``columns`` returns those of the rows. A table ``of_now`` is not one of a store, or of what it
    cannot show as of a time. Errors as `checked_view`.
    """

    def options(
        form: _FormatOption = None,
        sort: _SortOption = None,
        top: _TopOption = None,
        where: _WhereOption = None,
        output: _OutputOption = None,
        as_of: AsOf = None,
    ) -> TableOptions:
        view = checked_view(form, sort, top, where, output, columns=columns())
        if as_of is not None:
            parse_ts(as_of, parameter="--as-of")
        return replace(view, as_of=as_of)

    asked = dict(inspect.signature(options, eval_str=True).parameters)
    if of_now:
        del asked["as_of"]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        taken = [*(each for each in own if each.name != "view"), *asked.values()]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            view = options(**{name: given.pop(name) for name in asked})
            command(**given, view=view)

        run.__dict__["__signature__"] = inspect.Signature(taken)
        run.__annotations__ = {each.name: each.annotation for each in taken}
        return run

    return with_options


def checked_view(
    form: Format | None,
    sort: str | None,
    top: int | None,
    where: str | None,
    output: Path | None,
    *,
    columns: Schema,
) -> TableOptions:
    """Check the options of a table before its rows are read. ``columns`` are those of the rows.

    Raises `InputError` for a column that is not there, a condition that is none, a file that is
    there already, Parquet without a file, and an explanation of rows that are no statistics.
    """
    chosen = form or _BY_ENDING.get(output.suffix if output else "", Format.TABLE)
    if sort is not None:
        column(sort.removeprefix("-"), columns, parameter="--sort")
    if output is None and chosen is Format.PARQUET:
        raise InputError("--format", "parquet", "with --output FILE", advice="it is no text")
    if chosen is Format.EXPLAIN and "method" not in columns:
        raise InputError("--format", "explain", "for statistics, whose rows have a method")
    if output is not None and (output.exists() or not output.parent.is_dir()):
        raise InputError("--output", str(output), "a new file in a folder that is there")
    keep = None if where is None else condition(where, columns, parameter="--where")
    return TableOptions(chosen, sort, top, keep, output)
