"""Alerts of a follow: rules evaluated as rows are committed, changes stored with them, then sent.

The store has the open alerts, and from when on rows are new. Each new row is evaluated once, with
as many earlier ones as its rule needs. A row after a newer one of its stream changes no alert, but
counts as one above.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from toolkit.alerts.channels import Alert, AlertSender, Channel
from toolkit.alerts.evaluation import (
    event_marks,
    level_marks,
    level_values,
    longest_s,
    threshold_marks,
    transitions,
)
from toolkit.alerts.rules import AlertKind, AlertRule
from toolkit.errors import RailError, StoreLockedError
from toolkit.market import EventLog, Family, SnapshotLog, SnapshotTrajectory, Stream
from toolkit.statistics.families import FAMILIES
from toolkit.statistics.fees import FeeModel
from toolkit.store import Batch, StoreWriter
from toolkit.store.reading.lookup import soonest_losses
from toolkit.store.writing.alerts import FOUND, AlertRecord, known_ids, resume_deliveries

_LOOK_S, _LOSS_S = 5.0, 60.0
_ENDING_S = 2.0
_LEVELS = {
    "spread": AlertKind.SPREAD,
    "funding": AlertKind.FUNDING,
    "snapshot-spread": AlertKind.SPREAD,
    "snapshot-funding": AlertKind.FUNDING,
}


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules in force, and the fee table of net ones."""

    rules: tuple[AlertRule, ...] = ()
    fees: FeeModel | None = None


@dataclass(frozen=True, slots=True)
class AlertPlan:
    """The alerts of a follow: ``read`` reads the rules anew, ``channels`` send them."""

    read: Callable[[], Rulebook]
    channels: Mapping[str, Channel] = field(default_factory=dict)


