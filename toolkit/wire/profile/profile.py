"""The wire profile: what a service calls its routes, parameters, fields and units.

The built-in profile is docs/interface.md. The service's `/schemas` overrides it at run time.
Whatever differs is recorded as a `Finding`, never guessed away: a field in a unit that cannot be
converted is not put into a column under a wrong name, it is kept in ``extra``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from toolkit.errors import WireError
from toolkit.market import EventFamily, Family, Source
from toolkit.wire.exchange import UNREADABLE, Answer
from toolkit.wire.findings import Finding
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.declared import declared_fields, declared_key
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.history_route import FieldRule, HistoryRoute, field_rules
from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT, PLAIN_PATH, Document, merged
from toolkit.wire.profile.listing_shape import ListingShape, leg_template
from toolkit.wire.profile.places import WHOLE, flat_answer, leaves
from toolkit.wire.profile.snapshots import NULLABLE
from toolkit.wire.profile.spelling import AS_OURS, Spelling
from toolkit.wire.profile.stream_names import StreamNames
from toolkit.wire.profile.told import Ok
from toolkit.wire.rows.conversion import converted, name_of
from toolkit.wire.rows.doubled import doubled_fields

_DAY = {"window_s": 86_400}


@dataclass(frozen=True, slots=True)
class SnapshotShape:
    """Places in a snapshot of another shape. See `toolkit.wire.profile.places`.

    ``items`` is a list, or an object whose names are ``*1`` of each item. With ``.*`` behind it
    each value there is again a list, or an object whose names are ``*2``. A field with the place ""
    is one that the service does not have. ``leg`` reads an exchange and its market from one text.
    Of the activity the fields are the counts of a day, at places in the whole answer.
    """

    kind: str
    fields: tuple[FieldRule, ...]
    items: str = "items"
    leg: str = ""
    spelling: Spelling = AS_OURS

    @classmethod
    def of(cls, kind: str, said: Document, spelling: Spelling = AS_OURS) -> SnapshotShape:
        """Make the shape of a document. `InputError` names the entry that cannot be meant.

        >>> SnapshotShape.of("activity", BUILT_IN_DOCUMENT["snapshots"]["activity"]).fields[0].unit
        'count'
        """
        where = f"snapshots.{kind}"
        built_in = BUILT_IN_DOCUMENT["snapshots"][kind]["fields"]
        wanted = {column: field["unit"] for column, field in built_in.items()}
        leg = said.get("leg", "")
        fields = field_rules(where, said, wanted, absent=NULLABLE)
        if leg:
            leg_template(f"{where}.leg", leg)
        return cls(kind, fields, said.get("items", ""), leg, spelling)

    def ours(self, answer: Answer) -> Answer:
        """Return an answer in our shape, as it is where its items are not found.

        A value that cannot be converted stays as it is, and a field that is not there is left out:
        who reads the items says so.

        >>> rule = FieldRule("rate", "r.now", "percent_per_interval", "fraction_per_interval")
        >>> shape = SnapshotShape("funding", (rule, FieldRule("symbol", "*1", "", "")), "rates.*")
        >>> sent = Answer(200, {}, b'{"rates": {"A_B": [{"r": {"now": 50}, "mood": 1}]}, "ts": 7}')
        >>> shape.ours(sent).body
        b'{"items":[{"rate":0.5,"symbol":"A_B","rest":{"mood":1}}],"rest":{"ts":7}}'
        """
        of_day = self.kind == "activity"
        place = WHOLE if of_day else self.items.rstrip(".*")
        try:
            flat = answer if place == WHOLE else flat_answer(answer, place, (), ())
            top = msgspec.json.decode(flat.body)
        except UNREADABLE:
            return answer
        if place == WHOLE:
            held, top = top, {}
        else:
            held = top.pop(place, None) if isinstance(top, dict) else None
        if not isinstance(held, dict | list):
            return answer
        if of_day:
            said: dict[str, object] = {"windows": [_DAY | self._item({}, held)]}
        else:
            items = _opened(held, self.items.count(".*"))
            said = {"items": [self._item(names, item) for names, item in items]}
        if absent := [r.column for r in self.fields if not r.wire and r.constant is None]:
            said["not_said"] = absent
        return replace(answer, body=msgspec.json.encode(said | ({"rest": top} if top else {})))

    def _item(self, names: Mapping[str, object], item: object) -> dict[str, object]:
        there = {**names, **leaves(item)}
        found: dict[str, object] = {}
        taken = set()
        for rule in sorted(self.fields, key=lambda rule: rule.hours is not None):
            if not rule.wire:
                found[rule.column] = rule.constant
            elif rule.wire in there:
                value = self._value(rule, there[rule.wire])
                if value is None and there[rule.wire] is not None:
                    continue  # a text that is not a leg
                if rule.hours and value and isinstance(value, float):
                    hours = found.get(rule.hours)
                    if not isinstance(hours, int | float):
                        continue  # a rate of no interval that is known
                    value *= hours
                found[rule.column] = value
                taken.add(rule.wire)
        rest = {place: value for place, value in there.items() if place not in taken}
        return found | ({"rest": rest} if rest else {})

    def _value(self, rule: FieldRule, value: object) -> object:
        if rule.wanted:
            return converted(rule, value)
        value = name_of(value)
        if not isinstance(value, str):
            return value
        return self.spelling.our_part(rule.column, value, self.leg)


def _opened(
    held: Mapping[str, Any] | list[Any], deeper: int, names: Mapping[str, object] | None = None
) -> Iterator[tuple[Mapping[str, object], object]]:
    """Yield the items of a list or an object, and of those in it, each with the names above it."""
    above, level = names or {}, len(names or {}) + 1
    each = held.items() if isinstance(held, Mapping) else ((None, value) for value in held)
    for name, value in each:
        named = above if name is None else {**above, f"*{level}": name}
        if deeper and isinstance(value, dict | list):
            yield from _opened(value, deeper - 1, named)
        else:
            yield named, value


BUILT_IN_TOOLS: Mapping[str, str] = BUILT_IN_DOCUMENT["tools"]
"""The tools of docs/interface.md, by role."""


def tools_by_route(
    names: Mapping[str, str], routes: Mapping[str, str], described: Mapping[str, object]
) -> dict[str, str]:
    """Replace each role's name by the one that ``/schemas`` gives for the role's route.

    >>> tools_by_route({"symbols": "a"}, {"symbols": "/s"}, {"b": {"route": "/s"}, "c": None})
    {'symbols': 'b'}
    """
    found: dict[str, str] = {}
    for name, tool in described.items():
        route = tool.get("route") if isinstance(tool, dict) else None
        if isinstance(route, str):
            found.setdefault(route, name)
    return {role: found.get(routes.get(role, ""), name) for role, name in names.items()}


__all__ = [
    "BUILT_IN",
    "BUILT_IN_TOOLS",
    "LARGEST_PAGE",
    "SNAPSHOTS",
    "FieldRule",
    "Finding",
    "HistoryRoute",
    "Profile",
    "SnapshotShape",
    "timed",
    "tools_by_route",
    "with_schemas",
    "without_schemas",
]


_PATHS = ("schemas_path", "symbols_path", "symbols_limit", "mcp_path", "error_message", "tools")

SNAPSHOTS = {kind: said["path"] for kind, said in BUILT_IN_DOCUMENT["snapshots"].items()}
"""The paths of the routes that are kept as whole answers, by kind."""
_SHAPES = {
    kind: SnapshotShape.of(kind, said)
    for kind, said in BUILT_IN_DOCUMENT["snapshots"].items()
    if "fields" in said
}


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the client needs to know about how a service speaks."""

    histories: Mapping[Family, HistoryRoute]
    events: Mapping[EventFamily, EventRoute]
    symbols_path: str
    symbols_limit: int
    listing: ListingShape
    spelling: Spelling
    schemas_path: str
    snapshots: Mapping[str, str]
    shapes: Mapping[str, SnapshotShape]
    streams: StreamNames
    mcp_path: str
    error_message: str
    ok: Ok | None
    tools: Mapping[str, str]
    document: Document = field(repr=False)
    source: Source | None = None
    schema_hash: str | None = None
    users_hash: str | None = None
    findings: tuple[Finding, ...] = field(default=())
    limits: Limits = field(default=LIMITS, repr=False)

    def over(self, layer: Document) -> Profile:
        """Lay another layer over the profile's document. Return the profile that both make.

        `InputError` names the entry that cannot be meant.

        >>> found = BUILT_IN.over({"history": {"price": {"next": "older"}}})
        >>> found.histories[Family.PRICE].next, found.histories[Family.SPREAD].next
        ('older', 'next_end_time')
        """
        return replace(self, **_parts(merged(self.document, layer), self.limits))

    @property
    def routes(self) -> dict[str, str]:
        """The path of each role that a tool may have.

        A role is our own word for what a tool is asked for. Built in: docs/interface.md.

        >>> BUILT_IN.routes["price_history"]
        '/api/v1/data/history/price'
        """
        return {
            "schemas": self.schemas_path,
            "symbols": self.symbols_path,
            **{f"{family}_history": route.path for family, route in self.histories.items()},
            **{f"{family}_events": route.path for family, route in self.events.items()},
            "event_activity": self.snapshots["activity"],
            "spread_dashboard": self.snapshots["spread"],
            "funding_overview": self.snapshots["funding"],
        }

    def within(self, limits: Limits) -> Profile:
        """Return the profile with the limits of a client, on its routes as well.

        >>> BUILT_IN.within(Limits(page_items=9)).histories[Family.PRICE].limits.page_items
        9
        """
        histories = {f: replace(route, limits=limits) for f, route in self.histories.items()}
        events = {f: replace(route, limits=limits) for f, route in self.events.items()}
        return replace(self, histories=histories, events=events, limits=limits)


