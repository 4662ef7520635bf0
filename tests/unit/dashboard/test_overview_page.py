"""The page that opens first, in each state that a store can be in."""

from __future__ import annotations

import json

import pytest

from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog
from toolkit.store import Batch, Edge, LoadOrigin, StoreWriter

from .conftest import SERVED_AT, add_events, add_snapshots, documents, keep_snapshot
from .shown import sync

PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def metrics(shown):
    return {metric.label: metric.value for metric in shown.metric}


def captions(shown):
    return " ".join(caption.value for caption in shown.caption)


@pytest.fixture
def shown(page, full):
    return page(full.path, "overview")


def test_it_opens_without_a_name_and_counts_what_the_store_holds(shown):
    assert metrics(shown) == {
        "Spreads open": "3",
        "Spreads opened, 24 h": "2",
        "Pumps and dumps, 24 h": "1",
        "Funding events, 24 h": "–",
    }


def test_open_spreads_are_the_services_list_widest_first(shown, full):
    table = shown.dataframe[0].value
    assert table["spread (%)"].to_list() == [2.5, 1.5, 1.25]
    assert table["open for"].to_list() == ["10 min"] * 3
    assert table[""].to_list() == ["Open", "Swapped", "Events"]
    says = captions(shown)
    assert "2023-03-10 10:00 UTC, widest first: 3 open; 1 more are tracked" in says
    assert "Events: the trajectory is not held, so the button shows the symbol's events" in says
    assert f"`{sync(full.path, 'BTC_USD:KRAKEN.spot:GEMINI.spot')}`" in says
    assert "A row without a button" not in says


@pytest.mark.parametrize("row", [0, 1])
def test_a_row_opens_its_trajectory_whichever_way_round_it_is_held(shown, row):
    shown.session_state["open_clicked"] = {"row": row, "label": "Open"}
    shown.run()
    assert [title.value for title in shown.header] == ["Trajectory"]
    assert shown.selectbox(key="trajectory").value == PAIR


def test_a_row_whose_trajectory_is_not_held_leads_to_the_events_of_its_symbol(shown):
    shown.session_state["open_clicked"] = {"row": 2, "label": "Events"}
    shown.run()
    assert [title.value for title in shown.header] == ["Events"]
    assert shown.get_by_key("event_symbol").value == ["BTC_USD"]
    assert shown.query_params["symbol"] == "BTC_USD"
    assert not shown.warning


def test_a_row_of_which_nothing_is_held_has_no_button_and_a_reason(page, held):
    add_snapshots(held)
    shown = page(held.path, "overview")
    table = shown.dataframe[0].value
    assert table[""].isna().to_list() == [False, False, True]
    says = captions(shown)
    assert "A row without a button: neither the trajectory nor an event of its symbol" in says
    assert f"`{sync(held.path, 'BTC_USD:KRAKEN.spot:GEMINI.spot')}`" in says


def test_rates_apart_have_units_and_open_the_funding_page(shown):
    (row,) = shown.dataframe[1].value.to_dict("records")
    assert row["% per 8 h"] == pytest.approx(0.04)
    assert row["% a year"] == pytest.approx(43.8)
    assert row["lowest → highest"] == "KRAKEN.futures → GEMINI.futures"
    assert "n = 2 legs" in captions(shown)
    shown.session_state["apart_clicked"] = {"row": 0, "label": "Open"}
    shown.run()
    assert [title.value for title in shown.header] == ["Funding"]


def test_the_newest_events_come_first_and_open_the_events_page(shown):
    table = shown.dataframe[2].value
    assert table["event"].to_list() == ["splash.pump", "spread.opened", "spread.closed"]
    assert table["newest document (UTC)"].iloc[0] == "2023-03-10 09:55"
    assert table["legs"].to_list()[:2] == ["COINBASE.spot", "COINBASE.spot → KRAKEN.spot"]
    assert table["peak"].to_list() == ["+3.25 %", "+2.5 %", "+1.5 %"]
    (chart,) = [json.loads(c.proto.spec) for c in shown.get("plotly_chart")]
    assert [bars["name"] for bars in chart["data"]][:2] == ["spread (2)", "splash (1)"]
    shown.session_state["newest_clicked"] = {"row": 1, "label": "Open"}
    shown.run()
    assert [title.value for title in shown.header] == ["Events"]
    assert shown.query_params["event"] == "open-one"


