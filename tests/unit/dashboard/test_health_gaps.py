"""Which stretches are missing and why. A repair asks for all of them, and for little else."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from toolkit.dashboard.pages.health.tables import BETWEEN, UNANSWERED, caused, repair
from toolkit.foreign import Markdown
from toolkit.intervals import Interval, difference, total_s
from toolkit.market import Stream
from toolkit.store import Edge, Ledger

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
