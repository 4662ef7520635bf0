"""Pages over a store with streams that the service never answered for."""

from __future__ import annotations

import polars as pl
import pytest

from toolkit.dashboard.link import PAGES
from toolkit.dashboard.pages.health.measured import measure_health
from toolkit.dashboard.reading import read_held
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Stream, Trajectory
from toolkit.store import Delivered, Edge, LoadOrigin, Store, StoreWriter, keep_deliveries
from toolkit.store.file.engine import version_of
from toolkit.wire.event_log import document_frame

from .conftest import LEG, PAIR, SERVED_AT, START, bring, loading, spread_rows
from .funded import settled
from .shown import rows_of

ASKED = [
    Stream.parse(key)
    for key in (
        "AAA_USD:X.spot",
        "AAA_USD:X.spot:Y.spot",
        "funding/AAA_USD:X.futures:Y.futures",
        "events/funding",
        "events/splash",
    )
]
OLD = "ETH_USD:COINBASE.futures:KRAKEN.futures"
ORIGIN = LoadOrigin("http://h", SERVED_AT, None, "0")
HOUR = Interval(SERVED_AT - 3_600, SERVED_AT)


def only_asked(store: Store) -> None:
    StoreWriter(store).start_load(ORIGIN, ASKED, HOUR)


def only_delivered(store: Store) -> None:
    document = {"family": "splash", "event_id": "e", "event_type": "splash.pump"}
    times = {"ts": SERVED_AT + 60, "ts_ms": 1_000 * (SERVED_AT + 60), "document": "{}"}
    writer = StoreWriter(store)
    load_id = writer.start_load(ORIGIN)
    keep_deliveries(writer, load_id, [Delivered("d", "splash")], document_frame([document | times]))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("held_or_bare", "fills"),
    [
        ("held", (only_asked, only_delivered)),
        ("bare", (only_asked,)),
        ("bare", (only_delivered,)),
    ],
)
def test_every_page_opens_over_streams_without_an_answer(page, request, name, held_or_bare, fills):
    store = request.getfixturevalue(held_or_bare)
    for fill in fills:
        fill(store)
    assert not page(store.path, name).error


