"""What stands around every page: source, plan, age, clock, and the way from page to page."""

from __future__ import annotations

import time
from dataclasses import replace

import polars as pl
import pytest

from toolkit.dashboard.desk import source_words
from toolkit.dashboard.link import PAGES, page_file
from toolkit.dashboard.parts.age import age_facts
from toolkit.dashboard.reading import read_held
from toolkit.market import Source
from toolkit.store import LoadOrigin, StoreWriter
from toolkit.store.file.engine import version_of
from toolkit.wire.quota import Allowance

from .conftest import EDGE, LEG, PAIR, SERVED_AT, bring, price_rows
from .shown import cells_of, drawn, texts

OURS = ("overview", "spreads", "trajectory", "health")


def provenance(shown):
    """What a click on the source opens."""
    return " ".join(line.value for line in shown.markdown[:4])


def leave_for(shown, name):
    """Open another page by the navigation, whose links have no parameters."""
    shown.switch_page(page_file(name))
    shown.query_params.clear()
    shown.run()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_over_every_kind_of_store(page, full, bare, name):
    for store in (full, bare):
        shown = page(store.path, name)
        assert [title.value for title in shown.header] == [PAGES[name]]
        assert not shown.error
        assert not shown.warning


SOURCES = {
    ("simulated", "one"): ":orange-badge[SIMULATED] `one`, no market ever showed these numbers",
    ("replay", "one"): ":blue-badge[REPLAY] `one`, recorded data",
    ("live", "one"): ":green-badge[LIVE] `one`",
    ("live", "exchanges-by-ccxt-1a2b"): (
        ":green-badge[LIVE] `exchanges-by-ccxt-1a2b`, public endpoints of exchanges, by ccxt"
    ),
    ("unknown", "one"): ":gray-badge[UNKNOWN] `one`",
    ("paper", "one"): ":gray-badge[UNKNOWN] `one`, of the kind `paper`",
}


def test_the_source_is_named_in_words(page, held):
    assert {each: source_words(Source(*each)) for each in SOURCES} == SOURCES
    assert provenance(page(held.path)).startswith(source_words(held.source))


def test_a_plan_is_named_with_its_quota_where_the_service_told_it(page, make_store, full):
    assert "plan not sent by the service, rows up to 30 s late" in provenance(page(full.path))
    store = make_store(Source("live", "rail"), Allowance("builder", 600, 60, 594))
    assert "plan `builder`, 600 requests in 1 min, no delay" in provenance(page(store.path))


def test_the_newest_row_and_the_last_answer_are_named_or_that_there_is_none(page, held, bare):
    said = provenance(page(held.path))
    assert "Newest row ended 2023-03-10 10:00, last answer as of 2023-03-10 10:00 UTC, by" in said
    assert "Never synced" in provenance(page(bare.path))
    assert age_facts(read_held(bare.path, version_of(bare.path)), SERVED_AT)["age_s"] is None
    StoreWriter(bare).start_load(LoadOrigin("http://127.0.0.1:1", 1_678_442_400, None, "0.1.0"))
    assert "no answer yet" in provenance(page(bare.path))


def test_the_age_is_that_of_now_and_turns_amber_and_red_above_the_plans_delay(aged, full):
    held = read_held(aged.path, version_of(aged.path))
    assert 0 <= age_facts(held, held.now())["age_s"] - 21 * 60 < 60
    late = read_held(full.path, version_of(full.path))
    facts = age_facts(late, SERVED_AT)
    assert (facts["late_s"], facts["old_s"]) == (None, None)  # the clock of a replay stands
    undated = late.streams.with_columns(asked_at=pl.lit(None, pl.Int64))
    runs = replace(late, source=Source("live", "rail"), streams=undated)
    facts = age_facts(runs, SERVED_AT)
    assert (facts["late_s"], facts["old_s"]) == (330, 930)


@pytest.mark.slow
def test_each_table_of_streams_has_the_age_of_each_stream(page, aged):
    for name, key in (("overview", "open"), ("spreads", "spreads"), ("health", "streams")):
        columns = drawn(page(aged.path, name), key)["columns"]
        (column,) = (each for each in columns if each["kind"] == "age")
        assert column["values"][0] >= 21 * 60
        assert column["limits"][0] == [300, 900, False]


