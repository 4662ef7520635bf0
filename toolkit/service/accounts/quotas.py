"""Counts of each owner's requests, in windows of one minute."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

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

        >>> Quotas(ticks=lambda: 0.0).spend("ann", 60, policy="free")
        {'RateLimit-Policy': '"free";q=60;w=60', 'RateLimit': '"free";r=59;t=60'}
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
