"""A check of an exchange from this machine: its listing, a page of each kind, its clock."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

from toolkit.service.market.exchanges import Outage, Refused, Wanted
from toolkit.service.market.exchanges.reading import Exchange

COLUMNS = ("legs", "bars", "back", "rates", "clock", "took")
"""Legs listed; of the first the bars of the last hour, and how far back they go, to the days asked
for; settlements of a day of the first perpetual; how far the clock is ahead of this machine's; the
longest answer."""

_HOUR_S, _DAY_S, _CLOCKS_AGREE_S = 3_600, 86_400, 5


@dataclass(slots=True)
class Checked:
    """One exchange's answers: by the names of `COLUMNS`, in words, and raw, without cookies."""

    cells: dict[str, str] = field(default_factory=lambda: dict.fromkeys(COLUMNS, "–"))
    to_do: list[str] = field(default_factory=list)
    answers: bool = False
    raw: list[dict[str, Any]] = field(default_factory=list)
    took_s: float = 0.0

    def keep(self, took_s: float, url: str, status: int, *answer: Any) -> None:
        """Keep a raw answer, as `Exchange` hands it over."""
        _, method, headers, text, _, body = answer
        told = {name: each for name, each in headers.items() if "cookie" not in name.lower()}
        line = {"url": url, "method": method, "body": body or "", "status": status}
        self.raw.append({**line, "headers": told, "text": text})
        self.took_s = max(self.took_s, took_s)
        self.cells["took"] = f"{self.took_s:.2f} s"


def check(name: str, wanted: Wanted, days: int) -> Checked:
    """Ask an exchange what it lists, for bars of now and of before, and for settlements."""
    found = Checked()
    try:
        with contextlib.closing(Exchange(name, keep=found.keep)) as exchange:
            _ask(exchange, wanted, days, found)
        found.answers = True
    except Refused as error:
        told = str(error).removeprefix(f"{name} ")
        country = "it does not serve this country or network: leave it out"
        found.to_do.append(f"{told}; {country}" if told.startswith("HTTP 4") else told)
    except Outage as error:
        found.to_do.append(f"{error}; no network, a proxy between, or an outage: try again later")
    return found


def _ask(exchange: Exchange, wanted: Wanted, days: int, found: Checked) -> None:
    legs, cells = exchange.list(wanted), found.cells
    found.to_do += exchange.left_out
    now, ahead_s = int(exchange.now()), exchange.now() - time.time()
    cells |= {"legs": f"{len(legs)}", "clock": f"{int(ahead_s)} s", "back": f"{days} d"}
    if abs(ahead_s) > _CLOCKS_AGREE_S:
        found.to_do.append(f"its clock is {ahead_s:.0f} s ahead of this machine's; its own is used")
    bars = exchange.bars(legs[0], now - _HOUR_S, now)
    cells["bars"] = f"{sum(len(each.rows.ts) for each in bars)}"
    start = now - days * _DAY_S
    try:
        next(exchange.bars(legs[0], start, start + _HOUR_S), None)
    except Refused as refused:
        if refused.reach is None:
            raise
        cells["back"] = f"{(now - refused.reach) // _HOUR_S} h"
        found.to_do.append(f"minutes go back {cells['back']}, what is older will be lost")
    if leg := next((each for each in legs if each.funding), None):
        rates = exchange.settlements(leg, now - _DAY_S, now)
        cells["rates"] = f"{sum(len(each.rows.ts) for each in rates)}"
