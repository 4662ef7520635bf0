"""Layouts of files that many people have: which column is what, one row of facts each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolkit.series.own_times import Unit


@dataclass(frozen=True, slots=True)
class Layout:
    """What a producer writes: the columns of prices, by name or by place from 1.

    Times are the start of a bar, in the first of ``units`` that fits all. ``width`` is how many
    columns there are, None where that differs. ``{quote}`` is the quote of the key. A volume in
    base is left out, as ours is in quote. ``what`` is what it is, for a reader.
    """

    columns: Mapping[str, str]
    units: tuple[Unit, ...]
    width: int | None
    what: str


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "binance-klines": Layout(
            {"ts": "1", "price": "5", "volume": "8"},
            ("ms", "us"),
            12,
            "bars of Binance's archive or REST API: 12 columns, with or without a header",
        ),
        "coinbase-candles": Layout(
            {"ts": "1", "price": "5"},
            ("s",),
            6,
            "candles of Coinbase Exchange: time, low, high, open, close, volume",
        ),
        "kraken-ohlcvt": Layout(
            {"ts": "1", "price": "5"},
            ("s",),
            7,
            "Kraken's downloads: time, open, high, low, close, volume, trades, without a header",
        ),
        "tardis-derivative-ticker": Layout(
            {"ts": "timestamp", "price": "last_price", "mark_price": "mark_price"},
            ("us",),
            None,
            "Tardis' derivative_ticker: several rows a second, so that `shared` is needed",
        ),
        "ccxt-ohlcv": Layout(
            {"ts": "1", "price": "5"},
            ("ms",),
            6,
            "what ccxt's fetch_ohlcv returns: time, open, high, low, close, volume",
        ),
        "cryptodatadownload": Layout(
            {"ts": "1", "price": "7", "volume": "Volume {quote}"},
            ("s", "ms"),
            None,
            "CryptoDataDownload: an address, then unix, date, symbol, open, high, low, close, ...",
        ),
    }
)
"""The layouts that are known by name."""
