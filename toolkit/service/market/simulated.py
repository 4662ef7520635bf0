"""The simulated market as a source: bars and settlements made as they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toolkit.market import Leg, Market
from toolkit.service.market.simulator import Simulator
from toolkit.service.market.simulator.processes import DAY_S, END, EPOCH, MINUTE_S
from toolkit.service.market.source import Bars, Kind, SettledRates, Whole

_BAR_DAYS, _FUNDING_DAYS = 4, 32


class Simulated(Whole):
    """The market of a seed, from 2026-01-01 to 2100-01-01, one bar per minute.

    The same seed gives the same rows in every process, whatever was asked before.

    >>> source = Simulated(7)
    >>> source.kind, source.id == Simulated(7).id, source.id == Simulated(8).id
    ('simulated', True, False)
    >>> bars = source.bars("BTC_USDT", Leg.parse("AURORA.spot"))
    >>> bars.between(1_795_046_400, 1_795_046_520).ts.tolist()
    [1795046400, 1795046460]
    """

    kind: Kind = "simulated"

    def __init__(self, seed: int) -> None:
        self.simulator = Simulator(seed)
        self.id = self.simulator.id
        self.listing: Mapping[str, tuple[Leg, ...]] = self.simulator.listing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simulated) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def bars(self, symbol: str, leg: Leg) -> _SimulatedBars:
        """Return the bars of a listed leg."""
        return _SimulatedBars(self.simulator, symbol, leg)

    def funding(self, symbol: str, leg: Leg) -> _SimulatedFunding | None:
        """Return the settlements of a listed futures leg, None for any other."""
        return (
            _SimulatedFunding(self.simulator, symbol, leg) if leg.market is Market.FUTURES else None
        )


@dataclass(frozen=True, slots=True)
class _SimulatedBars:
    """A leg's bars, none before the market's first moment or after its last."""

    simulator: Simulator
    symbol: str
    leg: Leg
    interval_s: int = MINUTE_S
    span: tuple[int, int] = (EPOCH, END)
    block_s: int = _BAR_DAYS * DAY_S

    def between(self, start: int, end: int) -> Bars:
        first, last = max(start, EPOCH), min(end, END)
        days = range(first // DAY_S, -(-last // DAY_S))
        found = [self.simulator.day(self.symbol, self.leg, day) for day in days]
        marks = [day.mark_price for day in found if day.mark_price is not None]
        nothing = np.empty(0)
        whole = Bars(
            ts=np.concatenate([np.empty(0, dtype=np.int64), *(day.ts for day in found)]),
            price=np.concatenate([nothing, *(day.price for day in found)]),
            interval_s=MINUTE_S,
            mark_price=np.concatenate([nothing, *marks]) if marks else None,
            volume=np.concatenate([nothing, *(day.volume for day in found)]),
        )
        return whole.between(first, last)

    def parts(self, ts: int) -> Bars:
        return self.simulator.within(self.symbol, self.leg, ts)


@dataclass(frozen=True, slots=True)
class _SimulatedFunding:
    simulator: Simulator
    symbol: str
    leg: Leg
    span: tuple[int, int] = (EPOCH, END)
    block_s: int = _FUNDING_DAYS * DAY_S

    def between(self, start: int, end: int) -> SettledRates:
        first = min(max(start, EPOCH), END)
        last = max(first, min(end, END))
        return self.simulator.settlements(self.symbol, self.leg, first, last)

    def next_after(self, ts: int) -> int | None:
        if not EPOCH <= ts < END:
            return None
        return self.simulator.next_settlement(self.symbol, self.leg, ts)
