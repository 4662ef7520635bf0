"""Pagers of a trajectory: its rows of a window, complete whatever the paging value means.

Whether ``end_time`` is exclusive, and what ``next_end_time`` is exactly, is not promised. So each
page is requested one second above the oldest second seen, for rows that the page's edge cut off
inside a second, and repeats are dropped. After a page with nothing older, requests go one second
lower each, until nothing comes.

What cannot be shown to be complete is a `PagingError`: more rows in one second than a page holds, a
service that ignores ``end_time``, and one that sends the oldest rows first unless its profile
declares it.

Source: docs/interface.md, docs/design.md (complete in 18 of 18 server variants; following
``next_end_time`` as it is loses rows).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.errors import BadRequestError, PagingError, WireError
from toolkit.intervals import Interval, clip, union
from toolkit.market import Trajectory, format_ts
from toolkit.wire.exchange import Outcome, Response, RetryPolicy, Step, with_retries
from toolkit.wire.findings import LostStretch
from toolkit.wire.history_page import Page, WholeSeconds, check_needed, with_kept_rows
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
    """Yield steps and, between them, the pages of a service that sends the oldest rows first.

    The window is taken in parts, the newest first. Whether the start is inclusive is not promised,
    so each request begins one second below what is wanted: a part's first second, then the newest
    received. A part ends where nothing newer comes.

    Raises what `trajectory_pages` raises, and `PagingError` if the service does not begin at the
    start, does not send the oldest rows first, or has more rows in one second than a page holds.
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
    """Parts of a window, each paged to its end. Their first rows show the service's order."""

    def __init__(self, route: HistoryRoute, trajectory: Trajectory, policy: RetryPolicy) -> None:
        self._route = route
        self._question = HistoryQuestion(route, trajectory, policy)
        self._judged = False
        self._largest = 0

    def page(self, part: Interval) -> Generator[Step, Outcome, Page]:
        """Request a part until nothing newer comes, and return it as one page."""
        raws, answers = list[RawPage](), list[Response]()
        since, newest = max(0, part.start - 1), -1
        while True:
            answer = yield from self._question.answer(part.end, start=since)
            raw = self._question.read(answer)
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
        return rows == self._route.limit or 1 < rows >= self._largest

    def _check_order(self, asked: Interval, page: RawPage) -> Generator[Step, Outcome, None]:
        """Raise `PagingError` unless a lone row is the page's oldest."""
        if page.oldest == page.newest:
            return
        one = yield from self._question.page(asked.end, 1, asked.start)
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
    route: HistoryRoute, raws: list[RawPage], answers: list[Response], part: Interval
) -> Page:
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


def trajectory_pages(
    route: HistoryRoute,
    trajectory: Trajectory,
    window: Interval,
    policy: RetryPolicy,
    floor: Callable[[], int] | None = None,
) -> Generator[Step | Page, Outcome, None]:
    """Yield steps to carry out and, between them, the pages of ``window``, newest first.

    The last page's ``answered`` ends at the window's start. ``floor`` gives a later start once
    another caller loads what is older. Raises what `with_retries`, `read_history_page` and, for the
    first page, `check_needed` raise, and `PagingError` if the service ignores ``end_time``, sends
    the oldest rows first, has more rows in one second than a page holds, or pages without end.
    """
    route, floor = route.named(trajectory), floor or (lambda: window.start)
    if route.oldest_first:
        yield from forward_pages(route, trajectory, window, policy, floor)
        return
    question = HistoryQuestion(route, trajectory, policy)
    walk, judged, again = _Walk(window, route, floor), False, False
    seconds = WholeSeconds()
    while walk.ask is not None:
        asked, answer, raw = yield from question.older(walk.ask, floor())
        if not judged and not raw.frame.is_empty():
            check_needed(route, raw.frame, answer)
            yield from question.check_order(asked, raw)
            judged = True
        if route.row_leg:
            yield from question.check_legs(raw, floor())
        part = Interval(min(floor(), window.end), window.end)
        page = walk.take(raw)
        points_on = raw.next_end_time is not None and raw.next_end_time < asked
        nothing = walk.ended_empty and not points_on
        if nothing and (yield from question.check_empty(window)):
            if again:
                raise PagingError(
                    f"the service contradicts itself: before {format_ts(window.end)} nothing came, "
                    f"twice, and before {format_ts(window.start)} there are rows; the window "
                    "cannot be loaded in full"
                )
            walk, again = _Walk(window, route, floor), True
        elif page is not None:
            tied, found = broken_key(route, raw.frame)
            findings = (*page.findings, *found)
            if route.row_leg:
                page, answers = seconds.take(page, answer, raw.frame, route.items, part)
            else:
                answers = with_kept_rows(answer, route.items, raw.frame, part)
            yield replace(page, findings=findings, tied=tied, answers=answers, window=part)
            del answers
        del answer  # the next one is not read beside it


