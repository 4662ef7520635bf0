"""Meaning of each kind of finding, and the profile line that corrects it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.cards import counted, some
from toolkit.wire.findings import Finding
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import BUILT_IN, Profile

_FIELD = '[{section}] fields.{column} = {{ wire = "...", unit = "..." }}'
_UNIT = '[{section}] fields.{column} = {{ unit = "..." }}'
_SIGN = "[{section}] fields.{column} = {{ reversed = true }}"
_PLACES = '[{section}] paths.{column} = ["..."]'
_NEXT = '[{section}] next = "..."'
_KEY = '[{section}] key = ["ts", "..."]'
_SIZE = "[limits] document_bytes = 65536"
_MARKET = '[streams] market = "/..."'


@dataclass(frozen=True, slots=True)
class Words:
    """The meaning of a kind of finding and its profile line, "" for none.

    ``of_documents`` is the line where the place is an event log.
    """

    means: str
    profile: str = ""
    of_documents: str = ""


WORDS: Mapping[str, Words] = {
    # the schemas document
    "tool_missing": Words(
        "the service does not list a tool; the built-in names are used",
        '[tools] price_history = "..."',
    ),
    "schemas_missing": Words("the service has no schemas that can be read; the profile is used"),
    "source_missing": Words("the service does not name its source; its address is used instead"),
    "route_unusable": Words(
        "the declared path of a route is unusable", '[{section}] path = "/..."'
    ),
    "seconds_unreadable": Words(
        "a declared depth or delay is not a number of seconds", "[{section}] retention_s = 604800"
    ),
    "paging_differs": Words("the declared way of paging is not one we know; it is not followed"),
    "field_missing": Words("a field is not there; its column is null", _FIELD),
    "field_unknown": Words(
        "a field is taken by no column; its values are kept in extra",
        '[{section}] fields.COLUMN = {{ wire = {wire}, unit = "..." }}',
    ),
    "unit_unusable": Words("a unit that cannot be converted; the values are kept in extra", _UNIT),
    "unit_converted": Words("a field comes in another unit and is converted"),
    "key_unusable": Words("the declared key names what no row has", _KEY),
    "ties_allowed": Words("rows may share a time by the declared key; each is kept"),
    "sign_unclear": Words("the declared sign is not understood; ours is assumed", _SIGN),
    "sign_reversed": Words("a field has the opposite sign by its declaration and is turned"),
    # the pages of histories
    "not_json": Words("a value is not JSON, such as NaN or half a surrogate pair; it is null"),
    "doubled_field": Words("an object has a field twice; the last value counts"),
    "row_without_time": Words("a row shows no time; it is kept here alone", _FIELD),
    "interval_missing": Words(
        "a rate of a fixed time comes without the hours of its interval, and is null; "
        "the profile can name the field of the hours",
        _UNIT,
    ),
    "type_changed": Words(
        "a value has another type than its column, which is null there; it may be text",
        '[{section}] numbers = "text"',
        _PLACES,
    ),
    "items_renamed": Words("the rows are under another name", '[{section}] items = "..."'),
    "next_missing": Words("a page does not name where the next begins", _NEXT),
    "next_in_ms": Words("where the next page begins is in milliseconds; it is converted"),
    "next_unreadable": Words("where the next page begins is not a time; the rows tell it", _NEXT),
    "lost_unreadable": Words("what the source says it lost can't be read; nothing is made of it"),
    "time_cut": Words("times have parts of a second, which are left out"),
    "key_broken": Words("different rows share a time although the key is ts; each is kept", _KEY),
    "empty_page_says": Words(
        "a page without rows says something that is neither of success nor an error; it is taken "
        "as empty; the profile can say which value means that all is well",
        'ok = {{ place = "...", value = 0 }}',
    ),
    "row_too_large": Words("the unknown fields of a row are too large to keep", _SIZE),
    "price_not_positive": Words(
        "a price is 0 or less; it is kept as sent, and for statistics it is null", _FIELD
    ),
    "sign_disagrees": Words("a value has the opposite sign of what its legs give", _SIGN),
    "value_disagrees": Words("a value is not what its legs give", _UNIT),
    # the event logs and their documents
    "more_without_more": Words("an empty page promises more; it is taken as the last"),
    "paging_unnamed": Words(
        "a page names neither a cursor nor whether there is more", '[{section}] more = "..."'
    ),
    "outside_window": Words(
        "documents came from outside the window; they are left out",
        '[{section}] parameters = {{ start_time = "...", end_time = "..." }}',
    ),
    "not_newest_first": Words("a page is not in the order of time; all of it is kept"),
    "without_time": Words("a document shows no time; it is kept here alone", "", _PLACES),
    "not_a_name": Words("a value of a document is not a name; its column is null", "", _PLACES),
    "out_of_range": Words("a number of a document is too large; its column is null", "", _PLACES),
    "document_too_large": Words("a document is too large to keep", _SIZE, _SIZE),
    "document_unreadable": Words(
        "what came in an event log or its stream is not a document; it is left out",
        '[streams] events.spread = "/..."',
        '[streams] events.spread = "/..."',
    ),
    "versions_not_kept": Words(
        "an event came in more versions than are kept; a field may differ at each delivery",
        '[events.spread] volatile = ["trace", "..."]',
    ),
    # symbols and snapshots
    "listing_cut": Words("the listing of symbols is cut"),
    "listing_unstated": Words("nothing shows whether the listing of symbols is whole"),
    "symbol_unreadable": Words("a symbol of the listing is not BASE_QUOTE; it is left out"),
    "listing_unreadable": Words(
        "the listing of symbols does not show the keys that were asked for; they were asked for "
        "as they are",
        '[listing] legs = "..."',
    ),
    "legs_missing": Words("a symbol of the listing shows no legs", '[listing] legs = "..."'),
    "leg_unreadable": Words(
        "a text is not a leg, which is an exchange and a market (spot, futures or dex); "
        "it is left out of the listing, and null in a document",
        '[spelling] markets = {{ futures = "..." }}',
        '[{section}] leg = "{{exchange}}:{{market}}"',
    ),
    "odd_item": Words("items of a snapshot are not understood; they are kept as they came"),
    "snapshot_refused": Words(
        "a snapshot was refused and is asked for no more", '[snapshots] spread = "/..."'
    ),
    "snapshot_missed": Words("a snapshot did not come"),
    # what happens while it is followed
    "clock_jumped": Words("the service's clock jumped from the one before"),
    "record_unreadable": Words(
        "a message of a subscription is not a row", '[streams] fields.item = "..."'
    ),
    "message_unreadable": Words("a message of the data socket is not an object", _MARKET),
    "id_unknown": Words(
        "a message of the data socket names none of our ids", '[streams] fields.id = "..."'
    ),
    "stream_refused": Words("a stream was refused; its archive is asked instead", _MARKET),
    "subscription_refused": Words(
        "a subscription was refused; the archive is asked", '[streams] channels.price = "..."'
    ),
    "refused": Words("a stream that the rules name was refused"),
    "sweep_failed": Words("the archive could not be asked; it is asked again"),
    "rules_unread": Words("the rules could not be read anew; those before hold"),
    "store_locked": Words("another process held the store; the load waited"),
}
"""The words of each kind. ``{section}``, ``{wire}`` and ``{column}`` are those of its place."""

_NO_PLACE = {"section": "history.FAMILY", "wire": "...", "column": "COLUMN"}


def as_rows(
    findings: Iterable[tuple[Finding, int]], profile: Profile = BUILT_IN
) -> list[dict[str, object]]:
    """Return findings as the store keeps them, each with its place in the profile.

    ``section`` is that of the profile's file, ``wire`` the service's field name and ``column``
    ours, "" for none. A finding outside of histories and event logs has none of the three.

    >>> as_rows([(Finding("late", "/p", "by an hour"), 2)])
    [{'kind': 'late', 'where': '/p', 'says': 'by an hour', 'times': 2}]
    """
    return [
        {"kind": each.kind, "where": each.where, "says": each.says, "times": times}
        | _place(each.where, profile)
        for each, times in findings
    ]


def explained(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line per kind of finding: meaning, count, first example, profile line.

    ``findings`` are rows of `as_rows`. An unknown kind, of a later version, is shown by its name.

    >>> found = {"kind": "field_missing", "where": "/api/v1/data/history/price.volume",
    ...          "says": "in 3 of 9 rows", "times": 2}
    >>> explained([found])
    ['a field is not there; its column is null (field_missing, 2 times); first: ...']
    >>> explained([found])[0].partition("; profile: ")[2]
    '[history.price] fields.volume = { wire = "...", unit = "..." }'
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for each in findings:
        kinds.setdefault(str(each["kind"]), []).append(each)
    return [_line(kind, of_kind) for kind, of_kind in kinds.items()]


def _line(kind: str, findings: list[Mapping[str, Any]]) -> str:
    first, *others = findings
    words = WORDS.get(kind, Words(kind))
    times = counted(sum(int(each.get("times", 1)) for each in findings), "time")
    where, says = str(first.get("where", "")), str(first.get("says", ""))
    places = dict.fromkeys(str(each.get("where", "")) for each in others) | {where: None}
    del places[where]
    write = _entry(words, first)
    parts = [
        f"{words.means} ({f'{kind}, {times}' if kind in WORDS else times})",
        f"first: {': '.join(part for part in (where, says) if part) or 'not kept'}",
        f"also: {some(list(places))}" if places else "",
        f"profile: {write}" if write else "nothing to write" * (kind in WORDS),
    ]
    return "; ".join(part for part in parts if part)


def advised(finding: Finding, profile: Profile) -> tuple[str, str]:
    """Return a finding's meaning with its text, and its profile line, "" for none.

    >>> from toolkit.wire.findings import Finding
    >>> advised(Finding("sign_disagrees", "/api/v1/data/history/spread.spread_pct", "in 9 of 9"),
    ...         BUILT_IN)
    ('a value has the opposite sign of what its legs give: in 9 of 9', '[history.spread] fields...')
    """
    words, (row,) = WORDS[finding.kind], as_rows([(finding, 1)], profile)
    return f"{words.means}: {finding.says}", _entry(words, row)


def _entry(words: Words, found: Mapping[str, Any]) -> str:
    """Return the profile line for a finding at its place, "" for none."""
    known = _NO_PLACE | _place(str(found.get("where", "")), BUILT_IN)
    place = {name: str(found.get(name, word)) or _NO_PLACE[name] for name, word in known.items()}
    write = words.of_documents if place["section"].startswith("events") else ""
    wire = msgspec.json.encode(place["wire"]).decode()
    return (write or words.profile).format_map(place | {"wire": wire})


def _place(where: str, profile: Profile) -> dict[str, str]:
    """Return section, field and column of a finding's place, {} if it has none."""
    for kind, routes in (("history", profile.histories), ("events", profile.events)):
        for family, route in routes.items():
            for start in (route.path, route.tool):
                if where == start or where.startswith(f"{start}."):
                    wire = where.removeprefix(start).removeprefix(".")
                    rules = route.fields if isinstance(route, HistoryRoute) else ()
                    known = {rule.wire: rule.column for rule in rules}
                    column = known.get(wire, "" if rules else wire)
                    return {"section": f"{kind}.{family}", "wire": wire, "column": column}
    return {}
