"""Implausible figures of a page, named beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from toolkit.dashboard.screen import st
from toolkit.foreign import Markdown
from toolkit.statistics.quality.plausibility import HIGH_RATE, high_rate, notes_of


def show_implausible(notes: Sequence[str]) -> None:
    """Show the lines of `plausibility.notes_of`, if there are any."""
    for note in notes:
        st.warning(Markdown("{}{}.").format(note[0].upper(), note[1:]))


def row_notes(row: Mapping[str, Any]) -> list[str]:
    """Say what is not plausible about a row of figures, as `notes_of` does of a table.

    >>> row_notes({"trajectory": "a", "n": 3, "implausible": ""})
    []
    """
    return notes_of(pl.DataFrame({name: [row[name]] for name in ("trajectory", "implausible")}))


def high_rate_notes(rates: pl.DataFrame) -> list[str]:
    """Say which rates in force are not plausible, as `notes_of` does.

    ``rates`` is of `toolkit.workspace.snapshot_tables.funding_rates`.

    >>> rates = pl.DataFrame({"symbol": ["A_B"], "leg": ["X.futures"], "rate": [6.9]})
    >>> high_rate_notes(rates)
    ['not plausible, A_B:X.futures: a rate is above 5 % per interval, as one in the quote per ...']
    """
    odd = rates.filter(high_rate())
    key = pl.format("{}:{}", "symbol", "leg").alias("trajectory")
    return notes_of(odd.select(key, pl.lit(HIGH_RATE).alias("implausible")))
