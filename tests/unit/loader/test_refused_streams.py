"""A refusal of one stream stops no other, and is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.errors import (
    BadRequestError,
    EmptyWindowError,
    PlanRefusedError,
    WireError,
)
from toolkit.intervals import Interval
from toolkit.loader import follow, plan_load, sync
from toolkit.market import Stream, Trajectory
from toolkit.service import Clock, Config, Replay, running
from toolkit.store import Store
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.workspace.listed import chosen_streams

from .conftest import client_of

START = miniature.END - 3_600
WINDOW = Interval(START, miniature.END)
PRICE = Stream.parse("BTC_USDT:AURORA.spot")
SPREAD = Stream.parse("BTC_USDT:AURORA.spot:BOREAS.spot")
SPLASHES = Stream.parse("events/splash")


def unequal(folder: Path) -> Replay:
    """A market with a leg of hourly bars among those of a minute: their spread is a 400."""
    rows = miniature.rows()
    hourly = rows.filter(pl.col("exchange") == "AURORA", pl.col("ts") % 3_600 == 0).with_columns(
        exchange=pl.lit("HOURLY"), interval_s=pl.lit(3_600, rows.schema["interval_s"])
    )
    path = folder / "prices.parquet"
    pl.concat([rows, hourly]).write_parquet(path)
    return Replay.read(path)


def test_a_trajectory_that_answers_400_is_named_and_the_others_are_loaded(
    store: Store, tmp_path: Path
) -> None:
    wrong = Stream.parse("BTC_USDT:AURORA.spot:HOURLY.spot")
    config = Config(unequal(tmp_path), port=0, clock=Clock(fixed_at=miniature.END))
    with client_of(config) as client:
        done = sync(client, store, [wrong, PRICE, SPREAD], WINDOW)
        with pytest.raises(BadRequestError):
            sync(client, store, [wrong], WINDOW)
    assert list(done.refused) == [wrong]
    assert isinstance(done.refused[wrong], BadRequestError)
    assert set(store.counts(WINDOW)) == {PRICE, SPREAD}
    assert done.silent == ()
    assert "refused  1 of 3: BTC_USDT:AURORA.spot:HOURLY.spot: " in str(done.card)
    assert "1 of them refused" in str(done)


def test_what_begins_at_a_larger_plan_is_not_asked_for(store: Store) -> None:
    clock = Clock(fixed_at=miniature.END + 7_200)
    config = Config(miniature.source(), port=0, clock=clock)
    with client_of(config, "demo-free") as client:
        done = sync(client, store, [SPLASHES, PRICE], WINDOW)
        with pytest.raises(PlanRefusedError, match="it begins at builder; it was not asked for"):
            sync(client, store, [SPLASHES], WINDOW)
    assert list(done.refused) == [SPLASHES]
    assert store.counts(WINDOW)[PRICE] > 0


UNREADABLE = {
    "nothing at its place": '[listing]\nitems = "nowhere"',
    "symbols without legs": '[listing]\nlegs = "nowhere"',
    "legs of no kind": '[listing]\nmarket = "exchange"',
    "no such address": 'symbols_path = "/api/v1/data/none"',
}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))
    with running(config) as service:
        yield service.base_url


def asking(base_url: str, profile: str) -> Client:
    return Client(base_url, "demo-pro", profile=UserProfile.parsed(Path("p.toml"), profile))


@pytest.mark.parametrize("profile", UNREADABLE.values(), ids=UNREADABLE)
def test_keys_and_logs_are_loaded_a_wrong_key_is_refused_and_the_listing_is_a_finding(
    base_url: str, store: Store, profile: str
) -> None:
    with asking(base_url, profile) as client:
        assert plan_load(client, store, [PRICE, SPLASHES], WINDOW).requests > 0
        done = sync(client, store, [PRICE, SPLASHES], WINDOW)
        with pytest.raises(BadRequestError, match="AURORRA"):
            sync(client, store, [Stream.parse("BTC_USDT:AURORRA.spot")], WINDOW)
    assert (store.counts(WINDOW)[PRICE], done.refused) == (60, {})
    assert [finding.kind for finding, _ in done.findings].count("listing_unreadable") == 1


def test_a_follow_says_what_the_listing_does_not_show(base_url: str, store: Store) -> None:
    notes: list[str] = []
    with asking(base_url, UNREADABLE["symbols without legs"]) as client:
        follow(client, store, [PRICE], once=True, on_note=notes.append)
    assert any(f"{PRICE}: not in what can be read of it" in note for note in notes)


def test_a_pattern_of_logs_needs_no_listing_and_one_of_keys_does(
    base_url: str,
) -> None:
    with asking(base_url, UNREADABLE["nothing at its place"]) as client:
        found = chosen_streams(["events/s*", "snapshot/*", PRICE], client.symbols)
        with pytest.raises(WireError, match="not a symbol listing"):
            chosen_streams("BTC_USDT:*", client.symbols)
    assert [str(each) for each in found[:2]] == ["events/spread", "events/splash"]
    assert not any(isinstance(each, Trajectory) for each in found[:-1])


def test_symbols_without_legs_are_nothing_to_watch(base_url: str) -> None:
    with (
        asking(base_url, UNREADABLE["symbols without legs"]) as client,
        pytest.raises(EmptyWindowError, match="lists no leg of a symbol"),
    ):
        chosen_streams("watchlist", client.symbols)
