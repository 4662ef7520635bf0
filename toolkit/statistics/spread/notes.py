"""Notes on a spread beside its figures: flags, coverage, nulls and unreliable figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from toolkit.show.half_life import half_life_note

_WHOLE = 0.9995


def spread_notes(row: Mapping[str, Any]) -> list[str]:
    """Return the notes of a row of `toolkit.statistics.screening.spread_figures`.

    They name the flags that are true, coverage below 100 %, what the fee table lacks (where the row
    has ``cost_lacks``), why there is no half-life or why it is not believed, and spreads that are
    the service's own.

    >>> spread_notes({"flags": "stale_buy", "coverage": 0.5, "half_life_s": None,
    ...               "half_life_reason": "too_few", "spread_basis": "service"})
    ['stale buy', '50 % covered', 'too few rows for a half-life', "the service's own figure"]
    """
    found = row["flags"].replace("_", " ").split(", ") if row["flags"] else []
    if row["coverage"] is not None and row["coverage"] < _WHOLE:
        found.append(f"{math.floor(100 * row['coverage'])} % covered")
    if row.get("cost_lacks"):
        found.append(f"the fee table lacks {row['cost_lacks']}")
    if note := half_life_note(row):
        found.append(note)
    if "service" in (row["spread_basis"] or ""):
        found.append("the service's own figure")
    return found
