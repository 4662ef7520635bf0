"""Times as the wire has them: counts of seconds, milliseconds and finer, or ISO 8601 text."""

from __future__ import annotations

import datetime as dt

import msgspec

from toolkit.market import unit_factor

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def clock_value(ts: int, clock: str) -> int | str:
    """Return a time (Unix s) as a service's clock has it: in its unit, or as ISO 8601 text.

    >>> clock_value(60, "s"), clock_value(60, "ms"), clock_value(60, "iso")
    (60, 60000, '1970-01-01T00:01:00Z')
    """
    if clock == "iso":
        return dt.datetime.fromtimestamp(ts, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return round(ts * unit_factor("s", clock))


def iso_ms(text: str) -> int:
    """Read ISO 8601 text as Unix milliseconds, in UTC where it names no zone.

    Raises `msgspec.DecodeError` for any other text.

    >>> iso_ms("1970-01-01T00:01:00.5Z"), iso_ms("1970-01-01 00:01")
    (60500, 60000)
    """
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise msgspec.DecodeError(f"{text!r:.40} is not a time in ISO 8601") from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (zoned - _EPOCH) // dt.timedelta(milliseconds=1)
