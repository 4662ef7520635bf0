"""Checks that a history is paged backwards: from ``end_time`` down, and not from its oldest row up.

A service that sends the oldest rows before ``end_time``, or the rows from ``end_time`` on, brings
a page that looks whole, and no later question reaches the rest. Two things give it away. The rows
of a page rise in time. Or there is nothing before the end of a window and something at its start.

Rows that rise are no proof, for a service may send the right rows in that order. So one row is
asked for: of the right rows it is the newest.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from toolkit.errors import BadRequestError, PagingError
from toolkit.intervals import Interval
from toolkit.market import Trajectory, format_ts
from toolkit.wire.exchange import Answer, Outcome, Request, RetryPolicy, Step, with_retries
from toolkit.wire.profile import HistoryRoute
from toolkit.wire.rows import RawPage, read_history_page


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """What a history is asked for, and the checks that its answers come in the order expected."""

    route: HistoryRoute
    trajectory: Trajectory
    policy: RetryPolicy

    def answer(self, end_time: int, limit: int | None = None) -> Generator[Step, Outcome, Answer]:
        """Ask for the rows before ``end_time``, the route's limit of them or fewer."""
        query = self.route.query(self.trajectory, end_time, limit=limit)
        return (yield from with_retries(Request.get(self.route.path, query), self.policy))

    def page(self, end_time: int, limit: int | None = None) -> Generator[Step, Outcome, RawPage]:
        """Ask for the rows before ``end_time`` and read them."""
        answer = yield from self.answer(end_time, limit)
        return read_history_page(self.route, self.trajectory, answer)

    def check_order(self, asked: int, page: RawPage) -> Generator[Step, Outcome, None]:
        """Raise `PagingError` for a page of rising rows that is not the newest before ``asked``.

        Where the service ignores ``limit`` as well, the page of its oldest row decides: it has to
        bring older rows. Where it brings none, nothing shows that the newest came.
        """
        if not page.rises:
            return
        assert page.newest is not None, "its rows rise"
        assert page.oldest is not None, "its rows rise"
        one = yield from self.page(asked, limit=1)
        if one.frame.height == 1 and one.newest is not None:
            if one.newest < page.newest:
                raise _oldest_first(
                    asked, page, f"of one row asked for {format_ts(one.newest)} came"
                )
            return
        older = yield from self.page(page.oldest + 1)
        if older.oldest is None or older.oldest >= page.oldest:
            names = self.route.parameters
            limit = names.get("limit", "limit")
            told = f"{limit} is ignored too, so that nothing shows which end of the rows came"
            raise _oldest_first(asked, page, told)

    def check_empty(self, window: Interval) -> Generator[Step, Outcome, bool]:
        """Return whether rows lie before a window although nothing came before its end.

        Raises `PagingError` where rows of the window, or later ones, come when its start is asked
        for. A refusal as a bad request is no evidence: it may be of a time beyond the plan's depth.
        """
        try:
            page = yield from self.page(window.start, limit=1)
        except BadRequestError:
            return False
        if page.newest is not None and page.newest > window.start:
            raise PagingError(
                f"the service sends the rows from end_time on: before {format_ts(window.end)} "
                f"nothing came, and before {format_ts(window.start)} {format_ts(page.newest)} "
                "came; its pages run forwards, and the window cannot be loaded"
            )
        return page.newest is not None


def _oldest_first(asked: int, page: RawPage, told: str) -> PagingError:
    assert page.newest is not None, "it has rows"
    assert page.oldest is not None, "it has rows"
    came = f"{page.frame.height} came that rise from {format_ts(page.oldest)} to"
    if page.oldest >= asked:
        return PagingError(
            f"the service sends the rows from end_time on: of those before {format_ts(asked)} "
            f"{came} {format_ts(page.newest)}; its pages run forwards, and the window cannot be "
            "loaded"
        )
    return PagingError(
        f"the service sends the oldest rows first: of those before {format_ts(asked)} {came} "
        f"{format_ts(page.newest)}, and {told}; end_time cannot reach the newer ones, and the "
        "window cannot be loaded in full"
    )
