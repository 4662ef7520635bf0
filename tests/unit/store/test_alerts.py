"""The history of alerts: recorded with the rows, claimed before it is sent, kept by a migration."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.empty_store import empty_store
from toolkit.market import Family, Trajectory
from toolkit.store import Batch, Store, StoreWriter
from toolkit.store.file.maintenance import compact
from toolkit.store.publish import import_store, publish
from toolkit.store.writing.alerts import (
    FOUND,
    AlertRecord,
    claim,
    give_up,
    known_ids,
    read_alerts,
    resume_deliveries,
    settle,
)
from toolkit.tables import AlertOutcome

from .conftest import ORIGIN, PAIR, SOURCE, frame_of, writer_of


def found(*changes: tuple[str, str, int]) -> pl.DataFrame:
    """Changes of (subject, change, ts) of one rule, as they are handed over."""
    rows = [
        (alert_id, "wide", "spread", *[subject] * 3, change, *[ts] * 2, 60.0, 50.0, "bps", "wide")
        for subject, change, ts in changes
        for alert_id in [f"alert_{subject}_{change}_{ts}"]
    ]
    return pl.DataFrame(rows, schema=FOUND, orient="row")


@pytest.fixture
def writer(store: Store) -> StoreWriter:
    return writer_of(store)


def recorded(
    writer: StoreWriter, *changes: tuple[str, str, int], late: tuple[str, ...] = ()
) -> int:
    load_id = writer.start_load(ORIGIN)
    rows = found(*changes)
    with writer.writing(load_id) as connection:
        to = dict.fromkeys(rows["alert_id"], ("webhook", "chat"))
        AlertRecord(connection, load_id).record(rows, to, late)
    return load_id


def test_what_is_open_is_what_opened_last(writer: StoreWriter) -> None:
    recorded(writer, ("a", "opened", 1), ("b", "opened", 1), ("a", "cleared", 2))
    recorded(writer, ("c", "opened", 3), ("c", "cleared", 4), ("c", "opened", 5))
    history = read_alerts(writer.store)
    assert history["change_id"].to_list() == [6, 5, 4, 3, 2, 1]
    assert history.filter("is_open").select("subject", "ts").rows() == [("c", 5), ("b", 1)]
    assert read_alerts(writer.store, most=2)["ts"].to_list() == [5, 4]
    with writer.writing() as connection:
        recording = AlertRecord(connection, 1)
        assert recording.open_alerts() == {("wide", "b"), ("wide", "c")}
        assert known_ids(recording, ["alert_a_opened_1", "x"]) == {"alert_a_opened_1"}


def test_a_delivery_is_claimed_once_and_its_outcome_kept(writer: StoreWriter) -> None:
    recorded(writer, ("a", "opened", 1))
    one = "alert_a_opened_1"
    assert [claim(writer, one, "webhook") for _ in range(2)] == [True, False]
    settle(writer, one, "webhook", AlertOutcome.FAILED, attempts=3, reason="status 500")
    give_up(writer, [one], "webhook", "waited")  # neither changes what was settled
    resume_deliveries(writer, ["webhook"])
    history = read_alerts(writer.store)
    assert history["delivery"].to_list() == ["chat waiting, webhook failed"]
    assert history["reason"].to_list() == ["status 500"]


def test_changes_are_recorded_with_the_rows_they_follow_from_or_not_at_all(
    writer: StoreWriter,
) -> None:
    pair = Trajectory.parse(PAIR)
    load_id, seen = writer.start_load(ORIGIN), list[tuple[object, ...]]()

    def batch() -> Batch:
        return Batch(rows={pair: [frame_of([(60, 1.0, 1.1), (120, 1.0, 1.2)], Family.SPREAD)]})

    def record(connection: duckdb.DuckDBPyConnection) -> None:
        recording = AlertRecord(connection, load_id)
        rows = recording.rows(Family.SPREAD, {pair: 120})
        seen.extend(rows.select("trajectory", "ts", "sell_price").rows())
        assert recording.streams()["stream"].to_list() == [PAIR]
        recording.record(found(("a", "opened", 1)), {}, ())

    def fail(connection: duckdb.DuckDBPyConnection) -> None:
        record(connection)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        writer.commit(load_id, batch(), also=fail)
    assert read_alerts(writer.store).is_empty()
    assert writer.store.catalogue().is_empty()
    writer.commit(load_id, batch(), also=record)
    assert read_alerts(writer.store)["delivery"].to_list() == [None]
    assert seen == [(PAIR, 120, 1.2)] * 2


def test_a_compacted_store_keeps_them_and_published_data_has_none(
    writer: StoreWriter, tmp_path: Path
) -> None:
    recorded(writer, ("a", "opened", 1))
    before = read_alerts(writer.store)
    compact(writer.store)
    assert read_alerts(writer.store).equals(before)
    publish(writer.store, tmp_path / "published")
    copy = import_store(tmp_path / "published", tmp_path / "copy.duckdb")
    assert read_alerts(copy).is_empty()
    assert read_alerts(empty_store(tmp_path / "other.duckdb", SOURCE)).is_empty()
