"""A value, its heading and the reason of a null are the same words wherever a result is shown."""

from __future__ import annotations

import math

import pytest

from toolkit import columns
from toolkit.show.values import NULL, heading_of, value_text

DECLARED = [each for _, each in columns._first().values()]
EXTREMES = (0, -1, 1, 0.0, -1e-9, 1 - 1e-9, -95.0, 2**53, 1e300, math.inf, -math.inf, math.nan)


def test_each_declared_column_has_a_heading_and_a_text_for_any_value() -> None:
    for one in DECLARED:
        assert one.heading in heading_of(one)
        assert one.short in heading_of(one, short=True)
        assert value_text(None, one) == NULL
        values = ("", "text", True) if one.type == "String" else EXTREMES
        for value in values:
            text = value_text(value, one)
            assert text, (one.name, value)
            assert text in value_text(value, one, unit=True)
            assert text.strip("0. %") != "-", (one.name, value)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("coverage", 0.0, "0.00 %"),
        ("coverage", 1e-7, "<0.01 %"),
        ("coverage", 0.999999, ">99.99 %"),
        ("coverage", 1.0, "100.00 %"),
        ("half_life_s", -7_200.0, "-2 h"),
        ("half_life_s", math.inf, "inf"),
        ("window_start", 0, "1970-01-01 00:00"),
        ("window_start", 1e300, f"{1e300:.0f}"),
        ("carry_bps", -0.001, "0.00"),
    ],
)
def test_a_value_near_a_bound_says_on_which_side_it_is(name: str, value: float, text: str) -> None:
    assert value_text(value, columns.column(name)) == text
