"""What every exchange of the fake has: its markets, a clock, and what may be wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from tests.exchanges.truth import HOUR_S, LISTINGS, Listing, Row, Truth, written
from tests.other_services.server import Answer

HISTORY_S = 120 * 86_400  # of settlements
PRICES = ("open", "high", "low", "close", "vwap")
UNITS = {"min": 60, "s": 3_600, "ms": 3_600_000}  # an hour's
SHORT = {"BTC": "XBT", "DOGE": "XDG"}
TEMPLATES = json.loads((Path(__file__).parent / "markets.json").read_text(encoding="utf-8"))
"""Entries of market lists: ``{name}`` is text, ``=name`` the value, ``?`` chooses by what trades.
"""
OMITTED = object()
NULLS: Mapping[str, Any] = dict.fromkeys(PRICES)


@dataclass
class Trouble:
    """What is wrong with an exchange, for requests whose path has ``only`` in it.

    ``missing``: ``[start, end)`` (s) of minutes that have no row. ``null_every``: of so many
    minutes one has null for its prices. ``short_for_s``: how long a bar's volume is short after
    its end. ``stamp_late_ms`` and ``published_late_s`` are of settlements.
    """

    down: Literal["", "reset", "silence", "html"] = ""
    status: Literal[0, 403, 429, 451, 502, 503] = 0
    retry_after: float | None = None
    retry_after_as_date: bool = False
    only: str = ""
    skew_s: float = 0.0
    page_cap: int = 1 << 40
    reach_s: int = 0
    null_every: int = 0
    missing: tuple[tuple[int, int], ...] = ()
    short_for_s: float = 0.0
    stamp_late_ms: int | None = None
    published_late_s: float = 1.0

    def retry_after_text(self, now_s: float) -> str:
        """Write ``retry_after`` (s), or the date that it is."""
        seconds = self.retry_after or 0.0
        at = formatdate(now_s + seconds, usegmt=True)
        return at if self.retry_after_as_date else f"{seconds:.0f}"

    def meets(self, path: str) -> bool:
        """Return whether a request is refused or gets no answer."""
        return bool(self.down or self.status) and self.only in path


@dataclass(frozen=True)
class Settled:
    """A settlement as an exchange publishes it."""

    ts: int
    stamp_ms: int
    rate: str
    hours: int


class TooLongAgo(Exception):  # noqa: N818 - no error of the fake
    """A window begins before what an exchange still has."""


class Unknown(Exception):  # noqa: N818 - as above
    """An exchange has no such market."""


class Venue:
    """One exchange. ``now_ms`` is its own clock; its answers are in the shapes of its own."""

    name: ClassVar[str]
    hosts: ClassVar[tuple[str, ...]]
    flat: ClassVar[bool] = True
    """Whether a minute without a trade has a row, with volume 0."""
    stamps_ms: ClassVar[tuple[int, int]] = (0, 1)
    """How late settlements are stamped."""

    def __init__(self, truth: Truth, trouble: Trouble) -> None:
        self.truth, self.trouble = truth, trouble
        self.listings = [each for each in LISTINGS if each.exchange == self.name]
        self.host, self.now_ms = "", 0

    def answer(self, path: str, q: Mapping[str, Any]) -> object:
        """Return the JSON of an answer, or an `Answer`."""
        raise NotImplementedError

    def too_long_ago(self) -> object:
        """Return the answer to a window that begins too long ago."""
        return Answer({"message": "too long ago"}, 400)

    def unknown(self) -> object:
        """Return the answer about a market that isn't listed."""
        return Answer({"message": "NotFound"}, 404)

    def market_id(self, listing: Listing) -> str:
        """Return the exchange's own name of a market."""
        return f"{coin(listing)}{listing.quote}"

    def listed(self, *, spot: bool) -> Iterator[Listing]:
        """Yield the markets of one kind that have begun; those that ended stay listed."""
        for each in self.listings:
            if (each.hours is None) == spot and self.truth.span(each)[0] * 1000 <= self.now_ms:
                yield each

    def trades(self, listing: Listing) -> bool:
        """Return whether a market is open now."""
        return self.now_ms < 1000 * self.truth.span(listing)[1]

    def find(self, market_id: str, *, spot: bool) -> Listing:
        """Return the market of an id."""
        for each in self.listed(spot=spot):
            if self.market_id(each) == market_id:
                return each
        raise Unknown(market_id)

    def market(self, listing: Listing, part: str = "") -> dict[str, Any]:
        """Return a market as the exchange's list has it, or another part of `markets.json`."""
        part = part or ("spot" if listing.hours is None else "futures")
        told: dict[str, Any] = _filled(TEMPLATES[f"{self.name}.{part}"], self.values(listing))
        return told

    def values(self, listing: Listing) -> dict[str, Any]:
        """Return what the templates of `markets.json` name."""
        hours, next_ms = self.hours(listing) or 8, self.next_ms(listing)
        base, quote, contract = listing.base, listing.quote, listing.contract or "1"
        decimals, (_, lot_decimals) = listing.price_decimals, listing.lot
        intervals = {f"interval_{x}": hours * y for x, y in UNITS.items()}
        return {
            "id": self.market_id(listing),
            "base": base,
            "quote": quote,
            "contract": contract,
            "coin": coin(listing),
            "short": SHORT.get(base, base),
            "hours": hours,
            **intervals,
            "tick": step(decimals),
            "price_decimals": decimals,
            "price": self.price(listing),
            "lot": step(lot_decimals),
            "lot_decimals": lot_decimals,
            "now_ms": self.now_ms,
            "next_ms": next_ms,
            "next_s": next_ms // 1000,
            "next_in_ms": next_ms - self.now_ms,
            "after_next_ms": next_ms + 3_600_000 * hours,
            "trades": self.trades(listing),
        }

    def rows(
        self, listing: Listing, start: float, end: float, limit: int, *, newest: bool = False
    ) -> list[Row]:
        """Return rows that start in ``[start, end)`` (s): the first ``limit``, or the newest."""
        limit = min(int(limit), self.trouble.page_cap)
        if self.trouble.reach_s and start < self.now_ms / 1000 - self.trouble.reach_s:
            raise TooLongAgo
        begins, ends = self.truth.span(listing)
        now_s = self.now_ms // 1000
        first = max(-(-int(start) // 60) * 60, begins)
        last = min(int(end), now_s + 1, ends)
        reach = 60 * limit * (1 if self.flat else 2)
        if newest:
            first = max(first, last // 60 * 60 - reach)
        else:
            last = min(last, first + reach)
        found = [each for each in self._told(listing, first, last) if not self._hidden(each)]
        page = found[-limit:] if newest else found[:limit]
        every = self.trouble.null_every
        return [
            each._replace(**NULLS) if every and each.ts // 60 % every == 0 else each
            for each in page
        ]

    def closed(self, row: Row) -> bool:
        """Return whether a bar is over."""
        return 1000 * (row.ts + 60) <= self.now_ms

    def settled(self, listing: Listing, start_ms: float, end_ms: float) -> list[Settled]:
        """Return the settlements stamped in ``[start_ms, end_ms]``, oldest first."""
        end = int(min(end_ms, self.now_ms) // 1000) + 1
        start = max(int(start_ms // 1000) - HOUR_S, end - HISTORY_S)
        found = []
        for ts, rate, hours in self.truth.settled(listing, start, end):
            stamp = 1000 * ts + self._late_ms(ts)
            published = 1000 * (ts + self.trouble.published_late_s)
            if start_ms <= stamp <= end_ms and max(stamp, published) <= self.now_ms:
                found.append(Settled(ts, stamp, rate, hours))
        return found

    def hours(self, listing: Listing) -> int:
        """Return the interval in force now (h)."""
        return self.truth.interval_hours(listing, self.now_ms // 1000 + 1)

    def next_ms(self, listing: Listing) -> int:
        """Return when a market settles next (ms)."""
        interval_ms = 3_600_000 * (self.hours(listing) or 8)
        return (self.now_ms // interval_ms + 1) * interval_ms

    def price(self, listing: Listing) -> str:
        """Return the last price, as text."""
        now_s = self.now_ms // 1000
        minutes = self.truth.minutes(listing, now_s - 120, now_s - 59)
        return next(written(listing, minutes)).close if len(minutes.ts) else "1"

    def _late_ms(self, ts: int) -> int:
        least, most = self.stamps_ms
        late = self.trouble.stamp_late_ms
        return least + ts // HOUR_S * 7 % (most - least) if late is None else late

    def _told(self, listing: Listing, first: int, last: int) -> Iterator[Row]:
        """Write minutes: of the open one what there is so far, of the last ones perhaps less."""
        minutes = self.truth.minutes(listing, first, last)
        age_ms = self.now_ms - 1000 * minutes.ts
        part = np.minimum(age_ms, 60_000) / 60_000
        if self.trouble.short_for_s:
            part = np.where(age_ms < 60_000 + 1000 * self.trouble.short_for_s, part * 0.75, part)
        lots = np.where(part < 1, np.ceil(minutes.lots * part).astype(np.int64), minutes.lots)
        trades = np.where(lots > 0, minutes.trades, 0)
        now_open = age_ms < 60_000
        close = np.where(now_open, minutes.vwap, minutes.close)
        told = minutes._replace(close=close, lots=lots, trades=trades)
        untraded = now_open & (lots == 0)
        flat = {x: np.where(untraded, minutes.open, getattr(told, x)) for x in PRICES}
        yield from written(listing, told._replace(**flat))

    def _hidden(self, row: Row) -> bool:
        missing = any(start <= row.ts < end for start, end in self.trouble.missing)
        return missing or not (row.trades or self.flat)


def coin(listing: Listing) -> str:
    """Return the base as exchanges with lots of a thousand write it: ``1000PEPE``."""
    return f"{listing.multiplier if listing.multiplier > 1 else ''}{listing.base}"


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    match template:
        case dict():
            told = {name: _filled(each, values) for name, each in template.items()}
            return {name: each for name, each in told.items() if each is not OMITTED}
        case ["?", trading, gone]:
            chosen = trading if values["trades"] else gone
            return OMITTED if chosen is None else chosen
        case list():
            return [_filled(each, values) for each in template]
        case str() if template.startswith("="):
            value = values[template[1:]]
            return float(value) if isinstance(value, str) else value
        case str():
            return template.format_map(values)
    return template


def number(text: str | None) -> float | None:
    """Read a decimal as a number of JSON."""
    return None if text is None else float(text)


def step(decimals: int) -> str:
    """Write ``10 ** -decimals``: ``0.01``."""
    return f"{10.0**-decimals:.{decimals}f}"


def clock_ms(text: object, default: float) -> float:
    """Read a time as a number, or as ISO text (s to ms where it is ISO)."""
    if text is None or text == "":
        return default
    if re.fullmatch(r"-?[\d.]+", str(text)):
        return float(str(text))
    moment = np.datetime64(str(text).rstrip("Z"), "ms")
    return float(moment.astype(np.int64))
