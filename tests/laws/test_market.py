"""Round trips of the vocabulary: what is written is read back, and nothing else is."""

from __future__ import annotations

import contextlib
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.foreign import is_name
from toolkit.market import UNIT_FACTORS, Leg, Market, Symbol, Trajectory, format_ts, parse_ts
from toolkit.market import unit_factor as factor

_NO_CONTROL = st.characters(exclude_categories=["C", "Z"], exclude_characters=":_/?#&%")
ASSET = st.text(_NO_CONTROL, min_size=1, max_size=8).filter(is_name)
SYMBOLS = st.builds(Symbol, ASSET, ASSET)
EXCHANGE = st.from_regex(r"[A-Z0-9][A-Z0-9_-]{0,11}", fullmatch=True)
LEGS = st.builds(Leg, EXCHANGE, st.sampled_from(Market))
PAIRS = st.lists(LEGS, min_size=2, max_size=2, unique=True)
TRAJECTORIES = st.one_of(
    st.builds(
        lambda symbol, leg: Trajectory.price(str(symbol), leg.exchange, leg.market), SYMBOLS, LEGS
    ),
    st.builds(lambda symbol, legs: Trajectory.spread(str(symbol), *legs), SYMBOLS, PAIRS),
)
SECONDS = st.integers(-62_135_596_800, 253_402_300_799)


@pytest.mark.slow
@given(TRAJECTORIES)
def test_a_key_reads_back_as_the_same_trajectory(trajectory: Trajectory) -> None:
    assert Trajectory.parse(trajectory.key) == trajectory
    assert Trajectory.parse(trajectory.key).key == trajectory.key


@given(st.text(max_size=30))
def test_any_text_is_a_trajectory_or_refused_as_an_input(text: str) -> None:
    with contextlib.suppress(InputError):
        assert Trajectory.parse(text).key == text


@given(SECONDS)
def test_a_printed_time_reads_back_as_the_same_second(ts: int) -> None:
    assert parse_ts(format_ts(ts)) == ts


@given(SECONDS, SECONDS)
def test_printed_times_sort_as_their_seconds_do(one: int, other: int) -> None:
    width = len("YYYY-MM-DD HH:MM")
    if one // 60 < other // 60:
        assert format_ts(one)[:width] < format_ts(other)[:width]


@given(
    st.datetimes(
        dt.datetime(1, 1, 3),  # noqa: DTZ001 - hypothesis adds the zone
        dt.datetime(9999, 12, 29),  # noqa: DTZ001 - hypothesis adds the zone
        timezones=st.timezones(),
    ).map(lambda moment: moment.replace(microsecond=0))
)
def test_a_zoned_time_and_its_iso_text_are_one_second(moment: dt.datetime) -> None:
    offset = moment.utcoffset()
    assert offset is not None
    in_utc = moment.replace(tzinfo=None) - offset
    assert format_ts(parse_ts(moment))[:16] == in_utc.isoformat(" ")[:16]
    assert parse_ts(moment.isoformat()) == parse_ts(moment)


@given(st.text(max_size=25))
def test_any_text_is_a_time_or_refused_as_an_input(text: str) -> None:
    with contextlib.suppress(InputError):
        ts = parse_ts(text)
        assert parse_ts(format_ts(ts)) == ts


@given(*(st.sampled_from([u for u, (kind, _) in UNIT_FACTORS.items() if kind == "ratio"]),) * 3)
def test_converting_by_way_of_a_third_unit_changes_nothing(a: str, b: str, c: str) -> None:
    assert factor(a, b) * factor(b, c) == pytest.approx(factor(a, c), rel=1e-9)
