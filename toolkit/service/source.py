"""What the service serves from: a `Source` lists legs and holds each one's bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from toolkit.market import Leg

__all__ = ["Bars", "Kind", "Source"]

Kind = Literal["live", "simulated", "replay"]


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """One leg's series of one symbol.

    ``ts``: start of each bar (s, Unix UTC), ascending, none twice. ``price``: price at the
    bar's end (quote), finite and above 0. ``interval_s``: length of every bar (s); 0 where rows
    are moments. A bar is over, and may be served, at ``ts + interval_s``.

    Examples
    --------
    >>> len(Bars(ts=np.array([0, 60]), price=np.array([1.5, 1.25]), interval_s=60).ts)
    2
    """

    ts: NDArray[np.int64]
    price: NDArray[np.float64]
    interval_s: int


class Source(Protocol):
    """Where rows come from. What it lists and holds never changes; time only uncovers it.

    ``kind`` and ``id`` go to ``/schemas``: the same data has the same id at any address.

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> source: Source = miniature.source()
    >>> source.kind, sorted(source.listing)
    ('simulated', ['BTC_USDT', 'ETH_USDT'])
    """

    @property
    def kind(self) -> Kind:
        """What kind of source this is."""

    @property
    def id(self) -> str:
        """Its name, the same wherever the same data are served."""

    @property
    def listing(self) -> Mapping[str, tuple[Leg, ...]]:
        """Each symbol's legs, both in sorted order."""

    def bars(self, symbol: str, leg: Leg) -> Bars:
        """The series of a listed leg; a `KeyError` for one that is not listed."""
