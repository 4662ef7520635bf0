"""One change of an alert: its id, its words, and the body that a webhook gets."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import msgspec

from toolkit.alerts.rules import AlertKind, AlertRule
from toolkit.cards import duration
from toolkit.foreign import plain
from toolkit.market import format_ts
from toolkit.tables import AlertChange

_LONGEST_ABOUT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A change of an alert, as the table `alert` has it. ``test`` where nothing happened.

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

        ``source`` is the store's source, ``now`` the service's clock (s). The same change has the
        same id whoever finds it. That of an event has no time in it, since a document may come
        again with another.
        """
        when = () if rule.kind is AlertKind.EVENT else (mark["ts"],)
        facts = (source, rule.name, mark["subject"], mark["change"], *when)
        return cls(
            alert_id=_identity("\n".join(map(str, facts))),
            rule=rule.name,
            kind=rule.kind.value,
            subject=mark["subject"],
            stream=mark["stream"],
            about=plain(str(mark["about"]), _LONGEST_ABOUT),
            change=mark["change"],
            ts=mark["ts"],
            found_at=now,
            value=mark["value"],
            level=rule.level,
            unit=rule.unit,
            words=_words(rule, mark),
        )

    @classmethod
    def test_of(cls, rule: AlertRule, now: int) -> Self:
        """Make an alert that is marked as a test. Each has an id of its own."""
        says = "this is how an alert of this rule arrives; nothing has happened"
        return cls(
            alert_id=_identity(uuid.uuid4().hex),
            rule=rule.name,
            kind=rule.kind.value,
            subject="test",
            stream="test",
            about="test",
            change=AlertChange.OPENED.value,
            ts=now,
            found_at=now,
            value=None,
            level=rule.level,
            unit=rule.unit,
            words=f"TEST {rule.name}: {says}",
            test=True,
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


def _identity(facts: str) -> str:
    return f"alert_{hashlib.blake2b(facts.encode(), digest_size=12).hexdigest()}"


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
