"""`rail events channels`: a store that was asked, listened to a socket and was told by webhooks."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import polars as pl
import pytest

from toolkit.cli.events import CHANNELS
from toolkit.market import EventFamily
from toolkit.statistics.events import channels
from toolkit.store import (
    ARCHIVE,
    SOCKET,
    WEBHOOK,
    Batch,
    Delivered,
    LoadOrigin,
    Store,
    StoreWriter,
    event_logs,
    held_stretches,
    keep_deliveries,
)

from .conftest import WINDOW, refused
from .test_event_analyses import as_rows

Rail = Callable[..., subprocess.CompletedProcess[str]]
TIMES = ("--start", str(WINDOW.start), "--end", str(WINDOW.end))


@pytest.fixture
def fed(held: Store) -> Store:
    """The store that was loaded, also fed by a socket and by webhooks: all but every tenth event.

    The first document came twice by each of the two.
    """
    came = held.events(EventFamily.SPLASH, WINDOW).drop("arrival")
    some = came.with_row_index().filter(pl.col("index") % 10 != 3).drop("index")
    twice = pl.concat([some, some.head(1)])
    writer = StoreWriter(held)
    writer.bind(held.source)
    hooked = writer.start_load(LoadOrigin(WEBHOOK, int(time.time()), None, "0"))
    told = [Delivered(f"msg_{place}", "splash") for place in range(twice.height)]
    keep_deliveries(writer, hooked, told, twice)
    listened = writer.start_load(LoadOrigin("http://x", int(time.time()), None, "0"))
    batch = Batch()
    at = pl.col("ts_ms") + 250
    batch.came.append((SOCKET, twice.with_columns(arrived_ms=at)))
    writer.commit(listened, batch)
    return held


def test_arrivals_are_of_each_document_and_channel_with_how_often_it_came(fed: Store) -> None:
    came = fed.arrivals("splash", WINDOW)
    asked, heard, told = (came.filter(channel=each) for each in (ARCHIVE, SOCKET, WEBHOOK))
    assert asked.height == fed.events("splash", WINDOW).height > told.height == heard.height
    assert asked["n_deliveries"].to_list() == [1] * asked.height
    for each in (heard, told):
        assert each["n_deliveries"].sum() == each.height + 1
    assert (heard["arrived_ms"] - heard["ts_ms"]).unique().to_list() == [250]
    assert (time.time() * 1_000 - told["arrived_ms"]).is_between(0, 600_000).all()


def test_the_command_is_the_statistic_over_the_channels_of_a_store(rail: Rail, fed: Store) -> None:
    known = held_stretches(fed.ledger(), event_logs(fed.catalogue()))
    opened = fed.channels_open()
    assert opened["channel"].to_list() == [SOCKET, WEBHOOK]
    stretches = [known.with_columns(channel=pl.lit(ARCHIVE)).select(opened.columns), opened]
    expected = channels(fed.arrivals("splash", WINDOW), *WINDOW, held=pl.concat(stretches))
    found = as_rows(rail("events", "channels", "splash", *TIMES, "--format", "json"))
    assert found == expected.to_dicts()
    assert set(expected.columns) == set(CHANNELS.schema())
    rows = {(row["channel"], row["other"]): row for row in found}
    assert len(rows) == 6
    heard, asked = rows[SOCKET, ARCHIVE], rows[ARCHIVE, SOCKET]
    assert (heard["n_lost"], asked["n_lost"]) == (asked["n"] - heard["n"], 0)
    assert heard["n_lost"] > 3
    assert (heard["n_doubled"], asked["n_doubled"]) == (1, 0)
    assert heard["latency_median_s"] == 0.25
    assert heard["n_first"] == heard["n_both"]

    shown = rail("events", "channels", *TIMES, columns=200).stdout
    assert "When events came by archive and by socket and by webhook" in shown
    assert f"webhooks made {heard['n'] + 1} deliveries of events at any time" in shown
    assert "the service's clock was" in shown


def test_one_channel_alone_is_said_and_no_event_at_all_is_one_line(rail: Rail, held: Store) -> None:
    shown = rail("events", "channels", *TIMES, columns=200).stdout
    assert "all events came by archive, with nothing to compare" in shown
    assert "no event in" in refused(
        rail("events", "channels", "--start", "2001-01-01", "--end", "2001-01-02")
    )
    assert held.path.exists()
