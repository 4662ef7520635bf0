"""What stands around every page: source, plan, age, clock, and the way from page to page."""

from __future__ import annotations

import re

import pytest

from toolkit.dashboard.navigation import PAGES, page_file
from toolkit.dashboard.reading import store_version
from toolkit.market import Source
from toolkit.store import LoadOrigin, StoreWriter
from toolkit.wire.allowance import Allowance

OURS = ("overview", "spreads", "trajectory", "health")


def strip(shown):
    """The line under the title."""
    return shown.markdown[0].value


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_over_every_kind_of_store(page, full, bare, name):
    for store in (full, bare):
        shown = page(store.path, name)
        assert [title.value for title in shown.header] == [PAGES[name]]
        assert not shown.error
        assert not shown.warning


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("simulated", ":orange-badge[SIMULATED] `one`, no market ever showed"),
        ("replay", ":blue-badge[REPLAY] `one`, recorded data"),
        ("live", ":green-badge[LIVE] `one`"),
        ("unknown", ":gray-badge[UNKNOWN] `one`"),
    ],
)
def test_the_source_is_named_in_words(page, make_store, kind, says):
    assert strip(page(make_store(Source(kind, "one")).path)).startswith(says)


def test_a_plan_is_named_with_its_quota_where_the_service_told_it(page, make_store):
    store = make_store(Source("live", "rail"), Allowance("builder", 600, 60, 594))
    assert "plan `builder`, 600 requests in 1 min, no delay" in strip(page(store.path))


def test_a_plan_that_the_service_did_not_tell_is_said_to_be_untold(page, full):
    assert "plan not sent by the service, rows up to 30 s late" in strip(page(full.path))


def test_as_of_is_the_services_clock(page, held):
    assert "as of 2023-03-10 10:00 UTC" in strip(page(held.path))


def test_the_age_is_that_of_now_and_counts_from_the_last_answer(page, aged):
    says = strip(page(aged.path))
    assert re.search(r"newest data 21 min( \d+ s)? old, last answer 20 min", says)


def test_a_load_without_an_answer_has_no_last_answer(page, bare):
    StoreWriter(bare).start_load(LoadOrigin("http://127.0.0.1:1", 1_678_442_400, None, "0.1.0"))
    assert "no answer yet" in strip(page(bare.path))


def test_a_store_that_was_never_asked_for_anything_says_so(page, bare):
    assert "never synced" in strip(page(bare.path))


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    ("content", "says"), [(None, "there is no store at"), (b"no database" * 999, "not a store")]
)
def test_a_file_that_cannot_be_read_is_one_sentence_on_every_page(
    page, tmp_path, name, content, says
):
    path = tmp_path / "other.duckdb"
    if content:
        path.write_bytes(content)
    shown = page(path, name)
    (said,) = [error.value for error in shown.error]
    assert says in said
    assert "other.duckdb" in said


def test_a_clock_chosen_on_one_page_goes_along_to_the_next(page, held):
    shown = page(held.path, timezone="Asia/Tokyo")
    assert "clock" not in shown.query_params
    shown.get_by_key("clock").set_value("Asia/Tokyo").run()
    shown.switch_page(page_file("overview"))
    shown.query_params.clear()
    shown.run()
    assert "as of 2023-03-10 19:00 Asia/Tokyo" in strip(shown)
    assert shown.query_params["clock"] == "Asia/Tokyo"
    shown.get_by_key("clock").set_value("UTC").run()
    assert "as of 2023-03-10 10:00 UTC" in strip(shown)
    assert "clock" not in shown.query_params


def test_a_clock_of_a_link_is_shown_whatever_the_browsers_zone_is(page, held):
    shown = page(held.path, timezone="Europe/London", clock="Asia/Tokyo")
    assert "as of 2023-03-10 19:00 Asia/Tokyo" in strip(shown)
    assert shown.get_by_key("clock").options == ["UTC", "Europe/London", "Asia/Tokyo"]


def test_a_clock_that_is_none_is_explained_until_one_is_chosen(page, held):
    shown = page(held.path, timezone="Asia/Tokyo", clock="Mars/Olympus")
    (says,) = [warning.value for warning in shown.warning]
    assert "`clock=Mars/Olympus`, which is no time zone" in says
    assert "as of 2023-03-10 10:00 UTC" in strip(shown)
    shown.get_by_key("clock").set_value("Asia/Tokyo").run()
    assert not shown.warning


def test_a_browser_in_utc_has_nothing_to_choose(page, held):
    with pytest.raises(KeyError):
        page(held.path).get_by_key("clock")


def test_a_page_follows_the_store_only_when_asked(page, held):
    shown = page(held.path)
    assert shown.get_by_key("follow").value is False
    shown.get_by_key("follow").set_value(True).run()
    assert not shown.exception
    shown.switch_page(page_file("health")).run()
    assert shown.get_by_key("follow").value is True


def test_a_commit_is_another_version_and_a_look_is_not(held):
    before = store_version(held.path)
    held.catalogue()
    assert store_version(held.path) == before
    StoreWriter(held).start_load(LoadOrigin("http://127.0.0.1:1", 1_678_442_400, None, "0.1.0"))
    assert store_version(held.path) != before


def test_what_a_sync_brings_shows_at_the_next_look(page, held):
    shown = page(held.path, "health")
    assert len(shown.dataframe[1].value) == 1
    StoreWriter(held).start_load(LoadOrigin("http://127.0.0.1:1", 1_678_442_400, None, "0.1.0"))
    assert len(shown.run().dataframe[1].value) == 2
