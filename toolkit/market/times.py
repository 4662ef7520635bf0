"""Times as text and as Unix seconds, always UTC."""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, SupportsIndex

from toolkit.errors import InputError

When = str | int | dt.date | SupportsIndex
"""A moment as `parse_ts` reads it. Times of numpy and pandas are read too."""

Step = int | Mapping[str, int] | None
"""A step (s) asked for, or those known of trajectories, or None for the commonest of the rows."""

Window = str | tuple[When, When | None]
"""The name of a window (``7d``), or a start and an end. An end of None is the present."""

_MOMENTS = "ISO 8601 UTC, e.g. 2023-03-01 or 2023-03-01T12:00:00Z, or whole Unix seconds"
_WINDOWS = "or a whole window: 7d, 12h, today, yesterday, 2023-03 or 2023"
_LENGTHS_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECONDS = range(-62_135_596_800, 253_402_300_800)  # the years 1 to 9999


def parse_ts(text: When, *, parameter: str = "time") -> int:
    """Read Unix seconds (UTC) from ISO 8601 text, a datetime, a date or Unix seconds.

    Times of numpy, pandas and `format_ts` are read too. One without a zone is UTC. Parts of a
    second and times outside the years 1 to 9999 are refused.

    >>> parse_ts("2023-03-01"), parse_ts("2023-03-01T00:01Z"), parse_ts(1677628800)
    (1677628800, 1677628860, 1677628800)
    >>> parse_ts("yesterday", parameter="start")
    Traceback (most recent call last):
    toolkit.errors.InputError: start: 'yesterday' is not allowed; allowed: ISO 8601 UTC, ...
    """
    given = text
    text = _plain(given)
    if isinstance(text, str) and re.fullmatch(r"[0-9]{9,20}", text):
        text = int(text)
    elif isinstance(text, str):
        iso = text[: -len(" UTC")] + "Z" if text.endswith(" UTC") else text
        try:
            text = dt.datetime.fromisoformat(iso)
        except ValueError:
            raise InputError(parameter, given, _MOMENTS) from None
    if isinstance(text, dt.date) and str(text) != "NaT":
        midnight = dt.datetime(text.year, text.month, text.day, tzinfo=dt.UTC)
        moment = text if isinstance(text, dt.datetime) else midnight
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        text, rest = divmod(zoned - _EPOCH, dt.timedelta(seconds=1))
        if rest:
            raise InputError(parameter, given, _MOMENTS, advice="here are parts of a second")
    if isinstance(text, bool) or not isinstance(text, int) or text not in _SECONDS:
        raise InputError(parameter, given, _MOMENTS, advice=_finer(text))
    return text


def _finer(given: object) -> str:
    units = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
    if isinstance(given, int):
        for unit, size in units.items():
            if 10**8 <= given // size < 10**11:
                return f"these are {unit}: divide by {size:,}"
    return ""


def parse_length(text: str | int, *, parameter: str = "length") -> int:
    """Read a length above 0 (s) from 90s, 5m (or 5min), 12h, 7d or 2w, or whole seconds.

    >>> parse_length("5m"), parse_length("7d"), parse_length(60)
    (300, 604800, 60)
    >>> parse_length("5 months")
    Traceback (most recent call last):
    toolkit.errors.InputError: length: '5 months' is not allowed; allowed: a length such as ...
    """
    found = _length(text) if isinstance(text, str) else text
    if isinstance(found, bool) or not isinstance(found, int) or found <= 0:
        raise InputError(parameter, text, "a length such as 90s, 5m, 12h, 7d or 2w")
    return found


def _length(text: str) -> int | None:
    match = re.fullmatch(r"([1-9]\d{0,6})(s|m|min|h|d|w)", text)
    return int(match[1]) * _LENGTHS_S[match[2]] if match else None


def named_window(name: object, now: int) -> tuple[int, int] | None:
    """Return the window ``[start, end)`` that a text names at ``now`` (s), or None.

    A length (``7d``, ``12h``) ends at the last whole minute. ``today`` goes from midnight UTC to
    midnight, ``yesterday`` is the day before. A month (``2023-03``) and a year (``2023``) are
    whole.

    >>> now = parse_ts("2023-03-02T12:00")
    >>> [format_ts(ts) for ts in named_window("yesterday", now)]
    ['2023-03-01 00:00 UTC', '2023-03-02 00:00 UTC']
    >>> [format_ts(ts) for ts in named_window("2022-12", now)]
    ['2022-12-01 00:00 UTC', '2023-01-01 00:00 UTC']
    >>> named_window("2023-03-01", now) is None
    True
    """
    if not isinstance(name, str):
        return None
    midnight, minute = now - now % 86_400, now - now % 60
    if (length_s := _length(name)) is not None:
        return minute - length_s, minute
    if name in ("today", "yesterday"):
        return (midnight, minute) if name == "today" else (midnight - 86_400, midnight)
    match = re.fullmatch(r"([1-9]\d{3})(?:-(0[1-9]|1[0-2]))?", name)
    if match is None:
        return None
    year, month = int(match[1]), int(match[2] or 1)
    after = (year + 1, 1) if match[2] in (None, "12") else (year, month + 1)
    low, high = (dt.datetime(*first, 1, tzinfo=dt.UTC) for first in ((year, month), after))
    return parse_ts(low), parse_ts(high)


