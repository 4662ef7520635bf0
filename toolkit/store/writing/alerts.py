"""The history of alerts in the store, and what their evaluation reads inside a commit.

A change is recorded in the transaction of its rows, with a row per place to send it to. Rows that
wait are the place's queue. A delivery is claimed before it is made. What was being sent when the
process ended is sent again only where the receiver knows a repeat by its id.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from toolkit.market import SnapshotLog, SnapshotTrajectory, Stream
from toolkit.store.ledger.streams import append, highest
from toolkit.store.reading.frames import frame_of
from toolkit.store.reading.scanning import value_columns
from toolkit.store.store import Store
from toolkit.store.writing.writer import StoreWriter
from toolkit.tables import ALERT, ALERT_DELIVERY, ROWS, SNAPSHOT_SERIES, AlertChange, AlertOutcome

_LEFT_OUT = ("change_id", "load_id", "recorded_at")
FOUND = pl.Schema({n: kind for n, kind in ALERT.schema.items() if n not in _LEFT_OUT})
"""The columns of changes that are handed over to be recorded."""

_OPEN = (
    "SELECT rule, subject FROM alert QUALIFY row_number() OVER "
    "(PARTITION BY rule, subject ORDER BY change_id DESC) = 1 AND change = $opened"
)
_AGES = (
    "SELECT key AS stream, kind, first_ts, last_ts, e.step_s, e.delay_s, e.served_at FROM stream "
    "LEFT JOIN edge e USING (stream_id)"
)


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """A transaction about to be committed, to read from and to record changes in."""

    connection: duckdb.DuckDBPyConnection
    load_id: int

    def shown(self, log: SnapshotLog, served_at: Iterable[int]) -> list[SnapshotTrajectory]:
        """Return the series of which a snapshot's answers at some times (s) have rows."""
        table = SNAPSHOT_SERIES.get(f"snapshot-{log.of}")
        if table is None:
            return []
        found = self.connection.execute(
            f"SELECT DISTINCT key FROM {table.name} JOIN stream USING (stream_id) "  # noqa: S608 - ours
            "WHERE list_contains(?, ts)",
            [list(served_at)],
        ).fetchall()
        return [SnapshotTrajectory.parse(key) for (key,) in found]

    def rows(self, kind: str, since: Mapping[Stream, int]) -> pl.DataFrame:
        """Return the rows of streams of a kind, of each from a time on, one row per ts.

        Columns: trajectory (key), ts and the values of the kind, as in `Store.series`. Uncommitted
        rows of the transaction are among them.
        """
        values = ", ".join(value_columns(kind))
        found = frame_of(
            self.connection,
            f"SELECT key AS trajectory, ts, {values} FROM {ROWS[kind].name} r "  # noqa: S608 - ours
            "JOIN stream USING (stream_id) JOIN alert_streams USING (key) "
            "WHERE r.ts >= $lowest AND r.ts >= low ORDER BY key, ts, revision",
            params={"lowest": min(since.values())},
            alert_streams=pl.DataFrame(
                {"key": [s.key for s in since], "low": list(since.values())},
                schema={"key": pl.String, "low": pl.Int64},
            ),
        )
        return found.unique(["trajectory", "ts"], keep="last", maintain_order=True)

    def brought(self, documents: pl.DataFrame, since: int) -> pl.DataFrame:
        """Return those of some documents that this load committed since a time (s, local clock)."""
        found = frame_of(
            self.connection,
            "SELECT DISTINCT family, event_id, event_type, ts_ms FROM event "
            "WHERE load_id = $load AND committed_at >= $since AND ts BETWEEN $low AND $high",
            params={
                "load": self.load_id,
                "since": since,
                "low": documents["ts"].min(),
                "high": documents["ts"].max(),
            },
        )
        return documents.join(found, on=found.columns, how="semi", nulls_equal=True)

    def streams(self) -> pl.DataFrame:
        """Return each stream (key) with its kind, and in seconds first_ts, last_ts and its edge."""
        return frame_of(self.connection, _AGES)

    def open_alerts(self) -> set[tuple[str, str]]:
        """Return the rule and the subject of each open alert."""
        rows = self.connection.execute(_OPEN, {"opened": AlertChange.OPENED.value}).fetchall()
        return {(str(rule), str(subject)) for rule, subject in rows}

    def record(
        self, found: pl.DataFrame, channels: Mapping[str, Sequence[str]], late: Iterable[str]
    ) -> None:
        """Record changes, of the columns of `FOUND`, and where each is to be sent.

        ``channels`` names the places by alert_id. What is ``late`` is sent nowhere.
        """
        now, too_late = int(time.time()), set(late)
        first = highest(self.connection, "change_id", "alert") + 1
        rows = [
            (number, *row, self.load_id, now)
            for number, row in enumerate(found.select(FOUND.names()).iter_rows(), first)
        ]
        append(self.connection, ALERT, rows)
        deliveries = [
            (each, channel, outcome.value, 0, None, now)
            for each in found["alert_id"]
            for outcome in [AlertOutcome.LATE if each in too_late else AlertOutcome.WAITING]
            for channel in channels.get(each, ())
        ]
        append(self.connection, ALERT_DELIVERY, deliveries)


