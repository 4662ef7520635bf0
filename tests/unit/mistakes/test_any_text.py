"""Whatever is typed: a result, or one line of the toolkit's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from toolkit import Trajectory, parse_ts
from toolkit.errors import RailError
from toolkit.market import Stream
from toolkit.market.times import named_window
from toolkit.statistics import spread
from toolkit.workspace import Workspace

from ...conftest import examples
from .conftest import NOW, PAIR, PRICE, RATES
from .judged import fault_of

WORDS = "BTC USDT _ : . / * - AURORA spot futures funding events snapshot spread 7 d h 2026 11 T é"
PARTS = st.sampled_from([*WORDS.split(" "), " "])
TEXT = st.text(max_size=30) | st.lists(PARTS, max_size=9).map("".join)
ODD = TEXT | st.integers() | st.floats() | st.none() | st.booleans() | st.binary(max_size=5)
KEYS = st.sampled_from([PRICE, PAIR, RATES, "events/spread", "snapshot/spread"]) | ODD
TIMES = st.integers(NOW - 10_000, NOW + 10_000) | st.sampled_from(["1h", "2026-11-03"]) | ODD


def one_line_or(result: Callable[[], Any]) -> Any:
    """Return a result, or None where it was refused in one line."""
    refused = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return result()
    except RailError as error:
        refused = fault_of(error)
    assert refused == ""
    return None


@examples(200)
@given(key=KEYS, start=TIMES, end=TIMES)
def test_a_series_is_read_or_refused_in_one_line(
    rail: Workspace, key: Any, start: Any, end: Any
) -> None:
    for read in (rail.series, rail.prices, rail.spread, rail.funding):
        series = one_line_or(lambda read=read: read(key, start, end))
        assert series is None or series.window.start < series.window.end


@examples(200)
@given(name=ODD)
def test_a_family_is_known_or_refused_in_one_line(rail: Workspace, name: Any) -> None:
    for read in (rail.events, rail.snapshots, rail.store.snapshots):
        one_line_or(lambda read=read: read(name))
    one_line_or(lambda: rail.store.events(name, (NOW - 60, NOW)))


@examples(300)
@given(text=ODD)
def test_a_key_reads_back_and_a_moment_is_in_the_years_there_are(text: Any) -> None:
    for parse in (Stream.parse, Trajectory.parse):
        stream = one_line_or(lambda parse=parse: parse(text))
        assert stream is None or parse(stream.key) == stream
    ts = one_line_or(lambda: parse_ts(text))
    assert ts is None or -62_135_596_800 <= ts < 253_402_300_800
    window = one_line_or(lambda: named_window(text, NOW))
    assert window is None or window[0] < window[1]


@examples(100)
@given(start=TIMES, end=TIMES, column=ODD, step_s=ODD)
def test_a_statistic_is_computed_or_refused_in_one_line(
    rail: Workspace, start: Any, end: Any, column: Any, step_s: Any
) -> None:
    frame = rail.spread(PAIR, "30min").df
    one_line_or(lambda: spread.coverage(frame, start, end))
    found = one_line_or(lambda: spread.coverage(frame, NOW - 1_800, NOW, column=column))
    assert found is None or isinstance(found, pl.DataFrame)
    one_line_or(lambda: spread.coverage(frame, NOW - 1_800, NOW, step_s=step_s))