def asked_window(
    start: When | None,
    end: When | None,
    *,
    now: Callable[[], int],
    default: Callable[[], tuple[int, int]],
    names: tuple[str, str] = ("start", "end"),
) -> tuple[int, int]:
    """Read a window from two moments, or from the name of a window as start.

    A missing end is that of ``default``. ``now`` (s) is called for a relative name. Both are called
    only after the given ends are checked.

    >>> asked_window("7d", None, now=lambda: 604_860, default=lambda: (0, 9))
    (60, 604860)
    >>> asked_window("1970-01-01T00:01", None, now=lambda: 0, default=lambda: (0, 90))
    (60, 90)
    >>> asked_window("2023-03", "2023-04", now=lambda: 0, default=lambda: (0, 9))
    Traceback (most recent call last):
    toolkit.errors.InputError: start: '2023-03' is not allowed; allowed: a moment beside an end: ...
    """
    if named_window(start, 0) is not None:
        if end is not None:
            moment = f"a moment beside an end: {_MOMENTS}"
            raise InputError(names[0], start, moment, advice=_first_day(start))
        return named_window(start, now()) or default()
    for name, given in zip(names, (start, end), strict=True):
        if given is not None:
            try:
                parse_ts(given, parameter=name)
            except InputError as error:
                also = f"; {_WINDOWS}" if name == names[0] else ""
                advice = error.advice or _window_meant(given, alone=name == names[0])
                raise InputError(name, given, _MOMENTS + also, advice=advice) from None
    low, high = default() if start is None or end is None else (0, 0)
    return (
        low if start is None else parse_ts(start, parameter=names[0]),
        high if end is None else parse_ts(end, parameter=names[1]),
    )


def window_ends(window: Window) -> tuple[When, When | None]:
    """Return a window's two ends; of a named one, the name and None.

    >>> window_ends("7d"), window_ends(("2023-03-01", "2023-03-02"))
    (('7d', None), ('2023-03-01', '2023-03-02'))
    >>> window_ends("last week")
    Traceback (most recent call last):
    toolkit.errors.InputError: window: 'last week' is not allowed; allowed: 7d, today, ...
    """
    if isinstance(window, tuple) and len(window) == 2:
        return window[0], window[1]
    if isinstance(window, str) and named_window(window, 0) is not None:
        return window, None
    raise InputError("window", window, "7d, today, yesterday, 2023-03, or (start, end)")


def _window_meant(given: object, *, alone: bool) -> str:
    if not isinstance(given, str):
        return ""
    if named_window(given, 0) is not None:
        return _first_day(given) or "the name of a window stands alone, as the start"
    meant = given.lower().replace(" ", "")
    return f"nearest: {meant}" if alone and named_window(meant, 0) is not None else ""


def _first_day(name: object) -> str:
    window = named_window(name, 0) if re.match(r"[1-9]\d{3}(-|$)", str(name)) else None
    return f"its first day is {format_ts(window[0])[:10]}" if window else ""


def _plain(given: Any) -> Any:
    if isinstance(given, str | int | dt.date):
        return given
    if type(given).__name__ == "datetime64":
        whole = given.astype("datetime64[us]")
        return whole.item() if whole == given else given
    try:
        return operator.index(given)
    except TypeError:
        return given


def format_ts(ts: int) -> str:
    """Format Unix seconds as ``YYYY-MM-DD HH:MM:SS UTC``, without seconds if they are zero.

    >>> format_ts(1677628800), format_ts(1677628801)
    ('2023-03-01 00:00 UTC', '2023-03-01 00:00:01 UTC')
    """
    if not hasattr(ts, "__index__") or (ts := operator.index(ts)) not in _SECONDS:
        raise InputError("time", ts, "Unix seconds in the years 1 to 9999")
    moment = dt.datetime.fromtimestamp(ts, tz=dt.UTC).replace(tzinfo=None)
    return moment.isoformat(" ", "minutes" if ts % 60 == 0 else "seconds") + " UTC"
