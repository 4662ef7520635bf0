"""Which streams are followed: those that rules name, and for a while those they named."""

from __future__ import annotations

from toolkit.loader.follow.follow import Followed
from toolkit.market import Stream

A, B, C = (Stream.parse(f"BTC_USD:{leg}.spot") for leg in "ABC")
HOUR_S = 3_600


def test_a_stream_that_no_rule_names_any_more_is_followed_for_its_time_and_that_is_said() -> None:
    followed = Followed(keep_s=HOUR_S)
    assert followed.renew({A: "open_now", B: "open_now"}, 0) == []
    (said,) = followed.renew({B: "open_now"}, 60)
    assert said.startswith("1 stream is named by no rule any more, followed until 1970-01-01")
    assert set(followed.rules) == {A, B}
    assert followed.renew({B: "open_now"}, HOUR_S + 59) == []
    (said,) = followed.renew({B: "open_now"}, HOUR_S + 60)
    assert "is followed no more, after 1 h without a rule" in said
    assert set(followed.rules) == {B}


def test_a_stream_that_is_named_again_in_time_stays_as_if_nothing_had_been() -> None:
    followed = Followed(keep_s=HOUR_S)
    followed.renew({A: "open_now"}, 0)
    followed.renew({}, 60)
    assert followed.renew({A: "top_open 5"}, 120) == []
    followed.renew({}, 4_000)
    assert set(followed.rules) == {A}
    assert followed.renew({}, 4_000 + HOUR_S)
    assert followed.rules == {}


def test_what_was_named_before_a_restart_is_followed_for_what_is_left_of_its_time() -> None:
    followed = Followed(keep_s=HOUR_S)
    followed.renew({A: "open_now"}, 10_000)
    (said,) = followed.remember({A: ("open_now", 9_000), B: ("open_now", 9_000)})
    assert said == "named within the last 1 h, and followed on: BTC_USD:B.spot"
    assert followed.rules == {A: "open_now", B: "open_now, lately"}
    assert len(followed.renew({A: "open_now", C: "open_now"}, 9_000 + HOUR_S)) == 2
    assert set(followed.rules) == {A, C}
