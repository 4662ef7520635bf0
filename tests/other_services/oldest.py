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
  The type of an opening is ``spread.opened``, as the document says, that of a close is
  ``spread.gone``.
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
from collections.abc import Mapping, Sequence

from tests.other_services.server import Answer, Question
from tests.other_services.service import Held, OtherService, Row, moment
from tests.other_services.writing import iso
from toolkit.market import Family, Leg, Trajectory

CURSOR = "X-Log-Cursor"


class Oldest(OtherService):
    """A service of the kind `oldest`."""

    newest_first = False
    markets: Mapping[str, str] = {"spot": "SPOT", "futures": "SWAP", "dex": "ONCHAIN"}

    def fault(self, status: int, text: str) -> object:
        del status
        return {"fault": {"text": text}}

    def schemas(self) -> object:
        return {
            "times": "ISO 8601 in UTC",
            "price": "in the quote currency, at the end of the minute that begins at its time",
            "spread": "percent by which the leg sold is above the leg bought",
            "funding": (
                "settled rates as fractions of their interval; sell less buy in percent of 8 hours"
            ),
        }

    def record(self, family: Family, row: Row) -> object:
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
        del trajectory
        of = question.parameters
        until = moment(of, "until", 1 << 62)
        places = held.since(moment(of, "since", 0), until, self.size(of))
        further = held.ts[places.stop] if places and places.stop < len(held.ts) else until
        next_since = iso(further) if further < until else None
        return Answer({"rows": [held.records[at] for at in places], "next_since": next_since})

    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        return {"pairs": {symbol: [*map(self.leg_text, legs)] for symbol, legs in found.items()}}

    def _board(self, board: object) -> object:
        return {"at": iso(self.clock.now()), "board": board}

    def activity(self, counts: Mapping[str, int]) -> object:
        return self._board(counts)

    def open_spreads(self) -> object:
        board: dict[str, list[object]] = {}
        for trajectory, row in self.newest_spreads():
            of_pair = board.setdefault(str(trajectory.symbol), [])
            of_pair.append([*map(self.leg_text, trajectory.legs), row["spread_pct"]])
        return self._board(board)

    def rates(self) -> object:
        board: dict[str, dict[str, object]] = {}
        for symbol, leg, row in self.newest_rates():
            board.setdefault(symbol, {})[self.leg_text(leg)] = [row["rate"], row["hours"]]
        return self._board(board)

    def document(self, event: Row) -> bytes:
        family, _, change = event["event_type"].partition(".")
        word = {"opened": "opened" if family == "spread" else "born", "closed": "gone"}
        legs = [
            self.leg_text(Leg.parse(f"{event[f'{side}_exchange']}.{event[f'{side}_market']}"))
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
                "lifecycle": {"open": "born", "closed": "gone"}.get(event["lifecycle"]),
                "instrument": {"symbol": event["symbol"], "legs": legs},
                **{name: event[of] for name, of in names.items() if event[of] is not None},
                "end": event["close_reason"],
            }
        ).encode()

    def event_cursor(self, question: Question) -> str | None:
        return question.headers.get(CURSOR.lower())

    def events(self, family: str, question: Question) -> Answer:
        documents, further = self.event_documents(family, question)
        head = f'{{"log": {{"family": "{family}", "documents": ['.encode()
        headers = {} if further is None else {CURSOR: further}
        return Answer(head + b",".join(documents) + b"]}}", headers=headers)