BEFORE = "2022-03-10T08:00:00Z/2022-03-10T09:00:00Z"
NO_ROW_THEN = [
    ("symbol", {"zoom": BEFORE, "fees": "example", "prices": "from_median"}),
    ("trajectory", {"trajectory": PAIR.key, "zoom": BEFORE, "legs": "below"}),
    ("trajectory", {"trajectory": PAIR.key, "zoom": BEFORE, "fees": "example", "threshold": "5"}),
    ("trajectory", {"trajectory": LEG.key, "zoom": BEFORE}),
    ("events", {"zoom": BEFORE}),
    (
        "events",
        {"family": "spread", "state": "over", "zoom": "2023-03-10T20:00Z/2023-03-10T20:01Z"},
    ),
    ("spreads", {"window": "24 hours", "fees": "example", "matrix": "ETH_USD"}),
    ("funding", {"view": "time", "window": "24 hours", "rows": "pairs"}),
    ("funding", {"trajectory": f"funding/{OLD}", "window": "24 hours", "fees": "example"}),
    ("overview", {"symbols": "ETH_USD"}),
]
"""Pages with a zoom or a window in which what is shown, or one row of it, has no observation."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "asked"), NO_ROW_THEN)
def test_a_time_without_a_row_is_said_in_words_on_every_page(page, full, name, asked):
    month_s = 30 * 86_400
    old = spread_rows().with_columns(pl.col("ts") - month_s)
    bring(full, OLD, old, Interval(START - month_s, SERVED_AT - month_s))
    rates = settled().with_columns(ts=pl.int_range(30) * 28_800 + START - month_s)
    long = Interval(START - month_s, START - 20 * 86_400)
    bring(full, f"funding/{OLD}", rates, long, Edge(SERVED_AT, step_s=28_800))
    shown = page(full.path, name, **asked)
    assert not [error.value for error in shown.error]
    assert [*shown.caption, *shown.info, *shown.markdown]


def test_what_was_asked_and_never_answered_is_missing(held):
    only_asked(held)
    lines = measure_health(held.path, version_of(held.path)).lines
    (line,) = lines.filter(stream=ASKED[0].key).to_dicts()
    assert (line["known_s"], line["missing_s"], line["gap_state"]) == (3_600, 3_600, "missing")


def test_pages_know_only_streams_that_were_answered_or_hold_something(held):
    before = read_held(held.path, version_of(held.path)).streams["stream"].to_list()
    only_asked(held)
    only_delivered(held)
    after = read_held(held.path, version_of(held.path)).streams
    assert after["stream"].to_list() == ["events/splash", *before]
    assert after["served_at"].null_count() == 0


def test_health_tells_nothing_there_from_no_answer_and_from_never_asked(page, held):
    log = EventLog(EventFamily.SPREAD)
    with loading(held, SERVED_AT, [log, EventLog(EventFamily.FUNDING)], HOUR) as batch:
        batch.add_documents(log, document_frame([]), HOUR, Edge(SERVED_AT, step_s=0))
    only_delivered(held)
    shown = page(held.path, "health")
    table = rows_of(shown, "streams")
    answers = dict(zip(table["stream"], table["answer"], strict=True))
    assert answers["events/spread"] == "nothing there"
    assert answers["events/funding"] == "no answer"
    assert answers["events/splash"] == "not requested yet"
    assert answers["BTC_USD"] == "held"
    (words,) = [c.value for c in shown.caption if c.value.startswith("Not requested yet")]
    assert words.startswith("Not requested yet: funding, events/splash, snapshot/symbols")


@pytest.mark.parametrize("asked", [True, False])
def test_spreads_that_are_not_there_and_spreads_never_asked_for_read_differently(page, bare, asked):
    if asked:
        pair = Trajectory.parse("AAA_USD:X.spot:Y.spot")
        with loading(bare, SERVED_AT, [pair], HOUR) as batch:
            batch.add(pair, spread_rows().clear(), HOUR, Edge(SERVED_AT))
    (words,) = [info.value for info in page(bare.path, "spreads").info]
    said = "the service has none for the requested time" if asked else "load some"
    assert f"has no spreads: {said}" in words


DAY_S = 86_400


def log_asked_for(store: Store, *, forgets_unsaid: bool) -> dict[str, object]:
    """Ask a log for 577 days of which its archive has 30, and return its line of coverage."""
    log, start = EventLog(EventFamily.SPLASH), SERVED_AT - 577 * DAY_S
    asked, reached = Interval(start, SERVED_AT), Interval(SERVED_AT - 30 * DAY_S, SERVED_AT)
    answers = [(reached, Edge(SERVED_AT, step_s=0, retention_s=30 * DAY_S))]
    if forgets_unsaid:  # as older versions did: nobody had stated how far the archive reaches
        answers.insert(0, (asked, Edge(SERVED_AT - 60, step_s=0)))
    for part, edge in answers:
        with loading(store, SERVED_AT, [log], asked) as batch:
            batch.add_documents(log, document_frame([]), part, edge, open_parts=[part])
    lines = measure_health(store.path, version_of(store.path)).lines
    return lines.filter(stream=log.key).to_dicts()[0]


@pytest.mark.parametrize("forgets_unsaid", [False, True])
def test_a_log_begins_where_it_was_first_asked_for_and_its_rest_is_lost(bare, forgets_unsaid):
    line = log_asked_for(bare, forgets_unsaid=forgets_unsaid)
    assert line["known_s"] == 577 * DAY_S
    assert (line["gap_start"], line["gap_state"]) == (SERVED_AT - 577 * DAY_S, "unrecoverable")
    assert line["unrecoverable_s"] == pytest.approx(547 * DAY_S, abs=60)
    assert line["held_s"] == pytest.approx(30 * DAY_S, abs=60)
