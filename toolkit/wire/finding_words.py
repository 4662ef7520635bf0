"""Meaning of each kind of finding, and its correcting profile line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from toolkit.cards import counted, some
from toolkit.wire.findings import Finding
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import BUILT_IN, Profile


@dataclass(frozen=True, slots=True)
class Words:
    """The meaning of a kind of finding and its profile line, "" for none.

    ``of_documents`` is the line for an event log.
    """

    means: str
    profile: str = ""
    of_documents: str = ""


_TEXT = Path(__file__).with_name("finding_words.toml").read_text(encoding="utf-8")
WORDS = {kind: Words(**said) for kind, said in tomllib.loads(_TEXT).items()}
"""The words of each kind. ``{section}``, ``{wire}`` and ``{column}`` are those of its place."""

_NO_PLACE = {"section": "history.FAMILY", "wire": "...", "column": "COLUMN"}


def as_rows(
    findings: Iterable[tuple[Finding, int]], profile: Profile = BUILT_IN
) -> list[dict[str, object]]:
    """Return findings as the store keeps them, each with its place in the profile.

    ``section`` is that of the profile's file, ``wire`` the service's field name, ``column`` ours,
    "" for none. Findings outside of histories and event logs have none of the three.

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

    ``findings`` are rows of `as_rows`. An unknown kind is shown by its name.

    >>> found = {"kind": "field_missing", "where": "/api/v1/data/history/price.volume",
    ...          "says": "in 3 of 9 rows", "times": 2}
    >>> explained([found])
    ['a field is not there; its column is null (field_missing, 2 times); first: ...']
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
    """Return a finding's meaning with its text, and its profile line or "".

    >>> advised(Finding("sign_disagrees", "/api/v1/data/history/spread.spread_pct", "in 9 of 9"),
    ...         BUILT_IN)
    ('a value has the opposite sign of what its legs give: in 9 of 9', '[history.spread] fields...')
    """
    words, (row,) = WORDS[finding.kind], as_rows([(finding, 1)], profile)
    return f"{words.means}: {finding.says}", _entry(words, row)


def _entry(words: Words, found: Mapping[str, Any]) -> str:
    known = _NO_PLACE | _place(str(found.get("where", "")), BUILT_IN)
    place = {name: str(found.get(name, word)) or _NO_PLACE[name] for name, word in known.items()}
    write = words.of_documents if place["section"].startswith("events") else ""
    wire = msgspec.json.encode(place["wire"]).decode()
    return (write or words.profile).format_map(place | {"wire": wire})


def _place(where: str, profile: Profile) -> dict[str, str]:
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