def _parts(document: Document, limits: Limits) -> dict[str, Any]:
    """Return what a document says, as the values of a profile."""
    spelling = Spelling(**document["spelling"])
    spelling = AS_OURS if spelling == AS_OURS else spelling
    shapes = {
        kind: SnapshotShape.of(kind, document["snapshots"][kind], spelling) for kind in _SHAPES
    }
    return {
        **{name: document[name] for name in _PATHS},
        "document": document,
        "histories": {
            Family(family): HistoryRoute.of(Family(family), said, spelling, limits)
            for family, said in document["history"].items()
        },
        "events": {
            EventFamily(family): EventRoute.of(EventFamily(family), said, spelling, limits)
            for family, said in document["events"].items()
        },
        "ok": Ok(**document["ok"]) if document["ok"]["place"] else None,
        "listing": ListingShape(**document["listing"]),
        "spelling": spelling,
        "snapshots": {kind: said["path"] for kind, said in document["snapshots"].items()},
        "shapes": {kind: shape for kind, shape in shapes.items() if shape != _SHAPES[kind]},
        "streams": StreamNames(**document["streams"]),
    }


BUILT_IN = Profile(**_parts(BUILT_IN_DOCUMENT, LIMITS))
"""The profile of docs/interface.md."""

LARGEST_PAGE = 5000
"""Rows asked for at most per page (docs/design.md, "Page size")."""


