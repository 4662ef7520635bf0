"""Times as text and as Unix seconds, always UTC."""

from __future__ import annotations

import datetime as dt
import operator
import re
from typing import Any, SupportsIndex

from toolkit.errors import InputError

When = str | int | dt.date | SupportsIndex
"""A moment as `parse_ts` reads it. Times of numpy and pandas are read too."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECONDS = range(-62_135_596_800, 253_402_300_800)  # the years 1 to 9999


def parse_ts(text: When, *, parameter: str = "time") -> int:
    """Read Unix seconds (UTC) from an ISO 8601 text, a datetime, a date or Unix seconds.

    Times of numpy and pandas, and whole numbers of numpy, are read as well. A time without a zone
    is UTC. What `format_ts` writes is read back. A part of a second is refused, for nothing here
    is finer. So is a time outside the years 1 to 9999, as a count of milliseconds is.

    >>> parse_ts("2023-03-01"), parse_ts("2023-03-01T00:01Z"), parse_ts(1677628800)
    (1677628800, 1677628860, 1677628800)
    >>> parse_ts("yesterday", parameter="start")
    Traceback (most recent call last):
    toolkit.errors.InputError: start: 'yesterday' is not allowed; allowed: ISO 8601 UTC, ...
    """
    refusal = InputError(
        parameter,
        text,
        "ISO 8601 UTC, e.g. 2023-03-01 or 2023-03-01T12:00:00Z, or whole Unix seconds",
    )
    text = _plain(text)
    if isinstance(text, str) and re.fullmatch(r"\d{9,11}", text):
        text = int(text)
    elif isinstance(text, str):
        iso = text[: -len(" UTC")] + "Z" if text.endswith(" UTC") else text
        try:
            text = dt.datetime.fromisoformat(iso)
        except ValueError:
            raise refusal from None
    if isinstance(text, dt.date):
        midnight = dt.datetime(text.year, text.month, text.day, tzinfo=dt.UTC)
        moment = text if isinstance(text, dt.datetime) else midnight
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        text, rest = divmod(zoned - _EPOCH, dt.timedelta(seconds=1))
        if rest:
            raise refusal
    if isinstance(text, bool) or not isinstance(text, int) or text not in _SECONDS:
        raise refusal
    return text


def _plain(given: Any) -> Any:
    """Turn a time or a whole number of numpy into Python's own."""
    if isinstance(given, str | int | dt.date):
        return given
    if hasattr(given, "__index__"):
        return operator.index(given)
    return given.astype("datetime64[us]").item() if hasattr(given, "astype") else given


def format_ts(ts: int) -> str:
    """Format Unix seconds as ``YYYY-MM-DD HH:MM:SS UTC``, without the seconds where they are zero.

    >>> format_ts(1677628800), format_ts(1677628801)
    ('2023-03-01 00:00 UTC', '2023-03-01 00:00:01 UTC')
    """
    if ts not in _SECONDS:
        raise InputError("time", ts, "Unix seconds in the years 1 to 9999")
    moment = dt.datetime.fromtimestamp(ts, tz=dt.UTC).replace(tzinfo=None)
    return moment.isoformat(" ", "minutes" if ts % 60 == 0 else "seconds") + " UTC"
