"""MCP's part of the wire profile: what a service calls the tool of each role.

Built in is docs/interface.md. ``/schemas`` names the tool of each route. The user's file has the
last word. A *role* is our own word for what a tool is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolkit.market import EventFamily, Family

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