def test_without_snapshots_open_spreads_come_from_the_event_log(page, logged):
    shown = page(logged.path, "overview")
    assert metrics(shown)["Spreads open"] == "1"
    says = "From the event log, known until 2023-03-10 09:59:30 UTC: 1 that opened and have not"
    assert says in captions(shown)
    table = shown.dataframe[0].value
    assert table["spread (%)"].to_list() == [2.5]
    assert table["open for"].to_list() == ["9 min 30 s"]
    assert sync(logged.path, "snapshot/funding") in [code.value for code in shown.code]


def sync_another_log(store, served_at):
    """A later answer for the log of splashes alone, which moves the newest clock."""
    writer = StoreWriter(store)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", served_at, None, "0.1.0"))
    batch = Batch()
    edge = Edge(served_at=served_at, delay_s=0, retention_s=None, step_s=0)
    log = EventLog(EventFamily.SPLASH)
    batch.add_documents(log, documents(), Interval(SERVED_AT, served_at), edge)
    writer.commit(load, batch)
    writer.finish_load(load, [])


@pytest.mark.parametrize(("with_list", "age"), [(True, "10 min"), (False, "9 min 30 s")])
def test_a_later_sync_of_another_log_makes_no_event_older(page, logged, with_list, age):
    if with_list:
        add_snapshots(logged)
    sync_another_log(logged, SERVED_AT + 3600)
    shown = page(logged.path, "overview")
    assert set(shown.dataframe[0].value["open for"]) == {age}
    card = next(metric for metric in shown.metric if metric.label == "Spreads open")
    assert card.delta == ("at 2023-03-10 10:00 UTC" if with_list else "at 2023-03-10 09:59:30 UTC")
    opened = next(m for m in shown.metric if m.label == "Spreads opened, 24 h")
    assert "in the 24 h to 2023-03-10 09:59:30 UTC" in opened.help


def test_a_log_that_was_last_asked_days_ago_still_has_its_open_events(page, logged):
    sync_another_log(logged, SERVED_AT + 5 * 86_400)
    shown = page(logged.path, "overview")
    assert metrics(shown)["Spreads open"] == "1"
    assert "Nothing is known of spread events from 2023-03-10 09:59:30 UTC on." in captions(shown)


def test_a_log_that_is_newer_than_the_list_of_spreads_wins(page, held):
    writer = StoreWriter(held)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    keep_snapshot(held, load, "spread", b'{"items": []}', SERVED_AT - 7200)
    writer.finish_load(load, [])
    add_events(held)
    shown = page(held.path, "overview")
    assert metrics(shown)["Spreads open"] == "1"
    assert "The service's list of" not in captions(shown)


def test_without_events_and_snapshots_each_part_says_what_brings_it(page, held):
    shown = page(held.path, "overview")
    assert [code.value for code in shown.code] == [
        sync(held.path, "snapshot/spread"),
        sync(held.path, "snapshot/funding"),
        sync(held.path, "events/spread", "events/splash", "events/funding"),
    ]
    assert metrics(shown)["Spreads open"] == "–"
    assert metrics(shown)["Spreads opened, 24 h"] == "–"


def test_a_store_that_holds_nothing_says_what_to_type(page, bare):
    shown = page(bare.path, "overview")
    (says,) = [info.value for info in shown.info]
    assert "holds nothing yet" in says
    assert "rail sync --all-prices --all-spreads" in shown.code[0].value
    assert not shown.metric


def test_a_list_that_is_not_understood_is_not_shown_as_nothing_open(page, held):
    writer = StoreWriter(held)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    odd = [{"symbol": "BTC_USD", "since": 60, "gap": 2.5}] * 2
    for kind in ("spread", "funding"):
        keep_snapshot(held, load, kind, json.dumps({"items": odd}).encode(), SERVED_AT)
    writer.finish_load(load, [])
    shown = page(held.path, "overview")
    assert metrics(shown)["Spreads open"] == "not understood"
    said = [warning.value for warning in shown.warning]
    assert len(said) == 2
    assert all("not understood: no " in each for each in said)
    assert "open;" not in captions(shown)
    assert "names no symbol" not in captions(shown)
