"""Exchanges in this process that answer from a truth by a clock that tests step, and their rounds.

They accept rows as those that are read over HTTP do, so that a day of them takes seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.exchanges.truth import Listing, Truth, written
from toolkit.errors import ExchangeOutageError as Outage
from toolkit.errors import ExchangeRefusedError as Refused
from toolkit.market import EventFamily, Leg, Market
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.exchanges import (
    BarAnswer,
    LegKey,
    ListedLeg,
    RateAnswer,
    WantedLegs,
    accepted,
    settled,
)
from toolkit.service.market.exchanges.archive import Archive, Exchanges
from toolkit.service.market.exchanges.polling import Poller
from toolkit.service.market.source import Clock

START = 1_795_651_200
WANTED = WantedLegs(("BTC_USDT", "SOL_USDT"))


@dataclass
class Told:
    """An exchange, by its name and markets. The rest may change while it is asked."""

    name: str
    markets: tuple[Market, ...]
    truth: Truth = field(default_factory=Truth)
    ts: float = START
    down: Outage | Refused | None = None
    gone: set[str] = field(default_factory=set)
    reach_s: int = 1 << 40
    published_late_s: int = 20
    skew_s: float = 0.0
    unlike: float = 1.0
    asked: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.ts

    def list(self, wanted: WantedLegs) -> list[ListedLeg]:
        self._answer()
        keys = [(s, Leg(self.name, m)) for s in wanted.symbols for m in self.markets]
        return [
            ListedLeg(LegKey(symbol, leg), self.name.lower(), f"{symbol}", 1.0, 1.0, funding)
            for symbol, leg in keys
            if symbol not in self.gone
            for funding in [leg.market is Market.FUTURES]
        ]

    def bars(self, leg: ListedLeg, start: int, end: int) -> Iterator[BarAnswer]:
        listing, rows_a_call = self._listing(leg), 300
        while start < end:
            self._answer(leg)
            if start < self.ts - self.reach_s:
                raise Refused("beyond what it gives", reach=int(self.ts - self.reach_s) + 120)
            until = min(start + 60 * rows_a_call, end)
            minutes = self.truth.minutes(listing, start, min(until + 60, int(self.ts)))
            yield accepted(list(self._raw(listing, minutes)), leg, start, until, self.ts)
            start = until

    def settlements(self, leg: ListedLeg, start: int, end: int) -> Iterator[RateAnswer]:
        self._answer(leg)
        listing = self._listing(leg)
        told = self.truth.settled(listing, start - 86_400, int(self.ts) - self.published_late_s)
        rows = [(1000 * ts, rate) for ts, rate, _ in told]
        yield settled(rows, start, end, self.ts, lambda: listing.hours or 8)

    def _raw(self, listing: Listing, minutes: Any) -> Iterator[Sequence[Any]]:
        for row in written(listing, minutes):
            is_open = row.ts + 60 > self.ts
            close, quote = float(row.close) * self.unlike, float(row.quote)
            if row.trades or not is_open:
                yield 1000 * row.ts, 0.0, 0.0, 0.0, close, float(row.volume), quote, False

    def _listing(self, leg: ListedLeg) -> Listing:
        return self.truth.listing(leg.key.symbol, leg.key.leg)

    def _answer(self, leg: ListedLeg | None = None) -> None:
        self.asked.append(self.ts)
        if self.down is not None:
            raise self.down
        if leg is not None and leg.key.symbol in self.gone:
            raise Refused("no such market")


def exchanges(truth: Truth | None = None) -> list[Told]:
    """Three exchanges: six legs of two symbols, of which two settle."""
    truth = truth or Truth()
    return [
        Told("BINANCE", (Market.SPOT,), truth),
        Told("OKX", (Market.FUTURES,), truth),
        Told("HYPERLIQUID", (Market.FUTURES,), truth),
    ]


@dataclass
class Desk:
    """An archive and its poller over exchanges, stepped from one due moment to the next."""

    path: Path
    exchanges: list[Any]
    start: int = START
    wanted: WantedLegs = WANTED
    told: list[str] = field(default_factory=list)
    worst_lag_s: float = 0.0

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        legs = [leg for each in self.exchanges for leg in each.list(self.wanted)]
        self.archive = Archive.open(self.path, start=self.start, legs=legs)
        self.poller = Poller(
            self.archive, self.exchanges, Clock(), self.wanted, tell=self.told.append
        )
        self._due = dict.fromkeys(range(len(self.exchanges)), 0.0)

    @property
    def source(self) -> Exchanges:
        return Exchanges(self.archive)

    @property
    def now(self) -> float:
        return float(self.exchanges[0].now())  # the first one's clock is the machine's

    def move(self, ts: float) -> None:
        for each in self.exchanges:
            each.ts = ts + getattr(each, "skew_s", 0.0)

    def catch_up(self) -> None:
        """Do what is due now, until nothing is."""
        while min(self._due.values()) <= self.now:
            number = min(self._due, key=lambda each: self._due[each])
            exchange = self.exchanges[number]
            self._due[number] = self.poller.round(exchange) - getattr(exchange, "skew_s", 0.0)

    def run(self, until: float) -> Iterator[None]:
        """Do what is due at each moment up to ``until``, one moment at a time."""
        while min(self._due.values()) <= until:
            self.move(max(self.now, min(self._due.values())))
            self.worst_lag_s = max(self.worst_lag_s, self.now - self.archive.known_until)
            self.catch_up()
            yield
        self.move(until)

    def restart(self) -> None:
        self.archive.close()
        self.open()

    def content(self) -> dict[str, Any]:
        """Every row and document up to what is known, without what differs between archives."""
        return {**self.rows(), **self.documents(), "lost": self.lost()}

    def rows(self, *, heard: bool = False) -> dict[str, list[tuple[Any, ...]]]:
        source, found = self.source, {}
        source = source.heard if heard else source
        until = self.archive.known_until
        for symbol, legs in source.listing.items():
            for leg in legs:
                bars = source.bars(symbol, leg).between(0, until - 59)
                found[f"{symbol}:{leg}"] = _listed(bars.ts, bars.price, bars.volume)
                if (funding := source.funding(symbol, leg)) is not None:
                    rates = funding.between(0, until + 1)
                    columns = (rates.ts, rates.rate, rates.interval_hours)
                    found[f"{symbol}:{leg} funding"] = _listed(*columns)
        return found

    def documents(self) -> dict[str, list[dict[str, Any]]]:
        known_until, log = self.archive.known_until, EventArchive(self.source)
        found = {}
        for family in EventFamily:
            window = (self.start, known_until)
            page, after = log.page(family, *window, limit=10_000, visible_until=known_until)
            assert after is None
            documents = [_unnamed(msgspec.json.decode(body)) for body in page]
            found[family.value] = sorted(documents, key=lambda it: (it["ts"], repr(it)))
        return found

    def lost(self) -> list[tuple[str, str, int, int]]:
        return [
            (f"{key.symbol}:{key.leg}", kind, each.start, each.end)
            for key, leg in self.archive.legs.items()
            for kind, stretches in leg.lost.items()
            for each in stretches
        ]


def truth_of(desk: Desk, truth: Truth) -> dict[str, list[tuple[Any, ...]]]:
    """What `Desk.rows` has to be, where nothing was lost."""
    start, until, found = desk.archive.start, desk.archive.known_until, {}
    for key, leg in desk.archive.legs.items():
        bars = truth.bars(key.symbol, key.leg, start, until - 59)
        has_volume = leg.listed.volume_factor is not None
        found[f"{key.symbol}:{key.leg}"] = [
            (bar.ts, bar.close, bar.quote_volume if has_volume else None) for bar in bars
        ]
        if leg.listed.funding:
            rates = truth.settlements(key.symbol, key.leg, start, until + 1)
            found[f"{key.symbol}:{key.leg} funding"] = [tuple(each) for each in rates]
    return found


def per_minute(asked: Sequence[float]) -> Counter[int]:
    return Counter(int(ts) // 60 for ts in asked)


def _listed(*columns: Any) -> list[tuple[Any, ...]]:
    lists = [[None] * len(columns[0]) if each is None else each.tolist() for each in columns]
    return list(zip(*lists, strict=True))


def _unnamed(document: dict[str, Any]) -> dict[str, Any]:
    """A document without its id and what is drawn by it: an archive has an id of its own."""
    return {name: value for name, value in document.items() if name not in {"event_id", "ts_ms"}}
