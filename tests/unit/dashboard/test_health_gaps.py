"""Which stretches are missing and why, their repair, and the map of coverage."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.dashboard.pages.health.measured import coverage_map
from toolkit.dashboard.pages.health.tables import BETWEEN, UNANSWERED, caused, repair
from toolkit.foreign import Markdown
from toolkit.intervals import Interval, difference, total_s
from toolkit.market import Stream
from toolkit.store import Edge, Ledger
from toolkit.tables import LedgerState

KEYS = ("A_B:X.spot", "A_B:Y.spot", "events/splash")
PARTS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(0, 40_000), st.integers(1, 9_000)), max_size=12
)


def stretches(parts):
    rows = [(key, start, start + length) for key, start, length in parts]
    return pl.DataFrame(rows, schema=["stream", "start_ts", "end_ts"], orient="row")


@given(PARTS.filter(len))
def test_a_repair_asks_for_every_missing_second_and_for_less_than_two_hours_more(parts):
    missing = stretches(parts)
    asked = {}
    for part in repair(Markdown("All"), missing).parts:
        for key in part.streams:
            assert key not in asked
            asked[key] = Interval(part.start, part.end)
    for (key,), of_stream in missing.group_by("stream"):
        window = asked[key]
        assert window.start <= of_stream["start_ts"].min()
        assert window.end >= of_stream["end_ts"].max()
        whole = of_stream["end_ts"].max() - of_stream["start_ts"].min()
        assert window.length_s < whole + 7_200


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=4))
def test_every_missing_second_has_one_cause(captured):
    stream = Stream.parse(KEYS[0])
    missing = [Interval(0, 30), Interval(40, 60)]
    rows = [(stream.key, a, b, "lost") for a, b in ((s, s + n) for s, n in captured)]
    lost = pl.DataFrame(
        rows,
        schema={"stream": pl.String, "start_ts": pl.Int64, "end_ts": pl.Int64, "cause": pl.String},
        orient="row",
    )
    ledger = {stream: Ledger(Edge(100, retention_s=90), asked=[Interval(0, 20)])}
    frame = stretches([(stream.key, part.start, part.length_s) for part in missing])
    found = caused(frame, ledger, lost)
    parts = [Interval(*part) for part in found.select("start_ts", "end_ts").iter_rows()]
    assert total_s(parts) == sum(part.length_s for part in parts) == 50
    assert not difference(missing, parts)
    assert set(found["cause"]) <= {"live capture: lost", UNANSWERED, BETWEEN}
    assert (found["leaves_at"] == found["start_ts"] + 90).all()


STATES = [state.value for state in LedgerState]
SCHEMA = ["stream", "start_ts", "end_ts", "state"]


@given(
    st.integers(0, 5_000),
    st.lists(st.tuples(st.integers(1, 4_000), st.sampled_from(STATES)), min_size=1, max_size=8),
)
def test_each_cell_has_the_percent_of_its_seconds_in_each_state(first, parts):
    rows, seconds = [], {}
    for length, state in parts:
        rows.append(("a", first, first + length, state))
        seconds |= dict.fromkeys(range(first, first + length), state)
        first += length
    found = coverage_map(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    assert found is not None
    assert found.cells <= 62
    cells = [run[1:] for run in found.runs["a"] for _ in range(run[0])]
    assert len(cells) == found.cells
    for place, percents in enumerate(cells):
        begins = found.start + place * found.step_s
        within = [seconds.get(ts) for ts in range(begins, begins + found.step_s)]
        for state, percent in zip(STATES, percents, strict=True):
            share = 100 * within.count(state) / found.step_s
            assert percent == pytest.approx(share, abs=1)
            assert (percent > 0) == (share > 0)


@pytest.mark.parametrize(
    ("length_s", "cell"),
    [(3_600, "5 min"), (86_400, "1 h"), (7 * 86_400, "4 h"), (30 * 86_400, "1 day")],
)
def test_a_cell_is_as_short_as_the_time_allows_and_a_day_for_a_month(length_s, cell):
    rows = [("a", 86_400, 86_400 + length_s, "held"), ("b", 86_400, 90_000, "missing")]
    found = coverage_map(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    assert found is not None
    assert found.step_words == cell


def test_many_years_still_fit():
    rows = [("a", 0, 40 * 365 * 86_400, "held")]
    found = coverage_map(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    assert found is not None
    assert found.cells <= 62
    assert found.runs["a"][0][1] == 100
