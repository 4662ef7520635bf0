"""The kinds `opposite` and `opposite-unsaid`: figures of the other sign, and nothing of the legs.

What differs:

- A spread is its figure alone: ``{"time": 1793491200, "premium_pct": 0.12}``. It is positive where
  the leg bought is the dearer one, so a position that is long the buy leg and short the sell leg
  loses it. It is percent of the buy price.
- Funding is its figure alone: ``{"time": .., "advantage_pct_8h": 0.01}``. It is positive where the
  leg bought has the higher rate.
- Numbers are JSON numbers. A price is ``{"time": .., "price": .., "mark": .., "volume": ..}``.
- The legs are ``symbol=BTC_USDT&first=KRAKEN:spot&second=COINBASE:spot``: first is bought.
- A page is ``{"type": "spread_page", "points": [...], "next_end_time": ..}``, its oldest row first.
  ``end_time`` is included, and ``next_end_time`` is one second before the oldest row of the page,
  null at the end. A page has 200 rows, and up to 2,000 by ``limit``.
- Snapshots and listing are objects by symbol, of exchanges or legs. Their spreads have the same
  sign as the history, and no prices.
- ``/schemas`` of `opposite` has ``positive_means`` beside each figure. That of `opposite-unsaid`
  has the units alone, so that nothing shows the sign.
- A refusal is ``{"message": "...", "status": 400}``. That of `opposite` names the parameter that is
  missing, that of `opposite-unsaid` none.

What it keeps of the interface document: all that it states. What goes into the event logs is passed
on as it is, with the sizes of its data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.other_services.data import Data
from tests.other_services.server import Answer, Question
from tests.other_services.service import Held, OtherService, Row, whole
from toolkit.market import Family, Leg, Trajectory

FIGURES = {Family.SPREAD: "premium_pct", Family.FUNDING: "advantage_pct_8h"}
UNITS = {
    "price": {"time": "s", "price": "quote", "mark": "quote", "volume": "quote"},
    "spread": {"time": "s", "premium_pct": "percent"},
    "funding": {"time": "s", "advantage_pct_8h": "percent_per_8h"},
}
MEANING = "short the first leg and long the second leg earns"


class Opposite(OtherService):
    """A service of the kind `opposite`, ``said`` where it states signs and parameters."""

    limit, limit_at_most = 200, 2_000
    symbol, legs = "symbol", ("first", "second")

    def __init__(self, data: Data, *, said: bool = True) -> None:
        super().__init__(data)
        self.named = said

    def fault(self, status: int, text: str) -> object:
        return {"message": text, "status": status}

    def schemas(self) -> object:
        found: dict[str, Any] = {}
        for family, units in UNITS.items():
            fields: dict[str, Any] = {name: {"unit": unit} for name, unit in units.items()}
            if self.named and family in list(FIGURES):
                fields[FIGURES[Family(family)]]["positive_means"] = MEANING
            found[family] = {"fields": fields, "key": ["time"]}
        return {"histories": found, "paging": "end_time is included; send next_end_time"}

    def record(self, family: Family, row: Row) -> object:
        if family is Family.PRICE:
            prices = {"price": row["price"], "mark": row["mark_price"], "volume": row["volume"]}
            return {"time": row["ts"], **prices}
        name = "spread_pct" if family is Family.SPREAD else "differential_pct_8h"
        return {"time": row["ts"], FIGURES[family]: _turned(row[name])}

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        end = whole(question.parameters, "end_time", self.clock.now())
        places = held.before(end + 1, self.size(question.parameters))
        further = held.ts[places.start] - 1 if places and places.start > 0 else None
        points = [held.records[place] for place in places]
        head = {"type": f"{trajectory.family}_page", "symbol": str(trajectory.symbol)}
        return Answer({**head, "points": points, "next_end_time": further})

    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        listed: dict[str, dict[str, list[str]]] = {}
        for symbol, legs in found.items():
            for leg in legs:
                markets = listed.setdefault(symbol, {}).setdefault(leg.exchange, [])
                markets.append(leg.market.value)
        return listed

    def activity(self, counts: Mapping[str, int]) -> object:
        return {"events_24h": counts}

    def open_spreads(self) -> object:
        found: dict[str, list[object]] = {}
        for trajectory, row in self.newest_spreads():
            first, second = map(self.leg_text, trajectory.legs)
            item = {"first": first, "second": second, "premium_pct": _turned(row["spread_pct"])}
            found.setdefault(str(trajectory.symbol), []).append(item)
        return {"spreads": found}

    def rates(self) -> object:
        found: dict[str, dict[str, object]] = {}
        for symbol, leg, row in self.newest_rates():
            rate = {"rate": row["rate"], "hours": row["hours"], "since": row["ts"]}
            found.setdefault(symbol, {})[self.leg_text(leg)] = rate
        return {"rates": found}


def _turned(value: float | None) -> float | None:
    return None if value is None else -value
