"""How the other services write values: numbers as decimal text that loses nothing, ISO times."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Context, Decimal
from fractions import Fraction

_DIGITS = Context(prec=40)


def decimal_text(value: float | None, times: Fraction | int = 1) -> str | None:
    """Write a number as plain decimal text, exactly ``times`` as large; null stays null.

    The number is the shortest decimal that reads back as the same double. A product that no
    decimal text can hold is rounded to 40 digits.

    >>> decimal_text(97.61), decimal_text(1e-07), decimal_text(0.1, 100), decimal_text(None)
    ('97.61', '0.0000001', '10', None)
    """
    if value is None:
        return None
    found = Decimal(repr(value))
    if times != 1:
        found = _DIGITS.multiply(found, Decimal(times.numerator))
        found = _DIGITS.divide(found, Decimal(times.denominator))
    text = format(found, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def iso(ts: float) -> str:
    """Write Unix seconds as an ISO 8601 time in UTC, with milliseconds where there are any.

    >>> iso(1793491200), iso(1793491200.125)
    ('2026-11-01T00:00:00Z', '2026-11-01T00:00:00.125Z')
    """
    unit = "seconds" if ts == int(ts) else "milliseconds"
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec=unit).replace("+00:00", "Z")


def seconds(text: str) -> float:
    """Read an ISO 8601 time with a zone as Unix seconds; a `ValueError` for anything else.

    >>> seconds("2026-11-01T00:00:00Z")
    1793491200.0
    """
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError(text)
    return read.timestamp()
