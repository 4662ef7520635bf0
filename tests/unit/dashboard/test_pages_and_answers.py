"""No page or command states a duration, age, count or share that its own answers do not support.

Streams are asked one at a time in random order. In this market every event opens on the tenth
minute and closes four minutes later, and a price has a row each minute, so that whatever is stated
can be worked out from the time of the stream's last answer.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Iterator

import polars as pl
import pytest

from toolkit.cards import duration
from toolkit.cli import main
from toolkit.columns import column
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, SnapshotKind, Stream, Trajectory
from toolkit.show.values import value_text
from toolkit.store import Edge, Store

from ...laws.test_answers_of_streams import EVERY_S, LASTS_S, documents
from .conftest import add_snapshot, loading
from .shown import cells_of, rows_of

PRICE = Trajectory.parse("A_B:X.spot")
LOGS = {str(EventLog(family)): family for family in (EventFamily.SPREAD, EventFamily.SPLASH)}
SNAPSHOT = "snapshot/spread"
STREAMS = [*LOGS, SNAPSHOT, PRICE.key]
DAY_S = 86_400


def ask(store: Store, stream: str, now: int) -> None:
    """One sync of one stream, from the first second to now."""
    whole = Interval(0, now)
    with loading(store, now, [Stream.parse(stream)], whole) as batch:
        if stream in LOGS:
            log = EventLog(LOGS[stream])
            batch.add_documents(log, documents(log.family, now), whole, Edge(now, step_s=0))
        elif stream == SNAPSHOT:
            add_snapshot(batch, SnapshotKind.SPREAD, json.dumps({"items": []}).encode(), now)
        else:
            minutes = pl.int_range(0, now // 60 * 60, 60, dtype=pl.Int64, eager=True).alias("ts")
            numbers = {name: pl.lit(1.0) for name in ("price", "mark_price", "volume")}
            rows = pl.DataFrame(minutes).with_columns(**numbers, extra=pl.lit(None, pl.String))
            batch.add(PRICE, rows, whole, Edge(now, step_s=60, delay_s=0))


def open_for_s(at: int) -> int | None:
    """How long the newest event of a log has been open at the time of the log's answer."""
    return at % EVERY_S if 0 < at % EVERY_S <= LASTS_S else None


def openings(at: int) -> list[int]:
    return [ts for ts in range(0, at, EVERY_S) if ts >= at - DAY_S]


@pytest.fixture(params=range(5))
def asked(request, bare) -> Iterator[tuple[Store, dict[str, int], float]]:
    """A store after up to seven syncs, the time of each stream's last answer, and when it began."""
    drawn, now, last = random.Random(request.param), 0, {}
    began = time.time()
    for _ in range(drawn.randint(2, 7)):
        now += drawn.randint(1, 40_000)
        stream = drawn.choice(STREAMS)
        ask(bare, stream, now)
        last[stream] = now
    return bare, last, began


def ages(since: int, last: dict[str, int], began: float) -> set[str]:
    """The ways to write the age of a moment while the test runs, by the service's clock."""
    at_least = max(last.values()) - since
    return {duration(at_least + late) for late in range(int(time.time() - began) + 3)}


