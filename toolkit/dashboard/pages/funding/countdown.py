"""Countdown to the next settlement of a pair's legs, in the browser."""

from __future__ import annotations

import polars as pl

from toolkit.dashboard.screen import component
from toolkit.dashboard.shell import PageShell
from toolkit.foreign import plain
from toolkit.market import Family, Trajectory
from toolkit.statistics.funding import intervals

_HOUR_S = 3_600
_COUNTDOWN = component("countdown")


def show_countdown(
    shell: PageShell, pair: str, rows: pl.DataFrame, rates: pl.DataFrame | None
) -> None:
    """Show how long it is until each leg settles. Nothing where neither is known.

    ``rates`` are those in force by the service's overview, None without one.
    """
    due = due_in(pair, rows, rates, shell.held.now())
    if due:
        _COUNTDOWN(data={"due": due}, key="countdown")


_HELD = {"buy": "long", "sell": "short"}


def due_in(
    pair: str, rows: pl.DataFrame, rates: pl.DataFrame | None, now: int
) -> list[dict[str, str | int]]:
    """Return of each leg its side and name, and the seconds from ``now`` to its next settlement.

    The time is that of the service's overview. Without one it is an interval after the leg's newest
    settlement. A time that is over is moved on by whole intervals.

    >>> rows = pl.DataFrame({"trajectory": ["a"], "ts": [28800], "buy_rate": [0.0],
    ...     "sell_rate": [1e-4], "buy_interval_hours": [None], "sell_interval_hours": [8.0]})
    >>> due_in("funding/A_B:X.spot:Y.futures", rows, None, 30000)
    [{'leg': 'short Y.futures', 'in_s': 27600, 'every_s': 28800}]
    >>> due_in("funding/A_B:X.spot:Y.futures", rows, None, 300000)
    []
    """
    known = Trajectory.parse(pair, Family.FUNDING)
    settled = intervals(rows).sort("ts").drop_nulls("interval_hours")
    due: list[dict[str, str | int]] = []
    for side, leg in known.sides.items():
        found = settled.filter(leg=side).select("ts", "interval_hours").tail(1).rows()
        at, hours = found[0] if found else (None, None)
        at = None if at is None else at + round(_HOUR_S * hours)
        if rates is not None:
            listed = rates.filter(symbol=str(known.symbol), leg=str(leg))
            listed = listed.drop_nulls("next_funding_time")
            for row in listed.head(1).iter_rows(named=True):
                at, hours = row["next_funding_time"], row["interval_hours"]
        if at is None or not hours or hours <= 0:
            continue
        every_s = max(1, round(_HOUR_S * hours))
        if now - at > 2 * every_s:
            continue
        left = at - now if at > now else every_s - (now - at) % every_s
        due.append({"leg": plain(f"{_HELD[side]} {leg}"), "in_s": left, "every_s": every_s})
    return due
