"""The units of the wire and the factors between them."""

from __future__ import annotations

from fractions import Fraction

from toolkit.errors import InputError

_RATIOS = {"fraction": Fraction(1), "percent": Fraction(1, 100), "bps": Fraction(1, 10_000)}
_HOURS = {"hour": 1, "8h": 8, "day": 24, "year": 8_760}
_ALLOWED = (
    "quote, count, hours, s, ms, us, ns, iso; fraction, percent, bps, alone or followed by "
    "_per_interval, _per_hour, _per_8h, _per_day or _per_year"
)

UNIT_FACTORS: dict[str, tuple[str, Fraction]] = {
    **{ratio: ("ratio", size) for ratio, size in _RATIOS.items()},
    **{f"{ratio}_per_interval": ("rate of an interval", size) for ratio, size in _RATIOS.items()},
    **{
        f"{ratio}_per_{period}": ("rate", size / hours)
        for ratio, size in _RATIOS.items()
        for period, hours in _HOURS.items()
    },
    "s": ("time", Fraction(1)),
    "ms": ("time", Fraction(1, 10**3)),
    "us": ("time", Fraction(1, 10**6)),
    "ns": ("time", Fraction(1, 10**9)),
    "iso": ("time", Fraction(1, 10**3)),
    "hours": ("time", Fraction(3600)),
    "quote": ("quote", Fraction(1)),
    "count": ("count", Fraction(1)),
}
"""Each unit of the wire: the dimension it measures, and its size in that dimension's base unit.

A year has 365 days. ``iso`` is a time as ISO 8601 text, which is read to the millisecond.
"""


def unit_factor(given: str, wanted: str) -> float:
    """Return the factor from the unit ``given`` to the unit ``wanted``.

    >>> unit_factor("bps", "percent")
    0.01
    >>> unit_factor("fraction_per_hour", "percent_per_8h")
    800.0
    >>> unit_factor("percent", "quote")
    Traceback (most recent call last):
    toolkit.errors.InputError: unit: 'percent' is not allowed; allowed: ... as 'quote'
    """
    if given == wanted:
        return 1.0
    for unit in (given, wanted):
        if unit not in UNIT_FACTORS:
            raise InputError("unit", unit, _ALLOWED)
    (dimension, size), (wanted_dimension, wanted_size) = UNIT_FACTORS[given], UNIT_FACTORS[wanted]
    if dimension != wanted_dimension:
        raise InputError("unit", given, f"a unit of the same dimension as {wanted!r}")
    return float(size / wanted_size)
