"""A refusal of one stream stops no other, and is named."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.errors import BadRequestError, PlanRefusedError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Stream
from toolkit.service import Clock, Config, Replay, running
from toolkit.store import Store

START = miniature.END - 3_600
WINDOW = Interval(START, miniature.END)
PRICE = Stream.parse("BTC_USDT:AURORA.spot")
SPREAD = Stream.parse("BTC_USDT:AURORA.spot:BOREAS.spot")
SPLASHES = Stream.parse("events/splash")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rail.duckdb")


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
    with running(config) as service, Client(service.base_url, "demo-pro") as client:
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
    with running(config) as service, Client(service.base_url, "demo-free") as client:
        done = sync(client, store, [SPLASHES, PRICE], WINDOW)
        with pytest.raises(PlanRefusedError, match="it begins at builder; it was not asked for"):
            sync(client, store, [SPLASHES], WINDOW)
    assert list(done.refused) == [SPLASHES]
    assert store.counts(WINDOW)[PRICE] > 0
