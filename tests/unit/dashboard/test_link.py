"""What a link asks for, and what is shown for it."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from toolkit.dashboard.link import PRESETS, Choice, held_window, read_link
from toolkit.intervals import Interval

DAY = 86_400
CATALOGUE = pl.DataFrame(
    {
        "stream": ["A_B:X.spot", "A_B:X.spot:Y.spot", "C_D:X.spot"],
        "kind": ["price", "spread", "price"],
        "first_ts": [0, 100 * DAY, None],
        "last_ts": [40 * DAY - 60, 200 * DAY + 30, None],
        "step_s": [60, None, None],
        "served_at": [40 * DAY, 200 * DAY + 90, 40 * DAY + 1],
    }
)


@pytest.mark.parametrize(
    ("trajectory", "window"),
    [
        ("A_B:X.spot", (0, 40 * DAY)),
        ("A_B:X.spot:Y.spot", (100 * DAY, 200 * DAY + 60)),
        ("C_D:X.spot", (33 * DAY, 40 * DAY + 60)),
    ],
)
def test_what_is_held_reaches_to_the_end_of_the_last_row(trajectory, window):
    assert held_window(CATALOGUE, trajectory) == window


def test_a_link_without_parameters_of_ours_shows_the_first_trajectorys_last_seven_days():
    assert read_link({}, CATALOGUE) == (
        Choice("A_B:X.spot", Interval(33 * DAY, 40 * DAY), "7 days"),
        [],
    )
    assert read_link({"utm_source": "mail"}, CATALOGUE)[1] == []
    choice, wrong = read_link({"start": "1000000020", "end": "1000000080"}, CATALOGUE)
    assert (choice.window, wrong) == ((1000000020, 1000000080), [])


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_survives_its_way_through_a_link(preset):
    window = held_window(CATALOGUE, "A_B:X.spot").last(PRESETS[preset])
    choice = Choice("A_B:X.spot", window, preset)
    assert read_link(choice.params, CATALOGUE) == (choice, [])


@given(st.sampled_from(CATALOGUE["stream"].to_list()), st.integers(0, 10**7), st.integers(1, 10**6))
def test_a_choice_survives_its_way_through_a_link(trajectory, start, length):
    choice = Choice(trajectory, Interval(60 * start, 60 * (start + length)))
    assert read_link(choice.params, CATALOGUE) == (choice, [])


@given(
    st.dictionaries(
        st.sampled_from(["trajectory", "window", "start", "end"]),
        st.one_of(st.text(), st.integers().map(str), st.datetimes().map(str)),
    )
)
def test_whatever_a_link_says_something_can_be_shown(params):
    choice, wrong = read_link(params, CATALOGUE)
    assert choice.trajectory in CATALOGUE["stream"]
    assert 0 <= choice.window.start < choice.window.end <= 4_102_444_800
    assert choice.window.start % 60 == choice.window.end % 60 == 0
    asked = {name: choice.params.get(name, "") for name in params}
    assert wrong or read_link(asked, CATALOGUE)[0].params == choice.params


PAGE_OF_TWO_WIDGETS = """
import streamlit as st
from toolkit.dashboard.choice import PageLink

link = PageLink("pair", ("first", "second"))
params = link.to_follow("first", "second")
if params is not None:
    st.session_state.update({"first": "a", "second": "b"} | params)
    link.keep_faults([])
link.write({name: st.session_state[name] for name in link.names})
"""


@pytest.mark.parametrize("has_none", [False, True])
def test_a_widget_that_streamlit_forgot_is_filled_from_the_link_again(has_none):
    shown = AppTest.from_string(PAGE_OF_TWO_WIDGETS)
    shown.query_params["second"] = "of the link"
    shown.run()
    shown.session_state["first"] = "chosen"
    shown.run()
    assert dict(shown.query_params) == {"first": "chosen", "second": "of the link"}
    del shown.session_state["second"]
    if has_none:
        shown.session_state["second"] = None
    shown.run()
    assert not shown.exception
    assert shown.session_state["second"] == "of the link"
