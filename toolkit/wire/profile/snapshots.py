"""The items of the service's dashboards: what each has to have, and which are not understood.

A snapshot is kept as it came, so what cannot be read of it loses nothing. It must not be read as
a list without items either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.foreign import is_name
from toolkit.market import EventFamily
from toolkit.wire.exchange import UNREADABLE

ITEM_FIELDS: dict[str, dict[str, type]] = {
    "symbols": {"symbol": str, "venues": list},
    "spread": {
        "symbol": str,
        "buy_exchange": str,
        "buy_market": str,
        "sell_exchange": str,
        "sell_market": str,
        "spread_pct": float,
        "opened_at": int,
    },
    "funding": {
        "symbol": str,
        "exchange": str,
        "market": str,
        "rate": float,
        "interval_hours": float,
        "next_funding_time": int,
    },
}
"""The fields of an item, by kind of snapshot. Of the activity see `activity_of_day`."""

_DAY_S = 86_400
NULLABLE = frozenset(("opened_at", "next_funding_time"))
"""The fields that may be null."""
_OPTIONAL = frozenset(("next_funding_time",))


@dataclass(frozen=True, slots=True)
class SnapshotItems:
    """The items of a snapshot that are understood, how many are not, and why.

    ``dated`` is whether the service says when each opened: `toolkit.wire.profile.profile`.

    >>> SnapshotItems([], 2, "no opened_at").nothing
    True
    """

    understood: list[dict[str, Any]]
    odd: int = 0
    why: str = ""
    dated: bool = True

    @property
    def nothing(self) -> bool:
        """Whether nothing of it is understood. A list without items is understood."""
        return bool(self.why) and not self.understood

    @property
    def words(self) -> str:
        """What is not understood, "" where everything is."""
        if not self.why or self.nothing:
            return self.why and f"not understood: {self.why}"
        return f"{self.odd:,} of {self.odd + len(self.understood):,} not understood: {self.why}"


def snapshot_items(kind: str, document: str | bytes) -> SnapshotItems:
    """Read the items of a snapshot. One that lacks a field, or has it in another type, is odd.

    So is one with a symbol, an exchange or a market that is not printable or too long.

    >>> snapshot_items("symbols", '{"items": [{"symbol": "BTC_USD"}]}').words
    'not understood: no venues'
    >>> snapshot_items("spread", '{"rows": []}').words
    'not understood: no list of items'
    >>> snapshot_items("spread", '{"items": []}').words
    ''
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
    """Return how many documents of a day the service counts by family, None where that is unread.

    >>> window = '{"window_s": 86400, "spread": 3, "splash": 0, "funding": 1}'
    >>> [*activity_of_day(f'{{"windows": [{window}]}}').values()]
    [3, 0, 1]
    >>> activity_of_day('{"windows": []}') is None
    True
    """
    try:
        answer = msgspec.json.decode(document, type=dict[str, Any])
    except UNREADABLE:
        return None
    windows = answer.get("windows")
    for window in windows if isinstance(windows, list) else []:
        if isinstance(window, dict) and window.get("window_s") == _DAY_S:
            counts = {family: window.get(family.value) for family in EventFamily}
            if all(type(count) is int and count >= 0 for count in counts.values()):
                return counts  # type: ignore[return-value]  # whole numbers, as was just checked
    return None


def item_faults(kind: str, item: object) -> list[str]:
    """Return what is odd of an item: which fields it lacks or has in another type.

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
