"""The dashboard starts a `rail follow` of its store itself, and says whether anything does."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from toolkit.client import Client
from toolkit.dashboard.loads import Follower, follower_of
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Stream
from toolkit.service import Config, Simulated, running
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.writing.follows import FollowMark

from .conftest import SERVED_AT
from .shown import texts

KEY = "BTC_USDT:AURORA.spot"
RULES = f'[follow]\nstreams = ["{KEY}"]\nsnapshots = []\nback = "1h"\n'


@pytest.fixture
def service() -> Iterator[str]:
    with running(Config(Simulated(7), port=0, quota=1_000_000)) as local:
        yield local.base_url


@pytest.fixture
def loaded(tmp_path: Path, service: str) -> Store:
    """A store that was loaded once, and nothing follows."""
    store = Store(tmp_path / "rail.duckdb")
    with Client(service, "demo-pro") as client:
        now = int(time.time()) // 60 * 60
        sync(client, store, [Stream.parse(KEY)], Interval(now - 7_200, now - 3_600))
    (tmp_path / "rail.toml").write_text(RULES)
    return store


def popover(shown: AppTest) -> str:
    return " ".join(texts(shown.markdown[:6]))


@pytest.mark.slow
def test_a_click_follows_the_service_and_another_ends_it(page, loaded, service, monkeypatch):
    monkeypatch.setenv("RAIL_BASE_URL", service)
    monkeypatch.setenv("RAIL_API_KEY", "demo-pro")
    before = loaded.catalogue()["rows"].sum()
    shown = page(loaded.path)
    assert "Nothing loads new rows." in popover(shown)
    shown.get_by_key("follow_service").click().run()
    follower = follower_of(loaded.path)
    assert not follower.runs
    (cost,) = [each for each in texts(shown.markdown) if each.startswith("A follow loads about ")]
    assert re.fullmatch(
        r"A follow loads about .+ requests?, .+ rows?, .+ [kM]B of 1 stream first.", cost
    )
    shown.get_by_key("follow_service_start").click().run()
    assert follower.runs
    assert "This dashboard follows the service" in popover(shown)
    while loaded.catalogue()["rows"].sum() == before:
        assert follower.runs, follower.fault
        time.sleep(0.2)
    shown.run().get_by_key("unfollow").click().run()
    assert not follower.runs
    assert "Nothing loads new rows." in popover(shown)


@pytest.mark.slow
def test_a_follow_that_cannot_begin_says_why(page, loaded, monkeypatch):
    monkeypatch.setenv("RAIL_BASE_URL", "http://127.0.0.1:9")
    shown = page(loaded.path)
    shown.get_by_key("follow_service").click().run()
    assert any("127.0.0.1:9" in each for each in texts(shown.markdown))
    shown.get_by_key("follow_service_start").click().run()
    follower = follower_of(loaded.path)
    while follower.runs:
        time.sleep(0.1)
    (said,) = texts(shown.run().error)
    assert "Following ended: " in said
    assert "127.0.0.1:9" in said


@pytest.mark.slow
def test_a_follow_of_another_process_is_known_also_after_a_load(page, loaded):
    origin = LoadOrigin("http://127.0.0.1:9", SERVED_AT, None, "0.1.0")
    with FollowMark(loaded.path) as mark:
        writer = StoreWriter(loaded)
        writer.finish_load(writer.start_load(origin), [])
        shown = page(loaded.path)
        assert "`rail follow` loads new rows" in popover(shown)
        assert not [button for button in shown.button if button.key == "follow_service"]
        alerts = page(loaded.path, "alerts")
        assert "A follow has started" in " ".join(texts(alerts.caption))
        mark.evaluated()
        again = " ".join(texts(alerts.run().caption))
        assert "The rules were last evaluated at 20" in again
        assert "Nothing evaluates" not in " ".join(texts(alerts.markdown))
    assert "Nothing evaluates the rules now." in " ".join(texts(alerts.run().markdown))
    assert "Nothing loads new rows." in popover(shown.run())


@pytest.mark.slow
def test_an_address_that_only_the_store_names_is_not_asked(held, monkeypatch):
    monkeypatch.setenv("RAIL_API_KEY", "secret")
    monkeypatch.setenv("RAIL_BASE_URL", "http://127.0.0.1:9")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        address = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        StoreWriter(held).start_load(LoadOrigin(address, SERVED_AT, None, "0.1.0"))
        follower = Follower(held.path)
        follower.start()
        while follower.runs:
            time.sleep(0.1)
        assert "127.0.0.1:9" in follower.fault
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()