def with_schemas(profile: Profile, body: bytes) -> Profile:
    """Correct the profile by a `/schemas` document.

    A document without the expected shape changes nothing and leaves a finding. Raises `WireError`
    where the body is not JSON at all.

    >>> body = b'{"source": {"kind": "replay", "id": "x"}, "tools": {}}'
    >>> found = with_schemas(BUILT_IN, body)
    >>> found.source, {f.kind for f in found.findings}
    (Source(kind='replay', id='x'), {'tool_missing'})
    """
    try:
        document = msgspec.json.decode(body)
    except UNREADABLE as error:
        raise WireError(f"the answer of {profile.schemas_path} is not JSON: {error}") from None
    findings = doubled_fields([body], profile.schemas_path)
    document = document if isinstance(document, dict) else {}
    tools = document.get("tools")
    tools = tools if isinstance(tools, dict) else {}
    layer: dict[str, Any] = {"history": {}, "events": {}}
    for family, route in profile.histories.items():
        layer["history"][family.value] = _said_of_history(route, tools, findings)
    for log, log_route in profile.events.items():
        layer["events"][log.value] = _said_of_log(log_route, tools, findings)
    search = _tool(tools, profile.symbols_path, "data.search_symbols") or {}
    layer["symbols_path"] = _path(search, profile.symbols_path, findings)
    layer |= _limit(search, "symbols_limit")
    layer["tools"] = tools_by_route(profile.tools, profile.routes, tools)
    return replace(
        profile.over(layer),
        source=_source(document.get("source"), findings),
        schema_hash=hashlib.sha256(body).hexdigest(),
        findings=(*profile.findings, *findings),
    )


def without_schemas(profile: Profile, why: str) -> Profile:
    """Return the profile with a finding: the service has no `/schemas` that can be read.

    >>> without_schemas(BUILT_IN, "answered 404").findings[0].says
    'answered 404; the profile of the user alone says how the service speaks'
    """
    says = f"{why:.200}; the profile of the user alone says how the service speaks"
    finding = Finding("schemas_missing", profile.schemas_path, says)
    return replace(profile, findings=(*profile.findings, finding))


