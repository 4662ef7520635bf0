"""The kind `nested`: nested records of decimal text, ISO times, and one composed key.

What differs:

- A trajectory is asked for by one parameter, ``key=BTC_USDT|KRAKEN:SPOT|COINBASE:SPOT``: symbol,
  buy leg, sell leg. A price has one leg in it. The market words are ``SPOT``, ``PERP`` and ``DEX``.
- A page is ``{"result": {"data": [...], "page": {"before": ...}}}``, newest first. ``before`` is an
  ISO time and is sent back as the parameter ``before``: rows older than it. ``page`` is ``{}`` at
  the end. A page has 100 rows, and up to 1,000 by ``limit``. More are not refused, and not given.
- Records are nested. Times are ISO 8601, numbers are decimal text:
  ``{"t": {"open": "2026-11-01T00:00:00Z"}, "px": {"last": "97.61", "mark": null}, "vol": "12.5"}``.
- A spread is in bps:
  ``{"t": .., "legs": {"buy": {"px": ..}, "sell": {"px": ..}}, "edge": {"bps": ..}}``.
- The differential of funding is a fraction per year. Rates are fractions per interval, with its
  hours as text: ``{"t": {"settled": ..}, "legs": {"buy": {"rate": .., "hours": "8"}, ..},
  "edge": {"per_year": ".."}}``.
- Listing, snapshots and event documents are nested too, and write exchanges in lower case.
- There is no ``/schemas`` (404).
- A refusal is ``{"result": null, "errors": [{"detail": "..."}]}``.

What it keeps of the interface document: ``/history/price`` also takes symbol, exchange, market and
``end_time`` (s), and ``page`` has ``next_end_time`` (s) too. The event logs are asked for and paged
as the document says, and their documents have schema, event_type and instrument.symbol.

What it departs from: times that are no Unix seconds, exchanges in lower case in payloads, and no
``/schemas``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.other_services.server import Answer, Question
from tests.other_services.service import Held, OtherService, Row, moment, trajectory_of, whole
from tests.other_services.writing import decimal_text, iso
from toolkit.market import Family, Leg, Trajectory

STATES = {"open": "OPEN", "closed": "CLOSED"}
BPS_OF_PERCENT = 100
PER_YEAR_OF_PCT_8H = Fraction(8_760, 8 * 100)
"""A fraction per year, of one percent per 8 h."""


class Nested(OtherService):
    """A service of the kind `nested`."""

    markets: Mapping[str, str] = {"spot": "SPOT", "futures": "PERP", "dex": "DEX"}

    def fault(self, status: int, text: str) -> object:
        return {"result": None, "errors": [{"detail": text, "http": status}]}

    def asked(self, family: Family, parameters: Mapping[str, str]) -> Trajectory:
        example = "KRAKEN:SPOT" if family is Family.PRICE else "KRAKEN:SPOT|COINBASE:PERP"
        symbol, *legs = self.required(parameters, "key", f"BTC_USDT|{example}").split("|")
        return trajectory_of(family, symbol, map(self.read_leg, legs))

    def record(self, family: Family, row: Row) -> object:
        ts = iso(row["ts"])
        if family is Family.PRICE:
            prices = {"last": decimal_text(row["price"]), "mark": decimal_text(row["mark_price"])}
            return {"t": {"open": ts}, "px": prices, "vol": decimal_text(row["volume"])}
        if family is Family.SPREAD:
            return {"t": {"open": ts}, **_spread(row)}
        names = {"rate": "rate", "hours": "interval_hours"}
        legs = {
            side: {name: decimal_text(row[f"{side}_{of}"]) for name, of in names.items()}
            for side in ("buy", "sell")
        }
        edge = decimal_text(row["differential_pct_8h"], PER_YEAR_OF_PCT_8H)
        return {"t": {"settled": ts}, "legs": legs, "edge": {"per_year": edge}}

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        del trajectory
        of = question.parameters
        before = moment(of, "before", whole(of, "end_time", 1 << 62))
        places = held.before(before, self.size(of))
        page: dict[str, object] = {}
        if places and places.start > 0:
            oldest = held.ts[places.start]
            page = {"before": iso(oldest), "next_end_time": oldest}
        return Answer(_result([held.records[place] for place in reversed(places)], page))

    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        return _result(
            [{"pair": pair, "places": [*map(self._place, legs)]} for pair, legs in found.items()]
        )

    def activity(self, counts: Mapping[str, int]) -> object:
        return _result([{"family": name, "day": str(count)} for name, count in counts.items()])

    def open_spreads(self) -> object:
        found = []
        for trajectory, row in self.newest_spreads():
            item = _spread(row)
            for side, leg in zip(("buy", "sell"), trajectory.legs, strict=True):
                item["legs"][side] |= self._place(leg)
            found.append({"pair": str(trajectory.symbol), "t": {"open": iso(row["ts"])}, **item})
        return _result(found)

    def rates(self) -> object:
        return _result(
            [
                {
                    "pair": symbol,
                    **self._place(leg),
                    "t": {"settled": iso(row["ts"])},
                    "now": {"rate": decimal_text(row["rate"]), "hours": decimal_text(row["hours"])},
                }
                for symbol, leg, row in self.newest_rates()
            ]
        )

    def document(self, event: Row) -> bytes:
        legs = {
            side: self._place(Leg.parse(f"{event[f'{side}_exchange']}.{event[f'{side}_market']}"))
            for side in ("buy", "sell")
            if event[f"{side}_exchange"]
        }
        size = {
            "bps": decimal_text(event["magnitude_pct"], BPS_OF_PERCENT),
            "peak_bps": decimal_text(event["peak_pct"], BPS_OF_PERCENT),
            "per_year": decimal_text(event["differential_pct_8h"], PER_YEAR_OF_PCT_8H),
        }
        return json.dumps(
            {
                "schema": event["schema_id"],
                "event_type": event["event_type"],
                "meta": {"id": event["event_id"], "state": STATES.get(event["lifecycle"])},
                "t": {"happened": iso(event["ts_ms"] / 1_000)},
                "instrument": {"symbol": event["symbol"]},
                "legs": legs,
                "size": {name: value for name, value in size.items() if value is not None},
                "why": event["close_reason"],
            }
        ).encode()

    def _place(self, leg: Leg) -> dict[str, str]:
        return {"venue": leg.exchange.lower(), "kind": self.markets[leg.market.value]}


def _result(data: object, page: object = None) -> object:
    return {"result": {"data": data, "page": page or {}}}


def _spread(row: Row) -> dict[str, Any]:
    legs = {side: {"px": decimal_text(row[f"{side}_price"])} for side in ("buy", "sell")}
    return {"legs": legs, "edge": {"bps": decimal_text(row["spread_pct"], BPS_OF_PERCENT)}}
