"""The wire profile: what a service calls its routes, parameters, fields and units.

The built-in profile is docs/interface.md. The service's `/schemas` overrides it at run time.
Whatever differs is recorded as a `Finding`, never guessed away: a field in a unit that cannot be
converted is not put into a column under a wrong name, it is kept in ``extra``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from toolkit.errors import WireError
from toolkit.market import EventFamily, Family, Source
from toolkit.tables import SERIES
from toolkit.wire.declared import declared_fields, declared_key
from toolkit.wire.event_routes import BUILT_IN_EVENTS, EventRoute
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.findings import Finding
from toolkit.wire.history_route import FieldRule, HistoryRoute
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.listing_shape import BUILT_IN_LISTING, ListingShape
from toolkit.wire.snapshot_shape import SnapshotShape
from toolkit.wire.spelling import AS_OURS, Spelling
from toolkit.wire.stream_names import BUILT_IN_STREAMS, StreamNames
from toolkit.wire.told import Ok

BUILT_IN_TOOLS: Mapping[str, str] = {
    "schemas": "data.get_schemas",
    "symbols": "data.search_symbols",
    **{f"{family}_history": f"data.get_{family}_history" for family in Family},
    **{f"{family}_events": f"data.get_{family}_events" for family in EventFamily},
    "event_activity": "data.get_event_activity",
    "spread_dashboard": "data.get_spread_dashboard",
    "funding_overview": "data.get_funding_overview",
}
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
    "PLAIN_PATH",
    "SNAPSHOTS",
    "FieldRule",
    "Finding",
    "HistoryRoute",
    "Profile",
    "timed",
    "tools_by_route",
    "with_schemas",
    "without_schemas",
]


_Route = TypeVar("_Route", HistoryRoute, EventRoute)

SNAPSHOTS = {
    "symbols": "/api/v1/data/symbols/search",
    "activity": "/api/v1/data/event-activity",
    "spread": "/api/v1/data/dashboards/spread",
    "funding": "/api/v1/data/dashboards/funding-overview",
}
"""The paths of the routes that are kept as whole answers, by kind."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the client needs to know about how a service speaks."""

    histories: Mapping[Family, HistoryRoute]
    events: Mapping[EventFamily, EventRoute] = field(default_factory=lambda: BUILT_IN_EVENTS)
    symbols_path: str = "/api/v1/data/symbols/search"
    symbols_limit: int = 1000
    listing: ListingShape = BUILT_IN_LISTING
    spelling: Spelling = AS_OURS
    schemas_path: str = "/api/v1/data/schemas"
    snapshots: Mapping[str, str] = field(default_factory=lambda: SNAPSHOTS)
    shapes: Mapping[str, SnapshotShape] = field(default_factory=dict)
    streams: StreamNames = BUILT_IN_STREAMS
    mcp_path: str = "/mcp"
    error_message: str = ""
    ok: Ok | None = None
    tools: Mapping[str, str] = field(default_factory=lambda: BUILT_IN_TOOLS)
    source: Source | None = None
    schema_hash: str | None = None
    users_hash: str | None = None
    findings: tuple[Finding, ...] = field(default=())
    limits: Limits = field(default=LIMITS, repr=False)

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

    def arguments(self, role: str, given: Mapping[str, object]) -> dict[str, object]:
        """Return a tool's arguments under the service's names, without those that are None.

        >>> BUILT_IN.arguments("price_history", {"symbol": "BTC_USD", "end_time": None})
        {'symbol': 'BTC_USD'}
        """
        routes = {f"{family}_history": route.parameters for family, route in self.histories.items()}
        routes |= {f"{family}_events": route.parameters for family, route in self.events.items()}
        names = routes.get(role, {})
        return {names.get(name, name): v for name, v in given.items() if v is not None}


_UNITS = {
    Family.PRICE: {"ts": "s", "price": "quote", "mark_price": "quote", "volume": "quote"},
    Family.SPREAD: {
        "ts": "s",
        "buy_price": "quote",
        "sell_price": "quote",
        "spread_pct": "percent",
    },
    Family.FUNDING: {
        "ts": "s",
        "buy_rate": "fraction_per_interval",
        "sell_rate": "fraction_per_interval",
        "buy_interval_hours": "hours",
        "sell_interval_hours": "hours",
        "differential_pct_8h": "percent_per_8h",
    },
}