class AlertWatch:
    """The alerts of a follow under way.

    ``clock`` gives the service's time (s), ``followed`` the streams followed now. ``note`` is
    called for each change stored, ``evaluated`` after each evaluation. No rule and no channel ends
    the follow.
    """

    def __init__(
        self,
        plan: AlertPlan,
        writer: StoreWriter,
        load_id: int,
        *,
        clock: Callable[[], int],
        followed: Callable[[], Collection[Stream]],
        note: Callable[[str], object],
        evaluated: Callable[[], object] = lambda: None,
    ) -> None:
        self._plan, self._writer, self._load_id = plan, writer, load_id
        self._clock, self._followed, self._note = clock, followed, note
        self._evaluated_now = evaluated
        self._book = plan.read()
        self._source = str(writer.store.source.id)
        self._began_at = clock()
        self._lately = self._began_at - round(longest_s("spread", None))
        self._later: dict[str, int] = {}
        self._until: dict[tuple[str, str], int] = {}
        self._coming: dict[tuple[str, str], int] = {}
        self._polled_s: dict[SnapshotLog, int | None] = {}
        self._priced: set[tuple[str, str]] = set()
        self._found: list[tuple[Alert, tuple[str, ...]]] = []
        self._looked, self._loss_looked = 0.0, 0.0
        self._losses: dict[Stream, int] = {}
        self._wrong = ""
        resume_deliveries(writer, [n for n, channel in plan.channels.items() if channel.waits_s])
        self._senders = {
            name: AlertSender(channel, writer, note) for name, channel in plan.channels.items()
        }
        with writer.store.reading() as connection:
            held = AlertRecord(connection, load_id)
            streams = held.streams()
            self._keep_streams(streams)
            self._held_from = dict(
                streams.drop_nulls("first_ts").select("stream", "first_ts").rows()
            )
            self._open = held.open_alerts()
        self._held_until = dict(self._last_ts)

    def _keep_streams(self, streams: pl.DataFrame) -> None:
        rows = list(streams.iter_rows(named=True))
        self._last_ts: dict[str, int] = {
            row["stream"]: row["last_ts"] for row in rows if row["last_ts"] is not None
        }
        self._steps: dict[str, int] = {
            row["stream"]: row["step_s"] for row in rows if row["step_s"]
        }
        self._delays = {row["stream"]: row["delay_s"] or 0 for row in rows}
        self._answered = {row["stream"]: row["served_at"] for row in rows if row["served_at"]}

    # -- as rows are committed ---------------------------------------------------------------------

    def committing(self, batch: Batch) -> Callable[[Any], None]:
        """Return what evaluates a batch and stores changes, inside its transaction."""
        since = int(time.time())

        def record(connection: Any) -> None:
            self._coming, self._found = {}, []
            recording = AlertRecord(connection, self._load_id)
            try:
                marks = [
                    *self._level_marks(recording, batch),
                    *self._event_marks(recording, batch, since),
                ]
            except (RailError, pl.exceptions.PolarsError) as error:
                self._note_once(f"alerts were not evaluated: {error}")
            else:
                self._record(recording, marks)

        return record

    def committed(self) -> None:
        """Send what was stored, now that it is committed."""
        self._evaluated_now()
        self._until |= self._coming
        found, self._found, self._coming = self._found, [], {}
        for alert, channels in found:
            about = (alert.rule, alert.subject)
            (self._open.add if alert.change == "opened" else self._open.discard)(about)
            self._note(f"alert {alert.change}: {alert.words}")
            for channel in channels:
                self._senders[channel].wake()

    def _level_marks(
        self, recording: AlertRecord, batch: Batch
    ) -> Iterable[tuple[AlertRule, pl.DataFrame]]:
        touched: list[Stream] = [*batch.rows]
        for log in {each.log for each in batch.snapshots}:
            answers = [each for each in batch.snapshots if each.log == log]
            self._polled_s[log] = answers[-1].period_s
            touched += recording.shown(log, [each.served_at for each in answers])
        followed = frozenset(self._followed())
        for kind, of in _LEVELS.items():
            rules = [rule for rule in self._book.rules if rule.kind is of]
            wanted = {
                rule: [s for s in touched if s.kind == kind and rule.matches(s, followed)]
                for rule in rules
            }
            since: dict[Stream, int] = {}
            for rule, streams in wanted.items():
                for s in streams:
                    low = self._evaluated(rule, s.key) - rule.for_s - round(self._longest_s(s)) - 1
                    since[s] = min(since.get(s, low), low)
            rows = FAMILIES[kind].ready(recording.rows(kind, since)) if since else pl.DataFrame()
            for rule, streams in wanted.items():
                if streams:
                    yield rule, self._marks_of(rule, rows, streams)

    def _marks_of(
        self, rule: AlertRule, rows: pl.DataFrame, streams: Sequence[Stream]
    ) -> pl.DataFrame:
        keys = [stream.key for stream in streams]
        if rule.net:
            self._note_unpriced(rule, keys)
        of = rows.filter(pl.col("trajectory").is_in(keys))
        values = level_values(of, rule, self._book.fees)
        longest = {stream.key: self._longest_s(stream) for stream in streams}
        marks = level_marks(values, rule, longest)
        until = {key: self._evaluated(rule, key) for key in keys}
        for key, ts in values.group_by("stream").agg(pl.col("ts").max()).iter_rows():
            self._coming[rule.name, key] = max(ts, until[key])
        after = pl.col("stream").replace_strict(until, default=0, return_dtype=pl.Int64)
        return marks.filter(pl.col("ts") > after)

    def _note_unpriced(self, rule: AlertRule, keys: Sequence[str]) -> None:
        """Note once for which spreads a net rule cannot open without a known cost."""
        new = [key for key in keys if (rule.name, key) not in self._priced]
        self._priced |= {(rule.name, key) for key in new}
        fees, now = self._book.fees, self._clock()
        unknown = [
            key
            for key in new
            if not fees or fees.round_trip_bps(key, rule.notional, rule.style, at=now) is None
        ]
        if unknown:
            more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
            says = f"alert rule {rule.name} cannot open for {unknown[0]}{more}"
            self._note(f"{says}: the fee table has no cost of a round trip there")

    def _event_marks(
        self, recording: AlertRecord, batch: Batch, since: int
    ) -> Iterable[tuple[AlertRule, pl.DataFrame]]:
        """Judge the documents that this commit is the first to bring, however old they are.

        It began at ``since`` (s, local clock). A document before the first one stored when the
        follow began is history.
        """
        rules = [rule for rule in self._book.rules if rule.kind is AlertKind.EVENT]
        if not rules or not batch.documents:
            return
        brought = recording.brought(pl.concat(batch.documents), since)
        for (family,), documents in brought.group_by("family"):
            log = EventLog.of(str(family))
            news = documents.filter(pl.col("ts") >= self._held_from.get(log.key, self._lately))
            for rule in rules:
                if rule.matches(log):
                    yield rule, event_marks(news, rule)

    def _evaluated(self, rule: AlertRule, key: str) -> int:
        """Return until when a stream's rows are not new to a rule (s)."""
        first = self._later.get(rule.name, self._held_until.get(key, self._lately))
        return self._until.get((rule.name, key), first)

    def _longest_s(self, stream: Stream) -> float:
        if isinstance(stream, SnapshotTrajectory):
            return longest_s(stream.kind, self._polled_s.get(stream.log))
        return longest_s(stream.kind, self._steps.get(stream.key))

    # -- recording ---------------------------------------------------------------------------------

    def _record(
        self, recording: AlertRecord, marks: Iterable[tuple[AlertRule, pl.DataFrame]]
    ) -> None:
        """Store what changes. The store decides what is open."""
        changing = [
            (rule, each)
            for rule, each in marks
            if not transitions(each, self._opened(rule, self._open)).is_empty()
        ]
        if not changing:
            return
        self._open = recording.open_alerts()
        now = self._clock()
        found = {
            alert.alert_id: (alert, rule)
            for rule, each in changing
            for row in transitions(each, self._opened(rule, self._open)).iter_rows(named=True)
            for alert in [Alert.of(rule, self._source, now, row)]
        }
        known = known_ids(recording, list(found))
        new = {each: pair for each, pair in found.items() if each not in known}
        late = {
            alert.alert_id
            for alert, rule in new.values()
            if now - alert.ts > rule.late_s + self._delays.get(alert.stream, 0)
        }
        to = {each: self._channels_of(rule) for each, (_, rule) in new.items()}
        self._found = [(a, () if a.alert_id in late else to[a.alert_id]) for a, _ in new.values()]
        rows = pl.DataFrame([asdict(alert) for alert, _ in new.values()], schema=FOUND)
        recording.record(rows, to, late)

    def _channels_of(self, rule: AlertRule) -> tuple[str, ...]:
        return tuple(n for n in self._senders if rule.send is None or n in rule.send)

    @staticmethod
    def _opened(rule: AlertRule, opened: Iterable[tuple[str, str]]) -> set[str]:
        return {subject for name, subject in opened if name == rule.name}

    # -- from time to time -------------------------------------------------------------------------

    def look(self) -> None:
        """Read the rules anew and check ages and losses, if that is due.

        A store locked by another process waits for the next time.
        """
        if time.monotonic() - self._looked < _LOOK_S:
            return
        self._looked = time.monotonic()
        self._read_rules()
        try:
            marks = [*self._threshold_marks(), *self._gone()]
            if any(not transitions(m, self._opened(r, self._open)).is_empty() for r, m in marks):
                with self._writer.writing(self._load_id) as connection:
                    self._coming, self._found = {}, []
                    self._record(AlertRecord(connection, self._load_id), marks)
                self.committed()
        except StoreLockedError:
            return
        self._evaluated_now()

    def _read_rules(self) -> None:
        try:
            book = self._plan.read()
        except RailError as error:
            self._note_once(f"the alerts could not be read, those from before go on: {error}")
            return
        before = {rule.name for rule in self._book.rules}
        for rule in book.rules:
            if rule.name not in before:
                self._later[rule.name] = self._clock() - round(longest_s("spread", None))
        self._wrong, self._book, self._priced = "", book, set()

    def _note_once(self, says: str) -> None:
        if says != self._wrong:
            self._wrong = says
            self._note(says)

    def _threshold_marks(self) -> list[tuple[AlertRule, pl.DataFrame]]:
        if not self._book.rules:
            return []
        rules = [r for r in self._book.rules if r.kind in (AlertKind.STALE, AlertKind.LOSS)]
        with self._writer.store.reading() as connection:
            self._keep_streams(AlertRecord(connection, self._load_id).streams())
            if any(rule.kind is AlertKind.LOSS for rule in rules):
                self._look_for_losses(rules)
        now, found = self._clock(), []
        for rule in rules:
            values = {
                stream.key: value
                for stream in self._followed()
                if rule.matches(stream)
                and (value := self._threshold(rule, stream, now)) is not None
            }
            over = dict.fromkeys(self._opened(rule, self._open) - values.keys())
            found.append((rule, threshold_marks(values | over, rule, now)))
        return found

    def _look_for_losses(self, rules: Sequence[AlertRule]) -> None:
        if time.monotonic() - self._loss_looked >= _LOSS_S:
            self._loss_looked = time.monotonic()
            within_s = max(rule.level for rule in rules if rule.kind is AlertKind.LOSS)
            self._losses = soonest_losses(self._writer.store.ledger(), round(within_s))

    def _threshold(self, rule: AlertRule, stream: Stream, now: int) -> float | None:
        """Return a stream's age (s), or the seconds until it loses something."""
        if rule.kind is AlertKind.LOSS:
            left = self._losses.get(stream)
            return None if left is None else float(left)
        key = stream.key
        if stream.kind in (Family.PRICE, Family.SPREAD):
            newest = self._last_ts.get(key)
            since = None if newest is None else newest + self._steps.get(key, 0)
        else:
            since = self._answered.get(key)
        return float(max(0, now - (self._began_at if since is None else since)))

    def _gone(self) -> list[tuple[AlertRule, pl.DataFrame]]:
        """Return the marks that clear open alerts of removed rules."""
        names = {rule.name for rule in self._book.rules}
        table = {"kind": "stale", "older_than": 1, "send": []}
        gone = sorted({rule for rule, _ in self._open if rule not in names})
        found = []
        for rule in (AlertRule.of(table | {"name": name}) for name in gone):
            nothing = dict.fromkeys(self._opened(rule, self._open))
            found.append((rule, threshold_marks(nothing, rule, self._clock())))
        return found

    def end(self) -> None:
        """Send what waits, for a moment. The next follow sends the rest."""
        until = time.monotonic() + _ENDING_S
        for sender in self._senders.values():
            sender.end(max(0.0, until - time.monotonic()))
