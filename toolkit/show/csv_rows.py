"""Rows as CSV without formulas for a spreadsheet."""

from __future__ import annotations

import polars as pl

from toolkit.foreign import csv_cell


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
