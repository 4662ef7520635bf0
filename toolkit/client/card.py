"""A client's card: what is known of its service so far. It asks nothing."""

from __future__ import annotations

from toolkit.cards import Card, duration
from toolkit.market import Source
from toolkit.wire.allowance import Allowance
from toolkit.wire.event_routes import EventRoute
from toolkit.wire.profile import HistoryRoute, Profile


def client_card(base_url: str, profile: Profile | None, allowance: Allowance | None) -> Card:
    """Return the address, source, plan and reach of a service, without the key.

    >>> print(client_card("https://rail.example", None, Allowance("pro", 600, 60, 594)))
    Client of https://rail.example
      source  not asked yet
      plan    pro: 600 requests in 1 min, 594 left at the last answer
      reach   not asked yet
    """
    source, reach = "not asked yet", "not asked yet"
    if profile:
        source = (profile.source or Source("unknown", base_url)).label
        reach = _reach(profile)
    facts = [("source", source), ("plan", _plan(allowance)), ("reach", reach)]
    return Card(f"Client of {base_url}", facts)


def _plan(allowance: Allowance | None) -> str:
    if allowance is None:
        return "not told yet"
    quota, window_s, left = allowance.quota, allowance.window_s, allowance.left
    told = [] if quota is None else [f"{quota:,} requests in {duration(window_s)}"]
    told += [] if left is None else [f"{left:,} left at the last answer"]
    return f"{allowance.plan}: {', '.join(told)}" if told else allowance.plan


def _reach(profile: Profile) -> str:
    """Describe how far back and how fresh the routes answer, equal ones together."""
    routes: dict[str, HistoryRoute | EventRoute] = {
        **{f"{family} history": route for family, route in profile.histories.items()},
        **{f"{family} events": route for family, route in profile.events.items()},
    }
    alike: dict[str, list[str]] = {}
    for name, route in routes.items():
        depth = "everything" if route.retention_s is None else f"{duration(route.retention_s)} back"
        late = f"{duration(route.delay_s)} late" if route.delay_s else "no delay"
        alike.setdefault(f"{depth}, {late}", []).append(name)
    if len(alike) == 1:
        return next(iter(alike))
    return "; ".join(f"{', '.join(names)}: {reach}" for reach, names in alike.items())
