"""The overlap pager: a trajectory's rows of a window, complete whatever the paging value means.

A page is asked for by ``end_time``. Whether that end is exclusive, whether ``next_end_time`` is the
oldest row's time or a neighbour of it, and what stands there at the end, is not promised. So each
page is asked one second above the oldest second seen: rows cut off inside a second by the page's
edge come again with the next page and are dropped as repeats. Only a lack of progress ends it.

Source: machine-rail.md 4.1 "Trajectory history"; design.md decision 1 (complete in 18 of 18 server
variants, where following ``next_end_time`` as it is loses rows).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import polars as pl

from toolkit.errors import PagingError
from toolkit.intervals import Interval
from toolkit.market import Trajectory, format_ts
from toolkit.wire.exchange import Outcome, Request, RetryPolicy, Step, with_retries
from toolkit.wire.profile import Finding, HistoryRoute
from toolkit.wire.rows import RawPage, read_history_page

__all__ = ["EMPTY_PAGES_ALLOWED", "Page", "trajectory_pages"]

EMPTY_PAGES_ALLOWED = 100
"""Pages in a row without a row, after which the pager gives up."""


@dataclass(frozen=True, slots=True)
class Page:
    """New rows of a window, and the stretch of it that is now answered for in full.

    ``frame`` holds rows inside the window that no earlier page brought, newest first as sent.
    ``answered`` reaches down from the last page's; its rows are all in this and earlier pages.
    """

    frame: pl.DataFrame
    answered: Interval
    findings: tuple[Finding, ...]


def trajectory_pages(
    route: HistoryRoute, trajectory: Trajectory, window: Interval, policy: RetryPolicy
) -> Generator[Step | Page, Outcome, None]:
    """Yield steps to carry out and, between them, the pages of ``window``, newest first.

    The last page's ``answered`` ends at the window's start. Raises what `with_retries` and
    `read_history_page` raise, and `PagingError` where the service ignores ``end_time`` or pages
    without end.
    """
    walk = _Walk(window)
    while walk.ask is not None:
        request = Request.get(route.path, route.query(trajectory, walk.ask))
        answer = yield from with_retries(request, policy)
        page = walk.take(read_history_page(route, answer))
        if page is not None:
            yield page


class _Walk:
    """Where the pager stands: ``ask`` is the next ``end_time`` to ask for, None at the end."""

    def __init__(self, window: Interval) -> None:
        self._window = window
        self._proven = window.end
        self._oldest: int | None = None
        self._edge: pl.DataFrame | None = None
        self._honoured = False
        self._probing = False
        self._empty = 0
        self.ask: int | None = window.end

    def take(self, raw: RawPage) -> Page | None:
        """Learn from an answer: the page of new rows it makes, None where it was only a probe."""
        asked = self.ask
        assert asked is not None, "an answer came after the end"
        if self._probing:
            self._judge_probe(raw, asked)
            return None
        overshoots = raw.newest is not None and raw.newest > asked
        progress = raw.oldest is not None and (self._oldest is None or raw.oldest < self._oldest)
        if overshoots and not self._honoured and not progress and self._probe(raw, asked):
            return None
        if overshoots and self._oldest is None:
            raise self._ignored(asked, raw)
        self._honoured |= self._oldest is not None and not overshoots and raw.frame.height > 0
        frame = self._new_rows(raw.frame)
        if progress:
            self._remember(raw)
        following = self._following(raw, asked, progress)
        low = self._window.start
        if following is not None:
            low = min(max(following, low), self._proven)
        answered = Interval(low, self._proven)
        self._proven = low
        self.ask = following
        return Page(frame, answered, raw.findings)

    def _new_rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows inside the window which no earlier page brought."""
        start, end = self._window
        rows = frame.filter((pl.col("ts") >= start) & (pl.col("ts") < end))
        if self._oldest is None or self._edge is None:
            return rows
        below = rows.filter(pl.col("ts") < self._oldest)
        tied = rows.filter(pl.col("ts") == self._oldest)
        if tied.height:
            tied = tied.join(self._edge, on=tied.columns, how="anti", nulls_equal=True)
            self._edge = pl.concat([self._edge, tied])
        return pl.concat([tied, below])

    def _remember(self, raw: RawPage) -> None:
        self._oldest = raw.oldest
        self._edge = raw.frame.filter(pl.col("ts") == raw.oldest)

    def _following(self, raw: RawPage, asked: int, progress: bool) -> int | None:
        """The next ``end_time``: one above the oldest row, or where the service points below it."""
        self._empty = 0 if raw.frame.height else self._empty + 1
        if self._empty > EMPTY_PAGES_ALLOWED:
            raise PagingError(
                f"the service sent {self._empty} pages in a row without a row, the last one "
                f"before {format_ts(asked)}"
            )
        if progress and self._oldest is not None:
            return self._oldest + 1 if self._oldest >= self._window.start else None
        pointed = raw.next_end_time
        if pointed is None or pointed + 1 >= asked or pointed < self._window.start:
            return None
        return pointed + 1

    def _probe(self, raw: RawPage, asked: int) -> bool:
        """Ask inside a repeated page, to see whether ``end_time`` does anything at all."""
        if self._oldest is None or raw.newest is None:
            return False
        if raw.newest - 1 <= self._oldest + 1:
            raise self._ignored(asked, raw)
        self._probing = True
        self.ask = raw.newest - 1
        return True

    def _judge_probe(self, raw: RawPage, asked: int) -> None:
        """A page that respects the probe shows that the repeated one was the end."""
        if raw.newest is not None and raw.newest > asked:
            raise self._ignored(asked, raw)
        self._probing, self._honoured = False, True
        assert self._oldest is not None, "a probe follows a page with rows"
        self.ask = self._oldest + 1

    @staticmethod
    def _ignored(asked: int, raw: RawPage) -> PagingError:
        return PagingError(
            f"the service ignores end_time: rows before {format_ts(asked)} were asked for, and "
            f"{format_ts(raw.newest or 0)} came; the window cannot be loaded in full"
        )
