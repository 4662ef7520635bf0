"""Dashboards of the service: which items can be read, and spread and funding items as rows.

Each answer repeats the names of hundreds of pairs. So table columns take what they can, and the
rest is a document. Both together give back the same JSON value.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.errors import InputError
from toolkit.foreign import is_name
from toolkit.market import EventFamily, Leg, SnapshotKind, SnapshotTrajectory, Symbol
from toolkit.tables import SNAPSHOT_SERIES
from toolkit.wire.exchange import UNREADABLE, decoded
from toolkit.wire.findings import Finding

_LEG_OF = ("exchange", "market")
ITEM_FIELDS: dict[str, dict[str, type]] = {
    "symbols": {"symbol": str, "venues": list},
    "spread": dict.fromkeys(
        ("symbol", *(f"{side}_{part}" for side in ("buy", "sell") for part in _LEG_OF)), str
    )
    | {"spread_pct": float, "opened_at": int},
    "funding": dict.fromkeys(("symbol", *_LEG_OF), str)
    | {"rate": float, "interval_hours": float, "next_funding_time": int},
}
"""The fields of an item, by kind of snapshot. Of the activity see `activity_of_day`."""

_DAY_S = 86_400
NULLABLE = frozenset(("opened_at", "next_funding_time"))
"""The fields that may be null."""
_OPTIONAL = frozenset(("next_funding_time",))


@dataclass(frozen=True, slots=True)
class SnapshotItems:
    """The readable items of a snapshot, the number of others, and why.

    ``dated``: the service sends when each opened (`toolkit.wire.profile.shapes`).

    >>> SnapshotItems([], 2, "no opened_at").nothing
    True
    """

    understood: list[dict[str, Any]]
    odd: int = 0
    why: str = ""
    dated: bool = True

    @property
    def nothing(self) -> bool:
        """Whether nothing of it can be read. A list without items can."""
        return bool(self.why) and not self.understood

    @property
    def words(self) -> str:
        """What cannot be read, "" if everything can."""
        if not self.why or self.nothing:
            return self.why and f"not understood: {self.why}"
        return f"{self.odd:,} of {self.odd + len(self.understood):,} not understood: {self.why}"


def snapshot_items(kind: str, document: str | bytes) -> SnapshotItems:
    """Read the items of a snapshot. One with a missing or mistyped field is odd.

    So is one with a symbol, exchange or market that is not printable or too long.

    >>> snapshot_items("symbols", '{"items": [{"symbol": "BTC_USD"}]}').words
    'not understood: no venues'
    """
    try:
        answer = msgspec.json.decode(document)
    except UNREADABLE:
        return SnapshotItems([], 0, "no JSON")
    if kind not in ITEM_FIELDS:
        return SnapshotItems([], 0, "" if activity_of_day(document) else "no counts of a day")
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        return SnapshotItems([], 0, "no list of items")
    understood, faults = [], Counter[str]()
    for item in items:
        found = item_faults(kind, item)
        faults.update(found)
        if not found:
            understood.append(item)
    why = ", ".join(fault for fault, _ in faults.most_common(4))
    dated = "opened_at" not in answer.get("not_said", ())
    return SnapshotItems(understood, len(items) - len(understood), why, dated)


def activity_of_day(document: str | bytes) -> dict[EventFamily, int] | None:
    """Return the service's count of a day's documents per family, None if it is unreadable.

    >>> window = '{"window_s": 86400, "spread": 3, "splash": 0, "funding": 1}'
    >>> [*activity_of_day(f'{{"windows": [{window}]}}').values()]
    [3, 0, 1]
    """
    windows = (decoded(document, dict[str, Any]) or {}).get("windows")
    for window in windows if isinstance(windows, list) else []:
        if isinstance(window, dict) and window.get("window_s") == _DAY_S:
            counts = {family: window.get(family.value) for family in EventFamily}
            if all(type(count) is int and count >= 0 for count in counts.values()):
                return counts  # type: ignore[return-value]  # whole numbers, as was just checked
    return None


def item_faults(kind: str, item: object) -> list[str]:
    """Return what is odd about an item: missing and mistyped fields.

    >>> item_faults("symbols", {"symbol": 1})
    ['symbol of another type', 'no venues']
    """
    if not isinstance(item, dict):
        return ["items that are not objects"]
    faults = [
        f"no {name}" if name not in item else f"{name} of another type"
        for name, wanted in ITEM_FIELDS[kind].items()
        if not _fits(item.get(name, None if name in _OPTIONAL else ...), wanted, name)
    ]
    names = [name for name, wanted in ITEM_FIELDS[kind].items() if wanted is str]
    return faults or [f"{name} that is not a name" for name in names if not is_name(item[name])]


def _fits(value: object, wanted: type, name: str) -> bool:
    if value is None:
        return name in NULLABLE
    if wanted in (str, list):
        return isinstance(value, wanted)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (wanted is float or abs(value) < 2**63)  # type: ignore[arg-type]  # a number


SNAPSHOT_SIDES = {SnapshotKind.SPREAD: ("buy_", "sell_"), SnapshotKind.FUNDING: ("",)}
"""The kinds whose items become rows, with what stands before the names of each leg's fields."""
_COLUMNS: dict[SnapshotKind, dict[str, type]] = {
    kind: {
        column.name: int if column.type == "BIGINT" else float
        for column in SNAPSHOT_SERIES[f"snapshot-{kind}"].values
        if column.name != "extra"
    }
    for kind in SNAPSHOT_SIDES
}
"""The fields that columns take, by kind, each with the type of its column."""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """One item of an answer: its series, its place in the list, its values.

    ``extra`` has fields without a column, as JSON, None for none.
    """

    stream: SnapshotTrajectory
    place: int
    values: Mapping[str, float | int | None]
    extra: str | None


