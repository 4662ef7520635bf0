"""The units of the wire and the factors between them."""

from __future__ import annotations

from toolkit.errors import InputError

UNIT_FACTORS: dict[str, tuple[str, float]] = {
    "fraction": ("ratio", 1.0),
    "percent": ("ratio", 1e-2),
    "bps": ("ratio", 1e-4),
    "s": ("time", 1.0),
    "ms": ("time", 1e-3),
    "hours": ("time", 3600.0),
    "fraction_per_interval": ("funding rate", 1.0),
    "percent_per_8h": ("funding differential", 1.0),
    "quote": ("quote", 1.0),
    "count": ("count", 1.0),
}
"""Each unit of the wire: the dimension it measures, and its size in that dimension's base unit."""


def unit_factor(given: str, wanted: str) -> float:
    """Return the factor from the unit ``given`` to the unit ``wanted``.

    >>> unit_factor("bps", "percent")
    0.01
    >>> unit_factor("percent", "percent")
    1.0
    >>> unit_factor("percent", "quote")
    Traceback (most recent call last):
    toolkit.errors.InputError: unit: 'percent' is not allowed; allowed: ... as 'quote'
    """
    if given == wanted:
        return 1.0
    for unit in (given, wanted):
        if unit not in UNIT_FACTORS:
            raise InputError("unit", unit, ", ".join(UNIT_FACTORS))
    (dimension, size), (wanted_dimension, wanted_size) = UNIT_FACTORS[given], UNIT_FACTORS[wanted]
    if dimension != wanted_dimension:
        raise InputError("unit", given, f"a unit of the same dimension as {wanted!r}")
    return float(f"{size / wanted_size:.12g}")
