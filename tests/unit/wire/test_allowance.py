"""Plan and quota off the headers, in whatever form they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.wire.quota import Allowance, read_allowance


@pytest.mark.parametrize(
    ("policy", "rest", "told"),
    [
        ('"builder";q=600;w=60', '"builder";r=594;t=42', Allowance("builder", 600, 60, 594)),
        ('"pro"; q=6000; w=60', None, Allowance("pro", 6000, 60, None)),
        ("free;q=60;w=60", "free;r=0;t=1", Allowance("free", 60, 60, 0)),
        ('"a";q=1;w=1, "b";q=9;w=9', '"b";r=5', Allowance("a", 1, 1, None)),
        ('"a";q=1;w=1, "b";q=9;w=9', '"b";r=5, "a";r=0', Allowance("a", 1, 1, 0)),
        ('"builder";q=many;w=-1', '"builder";r=1.5', Allowance("builder")),
        ('"builder"', '"other";r=1', Allowance("builder")),
        ("", '"builder";r=1', None),
        (None, None, None),
        ("600", None, None),
        (";;;", None, None),
    ],
)
def test_a_header_tells_what_can_be_read_of_it(policy, rest, told):
    said = {"ratelimit-policy": policy, "ratelimit": rest, "retry-after": "3"}
    headers = {name: value for name, value in said.items() if value is not None}
    assert read_allowance(headers) == told


@given(st.text(), st.text())
def test_no_header_is_an_error(policy, rest):
    told = read_allowance({"ratelimit-policy": policy, "ratelimit": rest})
    assert told is None or 1 <= len(told.plan) <= 64
