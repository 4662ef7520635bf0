"""What the other services serve: rows by trajectory, events by family, and a clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from toolkit.market import Family, Trajectory
from toolkit.service.market.simulator import Simulated
from toolkit.service.market.source import Clock, series

SEED = 84
NOW = 1_794_268_800
"""The clock of the sample: 2026-11-10 00:00 UTC."""

START = NOW - 6 * 3_600
"""The first bar of the sample. Its funding begins nine days before `NOW`."""

BAR_S = 60
"""A bar can be seen so long after its ``ts`` (s)."""

TRAJECTORIES = (
    "BTC_USDT:AURORA.spot",
    "BTC_USDT:CORONA.futures",
    "BTC_USDT:AURORA.spot:CORONA.futures",
    "BTC_USDT:CORONA.futures:AURORA.spot",
    "funding/BTC_USDT:CORONA.futures:DRACO.futures",
    "1000PEPE_USDT:DRACO.futures",
)
EVENTS = 320
"""Events of each family in the sample, the newest an hour old and some older than seven days."""


@dataclass(frozen=True, eq=False)
class Data:
    """What a service serves.

    ``rows`` has a frame for each trajectory's key. Columns of a price: ts (s), price, mark_price,
    volume. Of a spread: ts (s), buy_price, sell_price, spread_pct. Of funding: ts (s), buy_rate,
    sell_rate (fraction per interval), buy_interval_hours, sell_interval_hours (h),
    differential_pct_8h. All but ts may be null or left out, and several rows may share a ts.
    ``events`` has a frame for each family, with the columns of the table ``event`` of a store. A
    service that passes documents on serves the column document, byte for byte.

    A bar is shown from ``ts + 60`` on, a settlement and an event from its own time on.
    """

    rows: Mapping[str, pl.DataFrame]
    events: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)


@cache
def sample() -> Data:
    """Return a cut of the SIMULATED market: hours of bars, days of funding, events by hand.

    One price is null. Three events share each moment.
    """
    begins = {Family.FUNDING: NOW - 9 * 86_400}
    rows = {
        key: simulated_rows(key, begins.get(Trajectory.parse(key).family, START), NOW)
        for key in TRAJECTORIES
    }
    price = rows[TRAJECTORIES[0]]
    null_once = pl.when(pl.col("ts") != price["ts"][7]).then("price").alias("price")
    rows[TRAJECTORIES[0]] = price.with_columns(null_once)
    events = {family: _events(family) for family in ("spread", "splash", "funding")}
    return Data(rows, events, Clock(fixed_at=NOW))


def simulated_rows(key: str, start: int, end: int) -> pl.DataFrame:
    """Return the rows with ``start <= ts < end`` (s) of a trajectory of the SIMULATED market.

    >>> simulated_rows("BTC_USDT:AURORA.spot", START, START + 120)["ts"].to_list()
    [1794247200, 1794247260]
    """
    found = series(Simulated(SEED), Trajectory.parse(key)).between(start, end)
    columns = {name: column for name, column in found.columns.items() if column is not None}
    frame = pl.DataFrame({"ts": found.ts, **columns}).fill_nan(None)
    nothing = [
        pl.lit(None, pl.Float64).alias(name) for name in found.columns if name not in columns
    ]
    return frame.with_columns(nothing).select("ts", *found.columns)


def _events(family: str) -> pl.DataFrame:
    return pl.DataFrame(
        [_event(family, number) for number in range(EVENTS)], infer_schema_length=None
    )


def _event(family: str, number: int) -> dict[str, object]:
    closed, of_two = number % 2 == 1, family != "splash"
    facts: dict[str, object] = {
        "schema_id": f"svc.{family}.v1",
        "event_id": f"{family}-{number // 2}",
        "event_type": f"{family}.{'closed' if closed else 'opened'}",
        "ts_ms": (NOW - 3_600) * 1_000 - (EVENTS - 1 - number) // 3 * 6_000_125,
        "lifecycle": "closed" if closed else "open",
        "symbol": "BTC_USDT",
        "buy_exchange": "AURORA",
        "buy_market": "spot",
        "sell_exchange": "CORONA" if of_two else None,
        "sell_market": "futures" if of_two else None,
        "magnitude_pct": None if family == "funding" else 0.25 + number / 64,
        "peak_pct": 0.5 + number / 64 if family == "spread" else None,
        "differential_pct_8h": 0.01 + number / 1_024 if family == "funding" else None,
        "close_reason": "converged" if closed and family == "spread" else None,
    }
    return facts | {"document": _document(facts)}


def _document(facts: Mapping[str, object]) -> str:
    """Write a document that has no more than the interface and the facts themselves name."""
    named = {"schema_id": "schema"}
    fields = {named.get(name, name): value for name, value in facts.items() if name != "symbol"}
    return json.dumps(fields | {"instrument": {"symbol": facts["symbol"]}})
