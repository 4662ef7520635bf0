"""A market that is revealed bit by bit, as one that is read from exchanges: a source for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from toolkit.market import Leg, Market
from toolkit.service.market.source import (
    Bars,
    Kind,
    LostRows,
    MarketSource,
    RowKind,
    SettledRates,
)

START = 20_700 * 86_400  # midnight
DAYS = 3
END = START + DAYS * 86_400
SYMBOLS = ("BTC_USDT", "ETH_USDT")
LEGS = tuple(map(Leg.parse, ("ALPHA.futures", "ALPHA.spot", "BETA.futures")))
Key = tuple[str, Leg]


@cache
def truth() -> tuple[Mapping[Key, Bars], Mapping[Key, SettledRates]]:
    """Three days of minutes with hundreds of events: quiet minutes, an outage, long wide spells."""
    random = np.random.default_rng(11)
    minutes = DAYS * 1_440
    bars, funding = {}, {}
    for symbol in SYMBOLS:
        common = np.cumsum(random.normal(0, 4e-4, minutes))
        for number, leg in enumerate(LEGS):
            apart = np.zeros(minutes)
            for start in random.integers(0, minutes, 30):
                apart[start : start + int(random.choice([2, 15, 200]))] += random.normal(0, 8e-3)
            price = 100.0 * np.exp(common + apart + random.normal(0, 3e-4, minutes))
            kept = random.random(minutes) > 0.03
            kept[1_000 + 300 * number : 1_035 + 300 * number] = False
            ts = START + 60 * np.flatnonzero(kept)
            bars[symbol, leg] = Bars(ts, price[kept], 60, volume=1e4 * random.random(len(ts)))
            if leg.market is Market.FUTURES:
                hours = 1 if leg.exchange == "BETA" else 8
                settled = np.arange(START, END, 3_600 * hours)
                rate = random.normal(0, 2e-3, len(settled)) * hours / 8
                interval_hours = np.full(len(settled), hours)
                funding[symbol, leg] = SettledRates(settled, rate, interval_hours)
    return bars, funding


@dataclass(eq=False)
class Revealed:
    """The truth as far as it is known: bars over by ``known_until``, settlements up to it.

    ``ahead_s``: how far some legs are ahead of it. ``lost_rows``: what nobody could read. ``late``:
    those of them that were found. ``added``: legs that came later, by when, with their history.
    """

    known_until: int | None = START
    kind: Kind = "live"
    id: str = "revealed"
    exchanges: tuple[str, ...] = ("ALPHA", "BETA")
    begins: int | None = None
    revision: int = 0
    ahead_s: Mapping[Leg, int] = field(default_factory=dict)
    lost_rows: Mapping[tuple[Key, RowKind], Sequence[LostRows]] = field(default_factory=dict)
    late: tuple[LostRows, ...] = ()
    added: dict[Key, int] = field(default_factory=dict)
    reads: int = 0

    @property
    def listing(self) -> Mapping[str, tuple[Leg, ...]]:
        until = END if self.known_until is None else self.known_until
        there = {s: tuple(a for a in LEGS if self.added.get((s, a), 0) <= until) for s in SYMBOLS}
        return {symbol: legs for symbol, legs in there.items() if legs}

    @property
    def heard(self) -> MarketSource:
        return _Heard(self)

    def bars(self, symbol: str, leg: Leg) -> Bars:
        self.reads += 1
        rows = truth()[0][symbol, leg]
        known = rows.between(0, self._until(leg) - rows.interval_s + 1)
        kept = self._kept((symbol, leg), "bars", known.ts, self.late)
        volume = None if known.volume is None else known.volume[kept]
        return replace(known, ts=known.ts[kept], price=known.price[kept], volume=volume)

    def funding(self, symbol: str, leg: Leg) -> SettledRates | None:
        if (symbol, leg) not in truth()[1]:
            return None
        known = truth()[1][symbol, leg].between(0, self._until(leg) + 1)
        kept = self._kept((symbol, leg), "funding", known.ts, self.late)
        return SettledRates(known.ts[kept], known.rate[kept], known.interval_hours[kept])

    def lost(
        self, symbol: str, leg: Leg, start: int, end: int, kind: RowKind, /
    ) -> Sequence[LostRows]:
        found = self.lost_rows.get(((symbol, leg), kind), ())
        return [e for e in found if e not in self.late and e.start < end and e.end > start]

    def find(self, lost: LostRows) -> None:
        """What was lost is read after all."""
        self.late = (*self.late, lost)
        self.revision += 1

    def _until(self, leg: Leg) -> int:
        return END if self.known_until is None else self.known_until + self.ahead_s.get(leg, 0)

    def _kept(
        self, key: Key, kind: RowKind, ts: np.ndarray, found: Sequence[LostRows]
    ) -> np.ndarray:
        kept = np.full(len(ts), True)
        for each in self.lost_rows.get((key, kind), ()):
            if each not in found:
                kept &= (ts < each.start) | (ts >= each.end)
        return kept


@dataclass(frozen=True)
class _Heard:
    """What detectors see of it."""

    whole: Revealed

    def __getattr__(self, name: str) -> object:
        return getattr(self.whole, name)

    def bars(self, symbol: str, leg: Leg) -> Bars:
        heard = replace(self.whole, late=()).bars(symbol, leg)
        self.whole.reads += 1
        return heard.between(self.whole.added.get((symbol, leg), 0), END)

    def funding(self, symbol: str, leg: Leg) -> SettledRates | None:
        settled = replace(self.whole, late=()).funding(symbol, leg)
        since = self.whole.added.get((symbol, leg), 0)
        return None if settled is None else settled.between(since, END)