_RATES = ("buy_rate", "sell_rate")


class _Walk:
    """The state of the pager: ``ask`` is the next ``end_time``, None at the end.

    All rows from ``_proven`` on have come. ``_oldest`` is the oldest second with rows (at first the
    window's end), ``_edge`` its rows. ``_same_second_rows`` is the height of the last page without
    anything older, else 0.
    """

    def __init__(self, window: Interval, route: HistoryRoute, floor: Callable[[], int]) -> None:
        self._end_ts = window.end
        self._floor = floor
        self._limit = route.limit
        self._has_start = route.has_start
        self._of_one_leg = bool(route.row_leg)
        self._empty_allowed = route.limits.empty_pages
        self._proven = window.end
        self._oldest = window.end
        self._edge: pl.DataFrame | None = None
        self._edge_grew = False
        self._same_second_rows = 0
        self._largest = 0
        self._empty = 0
        self._missing: list[Interval] = []
        self._lost: dict[LostStretch, None] = {}
        self._stepped_back = False
        self._newest = 0
        self._honoured = False
        self._before_probe: int | None = None
        self._is_oldest = False
        self.ask: int | None = window.end

    @property
    def ended_empty(self) -> bool:
        """Whether it ended without a row before the window's end, unconfirmed."""
        confirmed = self._honoured or self._has_start  # then all of the window was asked for
        return self.ask is None and self._edge is None and not confirmed

    def take(self, raw: RawPage) -> Page | None:
        """Return the new rows of an answer, None after a probe."""
        asked = self.ask
        assert asked is not None, "an answer came after the end"
        if self._before_probe is not None:  # respected, the other page was the last one again
            if raw.newest is not None and raw.newest > asked:
                raise _ignored(asked, raw)
            self._honoured = True
            self.ask, self._before_probe = self._before_probe, None
            return None
        overshoots = raw.newest is not None and raw.newest > asked
        older = raw.oldest is not None and raw.oldest < self._oldest
        if overshoots and not older and not self._honoured:
            self._probe(raw, asked)
            return None
        self._honoured |= self._newest > asked and not overshoots
        self._newest = max(self._newest, raw.newest or 0)
        frame = self._new_rows(raw.frame)
        if older:
            proven = self._after_older(raw, asked, overshoots=overshoots)
        elif raw.frame.is_empty():
            proven = self._after_empty(raw, asked)
        else:
            proven = self._after_same(raw, asked, overshoots=overshoots)
        self._largest = max(self._largest, raw.size)
        answered = Interval(min(proven, self._proven), self._proven)
        self._proven = answered.start
        self._missing = union([*self._missing, *raw.missing])
        self._lost |= dict.fromkeys(raw.lost)
        missing = tuple(clip(self._missing, answered))
        page = Page(kept(frame), answered, raw.findings, missing=missing, lost=(*self._lost,))
        return replace(page, is_oldest=self._is_oldest)

    def _new_rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return rows inside the window that no earlier page brought, each once."""
        times = frame["ts"].to_numpy()
        rows = _chosen(frame, (times >= self._floor()) & (times < self._end_ts))
        if rows["ts"].n_unique() < rows.height:
            rows = rows.unique(maintain_order=True)
        if self._edge is None:
            return rows
        times = rows["ts"].to_numpy()
        older = _chosen(rows, times < self._oldest)
        tied = _without(_chosen(rows, times == self._oldest), self._edge)
        if tied.is_empty():
            return older
        self._edge = pl.concat([self._edge, tied])
        self._edge_grew = True
        return pl.concat([tied, older])

    # Each of these sets what to ask next, and gives the second from which on everything has come.

    def _after_older(self, raw: RawPage, asked: int, *, overshoots: bool) -> int:
        """Take a page with older rows, complete but for its oldest second."""
        assert raw.oldest is not None, "it has rows"
        if not (overshoots or asked > self._oldest or self._edge_again(raw)):
            self._largest = max(self._largest, raw.size)
            self._refuse_full_second(older=True)
        self._oldest = raw.oldest
        self._edge = _chosen(raw.frame, raw.frame["ts"].to_numpy() == raw.oldest)
        self._same_second_rows = self._empty = 0
        self._edge_grew = self._stepped_back = False
        if self._oldest < self._floor():
            return self._end(is_oldest=False)
        self.ask = self._oldest + 1
        return self.ask

    def _after_same(self, raw: RawPage, asked: int, *, overshoots: bool) -> int:
        """Take a page with nothing older: the end, or a second that does not fit."""
        if overshoots:
            self._refuse_full_second()
            return self._end()
        if not self._same_second_rows or self._edge_again(raw):
            self._same_second_rows = raw.size
        self._empty = 0
        if raw.ends and not self._is_cut():
            return self._end()
        self.ask = asked - 1
        return self._proven

    def _after_empty(self, raw: RawPage, asked: int) -> int:
        """Take an empty page: the end, unless its paging value points further down."""
        self._empty += 1
        if self._empty > self._empty_allowed:
            raise PagingError(
                f"the service sent {self._empty} pages in a row without a row, the last one "
                f"before {format_ts(asked)}; empty_pages of the limits allows more"
            )
        if self._edge is not None and asked > self._oldest and self._empty == 1:
            return self._proven  # there are rows before this, for they came: it is asked again
        pointed = raw.next_end_time
        steps_back = pointed == asked - 1
        self._refuse_full_second()
        if pointed is not None and pointed < self._floor():
            return self._end(is_oldest=False)
        if pointed is None or pointed >= asked or (steps_back and self._stepped_back):
            return self._end()
        self._stepped_back = steps_back
        self.ask = pointed if steps_back else pointed + 1
        return pointed + 1

    def _edge_again(self, raw: RawPage) -> bool:
        """Check that a page has all known rows of the oldest second, so also the rest."""
        again = _chosen(raw.frame, raw.frame["ts"].to_numpy() == self._oldest)
        return self._edge is not None and _without(self._edge, again).is_empty()

    def _end(self, *, is_oldest: bool = True) -> int:
        self.ask = None
        self._is_oldest = is_oldest and not self._has_start
        return self._floor()

    # A page may hold fewer rows than were asked for. How many, the largest that came shows: one as
    # large, that brought nothing older, may have been cut. A page of one row is not taken for cut.

    def _is_cut(self) -> bool:
        return self._same_second_rows == self._limit or (
            self._edge_grew and self._same_second_rows >= self._largest
        )

    def _refuse_full_second(self, *, older: bool = False) -> None:
        """Raise if the oldest second filled a page, so that rows of it may be out of reach.

        Rows of one leg each are complete if both legs came. One leg's row may not be if no
        ``older`` rows came with it.
        """
        lone = older and self._of_one_leg and self._same_second_rows
        edge = self._edge
        if self._of_one_leg and edge is not None and all(edge[r].count() for r in _RATES):
            return
        if lone or self._is_cut() or 1 < self._same_second_rows >= self._largest:
            raise PagingError(
                f"the second {format_ts(self._oldest)} alone fills a page "
                f"({self._same_second_rows} of {self._limit} rows asked for): end_time cannot "
                "reach any others in it, and the "
                "window cannot be shown to be complete below"
            )

    def _probe(self, raw: RawPage, asked: int) -> None:
        """Request inside an unasked page, to test ``end_time``."""
        assert raw.newest is not None, "it overshoots"
        assert raw.oldest is not None, "it overshoots"
        if raw.newest - 1 <= raw.oldest:
            raise _ignored(asked, raw)
        self._before_probe = asked
        self.ask = raw.newest - 1


def _chosen(frame: pl.DataFrame, mask: NDArray[np.bool_]) -> pl.DataFrame:
    """Return the rows of a mask, neighbouring rows without a copy."""
    at = np.flatnonzero(mask)
    if at.size and at[-1] - at[0] + 1 == at.size:
        return frame.slice(int(at[0]), at.size)
    return frame[at]


def _without(rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are not among the others, all of one second, so few."""
    known = set(others.rows())
    left = [number for number, row in enumerate(rows.rows()) if row not in known]
    return rows[left] if left else rows.clear()


