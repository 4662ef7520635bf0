"""Channels that alerts are sent to besides the log: a signed webhook, and chat or mail.

Addresses and secrets come from the environment, or from files that it names, and are never shown:

=========================  ====================================================================
variable                   what it is
=========================  ====================================================================
``RAIL_ALERT_WEBHOOK``     an address that takes POST: https, or http on this machine
``RAIL_ALERT_SECRET``      what signs it: ``whsec_`` and the base64 of 24 to 64 bytes
``RAIL_ALERT_CHAT``        addresses of apprise, with spaces between, for chat and mail
=========================  ====================================================================

Each with ``_FILE`` at its end, as in ``RAIL_ALERT_WEBHOOK_FILE``, names a file with the value.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import urlsplit

import msgspec
import polars as pl

from toolkit.alerts.rules import AlertKind, AlertRule
from toolkit.cards import duration
from toolkit.client.transport import post
from toolkit.errors import InputError, StoreError, StoreLockedError, UnreachableError, needs_extra
from toolkit.foreign import plain
from toolkit.market import format_ts
from toolkit.store import StoreWriter
from toolkit.store.writing.alerts import claim, give_up, settle, waiting_deliveries
from toolkit.tables import AlertChange, AlertOutcome
from toolkit.wire.address import is_loopback
from toolkit.wire.secrets import ENVIRONMENT
from toolkit.wire.signatures import StandardWebhooks

_LONGEST_ABOUT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A change of an alert, as in the table `alert`. ``test`` if nothing happened.

    >>> rule = AlertRule.of({"name": "wide", "kind": "spread", "above_bps": 50})
    >>> Alert.test_of(rule, 0).words
    'TEST wide: this is how an alert of this rule arrives; nothing has happened'
    """

    alert_id: str
    rule: str
    kind: str
    subject: str
    stream: str
    about: str
    change: str
    ts: int
    found_at: int
    value: float | None
    level: float
    unit: str
    words: str
    test: bool = False

    @classmethod
    def of(cls, rule: AlertRule, source: str, now: int, mark: Mapping[str, Any]) -> Self:
        """Make the change of a mark of `toolkit.alerts.evaluation.transitions`.

        ``now`` is the service's clock (s). The id of a change is reproducible. That of an event has
        no time in it, since a document may come again with another.
        """
        when = () if rule.kind is AlertKind.EVENT else (mark["ts"],)
        facts = (source, rule.name, mark["subject"], mark["change"], *when)
        about = plain(str(mark["about"]), _LONGEST_ABOUT)
        return cls._made(
            rule, now, "\n".join(map(str, facts)), _words(rule, mark), mark, about=about
        )

    @classmethod
    def test_of(cls, rule: AlertRule, now: int) -> Self:
        """Make an alert that is marked as a test, with its own id."""
        says = "this is how an alert of this rule arrives; nothing has happened"
        mark = dict.fromkeys(("subject", "stream", "about"), "test")
        words, found = f"TEST {rule.name}: {says}", {"change": AlertChange.OPENED.value, "ts": now}
        return cls._made(rule, now, uuid.uuid4().hex, words, mark, **found, value=None, test=True)

    @classmethod
    def _made(
        cls,
        rule: AlertRule,
        now: int,
        facts: str,
        words: str,
        mark: Mapping[str, Any],
        **changed: Any,
    ) -> Self:
        """Make a change with a hash of ``facts`` as id."""
        names = ("subject", "stream", "about", "change", "ts", "value")
        return cls(
            alert_id=f"alert_{hashlib.blake2b(facts.encode(), digest_size=12).hexdigest()}",
            rule=rule.name,
            kind=rule.kind.value,
            found_at=now,
            level=rule.level,
            unit=rule.unit,
            words=words,
            **({name: mark[name] for name in names if name in mark} | changed),
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a row of the store."""
        return cls(**{name: row[name] for name in cls.__slots__ if name != "test"})

    @property
    def body(self) -> bytes:
        """The body of a webhook: a JSON object with type, timestamp and data."""
        kind = "alert.test" if self.test else f"alert.{self.change}"
        document = {"type": kind, "timestamp": format_ts(self.ts), "data": asdict(self)}
        return msgspec.json.encode(document)


def _words(rule: AlertRule, mark: Mapping[str, Any]) -> str:
    about, value = plain(str(mark["about"]), _LONGEST_ABOUT), mark["value"]
    over = mark["change"] == AlertChange.CLEARED
    if rule.kind is AlertKind.EVENT:
        size = "" if value is None else f" of {value:.4g} %"
        says = f"{about}{size} is over" if over else f"{about}{size}"
    elif rule.kind is AlertKind.STALE:
        age = duration(round(value or 0))
        says = f"nothing new of {about} for {age}"
        says = f"{about} is not old any more" if over else says
    elif rule.kind is AlertKind.LOSS:
        left = duration(round(value or 0))
        says = f"of {about} the archive drops what is not held in {left}"
        says = f"of {about} nothing is lost soon any more" if over else says
    else:
        lasting = f" for {duration(rule.for_s)}" if rule.for_s and not over else ""
        bound = f"{rule.clear:g} or less" if over else f"above {rule.level:g}{lasting}"
        says = f"{about} at {value:.4g} {rule.unit}, {bound}"
    return f"{rule.name}: {says}, {format_ts(mark['ts'])}"


_Result = TypeVar("_Result")


_ANSWER_S = 10.0
_AGAIN = {408, 425, 429}


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of one attempt: whether it was taken, else whether to retry."""

    taken: bool
    reason: str | None = None
    again: bool = False


class Channel(Protocol):
    """A place that alerts are sent to, by the ``name`` that is in a rule's ``send``.

    ``waits_s`` are the waits before each further attempt, the last of them before all others, for a
    receiver that recognises a repeat. ``kept_s`` is how long an alert may wait (s).
    """

    name: str
    waits_s: tuple[float, ...]
    kept_s: float

    def send(self, alert: Alert) -> Sent:
        """Make one attempt. A receiver's fault is not raised."""


class Webhook:
    """An address that takes POST, signed by Standard Webhooks.

    ``webhook-id`` is the alert's own id, by which a receiver recognises a repeat. An answer of 2xx
    takes it. Without an answer, and after 408, 425, 429 and 5xx, it is retried for a day.

    >>> Webhook("https://example.org/secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    Webhook()
    """

    name = "webhook"
    waits_s: tuple[float, ...] = (1.0, 5.0, 15.0, 60.0, 300.0)
    kept_s: float = 86_400.0

    def __init__(self, url: str, secret: str) -> None:
        parts = urlsplit(url)
        if not (parts.scheme == "https" and parts.hostname) and not (
            parts.scheme == "http" and is_loopback(parts.hostname)
        ):
            allowed = "an address with https://, or http:// of this machine"
            raise InputError("RAIL_ALERT_WEBHOOK", "***", allowed)
        self._url = url
        try:
            self._scheme = StandardWebhooks([secret])
        except InputError as error:
            raise InputError("RAIL_ALERT_SECRET", "***", error.allowed) from None

    def __repr__(self) -> str:
        return "Webhook()"

    def send(self, alert: Alert) -> Sent:
        """Make one attempt. See `Channel.send`."""
        body = alert.body
        headers = self._scheme.headers(alert.alert_id, body)
        headers |= {"Content-Type": "application/json"}
        try:
            status = post(self._url, headers, body, within_s=_ANSWER_S)
        except UnreachableError as error:
            return Sent(taken=False, reason=str(error), again=True)
        if 200 <= status < 300:
            return Sent(taken=True)
        again = status in _AGAIN or status >= 500
        return Sent(taken=False, reason=f"status {status}", again=again)


class ChatChannel:
    """Chat and mail, by addresses of apprise. It is tried once: a repeat would be seen twice.

    No error and no log shows the addresses, which hold secrets.

    >>> ChatChannel("nothing://like/that")
    Traceback (most recent call last):
    toolkit.errors.InputError: RAIL_ALERT_CHAT: '***' is not allowed; allowed: addresses of ...
    """

    name = "chat"
    waits_s: tuple[float, ...] = ()
    kept_s: float = 3_600.0

    def __init__(self, urls: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of what it imports itself
            with needs_extra("alerts"):
                import apprise  # noqa: PLC0415 - a large package, for those who use it
            logging.getLogger("apprise").disabled = True  # it logs addresses, as does the next
            logging.getLogger("urllib3.connectionpool").setLevel(logging.WARNING)
            self._to = apprise.Apprise()
            self._plain = apprise.NotifyFormat.TEXT
            known = all(self._to.add(url) for url in urls.split())
        if not known:
            allowed = "addresses of apprise with spaces between, e.g. slack://..., mailto://..."
            raise InputError("RAIL_ALERT_CHAT", "***", allowed)

    def __repr__(self) -> str:
        return "ChatChannel()"

    def send(self, alert: Alert) -> Sent:
        """Send it to each address. It is taken if each took it."""
        taken = self._to.notify(title=alert.rule, body=alert.words, body_format=self._plain)
        reason = None if taken else "an address did not take it"
        return Sent(taken=bool(taken), reason=reason)


def read_channels(environment: Mapping[str, str] = ENVIRONMENT) -> dict[str, Channel]:
    """Return the channels that the environment sets up, by name.

    Raises `InputError`, without the value, for an unusable address or secret or an unreadable file.

    >>> read_channels({})
    {}
    >>> read_channels({"RAIL_ALERT_WEBHOOK": "https://example.org"})
    Traceback (most recent call last):
    toolkit.errors.InputError: RAIL_ALERT_SECRET: nothing is given; allowed: whsec_ and the ...
    """
    found: dict[str, Channel] = {}
    url = _value(environment, "RAIL_ALERT_WEBHOOK")
    if url:
        secret = _value(environment, "RAIL_ALERT_SECRET")
        if not secret:
            allowed = "whsec_ and the base64 of 24 to 64 bytes, which sign the webhook"
            raise InputError("RAIL_ALERT_SECRET", None, allowed)
        found["webhook"] = Webhook(url, secret)
    if chat := _value(environment, "RAIL_ALERT_CHAT"):
        found["chat"] = ChatChannel(chat)
    return found


def _value(environment: Mapping[str, str], name: str) -> str:
    """Return a variable's value, or that in the file of its _FILE variant."""
    if value := environment.get(name, "").strip():
        return value
    if not (path := environment.get(f"{name}_FILE", "").strip()):
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text"
        raise InputError(f"{name}_FILE", path, "a file with the value", advice=str(why)) from None


_MOST_WAITING = 1_000
"""Alerts that wait for one channel. Of more the oldest are given up."""

_MISSED_IN_A_ROW = 3
"""After so many that the receiver did not take, it is away, and the rest wait for it too."""


class AlertSender:
    """The delivery of what waits in the store for one channel, the oldest first.

    Each delivery is claimed in the store before, and its outcome stored after. With ``waits_s`` a
    channel delivers at least once: what was not taken, or was in flight when the process ended, is
    retried with the same id, for ``kept_s`` at most. Others deliver at most once.
    """

    def __init__(
        self,
        channel: Channel,
        writer: StoreWriter,
        note: Callable[[str], object],
        *,
        most: int = _MOST_WAITING,
    ) -> None:
        self.name = channel.name
        self._most = most
        self._channel = channel
        self._writer = writer
        self._note = note
        self._away = False
        self._woken, self._ending, self._abandoned = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._run, name=f"rail-{self.name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Send what was stored as waiting meanwhile."""
        self._woken.set()

    def end(self, within_s: float) -> None:
        """Send what waits, for at most so long (s). The next follow sends the rest."""
        self._ending.set()
        self._woken.set()
        self._thread.join(within_s)
        self._abandoned.set()

    def _run(self) -> None:
        missed = 0
        while not self._abandoned.is_set():
            self._woken.clear()
            ends = self._ending.is_set()
            if ends and self._away:
                return
            try:
                left = self._send_waiting()
            except StoreError as error:
                left = True
                self._note(f"alerts by {self.name} wait in the store: {error}")
            if ends:
                return
            missed = missed + 1 if left else 0
            waits_s = self._channel.waits_s or (60.0,)
            self._woken.wait(waits_s[min(missed, len(waits_s)) - 1] if left else None)

    def _send_waiting(self) -> bool:
        """Send what waits. Return whether to retry some of it."""
        rows = self._patiently(lambda: waiting_deliveries(self._writer.store, self.name))
        if rows is None:
            return False
        rows, left, missed = self._without_late(rows), False, 0
        for row in rows.iter_rows(named=True):
            if self._abandoned.is_set():
                break
            again = self._deliver(Alert.from_row(row), row["attempts"] + 1)
            left, missed = left or again, missed + 1 if again else 0
            if missed == _MISSED_IN_A_ROW:
                break
        return left

    def _without_late(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Give up what waited too long or behind too many, and return the rest."""
        kept_s = self._channel.kept_s
        is_old = pl.col("recorded_at") < time.time() - kept_s
        young = rows.remove(is_old)
        for late, why in (
            (rows.filter(is_old), f"waited for more than {duration(round(kept_s))}"),
            (young.head(-self._most), f"more than {self._most:,} waited"),
        ):
            if not late.is_empty():
                ids = late["alert_id"].to_list()
                self._patiently(lambda: give_up(self._writer, ids, self.name, why))  # noqa: B023 - called at once
        return young.tail(self._most)

    def _deliver(self, alert: Alert, attempts: int) -> bool:
        """Make one attempt, and return whether to retry."""
        if not self._patiently(lambda: claim(self._writer, alert.alert_id, self.name)):
            return False
        sent = self._attempt(alert)
        again = sent.again and not sent.taken and bool(self._channel.waits_s)
        outcome = AlertOutcome.WAITING if again else AlertOutcome.FAILED
        if sent.taken:
            outcome = AlertOutcome.DELIVERED
            if self._away:
                self._note(f"alerts by {self.name} are taken again")
        elif not again:
            self._note(f"alert {alert.rule} was not delivered by {self.name}: {sent.reason}")
        elif not self._away:
            self._note(f"alerts by {self.name} wait until it takes them: {sent.reason}")
        self._away = again
        self._patiently(
            lambda: settle(
                self._writer,
                alert.alert_id,
                self.name,
                outcome,
                attempts=attempts,
                reason=sent.reason,
            )
        )
        return again

    def _attempt(self, alert: Alert) -> Sent:
        try:
            return self._channel.send(alert)
        except Exception as error:  # noqa: BLE001 - a fault of a channel is a failed delivery
            return Sent(taken=False, reason=type(error).__name__)

    def _patiently(self, use: Callable[[], _Result]) -> _Result | None:
        """Use the store, however long another process locks it."""
        while True:
            try:
                return use()
            except StoreLockedError:
                if self._abandoned.is_set():
                    return None
