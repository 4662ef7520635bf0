"""Rules of alerts: what each watches, and its levels.

Each is a table ``[[alert]]`` of ``rail.toml``. `EXAMPLE` shows every field.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, cast

from toolkit.cards import duration
from toolkit.errors import InputError
from toolkit.fields import among, check_names, switch, texts, typed
from toolkit.market import (
    EventLog,
    Family,
    SnapshotKind,
    SnapshotLog,
    SnapshotTrajectory,
    Stream,
    Trajectory,
    parse_length,
)
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.fees.fee_table import NOTIONAL, Style, check_asked

EXAMPLE = Path(__file__).with_name("example.toml").read_text(encoding="utf-8")
"""Rules of every kind with every field."""


class AlertKind(StrEnum):
    """What a rule watches."""

    SPREAD = "spread"
    FUNDING = "funding"
    EVENT = "event"
    STALE = "stale"
    LOSS = "loss"


CHANNELS = ("webhook", "chat")
"""Where alerts are sent besides the log."""

CLEAR_SHARE = 0.8
"""Where a spread or differential is over, as a share of the level of its rule, by default."""

_PRINTS = "`rail alerts example` prints rules"
_COMMON = ("name", "kind", "streams", "symbols", "send", "late")
_LEVELS = {
    AlertKind.SPREAD: ("above_bps", "clear_bps", "for", "net", "notional", "style"),
    AlertKind.FUNDING: ("above_apr_pct", "clear_apr_pct", "for"),
    AlertKind.EVENT: ("at_least_pct",),
    AlertKind.STALE: ("older_than",),
    AlertKind.LOSS: ("within",),
}
_UNITS = dict(zip(AlertKind, ("bps", "% per year", "%", "s", "s"), strict=True))
_LATE = "1h"
_KEPT = "snapshot-"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """One rule, read. ``level`` and ``clear`` are in ``unit``, times in seconds.

    >>> rule = AlertRule.of({"name": "wide", "kind": "spread", "above_bps": 50, "for": "5m"})
    >>> rule.level, rule.clear, rule.for_s, str(rule)
    (50.0, 40.0, 300, '|spread| above 50 bps for 5 min, over at 40')
    """

    name: str
    kind: AlertKind
    level: float
    clear: float
    for_s: int = 0
    streams: tuple[str, ...] = ("*",)
    symbols: tuple[str, ...] = ()
    net: bool = False
    notional: float = NOTIONAL
    style: Style = "taker"
    send: tuple[str, ...] | None = None
    late_s: int = 3_600

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str = "alert") -> Self:
        """Read a table ``[[alert]]``. Raises `InputError`, which begins with ``where``.

        >>> AlertRule.of({"name": "wide", "kind": "spread"}, "rail.toml alert")
        Traceback (most recent call last):
        toolkit.errors.InputError: rail.toml alert wide above_bps: nothing is given; allowed: ...
        """
        name = table.get("name")
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"{where} name", name, "a name of its own", advice=_PRINTS)
        here = f"{where} {name}"
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in set(AlertKind):
            raise InputError(f"{here} kind", kind, list(AlertKind), advice=_PRINTS)
        of = AlertKind(kind)
        check_names(f"{here} ({kind})", table, (*_COMMON, *_LEVELS[of]))
        level, clear = _levels(here, of, table)
        net = switch(f"{here} net", table.get("net", False))
        notional, style = table.get("notional", NOTIONAL), table.get("style", "taker")
        try:
            check_asked(FeeModel.example(), notional, style)
        except InputError as error:
            raise InputError(f"{here} {error.parameter}", error.value, error.allowed) from None
        send = table.get("send")
        return cls(
            name=name,
            kind=of,
            level=level,
            clear=clear,
            for_s=_length(f"{here} for", table["for"]) if "for" in table else 0,
            streams=_patterns(f"{here} streams", of, table.get("streams", ["*"])),
            symbols=texts(f"{here} symbols", table.get("symbols", [])),
            net=net,
            notional=float(notional),
            style=style,
            send=None if send is None else among(CHANNELS)(f"{here} send", send),
            late_s=_length(f"{here} late", table.get("late", _LATE)),
        )

    @property
    def unit(self) -> str:
        """The unit of the values that it compares."""
        return _UNITS[self.kind]

    def matches(self, stream: Stream, followed: Container[Stream] = ()) -> bool:
        """Check whether a rule watches a stream, with its legs either way round.

        A series from snapshots is watched if a pattern that begins with ``snapshot-`` matches it,
        or if another one matches its pair and the pair is not ``followed`` itself, which would be
        two alerts.

        >>> rule = AlertRule.of({"name": "a", "kind": "spread", "above_bps": 1,
        ...     "streams": ["BTC_USD:A.spot:*"]})
        >>> [rule.matches(Stream.parse(f"BTC_USD:{legs}"))
        ...  for legs in ("A.spot:B.spot", "B.spot:A.spot", "B.spot:C.spot", "A.spot")]
        [True, True, False, False]
        """
        if not _BELONGS[self.kind](stream):
            return False
        symbol = getattr(stream, "symbol", None)
        if self.symbols and symbol is not None and str(symbol) not in self.symbols:
            return False
        asked, of_kept = _told_apart(self.streams)
        if not isinstance(stream, SnapshotTrajectory):
            return stream.matches(asked, either_way=True)
        if stream.matches(of_kept, either_way=True) or stream.of is not SnapshotKind.SPREAD:
            return stream.matches(of_kept, either_way=True)
        pair = Trajectory(Family.SPREAD, stream.symbol, stream.legs)
        known = pair in followed or pair.swapped in followed
        return pair.matches(asked, either_way=True) and not known

    def __str__(self) -> str:
        """Return it in words."""
        lasting = f" for {duration(self.for_s)}" if self.for_s else ""
        if self.kind is AlertKind.EVENT:
            return f"event of {self.level:g} % or more"
        if self.kind is AlertKind.STALE:
            return f"nothing new for {duration(int(self.level))}"
        if self.kind is AlertKind.LOSS:
            return f"dropped by the archive within {duration(int(self.level))}"
        what = "|spread|" if self.kind is AlertKind.SPREAD else "|funding differential|"
        what = f"net {what}" if self.net else what
        return f"{what} above {self.level:g} {self.unit}{lasting}, over at {self.clear:g}"


def _told_apart(patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the patterns of streams, and of snapshot series."""
    found: tuple[list[str], list[str]] = ([], [])
    for pattern in patterns:
        found[pattern.startswith(_KEPT)].append(pattern)
    return found


