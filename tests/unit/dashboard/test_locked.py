"""A store that another process keeps open: the page waits for it by itself, with what it knew."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
import streamlit

from toolkit.dashboard.reading import read_newest

from .shown import figures, texts

OPENS = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); "
UNTIL_CLOSED, FOR_SECONDS = "input()", "import time; time.sleep(9)"


@contextmanager
def kept_open(path, how=UNTIL_CLOSED):
    with subprocess.Popen(
        [sys.executable, "-c", OPENS + how, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "open\n"
        try:
            yield holder.pid
        finally:
            holder.communicate("\n")


def test_a_page_that_knows_nothing_yet_says_which_process_it_waits_for(page, held):
    with kept_open(held.path) as pid:
        shown = page(held.path)
        (says,) = texts(shown.info)
        assert f"held open by process {pid}" in says
        assert "will try again" in says
        assert not shown.error
    shown.run()
    assert not shown.info
    assert len(figures(shown)) == 1


def test_a_page_that_is_open_keeps_its_last_values_and_says_so(page, held):
    shown = page(held.path)
    before = [metric.value for metric in shown.metric]
    with kept_open(held.path):
        held.path.touch()  # as a commit does
        shown.run()
        assert "Another process is using the store: these are the last values." in texts(
            shown.caption
        )
        assert [metric.value for metric in shown.metric] == before
        assert len(figures(shown)) == 1
        assert not shown.error
        assert read_newest(held.path)[1]
    shown.run()
    assert "Another process is using the store" not in " ".join(texts(shown.caption))
    assert not read_newest(held.path)[1]


def test_a_page_in_sight_stays_as_it_is_while_another_process_has_the_store_for_seconds(page, held):
    shown = page(held.path)
    before = [metric.value for metric in shown.metric]
    streamlit.cache_data.clear()  # as a commit makes what was read too old
    with kept_open(held.path, FOR_SECONDS):
        shown.run()
    assert not shown.info
    assert [metric.value for metric in shown.metric] == before


@pytest.mark.parametrize(
    ("name", "choice", "value"),
    [
        ("trajectory", "preset", "24 hours"),
        ("spreads", "window", "24 hours"),
        ("symbol", "symbol_prices", "from_median"),
        ("events", "event_state", "open"),
    ],
)
def test_a_choice_that_a_run_cut_short_left_none_is_made_again(page, full, name, choice, value):
    parameter = {"preset": "window"}.get(choice, choice.split("_")[-1])
    shown = page(full.path, name, **{parameter: value})
    assert shown.session_state[choice] == value
    shown.session_state[choice] = None
    shown.run()
    assert not shown.exception
    assert shown.session_state[choice] == value