@dataclass(frozen=True, slots=True)
class SplitSnapshot:
    """An answer in two parts: rows, and a document with the rest.

    ``fields`` are those of each row's item, in order, None if the document is the whole answer.
    ``understood`` is whether the answer is a list of readable pairs; otherwise no pair is known.
    ``findings`` name odd items.
    """

    document: str
    rows: Sequence[SnapshotRow] = ()
    fields: Sequence[str] | None = None
    understood: bool = False
    findings: Mapping[Finding, int] = field(default_factory=dict)


def split_snapshot(kind: SnapshotKind, document: bytes) -> SplitSnapshot:
    """Split an answer into rows and the rest. Other kinds than spread and funding are all rest.

    An item that names its pair or leg is a row; a value that does not fit its column exactly is in
    ``extra``. Items with an unreadable or repeated pair, or without a field of the first, stay in
    the document.

    >>> item = {"symbol": "A_B", "exchange": "X", "market": "futures", "rate": 0.5, "mood": "calm",
    ...         "interval_hours": 8, "next_funding_time": 9}
    >>> sent = msgspec.json.encode({"ts": 7, "items": [item, "what"]})
    >>> split = split_snapshot(SnapshotKind.FUNDING, sent)
    >>> split.document, [row.stream.key for row in split.rows], split.rows[0].extra
    ('{"ts":7,"items":[[1,"what"]]}', ['snapshot-funding/A_B:X.futures'], '{"mood":"calm"}')
    """
    whole = document.decode()
    if kind not in SNAPSHOT_SIDES:
        return SplitSnapshot(whole)
    try:
        answer = msgspec.json.decode(document)
    except UNREADABLE:
        return SplitSnapshot(whole, findings=_findings(kind, {"no JSON": 1}))
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        return SplitSnapshot(whole, findings=_findings(kind, {"no list of items": 1}))
    rows, fields, left, faults = _rows(kind, items)
    findings = _findings(kind, faults)
    if fields is None:
        return SplitSnapshot(whole, findings=findings, understood=not items)
    rest = msgspec.json.encode(answer | {"items": left}).decode()
    return SplitSnapshot(rest, rows, fields, understood=True, findings=findings)