def read_alerts(tables: object, where: str = "alert") -> tuple[AlertRule, ...]:
    """Read the tables ``[[alert]]`` of a file. Raises `InputError` for invalid ones.

    >>> read_alerts([{"name": "a", "kind": "loss", "within": "1d"}] * 2)
    Traceback (most recent call last):
    toolkit.errors.InputError: alert name: 'a' is not allowed; allowed: a name that no other rule...
    """
    if not isinstance(tables, Sequence) or not all(isinstance(each, Mapping) for each in tables):
        raise InputError(where, tables, "tables: [[alert]]", advice=_PRINTS)
    rules = tuple(AlertRule.of(cast("Mapping[str, Any]", each), where) for each in tables)
    for place, rule in enumerate(rules):
        if rule.name in {other.name for other in rules[:place]}:
            raise InputError(f"{where} name", rule.name, "a name that no other rule has")
    return rules


def _levels(here: str, kind: AlertKind, table: Mapping[str, Any]) -> tuple[float, float]:
    """Return the values from which it is in force, and at which it is over."""
    name, *others = _LEVELS[kind]
    if kind in (AlertKind.STALE, AlertKind.LOSS):
        seconds = float(_length(f"{here} {name}", table.get(name)))
        return seconds, seconds
    level: float = _above_zero(f"{here} {name}", table.get(name))
    if kind is AlertKind.EVENT:
        return level, level
    clear_name = others[0]
    at_most = typed(float, f"a number of at most {name} ({level:g})", le=level)
    return level, at_most(f"{here} {clear_name}", table.get(clear_name, CLEAR_SHARE * level))


_above_zero = typed(float, "a number above 0", advice=_PRINTS, gt=0, lt=1e9)


def _length(parameter: str, value: object) -> int:
    return parse_length(cast("str", value), parameter=parameter)


_BELONGS: dict[AlertKind, Callable[[Stream], bool]] = {
    AlertKind.SPREAD: lambda stream: stream.kind in ("spread", "snapshot-spread"),
    AlertKind.FUNDING: lambda stream: stream.kind in ("funding", "snapshot-funding"),
    AlertKind.EVENT: lambda stream: isinstance(stream, EventLog),
    AlertKind.STALE: lambda stream: isinstance(stream, Trajectory | EventLog | SnapshotLog),
    AlertKind.LOSS: lambda stream: isinstance(stream, Trajectory | EventLog),
}


def _patterns(parameter: str, kind: AlertKind, value: object) -> tuple[str, ...]:
    found = texts(parameter, value)
    if not found:
        raise InputError(parameter, value, 'one key or pattern or more, e.g. ["BTC_USDT:*"]')
    for each in found:
        if "*" in each:
            continue
        try:
            stream = Stream.parse(each)
        except InputError as error:
            raise InputError(parameter, each, error.allowed, advice=error.advice) from None
        if not _BELONGS[kind](stream):
            raise InputError(parameter, each, f"a stream that a rule of kind {kind} watches")
    return found
