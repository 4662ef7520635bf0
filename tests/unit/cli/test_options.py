"""How the commands read a window."""

from __future__ import annotations

import pytest

from toolkit.cli.options import window
from toolkit.errors import InputError
from toolkit.intervals import Interval

WEEK = Interval(1_793_145_600, 1_793_750_400)


def test_without_times_the_default_is_the_window() -> None:
    assert window(None, None, default=WEEK) == WEEK


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-11-01", None, Interval(1_793_491_200, WEEK.end)),
        (None, "2026-11-01T12:00:00Z", Interval(WEEK.start, 1_793_534_400)),
        ("2026-11-01", "2026-11-02", Interval(1_793_491_200, 1_793_577_600)),
    ],
)
def test_a_time_that_is_given_takes_the_place_of_the_defaults(
    start: str | None, end: str | None, expected: Interval
) -> None:
    assert window(start, end, default=WEEK) == expected


@pytest.mark.parametrize(
    ("start", "end", "named"),
    [("yesterday", None, "--start"), (None, "noon", "--end"), ("2026-11-03", "2026-11-02", "end")],
)
def test_a_time_that_cannot_be_read_or_runs_backwards_is_refused(
    start: str | None, end: str | None, named: str
) -> None:
    with pytest.raises(InputError, match=named):
        window(start, end, default=WEEK)
