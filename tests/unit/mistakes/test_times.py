"""Times: what is no moment, no window, or a window of nothing. And every form that is one."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest

from toolkit import parse_ts
from toolkit.errors import EmptyWindowError, InputError, RailError
from toolkit.statistics import spread
from toolkit.workspace import Workspace

from .conftest import NOW, PAIR, PRICE, RATES, WINDOW
from .judged import Row, fault

MISTAKES: list[Row] = [
    # finer or coarser than seconds
    ("rail.prices(PRICE, NOW * 1_000)", InputError, ("milliseconds", "seconds")),
    ("rail.prices(PRICE, NOW * 10**9)", InputError, ("nanoseconds", "seconds")),
    ("rail.prices(PRICE, str(NOW * 1_000))", InputError, ("milliseconds", "seconds")),
    ("rail.prices(PRICE, 'today', NOW * 1_000)", InputError, ("a moment beside an end",)),
    ("rail.prices(PRICE, NOW - 60, NOW * 1_000)", InputError, ("end", "milliseconds")),
    ("spread.summary(frame, NOW * 1_000, NOW * 1_001)", InputError, ("start", "milliseconds")),
    ("charts.spread_chart(frame, source=source, start=NOW * 1_000)", InputError, ("milliseconds",)),
    ("charts.event_timeline(events.lifecycles(), start=0, end=NOW * 1_000, source=source)",
     InputError, ("end", "milliseconds")),
    ("rail.store.series(PRICE, (NOW * 1_000, NOW * 1_001))", InputError, ("milliseconds",)),
    ("rail.store.series(PRICE, ('soon', 'later'))", InputError, ("start: 'soon'", "2023-03-01")),
    ("rail.store.series(PRICE, '7d')", InputError, ("window: '7d'", "a start and an end")),
    ("rail.store.series(PRICE, as_of=NOW * 1_000)", InputError, ("as_of", "milliseconds")),
    ("rail.store.events('spread', None)", InputError,
     ("window: nothing is given", "a start and an end")),
    ("rail.store.coverage(PRICE, (NOW, NOW))", InputError, ("before its end",)),
    ("Client(service, 'demo-pro').history(PRICE, NOW * 1_000, NOW * 1_001)",
     InputError, ("milliseconds",)),
    ("rail.prices(PRICE, NOW - 60.5)", InputError, ("whole", "seconds")),
    ("rail.prices(PRICE, dt.datetime(2026, 11, 3, 22, 0, 0, 5))", InputError, ("whole",)),
    ("rail.prices(PRICE, np.datetime64('2026-11-03T22:00:00.5'))", InputError, ("whole",)),
    ("spread.summary(frame, frame['ts'][0] / 1)", InputError, ("whole", "seconds")),
    # the wrong way round, or nothing between
    ("rail.prices(PRICE, NOW, NOW - 60)", InputError, ("a start before its end",)),
    ("spread.summary(frame, NOW, NOW - 60)", InputError, ("a start before its end",)),
    ("rail.sync(PRICE, NOW, NOW)", InputError, ("a start before its end",)),
    ("charts.price_chart(price.df, source=source, start=NOW, end=NOW)", InputError, ("before",)),
    ("tk.open('x.duckdb', window=(NOW, NOW))", InputError, ("a start before its end",)),
    # windows by name
    ("rail.prices(PRICE, '7 d')", InputError, ("'7 d'", "7d")),
    ("rail.prices(PRICE, '0d')", InputError, ("'0d'", "7d")),
    ("rail.prices(PRICE, 'Yesterday')", InputError, ("'Yesterday'", "nearest: yesterday")),
    ("rail.prices(PRICE, 'last week')", InputError, ("'last week'", "7d")),
    ("rail.prices(PRICE, 'now')", InputError, ("'now'", "today")),
    ("rail.prices(PRICE, '2026-13')", InputError, ("'2026-13'", "2023-03")),
    ("rail.prices(PRICE, '2026-10', '2026-11')", InputError, ("beside an end", "2026-10-01")),
    ("rail.prices(PRICE, '2026-10-01', '2026-11')", InputError, ("end: '2026-11'", "2026-11-01")),
    ("rail.prices(PRICE, None, 'yesterday')", InputError, ("end: 'yesterday'", "as the start")),
    ("rail.prices(PRICE, NOW - 60, '7d')", InputError, ("end: '7d'", "as the start")),
    ("rail.prices(PRICE, '7d', NOW)", InputError, ("'7d'", "beside an end")),
    ("tk.open('x.duckdb', window='7 days')", InputError, ("'7 days'", "7d")),
    ("tk.open('x.duckdb', window=7)", InputError, ("window: 7", "7d")),
    ("tk.open('x.duckdb', window='2023-03-01')", InputError, ("'2023-03-01'", "7d")),
    ("tk.open('x.duckdb', window=(3, 1))", InputError, ("a start before its end",)),
    ("tk.open('x.duckdb', window=(1, 2, 3))", InputError, ("(start, end)",)),
    ("spread.summary(frame, '7d')", InputError, ("start: '7d'", "2023-03-01")),
    ("Client(service, 'demo-pro').history(PRICE, '7d', NOW)", InputError, ("start: '7d'",)),
    ("rail.as_of('tomorrow')", InputError, ("as_of: 'tomorrow'", "2023-03-01")),
    ("rail.as_of(None)", InputError, ("as_of: nothing is given",)),
    ("tk.parse_ts('03/11/2026')", InputError, ("'03/11/2026'", "2023-03-01")),
    ("tk.parse_ts('2026-02-30')", InputError, ("'2026-02-30'",)),
    ("tk.parse_ts('2026-11-03 10:00 CET')", InputError, ("CET", "UTC")),
    ("tk.parse_ts('')", InputError, ("2023-03-01",)),
    # what is no moment
    ("rail.prices(PRICE, True)", InputError, ("True",)),
    ("rail.prices(PRICE, [NOW - 60, NOW])", InputError, ("2023-03-01",)),
    ("rail.prices(PRICE, np.datetime64('NaT'))", InputError, ("NaT",)),
    ("rail.prices(PRICE, pd.NaT)", InputError, ("NaT",)),
    ("rail.prices(PRICE, dt.timedelta(days=7))", InputError, ("7d",)),
    ("rail.prices(PRICE, dt.time(10))", InputError, ("2023-03-01",)),
    ("rail.prices(PRICE, price)", InputError, ("2023-03-01",)),
    ("rail.prices(PRICE, 10**400)", InputError, ("seconds",)),
    # nothing there
    ("rail.prices(PRICE, '2030-01-01', '2030-01-02')",
     EmptyWindowError, ("held: 2026-11-03 21:00",)),
    ("rail.prices(PRICE, '2026-01-01', '2026-01-02')", EmptyWindowError, ("held:", "rail sync")),
    ("rail.spread(PAIR, '2026-10')", EmptyWindowError, ("held:", "rail sync")),
    ("rail.events('spread', '2025')", EmptyWindowError, ("events/spread",)),
    ("rail.funding(RATES, '2025')", EmptyWindowError, (RATES, "held:")),
    ("rail.as_of('2020-01-01').prices(PRICE)", EmptyWindowError, ("the first load began",)),
    ("rail.sync(PRICE, '2030-01-01', '2030-01-02', progress=False)", EmptyWindowError,
     ("its clock reads 2026-11-04 00:00 UTC",)),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "kind", "words"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_wrong_time_is_one_line_that_shows_a_right_one(
    ground: dict[str, Any], typed: str, kind: type[RailError], words: tuple[str, ...]
) -> None:
    assert fault(typed, ground, kind, words) == ""


EIGHT = NOW - 7_200  # 2026-11-03 22:00 UTC


@pytest.mark.parametrize(
    "start",
    [
        np.int64(EIGHT),
        np.uint32(EIGHT),
        "2026-11-03 22:00",
        np.datetime64("2026-11-03T22"),
        np.datetime64(EIGHT * 10**9, "ns"),
        pd.Timestamp("2026-11-03 22:00"),
        pd.Timestamp("2026-11-03 23:00", tz="Europe/Berlin"),
        pd.DatetimeIndex(["2026-11-03 22:00"])[0],
    ],
    ids=repr,
)
def test_a_moment_may_have_any_of_these_forms_and_is_utc_without_a_zone(
    rail: Workspace, start: Any
) -> None:
    assert parse_ts(start) == EIGHT
    series = rail.prices(PRICE, start, NOW)
    assert (series.window.start, series.df["ts"][0]) == (EIGHT, EIGHT)
    summary = spread.summary(rail.spread(PAIR).df, start, NOW)
    assert summary["window_start"].item() == EIGHT


@pytest.mark.parametrize("day", ["2026-11-04", dt.date(2026, 11, 4), pd.Timestamp("2026-11-04")])
def test_a_date_is_its_midnight_at_either_end(rail: Workspace, day: Any) -> None:
    assert rail.prices(PRICE, "2026-11-03", day).window == (NOW - 86_400, NOW)
    with pytest.raises(EmptyWindowError):
        rail.prices(PRICE, day, "2026-11-05")


def test_a_window_that_is_held_in_part_covers_what_it_covers(rail: Workspace) -> None:
    wider = rail.prices(PRICE, "2026-11-03", "2026-11-05")
    assert len(wider) == len(rail.prices(PRICE, *WINDOW))
    assert wider.coverage()["coverage"].item() == pytest.approx(3 / 48, abs=0.01)


def test_a_window_without_a_row_of_the_frame_has_its_reason(rail: Workspace) -> None:
    row = spread.summary(rail.spread(PAIR).df, "2025-01-01", "2025-01-02").row(0, named=True)
    assert (row["n"], row["coverage_reason"]) == (0, "empty")
