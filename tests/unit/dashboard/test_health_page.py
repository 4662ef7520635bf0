"""The page of data health: coverage, gaps and the buttons that repair them, loads, quota, file."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import duckdb
import pytest

from tests.empty_store import empty_store
from toolkit.client import Client
from toolkit.dashboard.loads import loader_of
from toolkit.intervals import Interval
from toolkit.market import Source
from toolkit.service import Config, Simulated, running
from toolkit.store import Batch, Gap, LoadOrigin, Store, StoreWriter
from toolkit.wire.findings import LostStretch
from toolkit.wire.quota import Allowance
from toolkit.workspace import Workspace

from .conftest import EDGE, LEG, NOW, SERVED_AT, WHOLE, loading, price_rows
from .shown import metrics, rows_of, sync, texts, values_of, words

OWN = "BTC_USDT:AURORA.spot"


def test_figures_streams_map_and_retention_are_shown_and_a_stream_opens(page, full):
    shown = page(full.path, "health")
    found = metrics(shown)
    assert found["rows"] == "1,086"
    assert found["documents"] == "4"
    assert float(found["store (MB)"]) > 0
    assert (found["held (%)"], found["missing"]) == ("94.71", "0")
    assert found["quota left"] == "–"
    lines = values_of(shown, "streams")
    kinds = ["spread", "price", "events", "events"]
    kept = ["snapshot-funding"] * 2 + ["snapshot-spread"] * 4  # of one poll: no coverage is known
    assert [line["kind"] for line in lines] == [*kinds, *kept, "snapshot", "snapshot"]
    assert [line["held (%)"] for line in lines[4:]] == [None] * 8
    held = [line["held (%)"] for line in lines[:4]]
    assert held == pytest.approx([89.67, 89.67, 99.75, 99.75], abs=0.01)
    table = rows_of(shown, "streams")
    assert (table["longest gap"][0], table["gap state"][0]) == ("1 h", "empty")
    assert table["legs"][0] == "COINBASE.spot → KRAKEN.spot"
    assert table["stream"][2] == "events/splash"
    (column,) = [
        each
        for part in shown.get("bidi_component")
        for each in json.loads(part.proto.json).get("columns", [])
        if each["kind"] == "map"
    ]
    assert column["name"] == "coverage map, 2023-03-10 to 2023-03-10 10:00"
    assert column["cells"] == [SERVED_AT - 36_000, 3_600]
    cells = [run[1:] for run in column["values"][1] for _ in range(run[0])]
    assert cells[3] == [33, 67, 0, 0, 0, 0]  # the hole is from 03:20 to 04:20
    assert cells[4] == [67, 33, 0, 0, 0, 0]
    assert column["shown"][1].startswith("held 89.67 %, empty 10.00 %, not yet known")
    table = rows_of(shown, "retention")
    assert table["kind"] == ["events"]
    assert table["kept for"] == ["30 d"]
    assert table["missing from (UTC)"] == ["2023-03-10 10:00"]
    assert table["lost in"][0].startswith(("30 d", "29 d"))
    shown.session_state["streams_opened"] = "BTC_USD:KRAKEN.spot"
    shown.run()
    assert shown.selectbox(key="trajectory").value == "BTC_USD:KRAKEN.spot"


def test_an_event_log_opens_the_page_of_events(page, full):
    shown = page(full.path, "health")
    shown.session_state["streams_opened"] = "events/splash"
    shown.run()
    assert [title.value for title in shown.header] == ["Events"]


def test_what_is_lost_at_the_source_is_named_with_its_reason_and_asked_again(page, tmp_path):
    store = empty_store(tmp_path / "rail.duckdb", Source("live", "exchanges"))
    why = "no answer for 90 s: timed out"
    gone = [LostStretch(SERVED_AT - 14_400, SERVED_AT - 7_200, why)]
    with loading(store, SERVED_AT, [LEG], WHOLE) as batch:
        batch.add(LEG, price_rows(), WHOLE, EDGE, lost=gone)
    shown = page(store.path, "health")
    assert "lost at the source: no answer for 90 s: timed out" in words(shown)
    assert "1 stretch of 1 stream, 2 h of data" in words(shown)
    assert shown.button(key="lost_0").label.startswith("Ask again · about ")
    assert "Nothing else that was requested is missing" in words(shown)
    assert rows_of(shown, "streams")["gap state"][0] == "lost at the source"


def test_a_stretch_that_is_missing_is_repaired_by_a_button_with_its_cost(page, tmp_path, service):
    path = tmp_path / "rail.duckdb"
    with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
        workspace.sync(OWN, NOW - 7_200, NOW - 3_600)
        workspace.sync(OWN, NOW - 86_400, NOW - 82_800)
    shown = page(path, "health")
    button = shown.button(key="repair_all")
    assert button.label == "Repair all · about 1 request, 1,260 rows, 25 kB"
    assert "1 stretch of 1 stream, 21 h of data" in words(shown)
    assert "the first second is lost in 29 d" in words(shown)
    button.click().run()
    loader_of(path).wait()
    shown.run()
    assert "Nothing that was requested is missing" in words(shown)
    assert "Repair all: 1,260 new" in words(shown)
    assert Store(path).catalogue().filter(stream=OWN)["rows"].item() == 1_380


def test_what_is_missing_is_listed_by_cause_losses_of_live_capture_first(page, gapped):
    writer = StoreWriter(gapped)
    batch = Batch()
    batch.gaps[1] = Gap(1, LEG, SERVED_AT + 600, SERVED_AT + 1200, "connection closed")
    writer.commit(began(gapped, 3_600), batch)
    shown = page(gapped.path, "health")
    found = words(shown)
    assert "**live capture: connection closed**: 1 stretch of 1 stream, 10 min of data" in found
    assert "**not requested yet**: 2 stretches of 1 stream, 1 h 49 min of data" in found
    labels = [button.label for button in shown.button if "Repair" in button.label]
    assert len(labels) == 3
    assert all("about" in label for label in labels)


def test_where_no_service_is_known_the_command_is_shown(page, bare, monkeypatch):
    monkeypatch.delenv("RAIL_BASE_URL", raising=False)
    service = "https://rail.example"
    with loading(bare, base_url=service) as batch:
        for start in (SERVED_AT - 36_000, SERVED_AT - 7_200):
            batch.add(LEG, price_rows().clear(), Interval(start, start + 3_600), EDGE)
    shown = page(bare.path, "health")
    gap = ("--start", "2023-03-10T01:00Z", "--end", "2023-03-10T09:58Z")
    assert sync(bare.path, LEG.key, *gap, service=service) in texts(shown.code)
    assert not [button for button in shown.button if "Repair" in button.label]


def test_what_was_not_asked_for_since_is_topped_up(page, tmp_path):
    path = tmp_path / "rail.duckdb"
    with running(Config(Simulated(7), port=0)) as local:
        with Workspace(Client(local.base_url, "demo-pro"), Store(path)) as workspace:
            workspace.sync([OWN, "snapshot/spread"], "2h")
        with StoreWriter(Store(path)).writing() as connection:
            connection.execute(
                "UPDATE edge SET served_at = served_at - 3600, asked_at = asked_at - 3600"
            )
            connection.execute("UPDATE load SET finished_at = started_at")
        shown = page(path, "health")
        assert "**not updated since**: 2 streams, the longest for 1 h" in words(shown)
        shown.button(key="top_up").click().run()
        loader_of(path).wait()
        shown.run()
    assert "not updated since" not in words(shown)
    assert "Top up: " in words(shown)


def began(store, ago_s):
    """Start a load and take the time of its start back."""
    writer = StoreWriter(store)
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    with writer.writing() as connection:
        at = int(time.time()) - ago_s
        connection.execute("UPDATE load SET started_at = ? WHERE load_id = ?", [at, load_id])
    return load_id


def test_loads_are_listed_with_what_they_found_and_whether_they_finished(page, full):
    began(full, 3_600)
    shown = page(full.path, "health")
    loads = rows_of(shown, "loads")
    assert loads["outcome"] == ["stalled", *["finished"] * 3]
    assert loads["findings"] == ["–", "–", "next_missing (2×)", "–"]
    assert loads["rows"] == ["0", "2", "4", "1,080"]
    assert loads["took"][0] == "–"
    assert "**Loads** · 4, the newest began at " in words(shown)
    assert "1 stalled" in words(shown)
    assert "a page does not name where the next begins (next_missing, 2 times)" in words(shown)
    with StoreWriter(full).writing() as connection:
        connection.execute("UPDATE load SET profile_hash = '5c4e' WHERE load_id = 1")
    said = " ".join(texts(shown.run().caption))
    assert "1,080 under a file of hash 5c4e, by loads 1; 6 without a file of yours" in said


def test_a_capture_that_began_an_hour_ago_and_still_asks_is_running(page, full):
    batch = Batch()
    edge = replace(EDGE, asked_at=int(time.time()) - 60)
    batch.add(LEG, price_rows().clear(), Interval(SERVED_AT - 60, SERVED_AT), edge)
    StoreWriter(full).commit(began(full, 3_600), batch)
    shown = page(full.path, "health")
    assert rows_of(shown, "loads")["outcome"] == ["running", *["finished"] * 3]
    assert "1 running" in words(shown)
    assert "stalled" not in words(shown)


def test_the_quota_left_is_that_of_the_last_answer(page, make_store):
    store = make_store(Source("live", "rail"), Allowance("builder", 600, 60, 594))
    shown = page(store.path, "health")
    assert metrics(shown)["quota left"] == "594"
    assert [rows_of(shown, "loads")[name] for name in ("quota left", "quota")] == [["594"], ["600"]]
    assert "plan `builder`" in words(shown)


def test_a_store_that_was_never_asked_says_what_to_type(page, bare):
    shown = page(bare.path, "health")
    assert "is empty: nothing was loaded yet" in shown.info[0].value
    assert shown.code[0].value == sync(bare.path, "watchlist", "--start", "7d", service=None)


def test_a_clock_that_stands_makes_nothing_late_and_offers_no_top_up(page, tmp_path, service):
    path = tmp_path / "rail.duckdb"
    with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
        workspace.sync([OWN], "2h")
    with StoreWriter(Store(path)).writing() as connection:
        connection.execute("UPDATE load SET started_at = started_at - 3600")
        connection.execute("UPDATE edge SET asked_at = asked_at - 3600")
        connection.execute("UPDATE meta SET value = 'replay' WHERE name = 'source_kind'")
    shown = page(path, "health")
    assert not [button for button in shown.button if button.key == "top_up"]
    assert "not updated since" not in words(shown)


def test_between_bars_nothing_is_missing(page, tmp_path, service):
    path = tmp_path / "rail.duckdb"
    with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
        workspace.sync([OWN], NOW - 7_200, NOW - 3_600 - 39)
        workspace.sync([OWN], NOW - 3_600 - 20, NOW - 1_800)
    shown = page(path, "health")
    assert not [button for button in shown.button if button.key == "repair_all"]
    assert "Nothing that was requested is missing." in words(shown)


def test_a_stream_that_cannot_be_read_is_named_beside_all_others(page, full, tmp_path):
    path = tmp_path / "rail.duckdb"
    path.write_bytes(full.path.read_bytes())
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE stream SET key = 'BTC??' WHERE kind = 'price'")
    shown = page(path, "health")
    (says,) = texts(shown.warning)
    assert says.startswith("**Not readable**: `BTC??` (`'BTC??' is not a key of the kind 'price'`)")
    assert (
        len(values_of(shown, "streams")) == len(values_of(page(full.path, "health"), "streams")) - 1
    )
    assert not page(path, "overview").exception
