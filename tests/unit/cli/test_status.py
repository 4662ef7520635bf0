"""`rail status`: what it prints of a store, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.empty_store import empty_store
from toolkit.intervals import Interval
from toolkit.market import (
    EventFamily,
    EventLog,
    SnapshotKind,
    SnapshotLog,
    Source,
    Stream,
    Trajectory,
)
from toolkit.store import (
    Batch,
    Delivered,
    Edge,
    Gap,
    LoadOrigin,
    Snapshot,
    Store,
    StoreWriter,
    keep_deliveries,
)
from toolkit.tables import GapStatus
from toolkit.wire.event_log import document_frame
from toolkit.wire.findings import LostStretch
from toolkit.workspace.holdings import STATUS

from .conftest import LOADED, Rail, refused

PRICE = Trajectory.parse("A_B:X.spot")
SPREADS = EventLog(EventFamily.SPREAD)
ORIGIN = LoadOrigin("http://h", 100_000, None, "0")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the store of each test is, so that one engine serves all."""
    return tmp_path_factory.mktemp("status") / "rail.duckdb"


@pytest.fixture
def store(place: Path, workdir: Path) -> Store:
    """An empty store as ``rail.duckdb`` in the working directory."""
    place.unlink(missing_ok=True)
    empty_store(place, Source("replay", "example"))
    (link := workdir / "rail.duckdb").symlink_to(place)
    return Store(link)


def minutes(first: int, last: int) -> pl.DataFrame:
    """Prices of the minutes from ``first`` to before ``last``, as a page brings them."""
    times = pl.int_range(60 * first, 60 * last, 60, dtype=pl.Int64, eager=True).alias("ts")
    numbers = {name: pl.lit(1.0) for name in ("price", "mark_price", "volume")}
    return pl.DataFrame(times).with_columns(**numbers, extra=pl.lit(None, pl.String))


def commit(
    store: Store, batch: Batch, *streams: Stream, until: int = 6_000, origin: LoadOrigin = ORIGIN
) -> tuple[StoreWriter, int]:
    """Commit a batch as a load of the streams from 0 on, and return the writer and the load."""
    writer = StoreWriter(store)
    load_id = writer.start_load(origin, streams, Interval(0, until))
    writer.commit(load_id, batch)
    return writer, load_id


def line_of(done: subprocess.CompletedProcess[str], stream: Stream) -> list[str]:
    """Return the cells of a stream's line."""
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(stream.key + " "))
    return line.replace(" %", "%").split()


def rows_of(rail: Rail) -> dict[str, dict[str, Any]]:
    """Return the rows of a program, by stream."""
    lines = rail("status", "--format", "json").stdout.splitlines()
    return {row["stream"]: row for row in map(json.loads, lines)}


@pytest.mark.usefixtures("held")
def test_each_stream_has_its_line_under_the_source(rail: Rail) -> None:
    done = rail("status")
    assert "SIMULATED" in done.stdout.splitlines()[0]
    for stream in (*LOADED, *map(EventLog, EventFamily), Stream.parse("snapshot/spread")):
        assert line_of(done, stream)
    assert "of 3 trajectories" in done.stdout
    assert "event documents of 3 logs, 1 snapshot of 1 kind" in done.stdout


def test_a_store_that_holds_nothing_is_refused(rail: Rail, store: Store) -> None:
    assert f"{store.path.name} holds nothing yet" in refused(rail("status"))


def test_a_load_that_failed_half_way_shows_what_was_not_answered(rail: Rail, store: Store) -> None:
    batch = Batch()
    batch.add(PRICE, minutes(75, 100), Interval(4_500, 6_000), Edge(100_000, step_s=60))
    commit(store, batch, PRICE, SPREADS)
    done = rail("status")
    assert line_of(done, PRICE)[1] == "25"
    assert "25.00%" in line_of(done, PRICE)
    assert "0.00%" in line_of(done, SPREADS)


def test_what_cannot_be_known_yet_does_not_count_as_unanswered(rail: Rail, store: Store) -> None:
    batch = Batch()
    batch.add(PRICE, minutes(0, 99), Interval(0, 6_000), Edge(6_000, step_s=60))
    commit(store, batch, PRICE, origin=LoadOrigin("http://h", 6_000, None, "0"))
    assert "100.00%" in line_of(rail("status"), PRICE)


