"""Saved views: a small file beside the store, pages of the navigation, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.dashboard.link import PAGES
from toolkit.dashboard.saved_views import SavedView, delete_view, read_views, save_view, views_file
from toolkit.errors import InputError

from .shown import texts

COINS = SavedView.of("My coins", "overview", {"symbols": "BTC_USD,ETH_USD"})


@pytest.fixture
def store(tmp_path):
    return tmp_path / "rail.duckdb"


@given(st.sampled_from(sorted(PAGES)), st.dictionaries(st.text(min_size=1), st.text(min_size=1)))
def test_a_view_gives_back_the_parameters_that_it_was_saved_with(page, params):
    assert SavedView.of("x", page, params).params == params


def test_views_are_kept_in_order_and_one_of_the_same_name_is_replaced(store):
    assert read_views(store) == []
    wide = SavedView.of("Wide", "spreads", {"min": "20"})
    for view in (COINS, wide, SavedView.of("My coins", "events", {})):
        save_view(store, view)
    assert read_views(store) == [wide, SavedView("My coins", "events", "")]
    delete_view(store, "Wide")
    delete_view(store, "nobody")
    assert [view.name for view in read_views(store)] == ["My coins"]
    assert [file.name for file in store.parent.iterdir()] == ["rail.duckdb.views.json"]


@pytest.mark.parametrize("name", ["", "a" * 31, "a\nb", "a\u202eb", "![x](//y.z)", "**x**"])
def test_a_name_that_cannot_be_shown_is_refused(name):
    with pytest.raises(InputError, match="name"):
        SavedView.of(name, "spreads", {})


def test_a_page_that_is_none_and_one_view_too_many_are_refused(store):
    with pytest.raises(InputError, match="page"):
        SavedView("x", "../secret", "")
    for number in range(12):
        save_view(store, SavedView.of(f"view {number}", "spreads", {}))
    with pytest.raises(InputError, match="delete one"):
        save_view(store, COINS)


@pytest.mark.parametrize("text", ["{", "[1]", '[{"name": "x"}]', '[{"name": "x", "page": "q"}]'])
def test_a_file_of_something_else_is_named_and_left_as_it_is(store, text):
    views_file(store).write_text(text)
    with pytest.raises(InputError, match="mend or remove it"):
        read_views(store)
    with pytest.raises(InputError, match="mend or remove it"):
        save_view(store, COINS)
    assert views_file(store).read_text() == text


@pytest.mark.slow
def test_what_is_shown_is_saved_and_deleted_on_the_page(page, held):
    shown = page(held.path, "spreads", symbols="BTC_USD", window="24 hours")
    shown.text_input(key="view_name").set_value(" My coins ")
    shown.button(key="view_save").click().run()
    (view,) = read_views(held.path)
    assert (view.name, view.page) == ("My coins", "spreads")
    assert view.params.items() >= {"symbols": "BTC_USD", "window": "24 hours"}.items()
    shown.button(key="view_save").click().run()
    assert any("name: '' is not allowed" in words for words in texts(shown.error))
    shown.button(key="view_delete_0").click().run()
    assert read_views(held.path) == []


@pytest.mark.slow
def test_a_file_that_is_none_is_said_in_the_menu_and_the_page_goes_on(page, held):
    views_file(held.path).write_text("[")
    shown = page(held.path, "spreads")
    assert any("mend or remove it" in words for words in texts(shown.error))
    assert shown.get("bidi_component")
