"""The page that opens first, in each state that a store can be in."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from toolkit.dashboard.pages.overview.page import lost_words, week_before
from toolkit.dashboard.parts.event_reading import read_lately
from toolkit.dashboard.reading import read_held
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.statistics.fees import FeeModel
from toolkit.store import Edge
from toolkit.store.file.engine import version_of

from .conftest import (
    EDGE,
    SERVED_AT,
    START,
    WHOLE,
    add_snapshots,
    bring,
    documents,
    keep_snapshot,
    loading,
    price_rows,
    spread_rows,
)
from .shown import metrics, rows_of, sync, texts, words

PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def captions(shown):
    return " ".join(caption.value for caption in shown.caption)


@pytest.fixture
def shown(page, full):
    return page(full.path, "overview")


def test_it_opens_on_counts_open_spreads_rates_apart_and_the_newest_events(shown):
    assert metrics(shown) == {
        "spreads open": "3",
        "spreads opened, 24 h": "2",
        "pumps and dumps, 24 h": "1",
        "funding events, 24 h": "–",
    }
    table = rows_of(shown, "open")
    assert table["now (bps)"] == ["246.9", "-148.9", "124.2"], (
        "the second is held the other way round"
    )
    legs = [
        "COINBASE.spot → KRAKEN.spot",
        "COINBASE.spot → KRAKEN.spot",
        "KRAKEN.spot → GEMINI.spot",
    ]
    assert table["buy → sell"] == legs
    assert table["open for"] == ["10 min"] * 3
    assert table["percentile, 7 d"] == ["100", "0", "–"]
    assert "net (bps)" not in table
    head = (
        "**Widest spreads now** · 3 open by the service's list of 2023-03-10 10:00 UTC, 1 tracked"
    )
    assert head in words(shown)
    assert rows_of(shown, "suspect")["now (bps)"] == ["⚠ 6,418.5"]
    table = rows_of(shown, "apart")
    assert table["diff. APR (%)"] == ["43.80"]
    assert table["short → long"] == ["GEMINI.futures → KRAKEN.futures"]
    assert "sign" not in table, "nothing of it is held"
    table = rows_of(shown, "newest")
    assert table["type"] == ["splash.pump", "spread.opened", "spread.closed"]
    assert table["time (UTC)"][0] == "03-10 09:55"
    assert table["legs"][:2] == ["COINBASE.spot", "COINBASE.spot → KRAKEN.spot"]
    assert table["peak (bps)"] == ["319.8", "246.9", "148.9"]
    (chart,) = [json.loads(c.proto.spec) for c in shown.get("plotly_chart")]
    assert [bars["name"] for bars in chart["data"]][:2] == ["spread (2)", "splash (1)"]
    assert "The same hours of the week before are not stored." in captions(shown)
    shown.session_state["newest_opened"] = "open-one"
    shown.run()
    assert [title.value for title in shown.header] == ["Events"]
    assert shown.query_params["event"] == "open-one"


def test_with_fees_a_spread_has_what_is_left_of_it(page, full):
    table = rows_of(page(full.path, "overview", fees="example"), "open")
    cost = FeeModel.example(["COINBASE", "KRAKEN"]).round_trip_bps(PAIR, 1e4, at=SERVED_AT)
    assert table["net (bps)"] == [
        f"{250 - cost:.1f}",
        f"{1e4 * (1 - 1 / 1.015) - cost:.1f}",
        f"{125 - cost:.1f}",
    ]


def test_where_none_is_open_what_is_tracked_is_shown_and_suspect_pairs_fold_away(page, held):
    leg = {"symbol": "BTC_USD", "buy_exchange": "COINBASE", "buy_market": "spot"}
    leg |= {"sell_market": "spot", "opened_at": None}
    sizes = (("KRAKEN", 0.5), ("GEMINI", 90.0))
    tracked = [leg | {"sell_exchange": each, "spread_pct": pct} for each, pct in sizes]
    keep_snapshot(held, "spread", json.dumps({"items": tracked}).encode())
    shown = page(held.path, "overview")
    assert metrics(shown)["spreads open"] == "0"
    head = "0 open by the service's list of 2023-03-10 10:00 UTC, 2 tracked, 2 stored to 2023-03-10"
    assert head in words(shown)
    assert rows_of(shown, "open")["now (bps)"] == ["49.9"]  # also held, and there once
    assert rows_of(shown, "suspect")["now (bps)"] == ["⚠ 6,418.5"]
    assert [fold.label for fold in shown.expander if "not be of one asset" in fold.label]


@pytest.mark.parametrize("key", [PAIR, "BTC_USD:KRAKEN.spot:COINBASE.spot"])
def test_a_row_opens_its_trajectory_whichever_way_round_it_is_held(shown, key):
    shown.session_state["open_opened"] = key
    shown.run()
    assert [title.value for title in shown.header] == ["Trajectory"]
    assert shown.selectbox(key="trajectory").value == PAIR


def test_without_snapshots_open_spreads_come_from_the_event_log(page, logged):
    shown = page(logged.path, "overview")
    assert metrics(shown)["spreads open"] == "1"
    assert "1 open by the event log of 2023-03-10 09:59:30 UTC" in words(shown)
    table = rows_of(shown, "open")
    assert (table["now (bps)"], table["open for"]) == (["246.9"], ["9 min"])
    assert shown.button(key="load_snapshot/funding")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            b'{"windows": [{"window_s": 86400, "spread": 7, "splash": 0, "funding": 2}]}',
            "by the service's count (in the store): spread 7 (3), splash 0 (1), funding 2 (0).",
        ),
        (b'{"windows": {}}', "The service's own count of events was not understood."),
    ],
)
def test_the_service_s_own_counts_are_beside_what_is_held(page, logged, answer, says):
    keep_snapshot(logged, "activity", answer)
    assert says in captions(page(logged.path, "overview"))


def test_a_document_newer_than_its_log_was_asked_for_is_counted_as_held(page, logged):
    late = documents(("late-one", "splash.pump", 605, "open", 3.0))
    with loading(logged) as batch:
        batch.add_documents(EventLog(EventFamily.SPLASH), late, None, Edge(served_at=SERVED_AT))
    answer = b'{"windows": [{"window_s": 86400, "spread": 3, "splash": 2, "funding": 0}]}'
    keep_snapshot(logged, "activity", answer, SERVED_AT + 600)
    assert "(in the store): spread 3 (3), splash 2 (2)" in captions(page(logged.path, "overview"))


def sync_another_log(store, served_at):
    """A later answer for the log of splashes alone, which moves the newest clock."""
    edge = Edge(served_at=served_at, delay_s=0, retention_s=None, step_s=0)
    log = EventLog(EventFamily.SPLASH)
    with loading(store, served_at) as batch:
        batch.add_documents(log, documents(), Interval(SERVED_AT, served_at), edge)


@pytest.mark.parametrize(("with_list", "age"), [(True, "10 min"), (False, "9 min")])
def test_a_later_sync_of_another_log_makes_no_event_older(page, logged, with_list, age):
    if with_list:
        add_snapshots(logged)
    sync_another_log(logged, SERVED_AT + 3600)
    shown = page(logged.path, "overview")
    assert set(rows_of(shown, "open")["open for"]) == {age}
    card = next(metric for metric in shown.metric if metric.label == "spreads open")
    assert f"of 2023-03-10 {'10:00' if with_list else '09:59:30'} UTC." in card.help
    opened = next(m for m in shown.metric if m.label == "spreads opened, 24 h")
    assert "in the 24 h to 2023-03-10 09:59:30 UTC" in opened.help


def test_a_log_that_was_last_asked_days_ago_still_has_its_open_events(page, logged):
    sync_another_log(logged, SERVED_AT + 5 * 86_400)
    shown = page(logged.path, "overview")
    assert metrics(shown)["spreads open"] == "1"
    assert "Not loaded yet: spread events from 2023-03-10 09:59:30 UTC on." in words(shown)


def test_without_a_list_the_widest_are_shown_and_each_part_says_what_brings_it(page, held):
    shown = page(held.path, "overview")
    assert [button.label for button in shown.button if button.label.startswith("Load")] == [
        "Load the rates in force",
        "Load 7 days of events",
    ]
    assert not shown.code
    assert metrics(shown)["spreads open"] == "–"
    assert metrics(shown)["spreads opened, 24 h"] == "–"
    assert metrics(shown)["spreads open"] == "–"
    assert "it is not known which are open, 1 stored to 2023-03-10 10:00 UTC" in words(shown)
    table = rows_of(shown, "open")
    assert table["buy → sell"] == ["COINBASE.spot → KRAKEN.spot"]
    assert table["now (bps)"] == ["4.0"]
    shown.session_state["open_opened"] = PAIR
    shown.run()
    assert shown.selectbox(key="trajectory").value == PAIR


def test_a_store_that_holds_nothing_says_what_to_type(page, bare):
    shown = page(bare.path, "overview")
    (says,) = texts(shown.info)
    assert "is empty" in says
    assert shown.code[0].value == sync(bare.path, "watchlist", "--start", "7d", service=None)
    assert not shown.metric


@pytest.mark.parametrize("place", ["items", "rows"])
def test_a_list_that_is_not_understood_is_not_shown_as_nothing_open(page, held, place):
    odd = [{"symbol": "BTC_USD", "since": 60, "gap": 2.5}] * 2
    for kind in ("spread", "funding"):
        keep_snapshot(held, kind, json.dumps({place: odd}).encode())
    shown = page(held.path, "overview")
    assert metrics(shown)["spreads open"] == "not understood"
    said = texts(shown.warning)
    assert len(said) == 2
    assert all("not understood: no " in each for each in said)
    assert "the list is not understood, 1 stored to 2023-03-10 10:00 UTC" in words(shown)
    assert "has no symbol" not in captions(shown)


def test_which_are_open_is_not_known_of_a_list_that_does_not_say_it(page, held):
    leg = {"buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y", "sell_market": "dex"}
    item = {"symbol": "BTC_USD", **leg, "spread_pct": 2.5, "opened_at": None}
    answer = {"items": [item], "not_said": ["opened_at"]}
    keep_snapshot(held, "spread", json.dumps(answer).encode())
    shown = page(held.path, "overview")
    assert metrics(shown)["spreads open"] == "not known"
    assert "it is not known which are open, 1 tracked, " in words(shown)


def test_what_needs_attention_is_one_line_with_the_way_to_it(page, held):
    later = SERVED_AT + 3600
    rows = price_rows().tail(1).with_columns(ts=pl.lit(later - 60))
    edge = replace(EDGE, served_at=later)
    bring(held, "BTC_USD:COINBASE.spot", rows, Interval(later - 60, later), edge)
    says = words(page(held.path, "overview"))
    assert "1 of 3 streams is behind the others, `BTC_USD:KRAKEN.spot` by 1 h" in says


def test_a_gap_that_leaves_the_archive_within_a_day_is_counted(bare):
    """Asked for over ten hours and answered for from the second on, with an archive of a day."""
    pair, edge = Trajectory.parse(PAIR), replace(EDGE, retention_s=86_400)
    rows = spread_rows().filter(pl.col("ts") >= START + 3600)
    with loading(bare, SERVED_AT, [pair], WHOLE) as batch:
        batch.add(pair, rows, Interval(START + 3600, SERVED_AT), edge)
    (says,) = lost_words(read_held(bare.path, version_of(bare.path)))
    assert says == "gaps of 1 stream leave the archive within a day, the first in 14 h"


def test_the_week_before_is_read_where_it_is_held(bare):
    """Of a log answered for over nine days: the opening a week before, at its hour of the day."""
    week = 7 * 86_400
    end = START + week + 86_400
    edge = Edge(served_at=end, delay_s=0, retention_s=None, step_s=0)
    pump = documents(("pump-one", "splash.pump", 600, "open", 3.25))
    with loading(bare, end) as batch:
        batch.add_documents(EventLog(EventFamily.SPLASH), pump, Interval(START - 86_400, end), edge)
    held = read_held(bare.path, version_of(bare.path))
    events, _ = read_lately(held)
    (found,) = week_before(held, events, Interval(end - 86_400, end)).to_dicts()
    assert found["ts"] == START + 600 * 60 + week
    before_the_log = Interval(end - 86_400 - week - 86_400, end - week - 86_400)
    assert week_before(held, events, before_the_log) is None
