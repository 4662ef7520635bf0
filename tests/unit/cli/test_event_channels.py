"""`rail events channels`: a store that was asked and one that webhooks fed, of one service."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from toolkit.cli.event_channels import channel_columns
from toolkit.market import EventFamily, Source
from toolkit.statistics.events import channels
from toolkit.store import (
    WEBHOOK,
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


def pushed(path: Path, source: Source, documents: pl.DataFrame) -> Store:
    """A store that webhooks fed: each document by one delivery, and the first by two."""
    store = Store(path)
    writer = StoreWriter(store)
    writer.bind(source)
    load = writer.start_load(LoadOrigin(WEBHOOK, int(time.time()), None, "0"))
    families = documents["family"].to_list()
    told = [Delivered(f"msg_{place}", family) for place, family in enumerate(families)]
    told += [Delivered("msg_again", families[0])]
    keep_deliveries(writer, load, told, pl.concat([documents, documents.head(1)]))
    return store


@pytest.fixture
def hooks(held: Store, workdir: Path) -> Store:
    """A store of all splash events but every tenth."""
    came = held.events(EventFamily.SPLASH, WINDOW).drop("arrival")
    some = came.with_row_index().filter(pl.col("index") % 10 != 3).drop("index")
    return pushed(workdir / "hooks.duckdb", held.source, some)


def test_arrivals_are_the_first_of_each_document_with_who_brought_it(
    held: Store, hooks: Store
) -> None:
    asked, told = (each.arrivals("splash", WINDOW) for each in (held, hooks))
    assert asked.height == held.events("splash", WINDOW).height > told.height
    assert asked["brought_by"].unique().to_list() == ["service"]
    assert told["brought_by"].unique().to_list() == ["webhook"]
    assert told["n_deliveries"].null_count() == told.height
    assert (time.time() * 1_000 - told["arrived_ms"]).is_between(0, 600_000).all()
    documents = hooks.events("splash", WINDOW)
    changed = documents.head(1).with_columns(document=pl.lit("{}")).drop("arrival")
    writer = StoreWriter(hooks)
    writer.bind(hooks.source)
    load = writer.start_load(LoadOrigin("http://x", 0, None, "0"))
    keep_deliveries(writer, load, [Delivered("msg_new", "splash")], changed)
    assert hooks.arrivals("splash", WINDOW).equals(told, null_equal=True)


def test_the_command_is_the_statistic_over_both_stores(
    rail: Rail, held: Store, hooks: Store
) -> None:
    came = {"rail": held.arrivals("splash", WINDOW), "hooks": hooks.arrivals("splash", WINDOW)}
    known = held_stretches(held.ledger(), event_logs(held.catalogue()))
    stretches = known.filter(family="splash").with_columns(channel=pl.lit("rail"))
    expected = channels(came, *WINDOW, held=stretches)
    found = as_rows(
        rail("events", "channels", "hooks.duckdb", "--family", "splash", *TIMES, "--format", "json")
    )
    assert found == expected.to_dicts()
    assert set(expected.columns) == set(channel_columns())
    (hook, asked) = found
    assert (hook["channel"], hook["n_lost"]) == ("hooks", asked["n"] - hook["n"])
    assert hook["n_lost"] > 3
    assert asked["n_lost"] == 0

    shown = rail("events", "channels", "hooks.duckdb", *TIMES, columns=200).stdout
    assert "When events came by rail and by hooks" in shown
    assert f"hooks: webhooks made {hook['n'] + 1} deliveries of events at any time" in shown
    assert "rail: the service's clock was" in shown


def test_what_is_no_second_store_is_one_line(rail: Rail, held: Store, workdir: Path) -> None:
    assert "another name" in refused(rail("events", "channels", str(held.path)))
    assert "there is no store" in refused(rail("events", "channels", "none.duckdb"))
    other = pushed(
        workdir / "b.duckdb", Source("live", "x"), held.events("splash", WINDOW).drop("arrival")
    )
    line = refused(rail("events", "channels", str(other.path)))
    assert "a store of SIMULATED market" in line
