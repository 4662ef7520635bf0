"""How the commands read a window."""

from __future__ import annotations

import pytest

from toolkit.cli.options import window
from toolkit.intervals import Interval

WEEK = Interval(1_793_145_600, 1_793_750_400)


def asked(start: str | None, end: str | None) -> Interval:
    return window(start, end, now=lambda: WEEK.end + 30, default=lambda: WEEK)


def test_without_times_the_default_is_the_window() -> None:
    assert asked(None, None) == WEEK


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-11-01", None, Interval(1_793_491_200, WEEK.end)),
        (None, "2026-11-01T12:00:00Z", Interval(WEEK.start, 1_793_534_400)),
        ("2026-11-01", "2026-11-02", Interval(1_793_491_200, 1_793_577_600)),
        ("7d", None, WEEK),
        ("yesterday", None, Interval(WEEK.end - 86_400, WEEK.end)),
        ("2026-11", None, Interval(1_793_491_200, 1_796_083_200)),
    ],
)
def test_a_time_that_is_given_takes_the_place_of_the_defaults(
    start: str | None, end: str | None, expected: Interval
) -> None:
    assert asked(start, end) == expected
