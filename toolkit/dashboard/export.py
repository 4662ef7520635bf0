"""Exports of a page: its rows as files, its address, and its Python."""

from __future__ import annotations

import io
import json
from functools import partial

import polars as pl

from toolkit.dashboard.widgets import Container, component, st
from toolkit.foreign import Markdown, file_name
from toolkit.market import Source
from toolkit.show.sheet import csv_rows


def rows_csv(rows: pl.DataFrame, source: Source) -> bytes:
    """Write rows as CSV, with a column for the source and, for ``ts``, one for that time in UTC.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    return csv_rows(_timed(rows, source))


def rows_parquet(rows: pl.DataFrame, source: Source) -> bytes:
    """Write rows as Parquet, with the columns that `rows_csv` adds.

    >>> rows = pl.DataFrame({"trajectory": ["a"], "ts": [60], "price": [1.0]})
    >>> file = rows_parquet(rows, Source("simulated", "seed-7-1a2b"))
    >>> pl.read_parquet(file)["source"].to_list()
    ['SIMULATED market, seed-7-1a2b']
    """
    file = io.BytesIO()
    _timed(rows, source).write_parquet(file)
    return file.getvalue()


def _timed(rows: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Add the source and, for ``ts``, that time in UTC."""
    clock = pl.from_epoch("ts", time_unit="s").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    times = [clock.alias("time_utc")] if "ts" in rows.columns else []
    return rows.with_columns(*times, source=pl.lit(source.label))


_SHARE = component("share")
_WRITERS = {"CSV": rows_csv, "Parquet": rows_parquet}


def show_share() -> None:
    """Show a button that copies the page's address with all choices."""
    _SHARE(data={}, key="share", width="content")


def hand_over(
    place: Container,
    rows: pl.DataFrame,
    source: Source,
    name: str,
    python: str | None,
    *,
    of: str = "export",
) -> None:
    """Offer rows as CSV and Parquet files, written on a click, and as Python.

    ``name`` is the files' name without its ending. ``of`` distinguishes buttons of one page.
    """
    with place, st.container(horizontal=True, gap="small", width="content"):  # on a phone, one line
        for words, write in _WRITERS.items():
            st.download_button(
                Markdown.harmless(words),
                partial(write, rows, source),
                file_name=f"{file_name(name)}.{words.lower()}",
                key=f"{of}_{words.lower()}",
                type="tertiary",
                on_click="ignore",
                help=Markdown("These rows with their source, as a {} file.").format(words),
            )
        if python is not None:
            with st.popover(Markdown("Python"), type="tertiary"):
                st.code(python, language="python")


def literal(value: object) -> str:
    r"""Write texts, numbers and lists of them as Python literals, in double quotes.

    >>> print(literal(["A_B", 'it"s']), literal(1.5), literal(True))
    ["A_B", "it\"s"] 1.5 True
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
