"""Pairing of lifecycles against a state machine that reads the log one document at a time."""

from __future__ import annotations

import random

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.statistics.events import lifecycles

from ..conftest import examples

ENDINGS = {"spread": ["opened", "updated", "closed"], "splash": ["pump", "dump", "faded"]}
OPENS, CLOSES = {"opened", "pump", "dump"}, {"closed", "faded"}
SCHEMA = {
    "family": pl.String,
    "event_id": pl.Int64,
    "event_type": pl.String,
    "lifecycle": pl.String,
    "ts": pl.Int64,
    "ts_ms": pl.Int64,
    "arrival": pl.Int64,
    "pct": pl.Float64,
}
END, HORIZON = 60, 50


@st.composite
def logs(draw: st.DrawFn) -> list[tuple]:
    """Documents that arrive in the order of their times: no clock is behind."""
    rows = []
    fine = draw(st.booleans())
    for arrival in range(draw(st.integers(0, 30))):
        family = draw(st.sampled_from(sorted(ENDINGS)))
        ending = draw(st.sampled_from(ENDINGS[family]))
        at_ms = draw(st.integers(0, 60)) * 1000 + draw(st.sampled_from([0, 0, 250]))
        rows.append(
            (
                *(family, draw(st.integers(1, 3)), f"{family}.{ending}"),
                *("closed" if ending in CLOSES else "open", at_ms // 1000),
                *(at_ms if fine else None, arrival, draw(st.sampled_from([None, -2.0, 1.0]))),
            )
        )
    rows.sort(key=lambda row: (row[5] or 1000 * row[4], row[6]))
    rows = [(*row[:6], arrival, row[7]) for arrival, row in enumerate(rows)]
    copies = draw(st.lists(st.sampled_from(rows), max_size=5)) if rows else []
    return rows + [(*row[:6], 100 + k, row[7]) for k, row in enumerate(copies)]


def told(*documents: tuple[str, int, str, float, float | None]) -> list[tuple]:
    """Documents of (family, event, ending, second, pct), in the order of their times."""
    return [
        (family, event, f"{family}.{ending}", None, int(at), round(1000 * at), arrival, pct)
        for arrival, (family, event, ending, at, pct) in enumerate(documents)
    ]


LOST_CLOSE = told(("spread", 1, "opened", 10, 1.0), ("spread", 1, "opened", 30, None))
LOST_CLOSE += [(*LOST_CLOSE[0][:2], "spread.closed", None, 40, 40_500, 2, -2.0)]
ORPHANS = told(
    ("spread", 1, "updated", 5, None),
    ("spread", 2, "updated", 5, None),
    ("spread", 1, "opened", 10, None),
    ("splash", 1, "dump", 10, None),
    ("splash", 1, "faded", 25, None),
    ("splash", 2, "faded", 30, None),
)
ALIKE = told(
    ("spread", 1, "opened", 10, 1.5),
    ("spread", 1, "opened", 10, 1.6),
    ("spread", 1, "closed", 30, 0.2),
)
ALIKE += [(*row[:6], row[6] + more, row[7]) for more in (10, 20) for row in ALIKE]


def read_one_by_one(rows: list[tuple]) -> list[tuple]:
    """(family, id, t_open, t_close, duration, kind, updates, peak), by a state machine."""
    seen, found = set(), []
    running: dict[tuple, dict] = {}

    def put(story: tuple, kind: str, until_ms: int | None, t_close: int | None) -> None:
        one = running.pop(story)
        duration = None if until_ms is None else (until_ms - one["ms"]) / 1000
        if duration == 0:
            duration = 0.5 if one["coarse"] else 0.0005
        peak = max(one["pct"], key=abs) if one["pct"] else None
        row = (*story, one["ts"], t_close, duration, kind, one["updates"], peak)
        found.append((*story, one["at"], row))

    rows = [row for row in rows if row[4] < HORIZON]
    for row in sorted(rows, key=lambda row: (row[5] or 1000 * row[4], row[6])):
        family, event, event_type, _, ts, ts_ms, arrival, pct = row
        if (*row[:6], pct) in seen:
            continue
        seen.add((*row[:6], pct))
        story, ms = (family, event), ts_ms if ts_ms is not None else 1000 * ts
        ending = event_type.split(".")[1]
        if ending in OPENS and story in running:
            opened = running[story]["ts"] is not None
            put(story, *(("reopened", ms) if opened else ("orphan_update", None)), None)
        if story not in running:
            told = ending in OPENS
            running[story] = {
                "ms": ms,
                "at": (ms, arrival),
                "ts": ts if told else None,
                "coarse": ts_ms is None,
                "updates": 0,
                "pct": [],
            }
        running[story]["pct"] += [] if pct is None else [pct]
        running[story]["updates"] += ending == "updated"
        if ending in CLOSES:
            opened = running[story]["ts"] is not None
            put(story, *(("closed", ms) if opened else ("orphan_close", None)), ts)
    for story in list(running):
        opened = running[story]["ts"] is not None
        put(story, *(("open", 1000 * HORIZON) if opened else ("orphan_update", None)), None)
    return [row for *_, row in sorted(found, key=lambda one: one[:3])]


@examples(200)
@given(rows=logs(), shuffle=st.randoms(use_true_random=False))
@example(rows=LOST_CLOSE, shuffle=random.Random(1))
@example(rows=ORPHANS, shuffle=random.Random(1))
@example(rows=ALIKE, shuffle=random.Random(1))
def test_lifecycles_equal_a_state_machine_in_any_order_of_rows(rows, shuffle):
    mixed = list(rows)
    shuffle.shuffle(mixed)
    frame = pl.DataFrame(mixed, schema=SCHEMA, orient="row")
    found = lifecycles(frame, 0, END, magnitude="pct", now=55, delay_s=5)
    columns = ["family", "event_id", "t_open", "t_close", "duration_s", "kind", "n_updates", "peak"]
    assert found.select(columns).rows() == read_one_by_one(rows)
    used = [row for row in rows if row[4] < HORIZON]
    distinct = {(*row[:6], row[7]) for row in used}
    assert found["n"].sum() == len(distinct)
    assert found["n_duplicates"].sum() == len(used) - len(distinct)
    assert found["observed"].sum() == (found["kind"] == "closed").sum()
    assert found["duration_s"].is_null().equals(found["kind"].str.starts_with("orphan"))