def known_ids(recording: AlertRecord, ids: Sequence[str]) -> set[str]:
    """Return those of some ids that are recorded already."""
    found = recording.connection.execute(
        "SELECT alert_id FROM alert WHERE list_contains(?, alert_id)", [list(ids)]
    ).fetchall()
    return {str(each) for (each,) in found}


def claim(writer: StoreWriter, alert_id: str, channel: str) -> bool:
    """Claim a delivery before it is made. Return False if it is not waiting any more."""
    with writer.writing() as connection:
        taken = connection.execute(
            "UPDATE alert_delivery SET outcome = ?, changed_at = ? "
            "WHERE alert_id = ? AND channel = ? AND outcome = ? RETURNING alert_id",
            [AlertOutcome.SENDING, int(time.time()), alert_id, channel, AlertOutcome.WAITING],
        ).fetchall()
    return bool(taken)


def settle(
    writer: StoreWriter,
    alert_id: str,
    channel: str,
    outcome: AlertOutcome,
    *,
    attempts: int,
    reason: str | None = None,
) -> None:
    """Record the outcome of a delivery."""
    with writer.writing() as connection:
        connection.execute(
            "UPDATE alert_delivery SET outcome = ?, attempts = ?, reason = ?, changed_at = ? "
            "WHERE alert_id = ? AND channel = ?",
            [outcome, attempts, reason, int(time.time()), alert_id, channel],
        )


def resume_deliveries(writer: StoreWriter, repeatable: Collection[str]) -> None:
    """Settle what was being sent when an earlier follow ended.

    It waits again if its channel is ``repeatable``, else its outcome is unknown.
    """
    with writer.writing() as connection:
        connection.execute(
            "UPDATE alert_delivery SET changed_at = ?, "
            "outcome = CASE WHEN list_contains(?, channel) THEN ? ELSE ? END WHERE outcome = ?",
            [
                int(time.time()),
                list(repeatable),
                AlertOutcome.WAITING,
                AlertOutcome.UNKNOWN,
                AlertOutcome.SENDING,
            ],
        )


def waiting_deliveries(store: Store, channel: str) -> pl.DataFrame:
    """Return what waits for a channel, oldest first: the columns of `ALERT`, and attempts."""
    with store.reading() as connection:
        return frame_of(
            connection,
            "SELECT a.*, attempts FROM alert a JOIN alert_delivery d USING (alert_id) "
            "WHERE channel = $channel AND outcome = $waiting ORDER BY change_id",
            params={"channel": channel, "waiting": AlertOutcome.WAITING.value},
        )


def give_up(writer: StoreWriter, ids: Sequence[str], channel: str, reason: str) -> None:
    """Record that some waiting deliveries are not made any more."""
    with writer.writing() as connection:
        connection.execute(
            "UPDATE alert_delivery SET outcome = ?, reason = ?, changed_at = ? "
            "WHERE channel = ? AND outcome = ? AND list_contains(?, alert_id)",
            [AlertOutcome.LATE, reason, int(time.time()), channel, AlertOutcome.WAITING, list(ids)],
        )


def read_alerts(store: Store, *, most: int | None = None) -> pl.DataFrame:
    """Return the history of alerts, newest first, at most so many changes.

    One row per change: the columns of `toolkit.tables.ALERT` without load_id, then is_open
    (Boolean: the newest change of its rule and subject opened it), delivery (places and outcomes,
    such as ``webhook delivered``, with commas between, null if sent nowhere) and reason (why one
    failed, waits or is late, else null).
    """
    with store.reading() as connection:
        return frame_of(
            connection,
            "SELECT a.* EXCLUDE (load_id), change = $opened AND row_number() OVER "
            "(PARTITION BY rule, subject ORDER BY change_id DESC) = 1 AS is_open, "
            "delivery, reason FROM alert a LEFT JOIN (SELECT alert_id, "
            "string_agg(channel || ' ' || outcome, ', ' ORDER BY channel) AS delivery, "
            "string_agg(reason, ', ' ORDER BY channel) AS reason FROM alert_delivery "
            "GROUP BY alert_id) d USING (alert_id) ORDER BY change_id DESC LIMIT $most",
            params={"opened": AlertChange.OPENED.value, "most": 2**31 if most is None else most},
        )
