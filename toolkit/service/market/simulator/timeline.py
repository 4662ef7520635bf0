"""Bounds of simulated time, and the ends of minutes.

A day is named by its number ``ts // 86400``. Bars carry their START, prices are those at the END.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import InputError
from toolkit.market import format_ts

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
MINUTES_A_DAY = DAY_S // MINUTE_S

EPOCH = 1_767_225_600
"""2026-01-01 00:00 UTC: no market before it."""

END = 4_102_444_800
"""2100-01-01 00:00 UTC: no market from it on."""


def day_of(ts: int) -> int:
    """Return the number of the UTC day that ``ts`` lies in."""
    return ts // DAY_S


def weekday(day: int) -> int:
    """Return the day of the week, 0 for a Monday."""
    return (day + 3) % 7


def check_day(day: int) -> None:
    """Refuse a day outside the simulated time with an `InputError`.

    >>> check_day(20_453)
    Traceback (most recent call last):
    toolkit.errors.InputError: day: 20453 is not allowed; allowed: 20454 (2026-01-01) to 47481 ...
    """
    first, last = day_of(EPOCH), day_of(END - 1)
    if not first <= day <= last:
        raise InputError("day", day, f"{first} (2026-01-01) to {last} (2099-12-31)")


def check_window(start: int, end: int) -> None:
    """Refuse a window that ends before it starts or leaves the simulated time.

    >>> check_window(EPOCH, EPOCH - 1)
    Traceback (most recent call last):
    toolkit.errors.InputError: window: '2026-01-01 00:00 UTC to ...' is not allowed; allowed: ...
    """
    if not EPOCH <= start <= end <= END:
        found = f"{format_ts(start)} to {format_ts(end)}"
        raise InputError("window", found, f"within {format_ts(EPOCH)} to {format_ts(END)}")


def minute_ends(day: int) -> NDArray[np.int64]:
    """Return the 1,440 moments (s, Unix UTC) at which the minutes of a day end."""
    return day * DAY_S + MINUTE_S * np.arange(1, MINUTES_A_DAY + 1, dtype=np.int64)