def test_gaps_findings_and_deliveries_are_shown(rail: Rail, store: Store) -> None:
    batch = Batch()
    batch.gaps = {1: Gap(1, SPREADS, 100, 160, "silent"), 2: Gap(2, SPREADS, 300, None, "closed")}
    writer, load_id = commit(store, batch)
    writer.finish_load(load_id, [{"kind": "field_missing", "where": "/history/price", "times": 2}])
    keep_deliveries(writer, load_id, [Delivered("d1", None, "{}")], document_frame([]))
    done = rail("status")
    assert line_of(done, SPREADS)[-4] == "2"
    assert "gaps of live capture: 2 open" in done.stdout
    words = "the last load found: a field is not there; its column is null (field_missing, 2 times)"
    assert words in " ".join(done.stdout.split())
    assert "1 webhook delivery" in done.stdout


def test_a_later_load_without_any_answer_shows_what_it_lacks(rail: Rail, store: Store) -> None:
    batch = Batch()
    batch.add(PRICE, minutes(0, 100), Interval(0, 6_000), Edge(7_000, step_s=60))
    writer, _ = commit(store, batch, PRICE)
    writer.start_load(LoadOrigin("http://h", 20_000, None, "0"), [PRICE], Interval(6_000, 12_000))
    assert "50.00%" in line_of(rail("status"), PRICE)


def test_how_far_a_stream_is_behind_counts_to_now_by_the_services_clock(
    rail: Rail, workdir: Path
) -> None:
    store = empty_store(workdir / "rail.duckdb", Source("live", "example"))
    asked_at = int(time.time()) - 1_200
    batch = Batch()
    edge = Edge(6_019, step_s=60, asked_at=asked_at)
    batch.add(PRICE, minutes(0, 100), Interval(0, 6_000), edge)
    commit(store, batch, PRICE)
    done = rail("status")
    assert line_of(done, PRICE)[3:5] == ["20", "min"]
    assert "last answer 20 min" in done.stdout


def test_nothing_there_no_answer_and_never_asked_are_three_things(rail: Rail, store: Store) -> None:
    quiet, whole = Batch(), Interval(0, 600)
    quiet.add_documents(SPREADS, document_frame([]), whole, Edge(100_000, step_s=0))
    splash, funding = EventLog(EventFamily.SPLASH), EventLog(EventFamily.FUNDING)
    quiet.gaps = {1: Gap(1, funding, 100, 160, "closed")}
    commit(store, quiet, SPREADS, splash, until=600)
    done = rail("status")
    cells = line_of(done, SPREADS)[1:]
    assert cells[:3] == ["nothing", "there", "100.00%"]
    assert cells[-4:] == ["0", "–", "–", "–"]
    assert " ".join(line_of(done, splash)[1:3]) == "no answer"
    assert " ".join(line_of(done, funding)[1:4]) == "not requested yet"
    assert (
        "not requested yet: price, spread, funding, events/funding, snapshot/symbols" in done.stdout
    )


def test_deliveries_alone_are_something(rail: Rail, store: Store) -> None:
    writer = StoreWriter(store)
    told = [Delivered("d1", None, "{}")]
    keep_deliveries(writer, writer.start_load(ORIGIN), told, document_frame([]))
    assert "1 webhook delivery" in rail("status").stdout


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b'{"rows": []}', "snapshot/spread: not understood: no list of items"),
        (b'{"items": [{"symbol": "A_B", "since": 60}]}', "snapshot/spread: not understood: no "),
        (b'{"items": []}', None),
    ],
)
def test_a_snapshot_that_is_not_understood_is_called_so(
    rail: Rail, store: Store, document: bytes, words: str | None
) -> None:
    stream = SnapshotLog(SnapshotKind.SPREAD)
    batch = Batch()
    batch.add_snapshot(Snapshot(stream, 100_000, document), Edge(100_000, 0))
    commit(store, batch)
    done = rail("status")
    assert done.returncode == 0
    assert (words or "snapshot") in done.stdout
    assert ("not understood" in done.stdout) == (words is not None)


def test_rows_that_share_their_time_are_counted(rail: Rail, store: Store) -> None:
    batch = Batch()
    rows = pl.concat([minutes(0, 3), minutes(0, 2).with_columns(price=pl.lit(2.0))])
    batch.add(PRICE, rows, Interval(0, 180), Edge(100_000, 60), tied=[0, 60])
    commit(store, batch)
    done = rail("status")
    assert line_of(done, PRICE)[1] == "5"
    assert "2 rows share their time with another, of A_B:X.spot" in done.stdout
    assert rows_of(rail)[PRICE.key]["tied_rows"] == 2


