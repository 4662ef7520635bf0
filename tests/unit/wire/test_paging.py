"""What the pager asks, answer by answer; that nothing is lost is shown in tests/laws."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from toolkit.errors import PagingError
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.wire.exchange import Response, RetryPolicy, Send
from toolkit.wire.history_page import Page
from toolkit.wire.limits import LIMITS
from toolkit.wire.paging import trajectory_pages
from toolkit.wire.profile.profile import BUILT_IN

ROUTE = BUILT_IN.histories[Family.PRICE]
KEY = Trajectory.parse("BTC_USD:KRAKEN.spot")
WINDOW = Interval(100, 400)


@dataclass
class Walk:
    """A walk that is answered step by step."""

    window: Interval = WINDOW
    pages: list[Page] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    checked: list[int] = field(default_factory=list)
    """The ends of questions for one row alone."""
    ended: bool = False

    def __post_init__(self) -> None:
        self._flow = trajectory_pages(ROUTE, KEY, self.window, RetryPolicy(attempts=2))
        self._to_next_question(None)

    def answer(self, *seconds: int, pointer: object = None, **more: object) -> Walk:
        """Answer with a row at each second; every row of one second costs one more."""
        items = [
            {"ts": ts, "price": seconds[:at].count(ts) + 1.0, "mark_price": None, "volume": None}
            for at, ts in enumerate(seconds)
        ]
        body = json.dumps({"items": items, "next_end_time": pointer, **more})
        self._to_next_question(Response(200, {}, body.encode()))
        return self

    def _to_next_question(self, answer: Response | None) -> None:
        try:
            while isinstance(step := self._flow.send(answer), Page):
                self.pages.append(step)
                answer = None
        except StopIteration:
            self.ended = True
        else:
            assert isinstance(step, Send)
            query = dict(step.request.query)
            of_one = query.pop("limit") == "1"
            (self.checked if of_one else self.asked).append(int(query.pop("end_time")))
            assert query == {"symbol": "BTC_USD", "exchange": "KRAKEN", "market": "spot"}

    @property
    def answered(self) -> list[tuple[int, int]]:
        return [tuple(page.answered) for page in self.pages]

    @property
    def seconds(self) -> list[list[int]]:
        return [page.frame["ts"].to_list() for page in self.pages]


def test_each_page_is_asked_for_one_second_above_the_oldest_row_until_the_window_is_passed() -> (
    None
):
    walk = Walk().answer(360, 300, pointer=300).answer(300, 240, 180, pointer=180)
    walk.answer(180, 120, 60, pointer=60)
    assert walk.ended
    assert walk.asked == [400, 301, 181]
    assert walk.seconds == [[360, 300], [240, 180], [120]]
    assert walk.answered == [(301, 400), (181, 301), (100, 181)]


def test_an_archive_that_begins_inside_the_window_costs_one_question_more() -> None:
    walk = Walk().answer(360, 300, 240, pointer=None).answer(240, pointer=None)
    assert (walk.asked, walk.ended) == ([400, 241], True)
    assert walk.answered == [(241, 400), (100, 241)]


def test_without_a_word_that_it_is_the_end_one_second_lower_is_asked_too() -> None:
    walk = Walk().answer(360, 300, pointer=300).answer(300, pointer=300).answer(pointer=None)
    assert (walk.asked, walk.ended) == ([400, 301, 300], True)
    assert walk.answered == [(301, 400), (301, 301), (100, 301)]


def test_nothing_at_all_is_checked_by_asking_for_one_row_before_the_window() -> None:
    walk = Walk().answer().answer()
    assert (walk.asked, walk.checked, walk.ended) == ([400], [100], True)
    assert walk.answered == [(100, 400)]
    assert walk.pages[0].frame.height == 0


def test_an_empty_answer_with_rows_before_the_window_is_asked_for_again() -> None:
    walk = Walk().answer().answer(90).answer(160, 40, pointer=40)
    assert (walk.asked, walk.checked, walk.ended) == ([400, 400], [100], True)
    assert (walk.seconds, walk.answered) == ([[160]], [(100, 400)])


def test_nothing_before_a_window_s_end_and_something_before_its_start_is_refused() -> None:
    walk = Walk().answer().answer(90).answer()
    with pytest.raises(PagingError, match=r"contradicts itself: before .* nothing came, twice"):
        walk.answer(90)
    assert walk.pages == []


def test_a_row_at_a_window_s_end_alone_is_no_page_of_it() -> None:
    walk = Walk().answer(400)
    with pytest.raises(PagingError, match="sends the rows from end_time on: before"):
        walk.answer(160)


@pytest.mark.parametrize("came", [101, 160, 5_000])
def test_rows_from_end_time_on_are_found_out_where_nothing_is_newer_than_the_window(came) -> None:
    walk = Walk().answer()
    with pytest.raises(PagingError, match="sends the rows from end_time on: before"):
        walk.answer(came)
    assert walk.pages == []


def test_a_bad_request_for_what_lies_before_a_window_is_no_evidence() -> None:
    walk = Walk().answer()
    walk._to_next_question(Response(400, {}, b""))
    assert (walk.ended, walk.answered) == (True, [(100, 400)])


def test_rows_that_rise_are_checked_by_asking_for_the_newest_alone() -> None:
    walk = Walk().answer(240, 300, 360, pointer=240).answer(360).answer(180, 240, pointer=None)
    assert (walk.asked, walk.checked) == ([400, 241, 181], [400])
    assert walk.seconds == [[240, 300, 360], [180]]


def test_the_oldest_rows_first_are_refused_at_the_first_page() -> None:
    walk = Walk().answer(40, 100, 160, pointer=None)
    with pytest.raises(PagingError, match=r"oldest rows first: .* 3 came that rise from .* to"):
        walk.answer(40)
    assert (walk.pages, walk.checked) == ([], [400])


def test_rows_from_end_time_on_are_refused_at_the_first_page() -> None:
    walk = Walk().answer(400, 460, 520)
    with pytest.raises(PagingError, match="sends the rows from end_time on: of those before"):
        walk.answer(400)


def test_where_limit_is_ignored_the_page_of_the_oldest_row_decides() -> None:
    rising = Walk().answer(240, 300, 360, pointer=240).answer(240, 300, 360, pointer=240)
    rising.answer(120, 180, 240, pointer=120).answer(120, 180, 240, pointer=120)
    assert (rising.asked, rising.checked) == ([400, 241, 241, 121], [400])
    unknown = Walk().answer(240, 300, 360).answer(240, 300, 360)
    with pytest.raises(PagingError, match="limit is ignored too"):
        unknown.answer(240)


def test_a_row_that_came_in_between_does_not_make_the_newest_rows_the_oldest() -> None:
    walk = Walk().answer(240, 300, 360, pointer=240).answer(395)
    assert walk.seconds == [[240, 300, 360]]


def test_no_content_is_an_empty_page() -> None:
    walk = Walk().answer(360, 300, pointer=300)
    walk._to_next_question(Response(204, {}, b""))
    walk._to_next_question(Response(204, {}, b""))
    assert (walk.asked, walk.ended) == ([400, 301, 301], True)


def test_an_empty_page_that_points_on_is_followed_and_answers_for_what_it_skips() -> None:
    walk = Walk().answer(pointer=350).answer(pointer=250).answer(240, 90, pointer=90)
    assert walk.asked == [400, 351, 251]
    assert walk.answered == [(350 + 1, 400), (251, 351), (100, 251)]


@pytest.mark.parametrize("pointer", [400, 401, 10_000, None])
def test_an_empty_page_that_points_nowhere_lower_is_the_end(pointer) -> None:
    assert Walk().answer(pointer=pointer).answer().ended


@pytest.mark.parametrize("pointer", [99, 0])
def test_an_empty_page_that_points_below_the_window_is_the_end_of_it(pointer) -> None:
    assert Walk().answer(pointer=pointer).answered == [(100, 400)]


def test_an_empty_page_that_points_one_second_lower_is_followed_once() -> None:
    walk = Walk().answer(pointer=399).answer(pointer=398)
    assert (walk.asked, walk.ended) == ([400, 399], True)
    on = Walk().answer(pointer=399).answer(300, pointer=300).answer(300, pointer=300)
    assert on.answer(pointer=299).asked == [400, 399, 301, 300, 299]


def test_empty_pages_without_end_are_given_up() -> None:
    walk = Walk(Interval(0, 10_000))
    for number in range(LIMITS.empty_pages):
        walk.answer(pointer=9_990 - 10 * number)
    with pytest.raises(PagingError, match="101 pages in a row without a row"):
        walk.answer(pointer=10)
    assert walk.answered[-1] == (9_001, 9_011)


def test_rows_that_are_equal_are_one_row() -> None:
    twice = json.loads('{"ts":300,"price":1,"mark_price":null,"volume":null}')
    walk = Walk().answer(items=[twice, twice], pointer=300)
    walk.answer(items=[twice, twice, {**twice, "price": 2}], pointer=300)
    assert walk.seconds == [[300], [300]]
    assert walk.pages[1].frame["price"].to_list() == [2.0]


@pytest.mark.parametrize("pointer", [300, None])
def test_a_page_as_full_as_was_asked_of_one_second_alone_is_refused(pointer) -> None:
    walk = Walk().answer(*[300] * 500, pointer=pointer).answer(*[300] * 500, pointer=pointer)
    with pytest.raises(
        PagingError, match=r"second 1970.* 00:05 UTC alone fills a page .500 of 500 rows"
    ):
        walk.answer(299, pointer=None)
    assert walk.answered == [(301, 400), (301, 301)]


def test_a_short_page_of_one_second_is_whole_where_larger_pages_follow() -> None:
    walk = Walk().answer(300, 300, pointer=300).answer(300, 300, pointer=300)
    walk.answer(240, 180, 120, pointer=120).answer(120, 60, pointer=60)
    assert (walk.asked, walk.ended) == ([400, 301, 300, 121], True)
    assert walk.answered == [(301, 400), (301, 301), (121, 301), (100, 121)]


def test_a_service_that_repeats_its_last_page_at_the_end_is_told_apart_by_a_probe() -> None:
    walk = Walk().answer(900, 840, 780, pointer=780)
    assert walk.asked == [400, 899]
    walk.answer(840, 780, pointer=780).answer(900, 840, 780, pointer=780)
    assert (walk.asked, walk.ended) == ([400, 899, 400], True)
    assert walk.answered == [(100, 400)]
    assert walk.seconds == [[]]


def test_findings_of_a_page_come_with_it() -> None:
    walk = Walk().answer(items=[{"ts": 90, "price": 1}])
    assert [f.kind for f in walk.pages[0].findings] == ["field_missing", "field_missing"]
