"""A page of a trajectory, as the pagers hand it on."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from toolkit.intervals import Interval
from toolkit.wire.exchange import Answer
from toolkit.wire.findings import Finding


@dataclass(frozen=True, slots=True)
class Page:
    """New rows of a window, and the stretch of it that is now answered for in full.

    ``frame`` holds rows inside the window that no earlier page brought, each once, newest first as
    sent. ``answered`` reaches down from the last page's and may be empty. Its rows are all in this
    and earlier pages, but for those in its ``missing`` seconds that are too large to keep. ``tied``
    has the times at which the service sent several rows, although its key is the time.
    ``is_oldest``: the service has shown that no row is older. ``answers`` are those that the rows
    were read from, where they have any: of their rows the page keeps those inside ``window``.
    """

    frame: pl.DataFrame
    answered: Interval
    findings: tuple[Finding, ...]
    tied: frozenset[int] = frozenset()
    missing: tuple[Interval, ...] = ()
    is_oldest: bool = False
    answers: tuple[Answer, ...] = ()
    window: Interval | None = None
