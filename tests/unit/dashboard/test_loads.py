"""Loads that a button starts: from a real local service, one at a time, with what came of them."""

from __future__ import annotations

import threading

import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.dashboard.loads import TAKES_NO_ROWS, Load, LoadPart, PageLoader, loader_of
from toolkit.foreign import Markdown
from toolkit.service import Clock, Config, running
from toolkit.store import Store
from toolkit.store.publish import open_published, publish
from toolkit.workspace import Workspace

from .conftest import NOW
from .shown import texts

STARTS = ("Load", "Repair", "Top up", "Follow")
HOUR = Load.of(Markdown("Load an hour"), "BTC_USDT:AURORA.spot", since="1h")


@pytest.fixture
def small():
    """The address of a service whose watchlist is three days of a few trajectories."""
    clock = Clock(fixed_at=miniature.END)
    with running(Config(miniature.source(), port=0, clock=clock)) as local:
        yield local.base_url


@pytest.fixture
def loader(tmp_path):
    return PageLoader(tmp_path / "rail.duckdb")


def test_a_button_brings_what_a_page_lacks_and_the_page_says_what_came(page, tmp_path, small):
    path = tmp_path / "rail.duckdb"
    with Workspace(Client(small, "demo-pro"), Store(path)) as workspace:
        workspace.sync("snapshot/symbols")
    shown = page(path, "spreads")
    assert not shown.code
    shown.button(key="load_watchlist").click().run()
    loader_of(path).wait()
    shown.run()
    assert any("Load 7 days of the watchlist: " in words for words in texts(shown.markdown))
    assert Store(path).catalogue().filter(kind="spread").height > 5
    shown.button(key="load_seen").click().run()
    assert not any("watchlist" in words for words in texts(shown.markdown))


def test_one_load_runs_at_a_time_and_can_be_stopped_with_what_came_kept(loader, service):
    everything = Load.of(Markdown("Load all"), "watchlist", since="30d")
    assert loader.start(everything, service)
    assert not loader.start(HOUR, service)
    came = threading.Event()

    def look():
        if not came.is_set() and loader.fraction > 0:
            loader.stop()
            came.set()

    loader.wait(look)
    assert came.is_set()
    assert loader.done == "Load all: stopped, the rows loaded so far are kept."
    assert loader.fault is None
    assert Store(loader.store).catalogue()["rows"].sum() > 0


def test_several_questions_are_one_load_in_which_nothing_there_is_no_fault(loader, service):
    parts = (
        LoadPart(("BTC_USDT:AURORA.spot",), NOW + 3_600, NOW + 7_200),
        LoadPart(("BTC_USDT:AURORA.spot",), NOW - 7_200, NOW - 3_600),
    )
    loader.start(Load(Markdown("Repair"), parts), service)
    loader.wait()
    assert loader.fault is None
    assert loader.done is not None
    assert loader.done.startswith("Repair: 60 new, ")


@pytest.mark.slow
def test_pages_of_published_data_offer_no_load_and_say_why(page, gapped, tmp_path, monkeypatch):
    monkeypatch.setenv("RAIL_BASE_URL", "http://127.0.0.1:1")
    publish(gapped, tmp_path / "archive")
    copy = open_published(tmp_path / "archive", tmp_path / "cache")
    absent = {"trajectory": "ETH_USDT:AURORA.spot"}
    for name, params in {"overview": {}, "health": {}, "funding": {}, "trajectory": absent}.items():
        own, shown = page(gapped.path, name, **params), page(copy.path, name, **params)
        offered = [{button.label for button in each.button} for each in (own, shown)]
        assert any(label.startswith(STARTS) for label in offered[0]), name
        assert not any(label.startswith(STARTS) for label in offered[1]), name
        said = texts([*shown.info, *shown.caption, *shown.markdown])
        assert any(TAKES_NO_ROWS in words for words in said), name
        assert str(copy.path) not in " ".join(said), name
    alerts = page(copy.path, "alerts")
    assert {button.label for button in alerts.button} == {"Save"}  # of views
    assert any(
        "This is published data: rules are stored" in words for words in texts(alerts.caption)
    )
