"""The rates of a recorded pair by the hour, from its rows alone."""

from __future__ import annotations

import numpy as np
import polars as pl

HOUR = 3600


class Hours:
    """A pair's legs by the hour: the rate that each pays, what it settles, and what is in force."""

    def __init__(self, rows: pl.DataFrame, start: int, end: int) -> None:
        self.first, self.count = start // HOUR, (end - start) // HOUR
        legs = [
            rows.select("ts", rate=f"{side}_rate", hours=f"{side}_interval_hours").drop_nulls(
                "rate"
            )
            for side in ("buy", "sell")
        ]
        paid_for, received, settled, in_force = zip(*map(self._leg, legs), strict=True)
        self.covered = ~np.isnan(paid_for[0]) & ~np.isnan(paid_for[1])
        self.more = paid_for[1] - paid_for[0]
        self.received = received[1] - received[0]
        self.settled = settled[1] - settled[0]
        self.in_force = in_force[1] - in_force[0]
        self.n = [leg.height for leg in legs]
        self.paid_for = paid_for

    def _leg(self, leg: pl.DataFrame) -> tuple[np.ndarray, ...]:
        paid_for, received, in_force = np.full((3, self.count), np.nan)
        settled, before = np.zeros(self.count + 1), -self.first
        ends = [*(leg["ts"] // HOUR - self.first)[1:], self.count][: leg.height]
        for (ts, rate, hours), following in zip(leg.rows(), ends, strict=True):
            at = ts // HOUR - self.first
            settled[at] += rate
            since = max(before, at - int(hours), 0)
            paid_for[since:at] = rate / hours
            received[since:at] = rate / max(at - since, 1)  # whole, though it settled early
            in_force[at : min(following, at + 2 * int(hours))] = rate / hours
            before = at
        return paid_for, received, settled, in_force
