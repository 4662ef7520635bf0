"""Notes on a half-life beside its number: the same words wherever one is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from toolkit.reasons import Reason

NOT_BELIEVED = "not believed"
"""What stands beside a half-life whose 95 % interval has no upper bound."""

NEEDS_NO_MODEL = {
    "The autocorrelation halves after": "acf_half_lag_s",
    "Without spikes, the half-life is": "half_life_without_spikes_s",
}
"""What stands beside a half-life that is null or not believed: words, and the column in seconds."""

_NONE = {
    Reason.TOO_FEW: "too few rows for a half-life",
    Reason.DEGENERATE: "does not vary",
    Reason.NO_REVERSION: "no reversion",
    Reason.BELOW_STEP: "half-life under 1 step",
}


def half_life_doubt(row: Mapping[str, Any]) -> Reason | None:
    """Return why a half-life is not believed, None where it is, or where there is none.

    ``row`` is of `toolkit.statistics.spread.half_life`. It is believed where its 95 % interval has
    an upper bound. Columns that a row lacks say nothing.

    >>> half_life_doubt({"half_life_s": 60.0, "half_life_upper_s": None,
    ...                  "half_life_upper_reason": "no_reversion"}).name
    'NO_REVERSION'
    """
    reason = row.get("half_life_upper_reason")
    if row.get("half_life_s") is None or row.get("half_life_upper_s") is not None or not reason:
        return None
    return Reason(reason)


def half_life_note(row: Mapping[str, Any]) -> str:
    """Say why a half-life is null or not believed, "" where it is believed.

    ``row`` is as in `half_life_doubt`.

    >>> half_life_note({"half_life_s": None, "half_life_reason": "too_few"})
    'too few rows for a half-life'
    >>> half_life_note({"half_life_s": 60.0, "half_life_upper_s": None,
    ...                 "half_life_upper_reason": "no_reversion"})
    'half-life not believed: a spread that never returns to its mean fits these rows too'
    """
    if row.get("half_life_s") is None:
        reason = row.get("half_life_reason")
        if not reason:
            return "no half-life"
        return _NONE.get(Reason(reason), f"no half-life: {Reason(reason).words}")
    doubt = half_life_doubt(row)
    return f"half-life {NOT_BELIEVED}: {doubt.words.removeprefix('none: ')}" if doubt else ""


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
