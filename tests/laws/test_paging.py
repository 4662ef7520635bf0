"""The pager against services that page in every way left open, also with the oldest rows first.

The services are values: no socket is needed to ask them. The laws are those the coverage ledger
rests on: at every moment the rows that came are all the rows of the stretches answered for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.spanning import spanning
from toolkit.errors import PagingError
from toolkit.intervals import Interval, union
from toolkit.market import Family, Trajectory
from toolkit.wire.exchange import Request, Response, RetryPolicy, Send
from toolkit.wire.history_page import Page
from toolkit.wire.paging import trajectory_pages
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import BUILT_IN

from ..conftest import every_example, examples

KEY = Trajectory.parse("BTC_USD:KRAKEN.spot")
REQUESTS_ALLOWED = 2_000

Row = tuple[int, float]
"""A second and a price; no two rows are equal."""


@dataclass(frozen=True)
class Service:
    """A service that pages its own way, over rows in any order."""

    rows: tuple[Row, ...]
    cap: int = 500
    inclusive: bool = False
    offset: int = 0
    """What is added to the oldest row's time to make next_end_time."""
    end: str = "null"
    """What a page with nothing older says: null, missing, echo, repeat or never (goes on)."""
    scan_s: int | None = None
    """A page never reaches over a multiple of this: short pages, and empty ones in the middle."""
    ms: bool = False
    rounding_s: int = 1
    """end_time is rounded up to a multiple of this: rows newer than asked for come along."""
    ignores_end_time: bool = False

    @property
    def times(self) -> list[tuple[int, Row]]:
        """The rows newest first, each with its time on the wire."""
        within: Counter[int] = Counter()
        timed = []
        for second, price in sorted(self.rows):
            timed.append((second * 1000 + within[second] if self.ms else second, (second, price)))
            within[second] += 1
        return timed[::-1]

    def answer(self, request: Request) -> Response:
        query = dict(request.query)
        asked = int(query["end_time"])
        size = min(self.cap, int(query["limit"]))
        end = -(-asked // self.rounding_s) * self.rounding_s * (1000 if self.ms else 1)
        if self.ignores_end_time:
            end = 10**12
        found = [row for row in self.times if row[0] < end or (self.inclusive and row[0] == end)]
        last_page = found == [] and self.end == "repeat"
        if last_page:
            found = self.times[-size:]
        elif self.scan_s is not None and found:
            whole = self.inclusive and not self.ms  # the second asked for is scanned as well
            scanned = end if whole else end - 1
            boundary = scanned - scanned % (self.scan_s * (1000 if self.ms else 1))
            in_scan = [row for row in found if row[0] >= boundary]
            if not in_scan:
                seconds = boundary // (1000 if self.ms else 1)
                return self._page([], {"next_end_time": seconds - whole})
            return self._cut(found, in_scan[:size], asked)
        return self._cut(found, found[:size], asked)

    def _cut(
        self, found: list[tuple[int, Row]], page: list[tuple[int, Row]], asked: int
    ) -> Response:
        ends = len(page) == len(found)
        paging: dict[str, int | None] = {"next_end_time": None}
        if page and (not ends or self.end in ("repeat", "never")):
            paging = {"next_end_time": page[-1][1][0] + self.offset}
        elif self.end == "missing":
            paging = {}
        elif self.end == "echo":
            paging = {"next_end_time": asked}
        return self._page(page, paging)

    def _page(self, page: list[tuple[int, Row]], paging: dict[str, int | None]) -> Response:
        items = [
            {"ts": time, "price": price, "mark_price": None, "volume": None}
            for time, (_, price) in page
        ]
        return Response(200, {}, json.dumps({"items": items, **paging}).encode())


@dataclass(frozen=True)
class Walked:
    """What came of a walk: its pages, the error that ended it if one did, the questions asked."""

    pages: list[Page]
    error: PagingError | None
    asked: list[dict[str, str]]

    @property
    def rows(self) -> list[Row]:
        return [row for page in self.pages for row in rows_of(page)]


def rows_of(page: Page) -> list[Row]:
    return list(page.frame.select("ts", "price").iter_rows())


def route_to(service: Service, limit: int) -> HistoryRoute:
    built_in = BUILT_IN.histories[Family.PRICE]
    fields = tuple(
        replace(rule, unit="ms") if rule.column == "ts" and service.ms else rule
        for rule in built_in.fields
    )
    return replace(built_in, limit=limit, fields=fields)


def walk(
    service: Service,
    window: Interval,
    limit: int = 500,
    answer: Callable[[Request], Response] | None = None,
) -> Walked:
    """Page through a window; ``answer`` may stand between the pager and the service."""
    return walk_route(route_to(service, limit), answer or service.answer, window)


def walk_route(
    route: HistoryRoute, answer: Callable[[Request], Response], window: Interval
) -> Walked:
    flow = trajectory_pages(route, KEY, window, RetryPolicy())
    walked = Walked([], None, [])
    outcome: Response | None = None
    while True:
        try:
            step = flow.send(outcome)
        except StopIteration:
            return walked
        except PagingError as error:
            return replace(walked, error=error)
        outcome = None
        if isinstance(step, Page):
            walked.pages.append(step)
        else:
            assert isinstance(step, Send)
            walked.asked.append(dict(step.request.query))
            assert len(walked.asked) < REQUESTS_ALLOWED, "the walk does not end"
            outcome = answer(step.request)


def assert_every_prefix_is_complete(rows: Sequence[Row], window: Interval, walked: Walked) -> None:
    """Wherever the walk is cut, all rows of what is answered for have come, each once."""
    inside = [row for row in rows if window.start <= row[0] < window.end]
    came: Counter[Row] = Counter()
    answered: list[Interval] = []
    for page in walked.pages:
        came.update(rows_of(page))
        answered = union([*answered, page.answered])
        owed = {row for row in inside if any(start <= row[0] < end for start, end in answered)}
        assert owed <= set(came), f"{page.answered} lacks {sorted(owed - set(came))}"
        assert all(second < page.answered.end for second, _ in rows_of(page))
    assert set(came) <= set(inside), "rows from outside the window, or invented"
    assert max(came.values(), default=1) == 1, "rows came twice"
    edges = [window.end, *(page.answered.start for page in walked.pages)]
    assert [page.answered.end for page in walked.pages] == edges[:-1]
    assert all(higher >= lower >= window.start for higher, lower in pairwise(edges))
    if walked.error is None:
        assert edges[-1] == window.start
        assert set(came) == set(inside)


def archive(seconds: dict[int, int]) -> tuple[Row, ...]:
    """So many rows in each second, every price different."""
    every = [second for second, count in seconds.items() for _ in range(count)]
    return tuple((second, 100.0 + number) for number, second in enumerate(every))


WINDOW = Interval(100, 200)

# Rows outside on both sides and on both edges, a hole, and ties of 1 to 4 rows, which pages of 5
# and of 7 rows cut.
STEPS = {second: 1 + (second * 7 + second // 3) % 4 for second in range(85, 220, 3)}
TIED = archive({s: n for s, n in STEPS.items() if not 120 <= s < 155} | {100: 3, 199: 2, 200: 4})
SPARSE = archive(dict.fromkeys(range(70, 250, 20), 1))
BEGINS_INSIDE = tuple(row for row in TIED if row[0] >= 165)

ENDS = ("null", "missing", "echo", "repeat", "never")
AXES = {
    "inclusive": (False, True),
    "offset": (-1, 0, 1),
    "end": ENDS,
    "scan_s": (None, 30),
    "ms": (False, True),
}
CELLS = product(*AXES.values()) if every_example() else spanning([*AXES.values()])
WAYS = [Service((), **dict(zip(AXES, cell, strict=True))) for cell in CELLS]
"""Every combination in `make laws`. Otherwise those in which any two values meet."""


def name_of(way: Service) -> str:
    kind = "inclusive" if way.inclusive else "exclusive"
    scan = "whole" if way.scan_s is None else "scanned"
    return f"{kind}-{way.offset:+d}-{way.end}-{scan}-{'ms' if way.ms else 's'}"


LAW = [pytest.mark.hypothesis] if every_example() else []  # which `make laws` runs
every_way = pytest.mark.parametrize(
    "way", [pytest.param(way, marks=LAW, id=name_of(way)) for way in WAYS]
)


@every_way
def test_every_row_arrives_once_however_the_service_pages(way) -> None:
    for rows, cap, limit in ((TIED, 5, 5), (SPARSE, 3, 500), (BEGINS_INSIDE, 7, 500)):
        walked = walk(replace(way, rows=rows, cap=cap), WINDOW, limit)
        assert walked.error is None
        assert_every_prefix_is_complete(rows, WINDOW, walked)


@every_way
@pytest.mark.parametrize(("second", "cap", "limit"), [(199, 5, 5), (151, 4, 500), (130, 5, 5)])
def test_a_second_with_more_rows_than_a_page_holds_is_refused_not_lost(
    second, cap, limit, way
) -> None:
    rows = archive(dict.fromkeys(range(130, 230, 6), 1) | {second: 9})
    walked = walk(replace(way, rows=rows, cap=cap), WINDOW, limit)
    assert_every_prefix_is_complete(rows, WINDOW, walked)
    assert "alone fills a page" in str(walked.error)
    assert "\n" not in str(walked.error)


@every_way
def test_a_window_without_rows_is_answered_empty(way) -> None:
    rows = archive(dict.fromkeys(range(500, 600, 3), 1))
    walked = walk(replace(way, rows=rows, cap=5), WINDOW)
    assert walked.error is None
    assert_every_prefix_is_complete(rows, WINDOW, walked)
    assert walked.rows == []


def test_pages_of_one_row_as_asked_for_are_refused_for_nothing_shows_that_they_are_whole() -> None:
    walked = walk(Service(SPARSE), WINDOW, limit=1)
    assert_every_prefix_is_complete(SPARSE, WINDOW, walked)
    assert "alone fills a page (1 of 1 rows asked for)" in str(walked.error)


@st.composite
def services(draw: st.DrawFn) -> tuple[Service, Interval, int]:
    """A service, a window and the limit asked for; a page holds two rows at least."""
    counts = st.dictionaries(st.integers(1000, 1050), st.integers(1, 5), max_size=25)
    limit = draw(st.integers(2, 12))
    service = Service(
        rows=archive(draw(counts)),
        cap=draw(st.integers(2, 12)),
        inclusive=draw(st.booleans()),
        offset=draw(st.sampled_from((-1, 0, 1))),
        end=draw(st.sampled_from(ENDS)),
        scan_s=draw(st.sampled_from((None, None, 5, 20))),
        ms=draw(st.booleans()),
    )
    start = draw(st.integers(995, 1055))
    return service, Interval(start, draw(st.integers(start + 1, 1060))), limit


def may_be_refused(service: Service, window: Interval, limit: int) -> bool:
    """Where completeness cannot be shown from outside.

    A second that fills a page (where the end is inclusive to the millisecond, with one row of the
    next second); a page of one second alone, which may have been cut; an archive of two seconds or
    fewer that is sent again and again, as by a service that ignores end_time.
    """
    reach = [second for second, _ in service.rows if second < window.end + service.inclusive]
    size = min(service.cap, limit)
    tied = max(Counter(reach).values(), default=0)
    next_one = service.inclusive and service.ms
    alone = len(set(reach)) <= 1 + next_one or service.scan_s is not None
    if tied + next_one >= size or (tied > 1 and alone):
        return True
    if service.end != "repeat" or not service.rows:
        return False
    shown = reach or sorted(second for second, _ in service.rows)[:size]
    return max(shown) - min(shown) < 2 or (not reach and max(shown) - 2 < window.end)


@examples(150)
@given(services())
def test_a_walk_is_complete_after_every_page_or_says_that_it_is_not(case) -> None:
    service, window, limit = case
    walked = walk(service, window, limit)
    event("refused" if walked.error else "complete")
    assert_every_prefix_is_complete(service.rows, window, walked)
    assert walked.error is None or may_be_refused(service, window, limit)


@pytest.mark.parametrize("rows", [TIED, SPARSE])
@pytest.mark.parametrize("cap", [8, 2, 1])
@pytest.mark.parametrize("end", [1000, 200, 120, 90])
def test_a_service_that_ignores_end_time_is_refused(rows, cap, end) -> None:
    service = Service(rows, cap=cap, ignores_end_time=True)
    walked = walk(service, Interval(71, end))
    assert_every_prefix_is_complete(rows, Interval(71, end), walked)
    assert "ignores end_time" in str(walked.error)


def test_one_page_that_reaches_below_the_window_is_enough_without_end_time() -> None:
    walked = walk(Service(SPARSE, ignores_end_time=True), WINDOW)
    assert walked.error is None
    assert_every_prefix_is_complete(SPARSE, WINDOW, walked)
    assert [query["end_time"] for query in walked.asked] == ["200"]


@pytest.mark.parametrize("rounding_s", [7, 60])
def test_rows_newer_than_asked_for_are_left_out_where_a_service_rounds_end_time_up(
    rounding_s,
) -> None:
    rows = archive(dict.fromkeys(range(60, 300), 1))
    walked = walk(Service(rows, cap=80, rounding_s=rounding_s), WINDOW)
    assert walked.error is None
    assert_every_prefix_is_complete(rows, WINDOW, walked)


@given(st.permutations(TIED))
@examples(20)
def test_the_order_inside_a_page_does_not_matter(rows) -> None:
    service = Service(TIED, cap=7)
    place = {row: number for number, row in enumerate(rows)}

    def shuffled(request: Request) -> Response:
        page = json.loads(service.answer(request).body)
        page["items"].sort(key=lambda item: place[item["ts"], item["price"]])
        return Response(200, {}, json.dumps(page).encode())

    walked = walk(service, WINDOW, answer=shuffled)
    assert walked.error is None
    assert_every_prefix_is_complete(TIED, WINDOW, walked)


def test_an_empty_answer_where_rows_are_known_to_be_is_asked_for_again() -> None:
    service = Service(TIED, cap=7)
    hiccups = iter([False, True, False, False, True])

    def hiccuping(request: Request) -> Response:
        empty = b'{"items": [], "next_end_time": null}'
        return Response(200, {}, empty) if next(hiccups, False) else service.answer(request)

    walked = walk(service, WINDOW, answer=hiccuping)
    assert walked.error is None
    assert_every_prefix_is_complete(TIED, WINDOW, walked)


OLDEST_FIRST = replace(
    BUILT_IN.histories[Family.PRICE],
    order="oldest_first",
    ask={"key": "{symbol}", "since": "{start_time}", "until": "{end_time}", "n": "{limit}"},
    limit=4,
)


@dataclass(frozen=True)
class Forward:
    """A service that sends the oldest rows first, from a start on, in one of several ways."""

    rows: tuple[Row, ...]
    cap: int = 4
    ends: str = "null"
    """What the last page says: null, a time, or nothing."""
    reads_until: bool = True
    newest_first: bool = False
    ignores_start: bool = False
    ignores_limit: bool = False
    excludes_start: bool = False

    def answer(self, request: Request) -> Response:
        query = dict(request.query)
        since = 0 if self.ignores_start else int(query["since"]) + self.excludes_start
        until = int(query["until"]) if self.reads_until else 10**9
        found = sorted(row for row in self.rows if since <= row[0] < until)
        size = self.cap if self.ignores_limit else min(self.cap, int(query["n"]))
        page = found[-size:] if self.newest_first else found[:size]
        items = [{"ts": ts, "price": p, "mark_price": None, "volume": None} for ts, p in page]
        body: dict[str, object] = {"items": items}
        if len(found) > size:
            body["next_end_time"] = page[-1][0]
        elif self.ends != "nothing":
            body["next_end_time"] = None if self.ends == "null" else until
        return Response(200, {}, json.dumps(body).encode(), "http://h/p")


def walk_forward(service: Forward, window: Interval) -> Walked:
    return walk_route(OLDEST_FIRST, service.answer, window)


@st.composite
def forward_services(draw: st.DrawFn) -> Forward:
    """Rows with up to three in one second, fewer than a page has, where the end is stated."""
    times = draw(st.lists(st.integers(0, 2_000), max_size=60))
    ends, counts = draw(st.sampled_from(["null", "time", "nothing"])), Counter(times)
    most = 3 if ends == "null" else 1
    rows = [(ts, float(n)) for ts, count in counts.items() for n in range(min(count, most))]
    return Forward(
        tuple(rows), ends=ends, reads_until=draw(st.booleans()), excludes_start=draw(st.booleans())
    )


@given(forward_services(), st.integers(1, 1_500), st.integers(1, 1_500))
@examples(200)
def test_every_row_of_the_window_comes_once_and_the_stretches_reach_down(service, start, length):
    window = Interval(start, start + length)
    pages = walk_forward(service, window).pages
    came = [row for page in pages for row in rows_of(page)]
    assert sorted(came) == sorted(row for row in service.rows if start <= row[0] < window.end)
    assert union(page.answered for page in pages) == [window]
    assert [page.answered.end for page in pages] == [
        window.end,
        *(page.answered.start for page in pages[:-1]),
    ]
    for page in pages:
        assert page.frame["ts"].to_list() == sorted(page.frame["ts"].to_list(), reverse=True)


ROWS = tuple((60 * n, float(n)) for n in range(30))
FULL = tuple((600, float(n)) for n in range(9))


@pytest.mark.parametrize(
    ("service", "words"),
    [
        (Forward(ROWS, newest_first=True), "does not send the oldest rows first"),
        (Forward(ROWS, ignores_start=True), "ignores the start"),
        (Forward(ROWS, newest_first=True, ignores_limit=True), "ignores the limit"),
        (Forward(FULL), "alone fills a page"),
        (Forward(FULL, excludes_start=True), "alone fills a page"),
        (Forward(FULL, cap=3, ends="nothing"), "alone fills a page"),
    ],
)
def test_what_cannot_be_shown_to_be_whole_is_refused(service: Forward, words: str) -> None:
    assert words in str(walk_forward(service, Interval(300, 1_800)).error)


@pytest.mark.parametrize("excludes_start", [False, True])
def test_each_part_has_its_first_row_whether_or_not_the_start_is_included(excludes_start) -> None:
    rows = tuple((60 * n, float(n)) for n in range(1, 601))
    pages = walk_forward(Forward(rows, excludes_start=excludes_start), Interval(60, 60 * 601)).pages
    assert len(pages) > 2
    assert sorted(ts for page in pages for ts in page.frame["ts"]) == [ts for ts, _ in rows]
