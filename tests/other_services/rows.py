"""The kind `rows`: rows by position, a cursor in headers, and a unit that nobody knows.

What differs:

- A body is an array of arrays, newest first, without an envelope. Numbers are decimal text, but for
  the time in milliseconds. Rows that share a second lie a millisecond apart.
  A price is ``[ts_ms, "97.6", null, "12"]``: last, mark, volume. A spread is
  ``[ts_ms, buy, sell, figure]``. Funding is
  ``[ts_ms, buy rate, sell rate, buy hours, sell hours, differential]``, hours as numbers.
- The spread, the rates and the differential are in ``basis``, which is a hundredth of a percent. A
  rate is per interval, the differential per 8 h.
- The legs of a spread and of funding are ``pair=BTC_USDT&buy=KRAKEN/spot&sell=COINBASE/spot``.
- The cursor of the next page is in the response's header ``X-Mark``. It is sent back in the header
  ``X-Continue-At``. Without it there is no further page.
- A page has exactly ``limit`` rows: 50 by default. A limit above 500 is refused.
- ``end_time`` (s) is included.
- Listing and snapshots are arrays of arrays: ``["BTC_USDT", "KRAKEN", "spot"]``.
- ``/schemas`` is a list of columns with units, among them ``basis``, and states no sign.
- A refusal is ``["refused", 400, "..."]``, and names no parameter. ``/openapi.json`` names them.

What it keeps of the interface document: ``/history/price`` is asked for by symbol, exchange,
market, ``end_time`` and limit. The header ``X-Next-End-Time`` has the oldest second of the
page, whose rows come again at the top of the next one. The event logs are those of the document,
and what goes into them is passed on as it is.

What it departs from: a page that is paged by ``end_time`` alone can't get past a second that has
more rows than ``limit``. The cursor can.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from tests.other_services.server import Answer, Question
from tests.other_services.service import (
    ROOT,
    Held,
    OtherService,
    Refused,
    Row,
    read_cursor,
    whole,
    write_cursor,
)
from tests.other_services.writing import decimal_text
from toolkit.market import Family, Leg, Trajectory

BASIS_OF_PERCENT = 100
BASIS_OF_FRACTION = 10_000
COLUMNS = {
    "history/price": [["time", "ms"], ["last", "quote"], ["mark", "quote"], ["volume", "quote"]],
    "history/spread": [["time", "ms"], ["buy", "quote"], ["sell", "quote"], ["spread", "basis"]],
    "history/funding": [
        ["time", "ms"],
        *(["buy rate", "basis"], ["sell rate", "basis"]),
        *(["buy hours", "h"], ["sell hours", "h"]),
        ["differential", "basis / 8 h"],
    ],
}


class Rows(OtherService):
    """A service of the kind `rows`."""

    limit, limit_at_most = 50, 500
    named = False
    between = "/"

    def fault(self, status: int, text: str) -> object:
        return ["refused", status, text]

    def schemas(self) -> object:
        return [{"of": path, "columns": columns} for path, columns in COLUMNS.items()]

    def openapi(self) -> object:
        examples = {"pair": "BTC_USDT", "buy": "KRAKEN/spot", "sell": "COINBASE/futures"}
        parameters = [
            {"name": name, "in": "query", "required": True, "example": example}
            for name, example in examples.items()
        ]
        asked = {"get": {"parameters": parameters}}
        paths = {f"{ROOT}history/{family}": asked for family in ("spread", "funding")}
        return {"openapi": "3.1.0", "paths": paths}

    def own_rows(self, trajectory: Trajectory, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with their times in ms: a tie gets one ms more than the row before."""
        del trajectory
        found: list[dict[str, object]] = []
        last_ms = -1
        for row in rows:
            last_ms = max(row["ts"] * 1_000, last_ms + 1)
            found.append({**row, "ts_ms": last_ms})
        return found

    def record(self, family: Family, row: Row) -> object:
        if family is Family.PRICE:
            numbers = [decimal_text(row[name]) for name in ("price", "mark_price", "volume")]
            return [row["ts_ms"], *numbers]
        if family is Family.SPREAD:
            return [row["ts_ms"], *_spread(row)]
        return [
            row["ts_ms"],
            *(decimal_text(row[name], BASIS_OF_FRACTION) for name in ("buy_rate", "sell_rate")),
            *(row["buy_interval_hours"], row["sell_interval_hours"]),
            decimal_text(row["differential_pct_8h"], BASIS_OF_PERCENT),
        ]

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        limit = whole(question.parameters, "limit", self.limit)
        if not 1 <= limit <= self.limit_at_most:
            raise Refused(400, f"limit is 1 to {self.limit_at_most}")
        end = whole(question.parameters, "end_time", self.clock.now())
        of, mark = str(trajectory), question.headers.get("x-continue-at")
        last = bisect_left(held.ts, end + 1) if mark is None else read_cursor(mark, of)
        first = max(last - limit, 0)
        headers = {}
        if first > 0:
            headers["X-Mark"] = write_cursor(of, first)
            headers["X-Next-End-Time"] = str(held.ts[first])
        return Answer(held.records[first:last][::-1], headers=headers)

    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        return [[pair, leg.exchange, leg.market] for pair, legs in found.items() for leg in legs]

    def activity(self, counts: Mapping[str, int]) -> object:
        return [*counts.items()]

    def open_spreads(self) -> object:
        return [
            [str(each.symbol), *map(self.leg_text, each.legs), row["ts_ms"], *_spread(row)]
            for each, row in self.newest_spreads()
        ]

    def rates(self) -> object:
        return [
            [
                *(symbol, self.leg_text(leg), row["ts"] * 1_000),
                *(decimal_text(row["rate"], BASIS_OF_FRACTION), row["hours"]),
            ]
            for symbol, leg, row in self.newest_rates()
        ]


def _spread(row: Row) -> list[str | None]:
    prices = [decimal_text(row[name]) for name in ("buy_price", "sell_price")]
    return [*prices, decimal_text(row["spread_pct"], BASIS_OF_PERCENT)]