def timed(profile: Profile) -> Profile:
    """Return the profile. Raises `WireError` where a history has no time that can be read."""
    for route in profile.histories.values():
        if route.rule("ts") is None:
            raise WireError(
                f"schemas gives {route.tool} no usable time: its ts has no known time unit; the "
                f'profile can say it: fields.ts = {{ unit = "s" }} in [history.{route.family}]'
            )
    return profile


def _source(said: object, findings: list[Finding]) -> Source | None:
    if isinstance(said, dict) and isinstance(said.get("id"), str):
        kind = said.get("kind")
        return Source(kind if isinstance(kind, str) else "unknown", said["id"])
    findings.append(Finding("source_missing", "schemas", "the service does not name its source"))
    return None


def _tool(tools: dict[str, Any], path: str, name: str) -> dict[str, Any] | None:
    for tool in tools.values():
        if isinstance(tool, dict) and tool.get("route") == path:
            return tool
    tool = tools.get(name)
    return tool if isinstance(tool, dict) else None


def _limit(tool: dict[str, Any], name: str = "limit") -> dict[str, int]:
    """Read the largest page that the caller's plan allows from the tool's input schema."""
    try:
        maximum = tool["input_schema"]["properties"]["limit"]["maximum"]
    except (KeyError, TypeError):
        return {}
    return {name: maximum} if type(maximum) is int and maximum > 0 else {}


def _path(tool: dict[str, Any], built_in: str, findings: list[Finding]) -> str:
    """Return the tool's route if it is a plain path: no other host may get the key."""
    said = tool.get("route", built_in)
    if "route" not in tool:
        return built_in
    if isinstance(said, str) and PLAIN_PATH.fullmatch(said):
        return said
    findings.append(Finding("route_unusable", built_in, f"schemas says {said!r:.80}"))
    return built_in


def _seconds(tool: dict[str, Any], name: str, findings: list[Finding]) -> int | None:
    said: Any = tool.get(name)
    number = isinstance(said, int | float) and not isinstance(said, bool)
    if number and 0 <= said <= 1e11 and said == int(said):
        return int(said)
    if said is not None:
        findings.append(Finding("seconds_unreadable", name, f"schemas says {said!r:.80}"))
    return None


def _said_of(
    route: HistoryRoute | EventRoute, tools: dict[str, Any], findings: list[Finding]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return what is said of any route. And its tool and the tool's paging, {} where not given."""
    tool = _tool(tools, route.path, route.tool)
    if tool is None:
        findings.append(Finding("tool_missing", route.tool, "schemas does not describe this tool"))
        return {}, {}, {}
    paging = tool.get("pagination")
    paging = paging if isinstance(paging, dict) else {}
    said: dict[str, Any] = {"path": _path(tool, route.path, findings), **_limit(tool)}
    if isinstance(paging.get("next"), str):
        said["next"] = paging["next"]
    if "retention_s" in tool:
        said["retention_s"] = _seconds(tool, "retention_s", findings)
    said["delay_s"] = _seconds(tool, "delay_s", findings) or 0
    minimum = tool.get("minimum_plan")
    said["minimum_plan"] = minimum if isinstance(minimum, str) else ""
    return said, tool, paging


def _said_of_history(
    route: HistoryRoute, tools: dict[str, Any], findings: list[Finding]
) -> dict[str, Any]:
    said, tool, paging = _said_of(route, tools, findings)
    for name, assumed in (("kind", "end_time"), ("order", "desc")):
        if (said_paging := paging.get(name, assumed)) != assumed:
            says = f"{name} is {said_paging!r:.80}, not {assumed!r}"
            findings.append(Finding("paging_differs", route.tool, says))
    record = tool.get("record")
    if not isinstance(record, dict) or not tool:
        record = {}
    said["fields"] = declared_fields(route, record, findings)
    if tool:
        said["key"] = declared_key(route, record, findings)
        said["limit"] = min(LARGEST_PAGE, said.get("limit", route.limit))
    return said


def _said_of_log(
    route: EventRoute, tools: dict[str, Any], findings: list[Finding]
) -> dict[str, Any]:
    said, _, paging = _said_of(route, tools, findings)
    for name, ours, least in (("max_window_s", "window_s", 2), ("max_limit", "limit", 1)):
        if type(paging.get(name)) is int and paging[name] >= least:
            said[ours] = paging[name]
    if isinstance(paging.get("more"), str):
        said["more"] = paging["more"]
    return said
