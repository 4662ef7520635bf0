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
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tests.other_services.server import Answer, Question
from tests.other_services.service import (
    DAY_S,
    Held,
    OtherService,
    Refused,
    Row,
    promised_price,
    required,
    trajectory_of,
    whole,
)
from tests.other_services.writing import decimal_text, iso, seconds
from toolkit.market import Family, Leg, Trajectory

MARKETS = {"spot": "SPOT", "futures": "PERP", "dex": "DEX"}
STATES = {"open": "OPEN", "closed": "CLOSED"}
BPS_OF_PERCENT = 100
PER_YEAR_OF_PCT_8H = Fraction(8_760, 8 * 100)
"""A fraction per year, of one percent per 8 h."""


class Nested(OtherService):
    """A service of the kind `nested`."""

    def fault(self, status: int, text: str) -> object:
        """Return the errors in a list beside an empty result."""
        return {"result": None, "errors": [{"detail": text, "http": status}]}

    def asked(self, family: Family, parameters: Mapping[str, str]) -> Trajectory:
        """Read ``key``, or what the interface document promises of prices."""
        if family is Family.PRICE and "symbol" in parameters:
            return promised_price(parameters)
        legs_of_it = "KRAKEN:SPOT" if family is Family.PRICE else "KRAKEN:SPOT|COINBASE:PERP"
        symbol, *legs = required(parameters, "key", f"BTC_USDT|{legs_of_it}").split("|")
        words = {word: market for market, word in MARKETS.items()}
        read = []
        for leg in legs:
            exchange, _, word = leg.partition(":")
            if word not in words:
                raise Refused(400, f"the key has no market {word!r}")
            read.append(f"{exchange}.{words[word]}")
        return trajectory_of(family, symbol, read)

    def record(self, family: Family, row: Row) -> object:
        """Nest a row, with its numbers as text."""
        ts = iso(row["ts"])
        if family is Family.PRICE:
            prices = {"last": decimal_text(row["price"]), "mark": decimal_text(row["mark_price"])}
            return {"t": {"open": ts}, "px": prices, "vol": decimal_text(row["volume"])}
        if family is Family.SPREAD:
            return {"t": {"open": ts}, **_spread(row)}
        edge = decimal_text(row["differential_pct_8h"], PER_YEAR_OF_PCT_8H)
        legs = {
            side: {
                "rate": decimal_text(row[f"{side}_rate"]),
                "hours": decimal_text(row[f"{side}_interval_hours"]),
            }
            for side in ("buy", "sell")
        }
        return {"t": {"settled": ts}, "legs": legs, "edge": {"per_year": edge}}

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return a page with the rows before a moment, newest first."""
        del trajectory
        limit = whole(question.parameters, "limit", self.limit)
        places = held.before(_before(question.parameters), min(max(limit, 1), self.limit_at_most))
        page: dict[str, object] = {}
        if places and places.start > 0:
            oldest = held.ts[places.start]
            page = {"before": iso(oldest), "next_end_time": oldest}
        return _result([held.records[place] for place in reversed(places)], page)

    def symbols(self, question: Question) -> Answer:
        """Return a list of pairs, each with its places."""
        return _result(
            [
                {"pair": symbol, "places": [_place(leg) for leg in legs]}
                for symbol, legs in self.found_symbols(question).items()
            ]
        )

    def activity(self, question: Question) -> Answer:
        """Return a list of families with the events of a day."""
        del question
        counts = self.event_counts(DAY_S)
        return _result([{"family": name, "day": str(count)} for name, count in counts.items()])

    def open_spreads(self, question: Question) -> Answer:
        """Return the newest rows, each with its pair and the places of its legs."""
        del question
        found = []
        for trajectory, row in self.newest_spreads():
            item = _spread(row)
            for side, leg in zip(("buy", "sell"), trajectory.legs, strict=True):
                item["legs"][side] |= _place(leg)
            found.append({"pair": str(trajectory.symbol), "t": {"open": iso(row["ts"])}, **item})
        return _result(found)

    def rates(self, question: Question) -> Answer:
        """Return the rates with their hours, each with its pair and place."""
        del question
        return _result(
            [
                {
                    "pair": symbol,
                    **_place(leg),
                    "t": {"settled": iso(row["ts"])},
                    "now": {"rate": decimal_text(row["rate"]), "hours": decimal_text(row["hours"])},
                }
                for symbol, leg, row in self.newest_rates()
            ]
        )

    def document(self, event: Row) -> bytes:
        """Write a document of its own: nested, decimal text, ISO times."""
        legs = {
            side: _place(Leg.parse(f"{event[f'{side}_exchange']}.{event[f'{side}_market']}"))
            for side in ("buy", "sell")
            if event.get(f"{side}_exchange")
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


def _before(parameters: Mapping[str, str]) -> float:
    """Return the moment (s) that rows have to be older than; without one, all of them."""
    if "before" not in parameters:
        return whole(parameters, "end_time", 1 << 62)
    try:
        return seconds(parameters["before"])
    except ValueError as error:
        raise Refused(400, "before has to be an ISO 8601 time with a zone") from error


def _result(data: object, page: object = None) -> Answer:
    return Answer({"result": {"data": data, "page": page or {}}})


def _place(leg: Leg) -> dict[str, str]:
    return {"venue": leg.exchange.lower(), "kind": MARKETS[leg.market.value]}


def _spread(row: Row) -> dict[str, Any]:
    legs = {side: {"px": decimal_text(row[f"{side}_price"])} for side in ("buy", "sell")}
    return {"legs": legs, "edge": {"bps": decimal_text(row["spread_pct"], BPS_OF_PERCENT)}}
