"""`rail events`: groups, channels, what is open, what pays, and what is read of the logs."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.empty_store import empty_store
from tests.once import store_once
from toolkit.analyses import find
from toolkit.client import Client
from toolkit.intervals import Interval, clip, total_s
from toolkit.market import EventFamily, EventLog, Source, swapped
from toolkit.statistics import events as event_statistics
from toolkit.statistics.events import channels
from toolkit.statistics.fees import FeeModel
from toolkit.store import (
    ARCHIVE,
    SOCKET,
    WEBHOOK,
    Batch,
    Delivered,
    Edge,
    LoadOrigin,
    Store,
    StoreWriter,
    event_logs,
    held_stretches,
    keep_deliveries,
)
from toolkit.store.file.connection import opened
from toolkit.wire.event_log import document_frame
from toolkit.workspace import Workspace, open_workspace
from toolkit.workspace.events.event_selection import EventSelection

from .conftest import NOW, WINDOW, Rail, as_rows, refused, to_read


@pytest.mark.usefixtures("held")
def test_a_table_names_groups_and_the_test_between_them(rail: Rail) -> None:
    shown = rail("events", "survival", "--by", "symbol", columns=240).stdout
    assert "median lifetime" in shown
    assert "log-rank test of" in shown
    kept = as_rows(rail("events", "survival", "--where", "n > 0", "--format", "json"))
    assert {row["family"] for row in kept} == {"spread", "splash", "funding"}


@pytest.mark.usefixtures("held")
def test_the_counts_of_events_are_asked_as_a_statistic_too(rail: Rail) -> None:
    assert rail("stats", "events").stdout == rail("events", "summary").stdout


@pytest.mark.usefixtures("held")
def test_events_that_come_together_are_the_surest_first(rail: Rail) -> None:
    found = as_rows(rail("events", "together", "--same", "symbol", "--format", "json"))
    sure = [row["p_value"] for row in found if row["p_value"] is not None]
    assert sure == sorted(sure)
    assert all(row["p_value"] is None for row in found[len(sure) :])


def test_one_log_alone_has_nothing_to_come_together_with_and_that_is_said(
    rail: Rail, held_copy: Store
) -> None:
    with opened(held_copy.path, writable=True, wait_s=10) as connection:
        connection.execute("DELETE FROM event WHERE family <> 'splash'")
    done = rail("events", "together", columns=240)
    assert done.returncode == 0
    assert "of one log, with nothing to come together with; `rail sync" in done.stdout


def test_open_events_are_listed_and_nothing_is_stored(rail: Rail, service: str) -> None:
    done = rail("events", "open", "spread", "--back", "2h", "--format", "json", base_url=service)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows
    assert {row["family"] for row in rows} == {"spread"}
    assert all(row["duration_s"] is None or row["duration_s"] > 0 for row in rows)
    assert "there is no store" in refused(rail("status", base_url=service))


TIMES = ("--start", str(WINDOW.start), "--end", str(WINDOW.end))


@pytest.fixture
def fed(held_copy: Store) -> Store:
    """The store that was loaded, also fed by a socket and by webhooks: all but every tenth event.

    The first document came twice by each of the two.
    """
    came = held_copy.events(EventFamily.SPLASH, WINDOW).drop("arrival")
    some = came.with_row_index().filter(pl.col("index") % 10 != 3).drop("index")
    twice = pl.concat([some, some.head(1)])
    writer = StoreWriter(held_copy)
    writer.bind(held_copy.source)
    hooked = writer.start_load(LoadOrigin(WEBHOOK, int(time.time()), None, "0"))
    told = [Delivered(f"msg_{place}", "splash") for place in range(twice.height)]
    keep_deliveries(writer, hooked, told, twice)
    listened = writer.start_load(LoadOrigin("http://x", int(time.time()), None, "0"))
    batch = Batch()
    at = pl.col("ts_ms") + 250
    batch.came.append((SOCKET, twice.with_columns(arrived_ms=at)))
    writer.commit(listened, batch)
    return held_copy


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
    assert set(expected.columns) == set(find("events.channels").schema())
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


@pytest.mark.usefixtures("held")
def test_one_channel_alone_is_said(rail: Rail) -> None:
    shown = rail("events", "channels", *TIMES, columns=200).stdout
    assert "all events came by archive, with nothing to compare" in shown


def test_what_is_held_is_what_the_ledger_was_answered_for_until_the_log_is_known(
    held: Store,
) -> None:
    read = EventSelection.of(held, None, *WINDOW).events
    lives, stretches = read.lives, read.held
    for family in EventFamily:
        known = held.ledger([EventLog(family)])[EventLog(family)]
        mine = stretches.filter(family=family.value)
        parts = [Interval(*each) for each in mine.select("start_ts", "end_ts").iter_rows()]
        assert total_s(parts) >= total_s(known.answered)
        rates = event_statistics.rates(lives.filter(family=family.value), held=stretches)
        assert rates["held_s"].item() == total_s(clip(parts, WINDOW))
    everything = event_statistics.survival(lives)
    assert_frame_equal(event_statistics.survival(lives, held=stretches), everything)


def test_a_series_and_its_log_are_held_for_the_same_time(held: Store) -> None:
    asked = EventSelection.of(held, EventFamily.SPREAD, *WINDOW)
    events = open_workspace(held.path).events("spread", *WINDOW)
    assert_frame_equal(events.held, asked.events.held)
    assert asked.share == events.coverage()["coverage"].item()


def test_without_a_window_it_is_that_of_the_logs(held: Store) -> None:
    asked = EventSelection.of(held).window
    ledger = held.ledger([EventLog(family) for family in EventFamily])
    assert asked.start == min(each.answered[0].start for each in ledger.values())
    alone = EventSelection.of(held, EventFamily.SPREAD).window
    assert alone == open_workspace(held.path).events("spread").window
    day = EventSelection.of(held, None, "2026-11-03", "2026-11-04").window
    assert day == Interval(NOW - 86_400, NOW)


def test_the_window_of_a_log_is_as_long_as_its_own_answers_and_documents(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "rail.duckdb", Source("replay", "example"))
    batch, edge = Batch(), Edge(9_000, step_s=0)
    for family, ts, answered in (("spread", 600, (0, 300)), ("splash", 5_000, (4_000, 6_000))):
        document = {"family": family, "event_id": "e", "ts": ts, "ts_ms": 1_000 * ts}
        frame = document_frame([document | {"document": "{}"}])
        batch.add_documents(EventLog.of(family), frame, Interval(*answered), edge)
    writer = StoreWriter(store)
    writer.commit(writer.start_load(LoadOrigin("http://x", 9_000, None, "0")), batch)
    found = {each: EventSelection.of(store, each).window for each in (EventFamily.SPREAD, None)}
    assert found == {EventFamily.SPREAD: (0, 601), None: (0, 6_000)}


COLUMNS = find("events.payoff").schema("symbol", "legs")


def busiest(rail: Workspace) -> list[str]:
    """The four pairs in which most events opened."""
    keys = rail.events("spread", *WINDOW).detections()["trajectory"]
    most = keys.value_counts(sort=True).sort("count", "trajectory", descending=True)
    return most["trajectory"].head(4).to_list()


@pytest.fixture(scope="module")
def with_spreads(loaded: Path, service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The loaded store with the spreads of those pairs."""

    def load(path: Path) -> None:
        with Workspace(Client(service, "demo-pro"), Store(shutil.copy(loaded, path))) as rail:
            rail.sync(busiest(rail), WINDOW.start - 3_600, WINDOW.end, progress=False)

    return store_once(tmp_path_factory, "with-spreads", load)


