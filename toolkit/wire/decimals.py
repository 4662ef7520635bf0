"""Decimal text in another unit: converted in decimals, so that no digit is lost on the way."""

from __future__ import annotations

import functools
import math
from decimal import Context, Decimal

import msgspec

from toolkit.market import UNIT_FACTORS

_DECIMALS = Context(prec=40)


def converted_text(text: str, unit: str, wanted: str) -> float:
    """Read text of a JSON number as the float nearest to its value in the unit ``wanted``.

    Raises `msgspec.DecodeError` for any other text.

    >>> converted_text("1.1", "bps", "percent"), 1.1 * 0.01
    (0.011, 0.011000000000000001)
    """
    number = msgspec.json.decode(text, type=float)
    if unit == wanted or not math.isfinite(number):
        return number
    return float(_DECIMALS.multiply(Decimal(text), _ratio(unit, wanted)))


@functools.lru_cache(maxsize=64)
def _ratio(unit: str, wanted: str) -> Decimal:
    size = UNIT_FACTORS[unit][1] / UNIT_FACTORS[wanted][1]
    return _DECIMALS.divide(Decimal(size.numerator), Decimal(size.denominator))