def _route(family: Family, units: Mapping[str, str]) -> HistoryRoute:
    wanted = {c.name: c.unit for c in SERIES[family].columns}
    rules = tuple(FieldRule(name, name, unit, wanted[name]) for name, unit in units.items())
    path, tool = f"/api/v1/data/history/{family}", f"data.get_{family}_history"
    return HistoryRoute(family, path, tool, {}, rules)


BUILT_IN = Profile({family: _route(family, units) for family, units in _UNITS.items()})
"""The profile of docs/interface.md."""

LARGEST_PAGE = 5000
"""Rows asked for at most per page (docs/design.md, "Page size")."""

PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
"""A route, and no address: the key goes to one host alone."""


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
    findings: list[Finding] = []
    document = document if isinstance(document, dict) else {}
    tools = document.get("tools")
    tools = tools if isinstance(tools, dict) else {}
    histories = {
        family: _history_with_schemas(route, tools, findings)
        for family, route in profile.histories.items()
    }
    events = {
        family: _events_with_schemas(route, tools, findings)
        for family, route in profile.events.items()
    }
    search = _tool(tools, profile.symbols_path, "data.search_symbols") or {}
    return replace(
        profile,
        histories=histories,
        events=events,
        source=_source(document.get("source"), findings),
        symbols_path=_path(search, profile.symbols_path, findings),
        symbols_limit=_limit(search) or profile.symbols_limit,
        tools=tools_by_route(profile.tools, profile.routes, tools),
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


def _limit(tool: dict[str, Any]) -> int | None:
    """Read the largest page that the caller's plan allows from the tool's input schema."""
    try:
        maximum = tool["input_schema"]["properties"]["limit"]["maximum"]
    except (KeyError, TypeError):
        return None
    return maximum if type(maximum) is int and maximum > 0 else None


def _path(tool: dict[str, Any], built_in: str, findings: list[Finding]) -> str:
    """Return the tool's route if it is a plain path: no other host may get the key."""
    said = tool.get("route", built_in)
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


def _with_tool(
    route: _Route, tools: dict[str, Any], findings: list[Finding]
) -> tuple[_Route, dict[str, Any], dict[str, Any]]:
    """Correct what any route has. Return its tool and the tool's paging too, {} where not given."""
    tool = _tool(tools, route.path, route.tool)
    if tool is None:
        findings.append(Finding("tool_missing", route.tool, "schemas does not describe this tool"))
        return route, {}, {}
    paging = tool.get("pagination")
    paging = paging if isinstance(paging, dict) else {}
    next_name, minimum = paging.get("next"), tool.get("minimum_plan")
    changed = replace(
        route,
        path=_path(tool, route.path, findings),
        next=next_name if isinstance(next_name, str) else route.next,
        limit=_limit(tool) or route.limit,
        retention_s=(
            _seconds(tool, "retention_s", findings) if "retention_s" in tool else route.retention_s
        ),
        delay_s=_seconds(tool, "delay_s", findings) or 0,
        minimum_plan=minimum if isinstance(minimum, str) else None,
    )
    return changed, tool, paging


def _history_with_schemas(
    route: HistoryRoute, tools: dict[str, Any], findings: list[Finding]
) -> HistoryRoute:
    route, tool, paging = _with_tool(route, tools, findings)
    for name, assumed in (("kind", "end_time"), ("order", "desc")):
        if (said_paging := paging.get(name, assumed)) != assumed:
            says = f"{name} is {said_paging!r:.80}, not {assumed!r}"
            findings.append(Finding("paging_differs", route.tool, says))
    record = tool.get("record")
    record = record if isinstance(record, dict) else {}
    fields = declared_fields(route, record, findings)
    key = declared_key(route, record, findings)
    limit = min(LARGEST_PAGE, route.limit)
    return replace(route, fields=fields, key=key, limit=limit) if tool else route


def _events_with_schemas(
    route: EventRoute, tools: dict[str, Any], findings: list[Finding]
) -> EventRoute:
    route, _, paging = _with_tool(route, tools, findings)
    more, longest_s, largest = (paging.get(name) for name in ("more", "max_window_s", "max_limit"))
    return replace(
        route,
        limit=largest if type(largest) is int and largest > 0 else route.limit,
        longest_window_s=longest_s
        if type(longest_s) is int and longest_s > 1
        else route.longest_window_s,
        more=more if isinstance(more, str) else route.more,
    )
