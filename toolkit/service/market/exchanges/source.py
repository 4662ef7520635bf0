"""The markets of exchanges as a source: what an `Archive` holds, while it grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from toolkit.market import Leg
from toolkit.service.market.exchanges import LegKey
from toolkit.service.market.exchanges.archive import BAR_S, DAY_S, END, Archive, HeldLeg
from toolkit.service.market.source import Bars, Kind, Lost, RowKind, SettledRates


class Exchanges:
    """The rows of an archive, as they are served or, ``is_heard``, as detectors see them."""

    kind: Kind = "live"

    def __init__(self, archive: Archive, *, is_heard: bool = False) -> None:
        self._archive, self._is_heard = archive, is_heard
        self.id = archive.id
        self.exchanges: Sequence[str] = sorted({key.leg.exchange for key in archive.legs})
        by_symbol = groupby(sorted(archive.legs), key=lambda key: key.symbol)
        self.listing: Mapping[str, tuple[Leg, ...]] = {
            symbol: tuple(key.leg for key in keys) for symbol, keys in by_symbol
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exchanges) and hash(other) == hash(self)

    def __hash__(self) -> int:
        return hash((self.id, self._is_heard))

    @property
    def known_until(self) -> int:
        """The archive's ``known_until`` (s)."""
        return self._archive.known_until

    @property
    def begins(self) -> int:
        """The archive's start (s): nothing before it was read."""
        return self._archive.start

    @property
    def revision(self) -> int:
        """The archive's ``revision``."""
        return self._archive.revision

    @property
    def heard(self) -> Exchanges:
        """The source without rows that came late, or from before their leg was added."""
        return Exchanges(self._archive, is_heard=True)

    def lost(self, symbol: str, leg: Leg, start: int, end: int, kind: RowKind) -> Sequence[Lost]:
        """Return what is lost of a leg's rows of a kind and touches ``[start, end)``."""
        lost = self._held(symbol, leg).lost[kind]
        return [each for each in lost if each.start < end and each.end > start]

    def bars(self, symbol: str, leg: Leg) -> _HeldBars:
        """Return the bars of a listed leg."""
        return _HeldBars(self._archive, self._held(symbol, leg).listed.key, self._is_heard)

    def funding(self, symbol: str, leg: Leg) -> _HeldFunding | None:
        """Return the settlements of a listed futures leg, None where none can be asked for."""
        listed = self._held(symbol, leg).listed
        return _HeldFunding(self._archive, listed.key, self._is_heard) if listed.funding else None

    def _held(self, symbol: str, leg: Leg) -> HeldLeg:
        return self._archive.legs[LegKey(symbol, leg)]


@dataclass(frozen=True, slots=True)
class _Held:
    """A leg's rows of one kind. What is not known yet lies in its span."""

    archive: Archive
    key: LegKey
    is_heard: bool
    block_s: int = DAY_S
    interval_s: int = BAR_S

    @property
    def span(self) -> tuple[int, int]:
        return self.archive.start, END


class _HeldBars(_Held):
    def between(self, start: int, end: int) -> Bars:
        return self.archive.bars(self.key, start, end, heard=self.is_heard)

    def parts(self, ts: int) -> Bars:
        return self.between(ts, ts + 1)


class _HeldFunding(_Held):
    def between(self, start: int, end: int) -> SettledRates:
        return self.archive.settlements(self.key, heard=self.is_heard).between(start, end)

    def next_after(self, ts: int) -> int | None:
        return self.archive.settlements(self.key, heard=self.is_heard).next_after(ts)
