"""The terms of each plan, and counts of each owner's requests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from toolkit.errors import InputError
from toolkit.market import Plan
from toolkit.service.accounts.owners import DEMO, Owners, OwnersFile
from toolkit.service.accounts.problems import Problem

WINDOW_S = 60
"""The length of a window (s)."""


@dataclass(slots=True)
class _QuotaWindow:
    begun: float
    spent: int


class Quotas:
    """Counts the requests of each owner over all keys.

    A window begins with an owner's first request and ends 60 s later, by a monotonic clock, since
    the service's own may be fixed. Requests beyond the quota are refused, and are not counted.
    """

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._windows: dict[str, _QuotaWindow] = {}

    def spend(self, owner: str, quota: int, *, policy: str) -> dict[str, str]:
        """Count one request, and return the headers with the quota and what is left of it.

        A spent quota is a 429 `Problem`, with these headers too. ``policy`` names it in them.
        """
        now = self._ticks()
        window = self._windows.get(owner)
        if window is None or now - window.begun >= WINDOW_S:
            window = self._windows[owner] = _QuotaWindow(now, 0)
        wait_s = max(1, math.ceil(window.begun + WINDOW_S - now))
        stated = f'"{policy}";q={quota};w={WINDOW_S}'
        if window.spent >= quota:
            raise Problem(
                429,
                "quota_exhausted",
                f"The quota of {quota} requests per minute is spent; retry in {wait_s} s.",
                headers={
                    "Retry-After": f"{wait_s}",
                    "RateLimit-Policy": stated,
                    "RateLimit": f'"{policy}";r=0;t={wait_s}',
                },
            )
        window.spent += 1
        left = f'"{policy}";r={quota - window.spent};t={wait_s}'
        return {"RateLimit-Policy": stated, "RateLimit": left}


_HOUR_S, _DAY_S = 3_600, 86_400


@dataclass(frozen=True, slots=True)
class Limit:
    """Rows of a page, by default and at most."""

    default: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back a plan sees (None: without limit), and with what delay."""

    retention_s: int | None = None
    delay_s: int = 0


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan includes (docs/interface.md, "Plans").

    ``quota`` is requests per minute, ``stream_open_delay_s`` (s) how late a socket sends the
    openings of spreads. The minimum plan of each tool is in the registry.
    """

    quota: int
    page: Limit
    history: Reach
    spread_history: Reach
    spread_events: Reach
    events: Reach = Reach(30 * _DAY_S)
    dashboard: Reach = Reach()
    metadata: Reach = Reach()
    stream_open_delay_s: int = 0


TERMS: Mapping[Plan, Terms] = MappingProxyType(
    {
        Plan.FREE: Terms(
            quota=60,
            page=Limit(500, 1_000),
            history=Reach(7 * _DAY_S),
            spread_history=Reach(7 * _DAY_S, delay_s=60),
            spread_events=Reach(_HOUR_S, delay_s=60),
            metadata=Reach(delay_s=600),
        ),
        Plan.BUILDER: Terms(
            quota=600,
            page=Limit(500, 5_000),
            history=Reach(30 * _DAY_S),
            spread_history=Reach(30 * _DAY_S),
            spread_events=Reach(30 * _DAY_S),
            dashboard=Reach(delay_s=30),
            stream_open_delay_s=30,
        ),
        Plan.PRO: Terms(
            quota=6_000,
            page=Limit(500, 10_000),
            history=Reach(30 * _DAY_S),
            spread_history=Reach(30 * _DAY_S),
            spread_events=Reach(30 * _DAY_S),
        ),
    }
)
"""The terms of each plan."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The owners, and the terms of their plans.

    ``retention_s`` (s) and ``quota`` (requests per minute) replace every plan's own; None does not.
    """

    owners: Owners | OwnersFile = DEMO
    retention_s: int | None = None
    quota: int | None = None
    _terms: Mapping[Plan, Terms] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.retention_s is not None and self.retention_s <= 0:
            raise InputError("retention_s", self.retention_s, "seconds above 0, or None")
        if self.quota is not None and self.quota <= 0:
            raise InputError("quota", self.quota, "requests per minute above 0, or None")
        object.__setattr__(self, "_terms", {plan: self._changed(TERMS[plan]) for plan in Plan})

    def terms(self, plan: Plan) -> Terms:
        """Return the terms of a plan at this service."""
        return self._terms[plan]

    def _changed(self, terms: Terms) -> Terms:
        if self.retention_s is not None:
            terms = replace(
                terms,
                history=replace(terms.history, retention_s=self.retention_s),
                spread_history=replace(terms.spread_history, retention_s=self.retention_s),
            )
        return terms if self.quota is None else replace(terms, quota=self.quota)
