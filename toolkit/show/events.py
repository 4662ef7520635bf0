"""Write the size of an event and how long it lasted."""

from __future__ import annotations

from toolkit.columns import column
from toolkit.market import EventFamily
from toolkit.show.values import value_text


def size_text(size: float | None, family: str) -> str:
    """Write a size as the service sends it of a family, with its unit.

    >>> size_text(1.23456, "spread"), size_text(-0.1, "funding"), size_text(None, "splash")
    ('1.235 %', '-0.1000 % per 8 h', '–')
    """
    name = "differential_pct_8h" if family == EventFamily.FUNDING else "magnitude_pct"
    return value_text(size, column(name), unit=size is not None)


def lasted_text(duration_s: float | None, kind: str) -> str:
    """Write how long an event lasted, as far as it was seen.

    >>> lasted_text(90.0, "closed"), lasted_text(90.0, "open"), lasted_text(None, "orphan_close")
    ('1 min 30 s', 'at least 1 min 30 s', '–')
    """
    least = {"open": "at least ", "reopened": "at most "}.get(kind, "")
    lasted = value_text(duration_s, column("duration_s"))
    return lasted if duration_s is None else f"{least}{lasted}"