@pytest.mark.slow
def test_overview_counts_and_times_what_each_log_s_own_answers_hold(asked, page_alone):
    store, last, _ = asked
    shown = page_alone("overview", store.path)
    figures = {metric.label: metric.value for metric in shown.metric}
    spread_at, list_at = last.get("events/spread"), last.get(SNAPSHOT)
    by_list = list_at is not None and (spread_at is None or list_at >= spread_at)
    if spread_at is None and list_at is None:
        assert figures["spreads open"] == "–"
    else:
        age_s = None if by_list or spread_at is None else open_for_s(spread_at)
        assert figures["spreads open"] == ("0" if age_s is None else "1")
        shown_for = rows_of(shown, "open").get("open for", [])
        assert shown_for == (
            [] if age_s is None else [duration(age_s // 60 * 60 if age_s >= 60 else age_s)]
        )
    labels = {"events/spread": "spreads opened, 24 h", "events/splash": "pumps and dumps, 24 h"}
    for stream, label in labels.items():
        at = last.get(stream)
        assert figures[label] == ("–" if at is None else f"{len(openings(at)):,}")
    assert figures["funding events, 24 h"] == "–"


@pytest.mark.slow
def test_the_events_page_times_an_open_event_to_its_log_s_last_answer(asked, page_alone):
    store, last, _ = asked
    shown = page_alone("events", store.path)
    columns = rows_of(shown, "events")
    lines = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert {line["duration"] for line in lines if line["seen"] == "closed"} <= {duration(LASTS_S)}
    still = {
        {"pump": "splash", "dump": "splash"}.get(line["kind"], line["kind"]): line["duration"]
        for line in lines
        if line["seen"] == "still open"
    }
    expected = {
        LOGS[stream].value: f"at least {duration(age_s)}"
        for stream, at in last.items()
        if stream in LOGS and (age_s := open_for_s(at)) is not None
    }
    newest = max((at for stream, at in last.items() if stream in LOGS), default=0)
    in_window = {family for family in expected if last[f"events/{family}"] > newest - DAY_S}
    assert {family: still[family] for family in still} == {f: expected[f] for f in in_window}


@pytest.mark.slow
def test_data_health_s_shares_and_ages_are_those_of_each_stream(asked, page_alone):
    store, last, began = asked
    shown = page_alone("health", store.path)
    lines = cells_of(shown, "streams")
    assert set(lines) == set(last)
    for stream, at in last.items():
        assert lines[stream]["age"] in ages(newest_s(stream, at), last, began)
        if stream == SNAPSHOT:
            continue
        (words,) = [cell for name, cell in lines[stream].items() if " to " in name]
        states = {part.rsplit(" ", 2)[0] for part in words.split(", ")}
        assert states <= {"held", "not yet known"}
        if stream in LOGS:
            not_yet = 100 - float(lines[stream]["held (%)"])
            rounded_s = 0.0051 * at / 100  # the page shows two decimals
            assert not_yet * at / 100 == pytest.approx(min(at, 60), abs=rounded_s)
    (words,) = [each.help for each in shown.caption if "most missing first" in each.value]
    assert "to the service's clock at its last answer" in words


def newest_s(stream: str, at: int) -> int:
    """The end of a stream's newest row or document."""
    if stream in LOGS:
        opened = (at - 1) // EVERY_S * EVERY_S
        return opened + LASTS_S if at > opened + LASTS_S else opened
    return at if stream == SNAPSHOT else at // 60 * 60


@pytest.mark.slow
def test_rail_status_states_ages_and_shares_of_each_stream(asked, monkeypatch, capsys):
    store, last, began = asked
    monkeypatch.setenv("COLUMNS", "200")
    before, sys.argv = sys.argv, ["rail", "status", "--store", str(store.path)]
    try:
        with pytest.raises(SystemExit):
            main()
    finally:
        sys.argv = before
    printed = [re.split(r" {2,}", line) for line in capsys.readouterr().out.splitlines()]
    titles = next(cells for cells in printed if cells[0] == "stream")
    lines = {cells[0]: dict(zip(titles, cells, strict=False)) for cells in printed}
    for stream, at in last.items():
        answered = at - 60 if stream in LOGS else 0  # what is younger is not known yet
        newest = max(newest_s(stream, at), answered)
        assert lines[stream]["behind"] in ages(newest, last, began)
        if stream != SNAPSHOT:
            share = share_answered(stream, at, max(last.values()))
            assert lines[stream]["answered"] == value_text(share, column("answered_share"))


def share_answered(stream: str, at: int, now: int) -> float:
    """Of what was asked for and can be known by now, what the last answer had."""
    known_s = max(0, at - (60 if stream in LOGS else 120))  # what is younger may still change
    return known_s / min(at, known_s + now - at)
