"""Pages of a trajectory, newest first, cut out of text that is rendered once.

A page is a slice: rows become JSON text in blocks, by columns, and a block's text is kept until
64 others have been asked for since. One million rows of text are about 100 MB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.market import Family, Trajectory
from toolkit.service.source import Bars, Source

__all__ = ["BLOCK_ROWS", "Page", "Pages", "Series"]

BLOCK_ROWS = 16_384
"""Rows rendered at once: about a megabyte of text, made in some 3 ms."""

_BLOCKS_KEPT = 64
_SERIES_KEPT = 32


class Page(NamedTuple):
    """Items as JSON text, comma-separated, and where the next page ends (None: nothing older)."""

    items: bytes
    next_end_time: int | None


class _Block(NamedTuple):
    """Rendered rows, each followed by a comma, and where each begins (one more at the end)."""

    text: bytes
    begins: NDArray[np.int64]

    def rows(self, first: int, end: int) -> bytes:
        return self.text[self.begins[first] : self.begins[end] - 1]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The rows of one trajectory, oldest first: their times, and a column (or None) per field.

    ``columns`` holds what stands in a record beside ``ts``, in the record's order; None is a
    field that is null in every row. A row may be seen at ``ts + interval_s``.

    Examples
    --------
    >>> bars = Bars(ts=np.array([0, 60]), price=np.array([2.0, 4.0]), interval_s=60)
    >>> late = Bars(ts=np.array([60, 120]), price=np.array([5.0, 9.0]), interval_s=60)
    >>> Series.spread(bars, late).columns["spread_pct"].tolist()
    [25.0]
    """

    ts: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.float64] | None]
    interval_s: int

    @classmethod
    def price(cls, bars: Bars) -> Series:
        """One leg's prices; mark price and volume are null: the bars have none in quote units.

        Examples
        --------
        >>> bars = Bars(ts=np.array([0]), price=np.array([2.0]), interval_s=60)
        >>> list(Series.price(bars).columns)
        ['price', 'mark_price', 'volume']
        """
        columns = {"price": bars.price, "mark_price": None, "volume": None}
        return cls(bars.ts, columns, bars.interval_s)

    @classmethod
    def spread(cls, buy: Bars, sell: Bars) -> Series:
        """Both legs at the moments that both have; ``spread_pct`` is 100 (sell / buy - 1).

        The legs' bars must be of one length: what asks has to see to that.

        Examples
        --------
        >>> bars = Bars(ts=np.array([0]), price=np.array([2.0]), interval_s=60)
        >>> list(Series.spread(bars, bars).columns)
        ['buy_price', 'sell_price', 'spread_pct']
        """
        ts, of_buy, of_sell = np.intersect1d(
            buy.ts, sell.ts, assume_unique=True, return_indices=True
        )
        buy_price, sell_price = buy.price[of_buy], sell.price[of_sell]
        columns = {
            "buy_price": buy_price,
            "sell_price": sell_price,
            "spread_pct": 100.0 * (sell_price / buy_price - 1.0),
        }
        return cls(ts, columns, buy.interval_s)


class Pages:
    """Cuts pages of a source's trajectories; keeps a bounded number of joins and of text blocks.

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> pages = Pages(miniature.source())
    >>> key = Trajectory.parse("BTC_USDT:AURORA.spot")
    >>> pages.page(key, before=1793750460, limit=1, now=1793750400, since=None).next_end_time
    1793750340
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._series = lru_cache(_SERIES_KEPT)(self._build)
        self._block = lru_cache(_BLOCKS_KEPT)(self._render)

    def page(
        self, trajectory: Trajectory, *, before: int, limit: int, now: int, since: int | None
    ) -> Page:
        """The newest ``limit`` rows with ``ts < before`` that are over at ``now``, newest first.

        ``since`` is the retention's edge: rows before it are as if they were not there. Nothing
        in range is an empty page, whose ``next_end_time`` is None.

        Examples
        --------
        >>> from toolkit.service import miniature
        >>> key = Trajectory.parse("BTC_USDT:AURORA.spot")
        >>> Pages(miniature.source()).page(key, before=60, limit=9, now=60, since=None)
        Page(items=b'', next_end_time=None)
        """
        series = self._series(trajectory)
        ts = series.ts
        before = min(before, now - series.interval_s + 1)
        newer = len(ts) - int(np.searchsorted(ts, before))
        end = len(ts) if since is None else len(ts) - int(np.searchsorted(ts, since))
        last = min(newer + limit, end)
        if newer >= last:
            return Page(b"", None)
        cuts = []
        for number in range(newer // BLOCK_ROWS, (last - 1) // BLOCK_ROWS + 1):
            base = number * BLOCK_ROWS
            block = self._block(trajectory, number)
            cuts.append(block.rows(max(newer - base, 0), min(last - base, BLOCK_ROWS)))
        oldest = int(ts[len(ts) - last])
        return Page(b",".join(cuts), oldest if last < end else None)

    def _build(self, trajectory: Trajectory) -> Series:
        symbol = str(trajectory.symbol)
        legs = [self._source.bars(symbol, leg) for leg in trajectory.legs]
        return Series.price(*legs) if trajectory.family is Family.PRICE else Series.spread(*legs)

    def _render(self, trajectory: Trajectory, number: int) -> _Block:
        series = self._series(trajectory)
        first = number * BLOCK_ROWS
        return _rendered(series, first, min(first + BLOCK_ROWS, len(series.ts)))


def _rendered(series: Series, first: int, end: int) -> _Block:
    """Rows ``[first, end)``, counted from the newest; numbers keep their shortest exact form."""
    rows = slice(len(series.ts) - end, len(series.ts) - first)
    columns = {n: None if v is None else v[rows][::-1] for n, v in series.columns.items()}
    lines = BytesIO()
    pl.DataFrame({"ts": series.ts[rows][::-1], **columns}).write_ndjson(lines)
    text = lines.getvalue()
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
    return _Block(text.replace(b"\n", b","), np.concatenate([[0], ends]))
