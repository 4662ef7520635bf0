"""A page of a trajectory, as the pagers hand it on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.intervals import Interval
from toolkit.wire.exchange import Answer
from toolkit.wire.findings import Finding
from toolkit.wire.places import with_rows


def rows_of_window(
    answer: Answer, place: str, times: NDArray[np.int64], window: Interval
) -> tuple[Answer, ...]:
    """Return an answer with its rows of a window alone, () where it has none there.

    ``place`` is that of its rows, ``times`` are theirs (s), in the order of the wire. A question
    for a minute may be answered by a page of days.

    >>> answer = Answer(200, {}, b'{"items":[{"ts":60},{"ts":0}]}')
    >>> rows_of_window(answer, "items", np.array([60, 0]), Interval(60, 120))[0].body
    b'{"items":[{"ts":60}]}'
    """
    inside = (times >= window.start) & (times < window.end)
    if inside.all():
        return (answer,) if inside.size else ()
    body = with_rows(answer.body, place, inside.tolist())
    return (replace(answer, body=body),) if inside.any() else ()


@dataclass(frozen=True, slots=True)
class Page:
    """New rows of a window, and the stretch of it that is now answered for in full.

    ``frame`` holds rows inside the window that no earlier page brought, each once, newest first as
    sent. ``answered`` reaches down from the last page's and may be empty. Its rows are all in this
    and earlier pages, but for those in its ``missing`` seconds that are too large to keep. ``tied``
    has the times at which the service sent several rows, although its key is the time.
    ``is_oldest``: the service has shown that no row is older. ``answers`` are those that the rows
    were read from, with their rows inside ``window`` alone.
    """

    frame: pl.DataFrame
    answered: Interval
    findings: tuple[Finding, ...]
    tied: frozenset[int] = frozenset()
    missing: tuple[Interval, ...] = ()
    is_oldest: bool = False
    answers: tuple[Answer, ...] = ()
    window: Interval | None = None
