"""Which method of which series gave a result: kept for as long as the result lives.

A frame does not know what it was asked. A report that repeats the question has to.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A method of a series and its options, and of the series all but its rows.

    ``stream``, ``window`` and ``origin`` are those of the `toolkit.series.Series`. Of a screen of
    many ``stream`` is None.
    """

    stream: Any
    window: Any
    origin: Any
    method: str
    options: Mapping[str, object]


_asked: dict[int, MethodCall] = {}  # by the identity of the frame


def remember(result: pl.DataFrame, asked: MethodCall) -> None:
    """Keep what a result is of until the result is gone.

    >>> frame = pl.DataFrame({"n": [1]})
    >>> remember(frame, MethodCall("events/spread", (0, 60), None, "summary", {}))
    >>> asked_of(frame).method, asked_of(frame.head(1))
    ('summary', None)
    """
    key = id(result)
    _asked[key] = asked
    weakref.finalize(result, _asked.pop, key, None).atexit = False


def asked_of(result: pl.DataFrame) -> MethodCall | None:
    """Return what a result is of, None for a frame that no method of a series returned."""
    return _asked.get(id(result))