def _ignored(asked: int, raw: RawPage) -> PagingError:
    return PagingError(
        f"the service ignores end_time: rows before {format_ts(asked)} were asked for, and "
        f"{format_ts(raw.newest or 0)} came; the window cannot be loaded in full"
    )


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """Requests of a history, and the checks that it is paged backwards from ``end_time``.

    A service that sends the oldest rows before ``end_time``, or the rows from it on, loses rows.
    Two signs reveal it: rows that rise in time, or a window with nothing before its end and
    something at its start. Rising rows are not proof, so one row is requested: of the right rows it
    is the newest.
    """

    route: HistoryRoute
    trajectory: Trajectory
    policy: RetryPolicy

    def answer(
        self, end_time: int, limit: int | None = None, start: int | None = None
    ) -> Generator[Step, Outcome, Response]:
        """Request the rows before ``end_time``, at most the route's limit."""
        request = self.route.request(self.trajectory, end_time, start, limit)
        return (yield from with_retries(request, self.policy))

    def read(self, answer: Response) -> RawPage:
        """Read an answer to a request."""
        return read_history_page(self.route, self.trajectory, answer)

    def older(
        self, asked: int, floor: int
    ) -> Generator[Step, Outcome, tuple[int, Response, RawPage]]:
        """Request the rows before a moment. Return the moment requested last, and what came.

        An answer to a request with a start does not show what is older. So after an empty one older
        rows are requested until some come, or nothing is left above ``floor``.
        """
        any_older = False
        while True:
            answer = yield from self.answer(asked)
            raw = self.read(answer)
            start = self.route.start_before(asked)
            if not self.route.has_start or start <= floor:
                return asked, answer, raw
            raw = replace(raw, ends=False)
            any_older = any_older or (
                raw.frame.is_empty() and (yield from self._any(Interval(floor, start)))
            )
            if not (raw.frame.is_empty() and any_older):
                return asked, answer, raw
            asked = start

    def _any(self, window: Interval) -> Generator[Step, Outcome, bool]:
        """Return whether rows lie in a window, or it is refused as too long."""
        try:
            answer = yield from self.answer(window.end, 1, window.start)
        except (BadRequestError, WireError):
            return True
        return not self.read(answer).frame.is_empty()

    def page(
        self, end_time: int, limit: int | None = None, start: int | None = None
    ) -> Generator[Step, Outcome, RawPage]:
        """Request the rows before ``end_time`` and read them."""
        return self.read((yield from self.answer(end_time, limit, start)))

    def check_order(self, asked: int, page: RawPage) -> Generator[Step, Outcome, None]:
        """Raise `PagingError` for a page of rising rows that is not the newest before ``asked``.

        If the service ignores ``limit`` as well, the page of its oldest row decides: without older
        rows nothing shows that the newest came.
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

    def check_legs(self, page: RawPage, floor: int) -> Generator[Step, Outcome, None]:
        """Raise `PagingError` if a page left out rows of one leg above its oldest of the other.

        A service that counts a page's rows per leg does so, and they never come.
        """
        times = [(rate, page.frame.drop_nulls(rate)["ts"].to_list()) for rate in _RATES]
        ends = sorted((min(each), rate) for rate, each in times if each)
        if len(ends) < 2 or not max(floor, ends[0][0] + 1) < ends[1][0]:
            return
        (low, _), (high, rate) = ends
        before = yield from self.page(high)
        inside = pl.col("ts").is_between(low, high, closed="none")
        if before.frame.drop_nulls(rate).filter(inside).height:
            raise PagingError(
                f"the service counts the rows of a page for each leg: it left out {rate} between "
                f"{format_ts(low)} and {format_ts(high)}; the window cannot be loaded in full"
            )

    def check_empty(self, window: Interval) -> Generator[Step, Outcome, bool]:
        """Return whether rows lie before a window although nothing came before its end.

        Raises `PagingError` if rows of the window, or later ones, come when its start is requested.
        A bad request proves nothing: the time may be beyond the plan's depth.
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
