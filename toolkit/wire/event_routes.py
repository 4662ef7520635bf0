"""The event logs' part of the wire profile: routes, parameters, and where a document keeps what.

Built in is docs/interface.md. `/schemas` overrides. A document is kept whole. The columns beside it
are read from it by paths, so that another service's names are a matter of its profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.wire.limits import LIMITS, Limits

_COMMON = {
    "schema_id": ("schema",),
    "event_id": ("event_id", "id"),
    "event_type": ("event_type",),
    "lifecycle": ("lifecycle",),
    "ts": ("ts",),
    "ts_ms": ("ts_ms",),
    "symbol": ("instrument.symbol", "symbol"),
}
_LEGS = {
    f"{side}_{name}": (f"{side}.{name}", f"{side}_{name}")
    for side in ("buy", "sell")
    for name in ("exchange", "market")
}
_RETENTION_S = 30 * 86_400  # by the interface


_PAGING = ("start_time", "end_time", "limit", "cursor")
_FILTERS = ("symbol", "exchange", "event_type", "min_pct", "lifecycle")


@dataclass(frozen=True, slots=True)
class EventRoute:
    """One event log: where it is, how it is asked, and where its documents keep what.

    ``paths`` names for each column the places to look, dots between levels. The first that is
    there counts. ``volatile`` are fields that differ between two deliveries of one document.
    ``retention_s`` is how far back the log reaches (s): the interface's 30 days, unless the service
    or the user's profile states another, None for all of time.
    """

    family: EventFamily
    path: str
    tool: str
    paths: Mapping[str, tuple[str, ...]]
    parameters: Mapping[str, str] = field(default_factory=dict)
    volatile: tuple[str, ...] = ("trace",)
    items: str = "items"
    next: str = "next_cursor"
    more: str = "has_more"
    limit: int = 500
    longest_window_s: int = 604_800
    retention_s: int | None = _RETENTION_S
    delay_s: int = 0
    minimum_plan: str | None = None
    limits: Limits = field(default=LIMITS, repr=False)

    @property
    def roles(self) -> tuple[str, ...]:
        """Our names of the parameters, which ``parameters`` replaces by the service's.

        Of these a load sends the first four. The filters are for calls over MCP.

        >>> BUILT_IN_EVENTS[EventFamily.SPLASH].roles[:4]
        ('start_time', 'end_time', 'limit', 'cursor')
        """
        return (*_PAGING, *_FILTERS)

    def query(self, window: Interval, cursor: str | None) -> dict[str, object]:
        """Return the query of one page, of the window's first without a cursor.

        >>> BUILT_IN_EVENTS[EventFamily.SPLASH].query(Interval(0, 60), None)
        {'start_time': 0, 'end_time': 60, 'limit': 500, 'cursor': None}
        """
        values = (window.start, window.end, self.limit, cursor)
        named = zip(_PAGING, values, strict=True)
        return {self.parameters.get(role, role): value for role, value in named}


def _route(family: EventFamily, paths: dict[str, tuple[str, ...]]) -> EventRoute:
    return EventRoute(
        family,
        f"/api/v1/data/history/{family}-events",
        f"data.get_{family}_events",
        _COMMON | paths,
    )


BUILT_IN_EVENTS: Mapping[EventFamily, EventRoute] = {
    EventFamily.SPREAD: _route(
        EventFamily.SPREAD,
        _LEGS
        | {
            "magnitude_pct": ("spread.pct",),
            "peak_pct": ("spread.peak_pct",),
            "close_reason": ("close_reason",),
        },
    ),
    EventFamily.SPLASH: _route(
        EventFamily.SPLASH,
        {
            "buy_exchange": ("exchange",),
            "buy_market": ("market",),
            "magnitude_pct": ("pct",),
        },
    ),
    EventFamily.FUNDING: _route(
        EventFamily.FUNDING, _LEGS | {"differential_pct_8h": ("differential.pct_8h",)}
    ),
}
"""The event logs of docs/interface.md. A splash has one leg, kept in the buy columns."""
