"""The wire profile: a service's routes, parameters, fields and units.

`/schemas` overrides the built-in profile, which is docs/interface.md. Differences are `Finding`s: a
field whose unit cannot be converted is stored in ``extra``. Signs are declared in sentences on the
two legs, or on longs and shorts; nothing is inferred from the data.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from toolkit.errors import InputError, WireError
from toolkit.market import EventFamily, Family, Source
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.findings import Finding
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.history_route import FieldRule, HistoryRoute
from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT, PLAIN_PATH, Document, merged
from toolkit.wire.profile.shapes import ListingShape, SnapshotShape, StreamNames
from toolkit.wire.profile.spelling import AS_OURS, Spelling
from toolkit.wire.profile.told import Ok
from toolkit.wire.rows.mending import doubled_fields

SIGNED = frozenset(("spread_pct", "differential_pct_8h", "buy_rate", "sell_rate", "rate"))
"""The columns whose sign has a meaning."""

_SIGN = ("sign", "positive_means")
_RATES = frozenset(("buy_rate", "sell_rate", "rate"))
_OTHER_WAY = re.compile(r"\b(?:not|never|negative|inverse|opposite)\b")
_LEG = r"(buy|sell)(?:[-_ ]?(?:leg|side|price|rate|venue|exchange))*"
_HELD = re.compile(rf"\b(long|short)\b(?: (?:on|in|of|the|its)){{0,3}} {_LEG}")
_LOSES = re.compile(r"\b(?:pays|loses|costs)\b")
_ABOVE = re.compile(
    rf"\b{_LEG}(?:'s)?(?: \w+){{0,6}}? (above|over|dearer|higher|greater|exceeds|larger|"
    rf"below|under|cheaper|lower|less|smaller)(?: \w+){{0,6}}? {_LEG}"
)
_FORMULA = re.compile(rf"\b{_LEG} ?(?:[/-]|minus|over) ?{_LEG}")
_BELOW = frozenset(("below", "under", "cheaper", "lower", "less", "smaller"))
_PAYMENT = re.compile(
    r"\b(long|short)s?\b(?: (?:position|positions|side|leg)){0,2} (pay|receive|earn|get)s?\b"
)


def is_reversed(described: Mapping[str, Any], column: str) -> bool | None:
    """Read the sign of a field: False as ours, True reversed, None if unclear.

    Ours is positive if the sell leg is dearer or pays more, which long the buy leg and short the
    sell leg earns. A rate is positive if longs pay shorts.

    >>> is_reversed({"sign": "100 * (sell_price / buy_price - 1)"}, "spread_pct")
    False
    >>> is_reversed({"positive_means": "long the sell leg, short the buy leg"}, "spread_pct")
    True
    """
    sentences = [described.get(name) for name in _SIGN]
    votes = set()
    for sentence in sentences:
        if isinstance(sentence, str) and sentence.strip():
            text = " ".join(sentence.lower().split())
            if column in _RATES:
                votes |= {
                    (who == "long") != (does == "pay") for who, does in _PAYMENT.findall(text)
                }
            else:
                votes |= _of_legs(text)
            if _OTHER_WAY.search(text):
                votes |= {True, False}  # a sentence turned round is not read
    return votes.pop() if len(votes) == 1 else None


def _of_legs(text: str) -> set[bool]:
    """Return a text's sign by the legs: True if reversed, both if unclear."""
    loses = _LOSES.search(text) is not None
    votes = {((held == "long") != (leg == "buy")) != loses for held, leg in _HELD.findall(text)}
    for first, word, second in _ABOVE.findall(text):
        if first != second:
            votes.add((first == "buy") != (word in _BELOW))
    votes |= {first == "buy" for first, second in _FORMULA.findall(text) if first != second}
    return votes


def declared_key(
    route: HistoryRoute, record: Mapping[str, Any], findings: list[Finding]
) -> list[str]:
    """Read what identifies a row of a trajectory. Anything but ``ts`` alone is a finding.

    Parameters of the trajectory, and names that are not fields, are left out. With an empty key,
    rows of one time may differ in their values alone.

    >>> record = {"key": ["symbol", "ts", "seq"], "fields": {"ts": {}, "seq": {}, "price": {}}}
    >>> declared_key(BUILT_IN.histories[Family.PRICE], record, [])
    ['ts', 'seq']
    """
    key, fields = record.get("key"), record.get("fields")
    if not isinstance(key, list) or not all(isinstance(name, str) for name in key):
        return list(route.key)
    ts = next(rule.wire for rule in route.fields if rule.column == "ts")
    beside = [name for name in key if name not in (ts, *route.trajectory_parameters)]
    carried = [name for name in beside if isinstance(fields, dict) and name in fields]
    where = f"{route.tool}.key"
    if absent := ", ".join(name for name in beside if name not in carried):
        says = f"{absent:.80}: no field of the record, so not used to tell rows apart"
        findings.append(Finding("key_unusable", where, says))
    if key and not carried:
        return ["ts"]
    says = f"rows of one time are told apart by {', '.join(carried) or 'all of their values'}"
    findings.append(Finding("ties_allowed", where, f"{says:.200}"))
    return ["ts", *carried] if key else []