def _rows(
    kind: SnapshotKind, items: Sequence[object]
) -> tuple[list[SnapshotRow], list[str] | None, list[tuple[int, object]], Counter[str]]:
    rows: dict[SnapshotTrajectory, SnapshotRow] = {}
    fields: list[str] | None = None
    left: list[tuple[int, object]] = []
    faults = Counter[str]()
    names = ["symbol", *(f"{side}{part}" for side in SNAPSHOT_SIDES[kind] for part in _LEG_OF)]
    known = {*names, *_COLUMNS[kind], *(["spread_type"] if kind is SnapshotKind.SPREAD else [])}
    for place, item in enumerate(items):
        found = item_faults(kind, item)
        stream = _stream(kind, *_texts(item, names)) if isinstance(item, dict) else None
        if not found and stream is None:
            found = ["legs that are none"]
        elif stream in rows:
            found = [*found, "the same pair twice"]
        faults.update(found)
        if not isinstance(item, dict) or stream is None or stream in rows:
            left.append((place, item))
            continue
        own = [name for name in item if name in known]
        fields = own if fields is None else fields
        row = _row(kind, stream, place, item, fields)
        if set(own) != set(fields):
            left.append((place, item))
        rows[stream] = row
    return list(rows.values()), fields, left, faults


def _row(
    kind: SnapshotKind,
    stream: SnapshotTrajectory,
    place: int,
    item: Mapping[str, Any],
    fields: Sequence[str],
) -> SnapshotRow:
    values = {name: _exact(item.get(name), held) for name, held in _COLUMNS[kind].items()}
    given = _given(kind, stream, values, fields)
    fits = {n for n, v in item.items() if n in given and given[n] == v and type(v) is not bool}
    extra = {name: value for name, value in item.items() if name not in fits}
    return SnapshotRow(
        stream, place, values, msgspec.json.encode(extra).decode() if extra else None
    )


def rebuilt_snapshot(
    kind: SnapshotKind, document: str, fields: Sequence[str], rows: Sequence[SnapshotRow]
) -> str:
    """Return the answer that was split: the same JSON value.

    >>> sent = (b'{"items":[{"symbol":"A_B","exchange":"X","market":"futures","rate":0.5,'
    ...         b'"interval_hours":8.0,"next_funding_time":null}]}')
    >>> split = split_snapshot(SnapshotKind.FUNDING, sent)
    >>> back = rebuilt_snapshot(SnapshotKind.FUNDING, split.document, split.fields, split.rows)
    >>> back.encode() == sent
    True
    """
    answer = msgspec.json.decode(document)
    items: dict[int, object] = {
        row.place: _given(kind, row.stream, row.values, fields)
        | (msgspec.json.decode(row.extra) if row.extra else {})
        for row in rows
    }
    items |= dict(answer["items"])
    answer["items"] = [items[place] for place in sorted(items)]
    return msgspec.json.encode(answer).decode()


def _given(
    kind: SnapshotKind,
    stream: SnapshotTrajectory,
    values: Mapping[str, float | int | None],
    fields: Sequence[str],
) -> dict[str, object]:
    """Return an item's fields that series and row give back."""
    known: dict[str, object] = {"symbol": str(stream.symbol), **values}
    for side, leg in zip(SNAPSHOT_SIDES[kind], stream.legs, strict=True):
        known |= {f"{side}exchange": leg.exchange, f"{side}market": leg.market.value}
    if kind is SnapshotKind.SPREAD:
        known["spread_type"] = stream.spread_type
    return {name: known[name] for name in fields}


def _texts(item: Mapping[str, Any], names: Sequence[str]) -> list[str | None]:
    """Return the texts under these names, None for another value: of a list there is no hash."""
    return [value if isinstance(value := item.get(name), str) else None for name in names]


@functools.lru_cache(maxsize=4096)
def _stream(kind: SnapshotKind, symbol: object, *legs: object) -> SnapshotTrajectory | None:
    """Return the series of a pair or leg, None for invalid names."""
    if not isinstance(symbol, str) or not all(isinstance(name, str) for name in legs):
        return None
    try:
        named = tuple(Leg.parse(f"{e}.{m}") for e, m in zip(legs[::2], legs[1::2], strict=True))
        return SnapshotTrajectory(kind, Symbol.parse(symbol), named)
    except InputError:
        return None


def _exact(value: object, held: type) -> float | int | None:
    """Return a number as its column holds it, None if that differs."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if held is int:
        return int(value) if value == int(value) and abs(value) < 2**63 else None
    try:
        return float(value) if float(value) == value else None
    except OverflowError:
        return None


def _findings(kind: SnapshotKind, faults: Mapping[str, int]) -> dict[Finding, int]:
    return {Finding("odd_item", f"snapshot/{kind}", why): n for why, n in faults.items()}
