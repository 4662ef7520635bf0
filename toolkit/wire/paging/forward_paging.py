"""The pager of a service that sends the oldest rows first, from a start on.

The window is taken in parts, the newest part first, since what uses the pages counts on that.
Whether a service includes the start is not promised, so each question begins one second below what
is wanted: a part's first second, then the newest that came, which comes again with the next page.
So rows that a page's edge cut off inside a second are not lost. A part ends where nothing newer
comes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

import polars as pl

from toolkit.errors import PagingError
from toolkit.intervals import Interval, clip, union
from toolkit.market import Trajectory, format_ts
from toolkit.wire.exchange import Answer, Outcome, RetryPolicy, Step, with_retries
from toolkit.wire.paging.needed import check_needed
from toolkit.wire.paging.pages import Page, with_kept_rows
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.rows.rows import RawPage, broken_key, kept, read_history_page

_BAR_S, _PAGES_A_PART = 60, 10


def forward_pages(
    route: HistoryRoute,
    trajectory: Trajectory,
    window: Interval,
    policy: RetryPolicy,
    floor: Callable[[], int],
) -> Generator[Step | Page, Outcome, None]:
    """Yield steps to carry out and, between them, the pages of ``window``, newest part first.

    Raises what `with_retries` and `read_history_page` raise, and `WireError` as
    `toolkit.wire.paging.paging.trajectory_pages` does. Raises `PagingError` where the
    service does not begin at the start that was asked for, does not send the oldest rows first, or
    has more rows in one second than a page holds.
    """
    parts = _Parts(route, trajectory, policy)
    end, length_s = window.end, _BAR_S * route.limit
    while end > floor():
        part = Interval(max(floor(), end - length_s), end)
        page = yield from parts.page(part)
        yield page
        rows = max(1, page.frame.height)
        length_s = max(1, min(4 * length_s, length_s * _PAGES_A_PART * route.limit // rows))
        end = part.start


class _Parts:
    """Parts of a window, each paged to its end. Their first rows show what the service does."""

    def __init__(self, route: HistoryRoute, trajectory: Trajectory, policy: RetryPolicy) -> None:
        self._route = route
        self._trajectory = trajectory
        self._policy = policy
        self._judged = False
        self._largest = 0

    def page(self, part: Interval) -> Generator[Step, Outcome, Page]:
        """Ask for a part until nothing newer comes, and return its rows as one page."""
        raws, answers = list[RawPage](), list[Answer]()
        since, newest = max(0, part.start - 1), -1
        while True:
            answer = yield from self._answer(Interval(since, part.end), self._route.limit)
            raw = read_history_page(self._route, self._trajectory, answer)
            if not self._judged and not raw.frame.is_empty():
                check_needed(self._route, raw.frame, answer)
                yield from self._check_order(Interval(since, part.end), raw)
                self._judged = raw.oldest != raw.newest and not raw.ends  # else it shows nothing
            raws.append(raw)
            answers += with_kept_rows(answer, self._route.items, raw.frame, part)
            if raw.oldest is not None and raw.oldest < since:
                raise PagingError(
                    f"the service ignores the start: rows from {format_ts(since)} on were asked "
                    f"for, and {format_ts(raw.oldest)} came; the window cannot be loaded in full"
                )
            if raw.newest is None or raw.newest >= part.end or raw.ends:
                return _joined(self._route, raws, answers, part)
            rows, self._largest = raw.size, max(self._largest, raw.size)
            if raw.newest > newest:
                newest, since = raw.newest, max(0, raw.newest - 1)
            elif not self._is_full(rows):
                return _joined(self._route, raws, answers, part)
            elif raw.oldest == newest:
                raise PagingError(
                    f"the second {format_ts(newest)} alone fills a page ({rows} "
                    "rows): no start reaches any others in it, and the window cannot be shown "
                    "to be complete"
                )
            else:
                since = newest  # rows of the second below filled the page

    def _is_full(self, rows: int) -> bool:
        """Check whether a page of so many rows may have been cut."""
        return rows == self._route.limit or 1 < rows >= self._largest

    def _answer(self, asked: Interval, limit: int) -> Generator[Step, Outcome, Answer]:
        request = self._route.request(self._trajectory, asked.end, asked.start, limit)
        return (yield from with_retries(request, self._policy))

    def _check_order(self, asked: Interval, page: RawPage) -> Generator[Step, Outcome, None]:
        """Raise `PagingError` where one row asked for is not the oldest of the page."""
        if page.oldest == page.newest:
            return
        answer = yield from self._answer(asked, 1)
        one = read_history_page(self._route, self._trajectory, answer)
        if one.frame.height == 1 and one.oldest != page.oldest:
            raise PagingError(
                f"the service does not send the oldest rows first: of one row asked for "
                f"{format_ts(one.oldest or 0)} came, and {format_ts(page.oldest or 0)} is older; "
                'the profile says order = "oldest_first"'
            )
        if one.frame.height > 1 and one.frame.height == page.frame.height and not page.ends:
            raise PagingError(
                "the service ignores the limit, so that nothing shows whether the oldest rows or "
                f"the newest came from {format_ts(asked.start)} on; the window cannot be shown to "
                "be complete"
            )


def _joined(
    route: HistoryRoute, raws: list[RawPage], answers: list[Answer], part: Interval
) -> Page:
    """Join the answers of a part: each row once, the newest first."""
    tied, findings = frozenset[int](), []
    for raw in raws:
        found, broken = broken_key(route, raw.frame)
        tied |= found
        findings += [*raw.findings, *broken]
    rows = pl.concat([kept(raw.frame) for raw in raws]).unique(maintain_order=True)
    inside = rows.filter(pl.col("ts").is_between(part.start, part.end, closed="left"))
    missing = clip(union([each for raw in raws for each in raw.missing]), part)
    frame = inside.sort("ts", descending=True, maintain_order=True)
    page = Page(frame, part, tuple(findings), tied, tuple(missing), answers=tuple(answers))
    return replace(page, window=part, lost=tuple(each for raw in raws for each in raw.lost))