def test_a_trajectory_has_an_age_of_its_own_where_it_is_not_that_of_the_bar(page, aged):
    assert drawn(page(aged.path, "trajectory"), "trajectory_age") == {}
    bring(aged, LEG, price_rows(), edge=replace(EDGE, asked_at=int(time.time()) - 1200))
    shown = drawn(page(aged.path, "trajectory", trajectory=PAIR.key), "trajectory_age")
    assert shown["age_s"] >= 21 * 60
    assert (shown["late_s"], shown["old_s"]) == (300, 900)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    ("content", "says"),
    [(None, ("there is no store at", "rail sync")), (b"no database" * 999, ("not a store",))],
)
def test_a_file_that_cannot_be_read_is_one_sentence_on_every_page(
    page, tmp_path, name, content, says
):
    path = tmp_path / "other.duckdb"
    if content:
        path.write_bytes(content)
    shown = page(path, name)
    (said,) = [error.value for error in shown.error]
    for words in (*says, "other.duckdb"):
        assert words in said


def test_a_clock_chosen_on_one_page_goes_along_to_the_next(page, held):
    shown = page(held.path, timezone="Asia/Tokyo")
    assert "clock" not in shown.query_params
    shown.get_by_key("clock").set_value("Asia/Tokyo").run()
    leave_for(shown, "overview")
    assert "as of 2023-03-10 19:00 Asia/Tokyo" in provenance(shown)
    assert shown.query_params["clock"] == "Asia/Tokyo"
    shown.get_by_key("clock").set_value("UTC").run()
    assert "as of 2023-03-10 10:00 UTC" in provenance(shown)
    assert "clock" not in shown.query_params


def test_a_clock_of_a_link_is_shown_in_any_zone_and_one_that_is_none_explained(page, held):
    shown = page(held.path, timezone="Europe/London", clock="Asia/Tokyo")
    assert "as of 2023-03-10 19:00 Asia/Tokyo" in provenance(shown)
    first = ["UTC", "Europe/London (browser)", "Asia/Tokyo", "Africa/Abidjan"]
    assert shown.get_by_key("clock").options[:4] == first
    shown = page(held.path, timezone="Asia/Tokyo", clock="Mars/Olympus")
    (says,) = [warning.value for warning in shown.warning]
    assert "`clock=Mars/Olympus`, which is not a time zone" in says
    assert "as of 2023-03-10 10:00 UTC" in provenance(shown)
    shown.get_by_key("clock").set_value("Asia/Tokyo").run()
    assert not shown.warning


def test_a_page_looks_for_new_rows_as_often_as_chosen_on_any_page(page, held):
    shown = page(held.path)
    assert shown.get_by_key("refresh").value == "30 s"
    shown.get_by_key("refresh").set_value("5 s").run()
    assert not shown.exception
    leave_for(shown, "health")
    assert shown.get_by_key("refresh").value == "5 s"
    assert shown.query_params["refresh"] == "5 s"


def test_symbols_of_one_page_are_those_of_the_next_and_one_not_held_is_named(page, full):
    shown = page(full.path, "spreads", symbols="BTC_USD")
    assert shown.get_by_key("symbols").value == ["BTC_USD"]
    leave_for(shown, "overview")
    assert shown.get_by_key("symbols").value == ["BTC_USD"]
    assert shown.query_params["symbols"] == "BTC_USD"
    (says,) = texts(page(full.path, "spreads", symbols="X_Y").warning)
    assert "`symbols=X_Y`, which is not in this store" in says


@pytest.mark.parametrize("name", ["overview", "spreads", "funding", "events"])
def test_a_page_keeps_to_the_symbols_of_the_bar(page, full, name):
    """The store has BTC_USD, and of another symbol one leg alone."""
    bring(full, "ETH_USD:KRAKEN.spot", price_rows())
    shown = page(full.path, name, symbols="ETH_USD")
    assert not shown.error
    tables = " ".join(str(table.value) for table in shown.dataframe)
    ours = " ".join(str(part.proto.json) for part in shown.get("bidi_component"))
    assert "BTC_USD" not in tables + ours


def test_a_commit_is_another_version_and_shows_at_the_next_look_and_a_look_is_none(page, held):
    shown = page(held.path, "health")
    assert len(cells_of(shown, "loads")) == 1
    before = version_of(held.path)
    held.catalogue()
    assert version_of(held.path) == before
    StoreWriter(held).start_load(LoadOrigin("http://127.0.0.1:1", 1_678_442_400, None, "0.1.0"))
    assert version_of(held.path) != before
    assert len(cells_of(shown.run(), "loads")) == 2
