"""A page of a trajectory, as the pagers hand it on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from toolkit.intervals import Interval
from toolkit.wire.exchange import Answer
from toolkit.wire.findings import Finding
from toolkit.wire.places import with_rows
from toolkit.wire.rows import TOO_LARGE, too_large_to_keep


def with_kept_rows(
    answer: Answer, place: str, frame: pl.DataFrame, window: Interval
) -> tuple[Answer, ...]:
    """Return an answer with the rows of a window alone that are kept, () where it has none.

    ``place`` is that of its rows, ``frame`` has all of them, in the order of the wire. A question
    for a minute may be answered by a page of days, and one row may be too large to keep.

    >>> answer = Answer(200, {}, b'{"items":[{"ts":60},{"ts":0}]}')
    >>> frame = pl.DataFrame({"ts": [60, 0], "extra": None}, {"ts": pl.Int64, "extra": pl.String})
    >>> with_kept_rows(answer, "items", frame, Interval(60, 120))[0].body
    b'{"items":[{"ts":60}]}'
    """
    times = frame["ts"].to_numpy()
    wanted = (times >= window.start) & (times < window.end)
    if not too_large_to_keep(frame).is_empty():
        wanted &= ~frame.select(TOO_LARGE).to_series().to_numpy()
    if wanted.all():
        return (answer,) if wanted.size else ()
    if not wanted.any():
        return ()
    return (replace(answer, body=with_rows(answer.body, place, wanted.tolist())),)


@dataclass(frozen=True, slots=True)
class Page:
    """New rows of a window, and the stretch of it that is now answered for in full.

    ``frame`` holds rows inside the window that no earlier page brought, each once, newest first as
    sent. ``answered`` reaches down from the last page's and may be empty. Its rows are all in this
    and earlier pages, but for those in its ``missing`` seconds that are too large to keep. ``tied``
    has the times at which the service sent several rows, although its key is the time.
    ``is_oldest``: the service has shown that no row is older. ``answers`` are those that the rows
    were read from, with their rows inside ``window`` that are kept.
    """

    frame: pl.DataFrame
    answered: Interval
    findings: tuple[Finding, ...]
    tied: frozenset[int] = frozenset()
    missing: tuple[Interval, ...] = ()
    is_oldest: bool = False
    answers: tuple[Answer, ...] = ()
    window: Interval | None = None