def test_what_the_notes_of_the_table_tell_is_in_the_columns_of_a_file(
    rail: Rail, store: Store
) -> None:
    stream = SnapshotLog(SnapshotKind.SPREAD)
    batch = Batch()
    batch.add_snapshot(Snapshot(stream, 100_000, b"[]"), Edge(100_000, asked_at=99_000))
    batch.gaps[1] = Gap(1, PRICE, 60, 120, "closed")
    writer, load = commit(store, batch, PRICE, until=600)
    writer.finish_load(load, [{"kind": "odd", "where": "here", "says": "x"}])
    rows = rows_of(rail)
    assert "not understood" in rows[stream.key]["snapshot_oddity"]
    assert (rows[stream.key]["asked_at"], rows[stream.key]["served_at"]) == (99_000, 100_000)
    price = rows[PRICE.key]
    gaps = [price[f"{status}_gaps"] for status in GapStatus]
    assert gaps == [1, 0, 0, 0]
    assert (price["deliveries"], price["last_load_findings"]) == (0, "odd at here (1x)")


def test_what_the_source_lost_is_named_with_its_reason_and_is_not_answered(
    rail: Rail, store: Store
) -> None:
    batch, lost = Batch(), [LostStretch(1_200, 2_400, "no answer for 90 s")]
    rows = pl.concat([minutes(0, 20), minutes(40, 100)])
    batch.add(PRICE, rows, Interval(0, 6_000), Edge(100_000, step_s=60), lost=lost)
    commit(store, batch, PRICE)
    done = rail("status")
    said = " ".join(done.stdout.split())
    assert f"{PRICE.key} 1970-01-01 00:20 UTC to 1970-01-01 00:40 UTC, no answer for 90 s" in said
    assert "gaps of live capture" not in done.stdout
    assert "80.00%" in line_of(done, PRICE)
    row = rows_of(rail)[PRICE.key]
    assert (row["lost_gaps"], row["answered_share"]) == (1, 0.8)


def test_a_stream_is_a_row_in_full_with_its_state(rail: Rail, store: Store) -> None:
    batch = Batch()
    batch.add_documents(SPREADS, document_frame([]), Interval(0, 600), Edge(100_000, step_s=0))
    batch.add(PRICE, minutes(0, 100), Interval(0, 6_000), Edge(7_000, step_s=60))
    commit(store, batch, SPREADS, PRICE)
    rows = rows_of(rail)
    assert set(STATUS) | {"source"} <= set(rows[PRICE.key])
    price = rows[PRICE.key]
    assert (price["state"], price["rows"], price["last_ts"]) == ("held", 100, 5_940)
    assert (price["holes"], price["step_s"], price["answered_share"]) == (0, 60, 1.0)
    assert rows[SPREADS.key]["state"] == "nothing there"
    assert rows[SPREADS.key]["answered_share"] == pytest.approx(0.1)
    incomplete = rail("status", "--where", "answered_share < 1").stdout
    assert SPREADS.key in incomplete
    assert f"{PRICE.key} " not in incomplete


@pytest.mark.slow
def test_rows_that_lie_as_they_came_are_named_with_what_brings_them_together(
    rail: Rail, store: Store
) -> None:
    batch = Batch()
    for number in range(40):
        trajectory = Trajectory.parse(f"A{number}_B:X.spot")
        batch.add(trajectory, minutes(0, 1), Interval(0, 60), Edge(100_000, step_s=60))
    writer, _ = commit(store, batch)
    with writer.writing() as connection:
        connection.execute(
            "INSERT INTO price SELECT 1 + i % 40, 60 + i, 1, 1, 1, NULL, 0, 1, NULL "
            "FROM range(1_000_000) r(i)"
        )
    note = "lie in 9 parts of the file, as they came; `rail store compact` brings them into 1"
    assert note in " ".join(rail("status").stdout.split())
    assert rail("store", "compact").returncode == 0
    assert "parts of the file" not in rail("status").stdout


def test_rows_that_were_read_under_several_wire_profiles_are_said(rail: Rail, store: Store) -> None:
    for number, users in enumerate([None, "5c4e" * 16]):
        batch = Batch()
        window = Interval(600 * number, 600 * number + 600)
        batch.add(PRICE, minutes(10 * number, 10 * number + 10), window, Edge(100_000, step_s=60))
        commit(store, batch, origin=replace(ORIGIN, profile_hash=users))
        said = " ".join(rail("status").stdout.split())
        assert ("rows were read under 2 wire profiles" in said) is (number == 1)
    assert "10 without a file of yours, by loads 1; 10 under a file of hash 5c4e5c4e" in said
    assert "`rail store remap" in said


@pytest.mark.slow
def test_a_locale_that_lacks_a_character_is_shown_its_escape(kept: Store) -> None:
    ends = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONIOENCODING": ""}
    run = [sys.executable, "-c", "from toolkit.cli import main; main()", "status"]
    run += ["--store", str(kept.path)]
    done = subprocess.run(run, env=os.environ | ends, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\xb7" in done.stdout
