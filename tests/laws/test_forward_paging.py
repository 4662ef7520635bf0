"""The pager of a service that is oldest first: all rows, each once, the newest part first."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import PagingError
from toolkit.intervals import Interval, union
from toolkit.market import Family, Trajectory
from toolkit.wire.exchange import Request, Response, RetryPolicy, Send
from toolkit.wire.history_page import Page
from toolkit.wire.paging import trajectory_pages
from toolkit.wire.profile.profile import BUILT_IN

from ..conftest import examples

KEY = Trajectory.parse("BTC_USD:KRAKEN.spot")
ROUTE = replace(
    BUILT_IN.histories[Family.PRICE],
    order="oldest_first",
    ask={"key": "{symbol}", "since": "{start_time}", "until": "{end_time}", "n": "{limit}"},
    limit=4,
)
Row = tuple[int, float]


@dataclass(frozen=True)
class Service:
    """A service that sends rows from a start on, in one of several ways."""

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


def paged(service: Service, window: Interval) -> list[Page]:
    flow = trajectory_pages(ROUTE, KEY, window, RetryPolicy())
    pages: list[Page] = []
    outcome, asked = None, 0
    while True:
        try:
            step = flow.send(outcome)
        except StopIteration:
            return pages
        outcome = None
        if isinstance(step, Page):
            pages.append(step)
        elif isinstance(step, Send):
            asked += 1
            assert asked < 2_000
            outcome = service.answer(step.request)


@st.composite
def services(draw: st.DrawFn) -> Service:
    """Rows with up to three in one second, fewer than a page has, where the end is stated."""
    times = draw(st.lists(st.integers(0, 2_000), max_size=60))
    ends, counts = draw(st.sampled_from(["null", "time", "nothing"])), Counter(times)
    most = 3 if ends == "null" else 1
    rows = [(ts, float(n)) for ts, count in counts.items() for n in range(min(count, most))]
    return Service(
        tuple(rows), ends=ends, reads_until=draw(st.booleans()), excludes_start=draw(st.booleans())
    )


@given(services(), st.integers(1, 1_500), st.integers(1, 1_500))
@examples(200)
def test_every_row_of_the_window_comes_once_and_the_stretches_reach_down(service, start, length):
    window = Interval(start, start + length)
    pages = paged(service, window)
    came = [(ts, price) for page in pages for ts, price in page.frame.select("ts", "price").rows()]
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
        (Service(ROWS, newest_first=True), "does not send the oldest rows first"),
        (Service(ROWS, ignores_start=True), "ignores the start"),
        (Service(ROWS, newest_first=True, ignores_limit=True), "ignores the limit"),
        (Service(FULL), "alone fills a page"),
        (Service(FULL, excludes_start=True), "alone fills a page"),
        (Service(FULL, cap=3, ends="nothing"), "alone fills a page"),
    ],
)
def test_what_cannot_be_shown_to_be_whole_is_refused(service: Service, words: str) -> None:
    with pytest.raises(PagingError, match=words):
        paged(service, Interval(300, 1_800))


@pytest.mark.parametrize("excludes_start", [False, True])
def test_each_part_has_its_first_row_whether_or_not_the_start_is_included(excludes_start) -> None:
    rows = tuple((60 * n, float(n)) for n in range(1, 601))
    pages = paged(Service(rows, excludes_start=excludes_start), Interval(60, 60 * 601))
    assert len(pages) > 2
    assert sorted(ts for page in pages for ts in page.frame["ts"]) == [ts for ts, _ in rows]