@pytest.fixture
def followed(with_spreads: Path, workdir: Path) -> Iterator[tuple[Workspace, list[str]]]:
    """That store as ``rail.duckdb`` in the working directory, to read, and those pairs."""
    for store in to_read(with_spreads, workdir):
        rail = open_workspace(store.path)
        yield rail, busiest(rail)


def rows_of(done: subprocess.CompletedProcess[str]) -> pl.DataFrame:
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    schema = {"source": pl.String} | dict(COLUMNS)
    return pl.DataFrame(rows, schema={name: schema[name] for name in rows[0]})


def fees_file(keys: list[str]) -> Path:
    """Write a fee table of the exchanges of some pairs."""
    exchanges = sorted({leg.split(".")[0] for key in keys for leg in key.split(":")[1:]})
    entries = "".join(
        f'[[fee]]\nexchange = "{exchange}"\nvalid_from = 2017-01-01\ntaker_bps = 3.0\n'
        "slippage_bps = 1.0\ngas_quote = 1.0\n"
        for exchange in exchanges
    )
    path = Path("fees.toml")
    path.write_text(f'name = "mine"\n{entries}', encoding="utf-8")
    return path


def test_payoffs_are_those_of_the_statistic_by_groups(
    rail: Rail, followed: tuple[Workspace, list[str]]
) -> None:
    (workspace, keys), by = followed, ["symbol", "legs"]
    fees = FeeModel.read(fees_file(keys))
    log = workspace.events("spread", *WINDOW)
    rows = log.positions(
        workspace.around(log), delays_s=[0, 120], limit_s=1_800, exit_bps=10.0, fees=fees
    )
    expected = event_statistics.payoff(rows, by=by)
    some = pl.col("n_no_rows") < pl.col("n_events")
    asked = ("--delay", "2m", "--delay", "0", "--limit", "30m", "--exit-bps", "10")
    groups = [part for name in by for part in ("--by", name)]
    done = rail(
        *("events", "payoff", *asked, *groups, *TIMES, "--fees", "fees.toml", "--format", "json")
    )
    found = rows_of(done)
    assert found["n"].sum() > 20
    assert found["net_n"].to_list() == found["n"].to_list()
    assert_frame_equal(found.drop("source"), expected.filter(some))
    assert set(found.columns) <= {"source", *COLUMNS}


def test_a_table_counts_events_whose_pairs_have_no_rows_and_names_what_loads_them(
    rail: Rail, followed: tuple[Workspace, list[str]]
) -> None:
    workspace, keys = followed
    done = rail("events", "payoff", "--by", "legs", columns=220)
    assert done.returncode == 0
    held = {*keys, "BTC_USDT:AURORA.spot:CORONA.futures"}
    missing = set(workspace.events("spread").detections()["trajectory"]) - held
    missing -= {swapped(key) for key in held}
    assert f"are of {len(missing):,} trajectories without rows" in done.stdout
    assert "loads the first" in done.stdout
    assert "before fees" in done.stdout
    assert "SIMULATED" in done.stdout
    shown = rail("events", "payoff", "--fees", fees_file(keys[:1]), columns=220).stdout
    assert "net of mine" in shown
    assert "the fee table lacks an entry for" in shown
