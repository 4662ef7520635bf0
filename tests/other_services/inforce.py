"""The kind `inforce`: funding as rates in force, in percent per hour, one row per hour.

What differs:

- Funding has a row for each full hour, from the first settlement of either leg until the newest
  settlement's interval has ended: ``{"at": .., "buy_pct_h": "0.00125", "sell_pct_h": "0.0025",
  "diff_pct_h": "0.00125"}``. A rate is the one in force at that hour: of the leg's last settlement
  at or before it, in percent per hour. It is null before the leg's first one, and the difference
  with it. A rate that settles is not marked. No intervals are sent.
- All numbers are decimal text. A price is ``{"at": .., "close": "97.6", "mark": null,
  "turnover": "12"}``. A spread is ``{"at": .., "buy": "97.6", "sell": "97.7", "diff_pct": "0.1"}``.
- The legs are in one parameter: ``symbol=BTC_USDT&legs=KRAKEN.spot,COINBASE.spot``, buy first.
- A page is ``{"series": "spread", "points": [...], "next_end_time": ..}``, newest first.
  ``end_time`` is excluded, ``next_end_time`` is the oldest ``at`` of the page, and it is there on
  every page with rows. The page after the last one is empty and has none. A page has at most 300
  rows, which is also the default. More are not refused, and not given.
- The listing is a list of text: ``BTC_USDT@KRAKEN.spot``. Snapshots are lists of ``points``. The
  rates of theirs are in force, in percent per hour.
- ``/schemas`` names ``percent_per_hour`` and has ``"rates": "in_force"``.
- A refusal is ``{"error": {"code": "bad_request", "reason": "..."}}``.

What it keeps of the interface document: all that it states. What goes into the event logs is passed
on as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tests.other_services.server import Answer, Question
from tests.other_services.service import Held, OtherService, Row, trajectory_of, whole
from tests.other_services.writing import decimal_text
from toolkit.market import Family, Leg, Trajectory

HOUR_S = 3_600
SIDES = ("buy", "sell")
RATES = ("buy_pct_h", "sell_pct_h", "diff_pct_h")
PRICE = {"close": "price", "mark": "mark_price", "turnover": "volume"}
SPREAD = {"buy": "buy_price", "sell": "sell_price", "diff_pct": "spread_pct"}
UNITS = {
    "history/price": {"at": "s", "close": "quote", "mark": "quote", "turnover": "quote"},
    "history/spread": {"at": "s", "buy": "quote", "sell": "quote", "diff_pct": "percent"},
    "history/funding": {"at": "s", **dict.fromkeys(RATES, "percent_per_hour")},
}
CODES = {400: "bad_request", 401: "no_key", 404: "not_found"}


class InForce(OtherService):
    """A service of the kind `inforce`."""

    limit = limit_at_most = 300

    def fault(self, status: int, text: str) -> object:
        return {"error": {"code": CODES[status], "reason": text}}

    def schemas(self) -> object:
        return {"units": UNITS, "numbers": "decimal text", "rates": "in_force"}

    def asked(self, family: Family, parameters: Mapping[str, str]) -> Trajectory:
        symbol = self.required(parameters, "symbol", "BTC_USDT")
        legs = self.required(parameters, "legs", "KRAKEN.spot,COINBASE.spot").split(",")
        return trajectory_of(family, symbol, legs)

    def own_rows(self, trajectory: Trajectory, rows: Sequence[Row]) -> Sequence[Row]:
        return in_force(rows) if trajectory.family is Family.FUNDING else rows

    def record(self, family: Family, row: Row) -> object:
        if family is Family.FUNDING:
            return {"at": row["ts"], **dict(zip(RATES, _rates(row), strict=True))}
        return _numbers(PRICE if family is Family.PRICE else SPREAD, row)

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        end = whole(question.parameters, "end_time", 1 << 62)
        places = held.before(end, self.size(question.parameters))
        points = [held.records[place] for place in reversed(places)]
        further = {"next_end_time": held.ts[places.start]} if places else {}
        return Answer({"series": trajectory.family, "points": points, **further})

    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        return {"instruments": [f"{pair}@{leg}" for pair, legs in found.items() for leg in legs]}

    def activity(self, counts: Mapping[str, int]) -> object:
        return {"points": [{"family": name, "events": n} for name, n in counts.items()]}

    def open_spreads(self) -> object:
        found = []
        for trajectory, row in self.newest_spreads():
            buy, sell = map(str, trajectory.legs)
            legs = {"symbol": str(trajectory.symbol), "buy_leg": buy, "sell_leg": sell}
            found.append({**legs, **_numbers(SPREAD, row)})
        return {"points": found}

    def rates(self) -> object:
        return {
            "points": [
                {"instrument": f"{symbol}@{leg}", "pct_h": _pct_h(row["rate"], row["hours"])}
                for symbol, leg, row in self.newest_rates()
            ]
        }


def _numbers(names: Mapping[str, str], row: Row) -> dict[str, object]:
    return {"at": row["ts"], **{name: decimal_text(row[of]) for name, of in names.items()}}


def in_force(rows: Sequence[Row]) -> list[Row]:
    """Return the rates in force at each full hour, of settlements in the order of their times.

    Columns of both: ts (s), and of each leg its rate (fraction per interval) and the interval (h).

    >>> one = {"ts": 0, "buy_rate": 0.01, "buy_interval_hours": 2, "sell_interval_hours": 1}
    >>> [(row["ts"], row["buy_rate"]) for row in in_force([{**one, "sell_rate": None}])]
    [(0, 0.01), (3600, 0.01)]
    """
    if not rows:
        return []
    found: dict[int, dict[str, object]] = {}
    settled = {side: [row for row in rows if row[f"{side}_rate"] is not None] for side in SIDES}
    end = max(
        row["ts"] + int(row[f"{side}_interval_hours"] * HOUR_S)
        for side, known in settled.items()
        for row in known
    )
    for side, known in settled.items():
        names = (f"{side}_rate", f"{side}_interval_hours")
        times = [row["ts"] for row in known]
        for ts in range(-(-rows[0]["ts"] // HOUR_S) * HOUR_S, end, HOUR_S):
            place = bisect_right(times, ts)
            of_leg = {name: known[place - 1][name] if place else None for name in names}
            found[ts] = found.get(ts, {"ts": ts}) | of_leg
    return list(found.values())


def _rates(row: Row) -> list[str | None]:
    """Return both rates and their difference: that of the texts, null where one is unknown."""
    buy, sell = (_pct_h(row[f"{side}_rate"], row[f"{side}_interval_hours"]) for side in SIDES)
    if buy is None or sell is None:
        return [buy, sell, None]
    return [buy, sell, decimal_text(1, Fraction(sell) - Fraction(buy))]


def _pct_h(rate: float | None, hours: float | None) -> str | None:
    return None if rate is None or hours is None else decimal_text(rate, 100 / Fraction(hours))