def declared_fields(
    route: HistoryRoute, record: Mapping[str, Any], findings: list[Finding]
) -> dict[str, dict[str, Any]]:
    """Return the declared units and signs of a route's fields, by column.

    A unit that cannot be converted is None: the values stay in ``extra``.
    """
    said = record.get("fields")
    found: dict[str, dict[str, Any]] = {}
    if not isinstance(said, dict):
        return found
    for rule in route.sent:
        where = f"{route.tool}.{rule.wire}"
        described = said.get(rule.wire)
        if not isinstance(described, dict):
            findings.append(Finding("field_missing", where, "not described"))
            continue
        unit = described.get("unit")
        changed = replace(rule, unit=unit) if isinstance(unit, str) else rule
        try:
            factor = changed.factor
        except InputError as error:
            findings.append(Finding("unit_unusable", where, f"{error}; kept in extra instead"))
            found[rule.column] = {"unit": None}
            continue
        if factor != 1.0:
            findings.append(Finding("unit_converted", where, f"{unit} instead of {rule.wanted}"))
        sign = _declared_sign(rule, where, described, findings)
        found[rule.column] = {"unit": changed.unit, **sign}
    known = {rule.wire for rule in route.fields}
    findings.extend(
        Finding("field_unknown", f"{route.tool}.{name}", "kept in extra")
        for name in said
        if name not in known
    )
    return found


def _declared_sign(
    rule: FieldRule, where: str, described: Mapping[str, Any], findings: list[Finding]
) -> dict[str, bool]:
    """Return a declared sign: a reversed one is turned at load, an unclear one is ours."""
    said = "; ".join(str(described[name]) for name in _SIGN if described.get(name))
    if rule.column not in SIGNED or not said:
        return {}
    turned = is_reversed(described, rule.column)
    if turned is None:
        says = f"taken as docs/concepts.md has it, for {said!r:.120} is not understood; "
        says += f"fields.{rule.column} = {{ reversed = ... }} in the profile states it"
        findings.append(Finding("sign_unclear", where, says))
    elif turned:
        findings.append(Finding("sign_reversed", where, f"turned at load: {said!r:.120}"))
    return {"reversed": bool(turned)}


def tools_by_route(
    names: Mapping[str, str], routes: Mapping[str, str], described: Mapping[str, object]
) -> dict[str, str]:
    """Replace each role's name by that which ``/schemas`` gives for its route.

    >>> tools_by_route({"symbols": "a"}, {"symbols": "/s"}, {"b": {"route": "/s"}, "c": None})
    {'symbols': 'b'}
    """
    found: dict[str, str] = {}
    for name, tool in described.items():
        route = tool.get("route") if isinstance(tool, dict) else None
        if isinstance(route, str):
            found.setdefault(route, name)
    return {role: found.get(routes.get(role, ""), name) for role, name in names.items()}


_PATHS = ("schemas_path", "symbols_path", "symbols_limit", "mcp_path", "error_message", "tools")

_SHAPES = {
    kind: SnapshotShape.of(kind, said)
    for kind, said in BUILT_IN_DOCUMENT["snapshots"].items()
    if "fields" in said
}


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the client needs to know about a service's interface."""

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
        """Lay another layer over the profile. `InputError` names an invalid entry.

        >>> found = BUILT_IN.over({"history": {"price": {"next": "older"}}})
        >>> found.histories[Family.PRICE].next, found.histories[Family.SPREAD].next
        ('older', 'next_end_time')
        """
        return replace(self, **_parts(merged(self.document, layer), self.limits))

    @property
    def routes(self) -> dict[str, str]:
        """The path of each role, our word for a tool's purpose.

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
        """Return the profile with a client's limits, on its routes as well.

        >>> BUILT_IN.within(Limits(page_items=9)).histories[Family.PRICE].limits.page_items
        9
        """
        histories = {f: replace(route, limits=limits) for f, route in self.histories.items()}
        events = {f: replace(route, limits=limits) for f, route in self.events.items()}
        return replace(self, histories=histories, events=events, limits=limits)


def _parts(document: Document, limits: Limits) -> dict[str, Any]:
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

    One without the expected shape is a finding and changes nothing. Raises `WireError` if the body
    is not JSON.

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
    """Return the profile with the finding of no readable `/schemas`.

    >>> without_schemas(BUILT_IN, "answered 404").findings[0].says
    'answered 404; the profile of the user alone says how the service speaks'
    """
    says = f"{why:.200}; the profile of the user alone says how the service speaks"
    finding = Finding("schemas_missing", profile.schemas_path, says)
    return replace(profile, findings=(*profile.findings, finding))


def timed(profile: Profile) -> Profile:
    """Return the profile. Raises `WireError` if a history has no readable time."""
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
    """Read the plan's largest page from the tool's schema."""
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
    """Return the parts on any route, its tool and the tool's paging, {} for none."""
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
