from __future__ import annotations

import pytest

from toolkit.errors import InputError
from toolkit.intervals import Interval


@pytest.mark.parametrize(("start", "end"), [(60, 60), (61, 60)])
def test_an_empty_or_reversed_window_is_refused(start: int, end: int) -> None:
    with pytest.raises(InputError, match="a start before its end"):
        Interval.checked(start, end)


def test_a_window_in_milliseconds_is_refused_as_an_input() -> None:
    with pytest.raises(InputError, match="Unix seconds"):
        Interval.checked(1_677_628_800_000, 0)


def test_an_interval_prints_its_open_end_in_utc() -> None:
    assert str(Interval(59, 3600)) == "[1970-01-01 00:00:59 UTC, 1970-01-01 01:00 UTC)"
