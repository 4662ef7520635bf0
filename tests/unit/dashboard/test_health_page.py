"""The page of data health: coverage, gaps, loads, plan and quota."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from toolkit.intervals import Interval
from toolkit.market import Source
from toolkit.store import Batch, LoadOrigin, StoreWriter
from toolkit.wire.allowance import Allowance

from .conftest import EDGE, LEG, SERVED_AT, price_rows
from .shown import sync


def metrics(shown):
    return {metric.label: metric.value for metric in shown.metric}


def test_rows_documents_and_size_are_counted(page, full):
    found = metrics(page(full.path, "health"))
    assert found["Rows"] == "1,080"
    assert found["Event documents"] == "4"
    assert found["Store"].endswith(" MB")
    assert found["Quota left"] == "–"


def test_every_stream_has_its_line_snapshots_without_coverage(page, full):
    lines = page(full.path, "health").dataframe[0].value
    assert lines["kind"].to_list() == ["spread", "price", "events", "events", *["snapshot"] * 2]
    assert lines["rows"].to_list()[-2:] == [1, 1]
    assert lines["held (%)"].isna().to_list()[-2:] == [True, True]
    lines = lines.iloc[:4]
    assert lines["held (%)"].to_list() == pytest.approx([89.67, 89.67, 99.75, 99.75], abs=0.01)
    assert lines["longest gap"].to_list()[0] == "1 h, empty"
    assert lines[""].isna().to_list() == [False, False, True, True]
    shares = lines[[name for name in lines.columns if name.endswith("(%)")]].sum(axis=1)
    assert shares.to_list() == pytest.approx([100.0] * 4)


def test_the_age_of_a_stream_is_that_of_now_whose_time_is_shown(page, aged):
    shown = page(aged.path, "health")
    assert shown.dataframe[0].value["age"][0].startswith("21 min")
    assert any("row to 2023-03-10 10:20" in caption.value for caption in shown.caption)


def test_shares_of_the_time_are_drawn_by_kind_in_the_ledgers_states(page, full):
    (chart,) = page(full.path, "health").get("plotly_chart")
    bars = json.loads(chart.proto.spec)["data"]
    assert [bar["name"] for bar in bars] == ["held", "empty", "not yet known"]
    assert sorted(bars[0]["y"]) == ["events (2)", "price (1)", "spread (1)"]
    assert "spread (1): empty 10 %" in bars[1]["hovertext"]


def test_a_trajectory_opens_from_its_line(page, full):
    shown = page(full.path, "health")
    shown.session_state["lines_clicked"] = {"row": 1, "label": "Open"}
    shown.run()
    assert shown.selectbox(key="trajectory").value == "BTC_USD:KRAKEN.spot"


def test_a_stretch_that_is_missing_comes_with_the_command_that_loads_it(page, gapped):
    shown = page(gapped.path, "health")
    gap = ("--start", "2023-03-10T09:58:00Z", "--end", "2023-03-10T11:57:00Z")
    assert shown.code[0].value == sync(gapped.path, "BTC_USD:KRAKEN.spot", *gap)
    assert any("1 have a stretch that is missing" in c.value for c in shown.caption)


def began(store, ago_s):
    """Start a load and take the time of its start back."""
    writer = StoreWriter(store)
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    with writer.writing() as connection:
        at = int(time.time()) - ago_s
        connection.execute("UPDATE load SET started_at = ? WHERE load_id = ?", [at, load_id])
    return load_id


def test_loads_are_told_with_what_they_found_and_whether_they_finished(page, full):
    began(full, 3_600)
    shown = page(full.path, "health")
    loads = shown.dataframe[1].value
    assert loads["outcome"].to_list() == ["silent", *["finished"] * 3]
    assert loads["findings"].to_list() == ["–", "–", "next_missing (2×)", "–"]
    assert loads["rows"].to_list() == [0, 2, 4, 1080]
    assert loads["took"].iloc[0] == "–"
    assert any("1 silent" in caption.value for caption in shown.caption)


def test_a_capture_that_began_an_hour_ago_and_still_asks_is_running(page, full):
    batch = Batch()
    edge = replace(EDGE, asked_at=int(time.time()) - 60)
    batch.add(LEG, price_rows().clear(), Interval(SERVED_AT - 60, SERVED_AT), edge)
    StoreWriter(full).commit(began(full, 3_600), batch)
    shown = page(full.path, "health")
    assert shown.dataframe[1].value["outcome"].to_list() == ["running", *["finished"] * 3]
    assert any("1 running" in caption.value for caption in shown.caption)
    assert not any("silent" in caption.value for caption in shown.caption)


def test_the_quota_left_is_that_of_the_last_answer(page, make_store):
    store = make_store(Source("live", "rail"), Allowance("builder", 600, 60, 594))
    shown = page(store.path, "health")
    assert metrics(shown)["Quota left"] == "594"
    assert shown.dataframe[1].value["quota left"].to_list() == ["594 of 600"]
    assert any("plan `builder`" in caption.value for caption in shown.caption)


def test_a_store_that_was_never_asked_says_what_to_type(page, bare):
    shown = page(bare.path, "health")
    assert "was never asked to hold anything" in shown.info[0].value
    assert shown.code[0].value == sync(bare.path, "--all-prices", "--all-spreads", service=None)
