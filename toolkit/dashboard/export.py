"""Exports of a page: its rows as files with their source, its address, and Python for both."""

from __future__ import annotations

import json
from functools import partial

import polars as pl

from toolkit.dashboard.parts.tables import rows_csv, rows_parquet
from toolkit.dashboard.screen import Screen, component, st
from toolkit.foreign import Markdown, file_name
from toolkit.market import Source

_SHARE = component("share")
_WRITERS = {"CSV": rows_csv, "Parquet": rows_parquet}


def show_share() -> None:
    """Show a button that copies the page's address, with everything that was chosen in it."""
    _SHARE(data={}, key="share", width="content")


def hand_over(
    place: Screen,
    rows: pl.DataFrame,
    source: Source,
    name: str,
    python: str | None,
    *,
    of: str = "export",
) -> None:
    """Offer rows as CSV and Parquet by one click each, and the Python that gives them.

    Rows that have ``ts`` (s UTC) get its time as text. ``name`` is of the files, without an ending.
    They are written when they are asked for. Without ``python`` there is none to copy.
    ``of`` names the buttons where a page has two of each.
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
    r"""Write texts, numbers and lists of them as Python reads them, in double quotes.

    >>> print(literal(["A_B", 'it"s']), literal(1.5), literal(True))
    ["A_B", "it\"s"] 1.5 True
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
