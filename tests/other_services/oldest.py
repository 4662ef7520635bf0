"""The kind `oldest`: oldest first, paged forward in time, also the logs.

What differs:

- A page of a trajectory holds its oldest rows from ``since`` on: an ISO time, included. ``until``
  is an ISO time, excluded. Without ``since`` a page begins with the oldest row that is held.
- It is ``{"rows": [...], "next_since": ..}``, oldest first. ``next_since`` is the time of the first
  row that is not on the page, null where the newest row is on it. A page has 100 rows, and up to
  1,000 by ``limit``.
- Times are ISO 8601. Numbers are JSON numbers. A price is ``{"time": .., "price": .., "mark": ..,
  "volume": ..}``, a spread ``{"time": .., "buy": .., "sell": .., "pct": ..}``, funding ``{"time":
  .., "buy": {"rate": .., "hours": ..}, "sell": {..}, "pct_8h": ..}``.
- A leg is ``KRAKEN:SPOT``. The market words are ``SPOT``, ``SWAP`` and ``ONCHAIN``. A trajectory is
  ``pair=BTC_USDT&leg=KRAKEN:SPOT``, or ``pair=BTC_USDT&buy=KRAKEN:SPOT&sell=COINBASE:SPOT``.
- The listing is ``{"pairs": {"BTC_USDT": ["KRAKEN:SPOT", ...]}}``. Snapshots are ``{"at": ..,
  "board": {"BTC_USDT": [[buy, sell, percent], ...]}}`` and ``{"at": .., "board": {"BTC_USDT":
  {"KRAKEN:SWAP": [rate, hours]}}}``.
- The event logs are oldest first: ``{"log": {"family": .., "documents": [...]}}``. The cursor of
  the next page is in the header ``X-Log-Cursor`` of the answer, and is sent back in that of the
  request. Without it there is no further page.
- Documents have the lifecycle ``born`` or ``gone``, ISO times, and ``"legs": ["KRAKEN:SPOT", ..]``.
  The filter ``lifecycle`` takes ``born`` and ``gone``, and ``open`` too. The type of an opening is
  ``spread.opened``, as the document says, that of a close is ``spread.gone``.
- ``/schemas`` has units and signs as sentences.
- A refusal is ``{"fault": {"text": "..."}}``.

What it keeps of the interface document: the paths, ``/history/price`` by symbol, exchange and
market, start_time, end_time and limit of the logs with their limits, no event lost or doubled where
several share a moment, and schema, event_type and instrument.symbol of the documents.

What it departs from: trajectories are not paged backwards by ``end_time``, and have no
``next_end_time``. Times are no Unix seconds. The logs are not newest first, and the page
has not the document's fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
from tests.other_services.writing import iso, seconds
from toolkit.market import Family, Leg, Trajectory

MARKETS = {"spot": "SPOT", "futures": "SWAP", "dex": "ONCHAIN"}
STATES = {"open": "born", "closed": "gone"}
CURSOR = "X-Log-Cursor"
SENTENCES = {
    "times": "ISO 8601 in UTC",
    "price": "in the quote currency, at the end of the minute that begins at its time",
    "spread": "percent by which the leg sold is above the leg bought",
    "funding": "settled rates as fractions of their interval; sell less buy in percent of 8 hours",
}


class Oldest(OtherService):
    """A service of the kind `oldest`."""

    newest_first = False

    def fault(self, status: int, text: str) -> object:
        """Return the text of the fault."""
        del status
        return {"fault": {"text": text}}

    def schemas(self) -> object:
        """Return sentences."""
        return SENTENCES

    def asked(self, family: Family, parameters: Mapping[str, str]) -> Trajectory:
        """Read ``pair`` with its legs, and a price also as the interface document has it."""
        if family is Family.PRICE and "symbol" in parameters:
            return promised_price(parameters)
        pair = required(parameters, "pair", "BTC_USDT")
        names = ("leg",) if family is Family.PRICE else ("buy", "sell")
        legs = [_read_leg(required(parameters, name, "KRAKEN:SPOT")) for name in names]
        return trajectory_of(family, pair, legs)

    def record(self, family: Family, row: Row) -> object:
        """Return a row with an ISO time."""
        time = {"time": iso(row["ts"])}
        if family is Family.PRICE:
            names = {"price": "price", "mark": "mark_price", "volume": "volume"}
            return time | {name: row[of] for name, of in names.items()}
        if family is Family.SPREAD:
            names = {"buy": "buy_price", "sell": "sell_price", "pct": "spread_pct"}
            return time | {name: row[of] for name, of in names.items()}
        legs = {
            side: {"rate": row[f"{side}_rate"], "hours": row[f"{side}_interval_hours"]}
            for side in ("buy", "sell")
        }
        return {**time, **legs, "pct_8h": row["differential_pct_8h"]}

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return a page with the rows from a moment on, oldest first."""
        del trajectory
        parameters = question.parameters
        limit = min(max(whole(parameters, "limit", self.limit), 1), self.limit_at_most)
        since, until = _time(parameters, "since", 0), _time(parameters, "until", 1 << 62)
        places = held.since(since, until, limit)
        further = held.ts[places.stop] if places and places.stop < len(held.ts) else None
        if further is not None and further >= until:
            further = None
        return Answer(
            {
                "rows": [held.records[place] for place in places],
                "next_since": None if further is None else iso(further),
            }
        )

    def symbols(self, question: Question) -> Answer:
        """Return the legs by pair."""
        found = self.found_symbols(question).items()
        return Answer({"pairs": {symbol: [*map(_leg, legs)] for symbol, legs in found}})

    def activity(self, question: Question) -> Answer:
        """Return the events of a day by family."""
        del question
        return Answer({"at": iso(self.clock.now()), "board": self.event_counts(DAY_S)})

    def open_spreads(self, question: Question) -> Answer:
        """Return both legs and the spread, by pair."""
        del question
        board: dict[str, list[object]] = {}
        for trajectory, row in self.newest_spreads():
            of_pair = board.setdefault(str(trajectory.symbol), [])
            of_pair.append([*map(_leg, trajectory.legs), row["spread_pct"]])
        return Answer({"at": iso(self.clock.now()), "board": board})

    def rates(self, question: Question) -> Answer:
        """Return rate and hours, by pair and leg."""
        del question
        board: dict[str, dict[str, object]] = {}
        for symbol, leg, row in self.newest_rates():
            board.setdefault(symbol, {})[_leg(leg)] = [row["rate"], row["hours"]]
        return Answer({"at": iso(self.clock.now()), "board": board})

    def document(self, event: Row) -> bytes:
        """Write a document of its own words."""
        family, _, change = event["event_type"].partition(".")
        word = {"opened": "opened" if family == "spread" else "born", "closed": "gone"}
        legs = [
            _leg(Leg.parse(f"{event[f'{side}_exchange']}.{event[f'{side}_market']}"))
            for side in ("buy", "sell")
            if event[f"{side}_exchange"]
        ]
        names = {"pct": "magnitude_pct", "peak": "peak_pct", "pct_8h": "differential_pct_8h"}
        return json.dumps(
            {
                "schema": event["schema_id"],
                "event_type": f"{family}.{word.get(change, change)}",
                "number": event["event_id"],
                "time": iso(event["ts_ms"] / 1_000),
                "lifecycle": self.lifecycle(event),
                "instrument": {"symbol": event["symbol"], "legs": legs},
                **{name: event[of] for name, of in names.items() if event[of] is not None},
                "end": event["close_reason"],
            }
        ).encode()

    def lifecycle(self, event: Row) -> str | None:
        """Return ``born`` or ``gone``."""
        return STATES.get(event["lifecycle"])

    def event_cursor(self, question: Question) -> str | None:
        """Return the cursor of the request's header."""
        return question.headers.get(CURSOR.lower())

    def events(self, family: str, question: Question) -> Answer:
        """Return a page of a log, its cursor in a header."""
        parameters: dict[str, Any] = dict(question.parameters)
        if (word := parameters.get("lifecycle")) is not None:
            parameters["lifecycle"] = STATES.get(word, word)
        asked = Question(question.path, parameters, question.headers)
        documents, further = self.event_documents(family, asked)
        head = f'{{"log": {{"family": "{family}", "documents": ['.encode()
        headers = {} if further is None else {CURSOR: further}
        return Answer(head + b",".join(documents) + b"]}}", headers=headers)


def _leg(leg: Leg) -> str:
    return f"{leg.exchange}:{MARKETS[leg.market.value]}"


def _read_leg(text: str) -> str:
    exchange, _, word = text.partition(":")
    markets = {word: market for market, word in MARKETS.items()}
    if word not in markets:
        raise Refused(400, f"{text!r} is not a leg")
    return f"{exchange}.{markets[word]}"


def _time(parameters: Mapping[str, str], name: str, default: float) -> float:
    if name not in parameters:
        return default
    try:
        return seconds(parameters[name])
    except ValueError as error:
        raise Refused(400, f"{name} has to be an ISO 8601 time with a zone") from error
