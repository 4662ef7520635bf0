"""Layouts known by name, each opened from a file as its producer writes it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import InputError
from toolkit.series import own_series
from toolkit.series.own_files import LAYOUTS

KEY = "BTC_USDT:VENDOR.spot"
START = 1_704_067_200  # 2024-01-01
PRICES = [42_000.5, 42_001.5, 42_002.5]
MINUTES = [START, START + 60, START + 120]


def lines(form: str, **scale: int) -> str:
    return "".join(
        form.format(ts=ts, price=price, **{name: ts * by for name, by in scale.items()}) + "\n"
        for ts, price in zip(MINUTES, PRICES, strict=True)
    )


KLINE = "{ms},1,9,1,{price},12.5,{ms},5.25,321,6.1,2.5,0"
PRODUCED: dict[str, list[tuple[str, str | bytes]]] = {
    "binance-klines": [
        ("BTCUSDT-1m-2024-01.csv", lines(KLINE, ms=1_000)),
        ("BTCUSDT-1m-2025-01.csv", lines(KLINE, ms=10**6)),
        (
            "um.csv",
            "open_time,open,high,low,close,volume,close_time,quote_volume,count,"
            "taker_buy_volume,taker_buy_quote_volume,ignore\n" + lines(KLINE, ms=1_000),
        ),
        (
            "rest.json",
            json.dumps(
                [
                    [1_000 * ts, "1", "9", "1", str(price), "12.5", 0, "5.25", 3, "1", "2", "0"]
                    for ts, price in zip(MINUTES, PRICES, strict=True)
                ]
            ),
        ),
    ],
    "coinbase-candles": [
        (
            "candles.json",
            json.dumps(
                [[ts, 1, 9, 2, price, 0.5] for ts, price in zip(MINUTES, PRICES, strict=True)][::-1]
            ),
        ),
        ("candles.csv", "time,low,high,open,close,volume\n" + lines("{ts},1,9,2,{price},0.5")),
    ],
    "kraken-ohlcvt": [("XBTUSDT_1.csv", lines("{ts},1,9,2,{price},0.5,7"))],
    "tardis-derivative-ticker": [
        (
            "ticker.csv.gz",
            gzip.compress(
                (
                    "exchange,symbol,timestamp,local_timestamp,funding_timestamp,funding_rate,"
                    "predicted_funding_rate,open_interest,last_price,index_price,mark_price\n"
                    + lines("bitmex,XBTUSD,{us},{us},,,,1000,{price},,42000.25", us=10**6)
                ).encode()
            ),
        )
    ],
    "ccxt-ohlcv": [
        (
            "ohlcv.json",
            json.dumps(
                [[1_000 * ts, 1, 9, 1, p, 0.5] for ts, p in zip(MINUTES, PRICES, strict=True)]
            ),
        ),
        (
            "ohlcv.csv",
            "timestamp,open,high,low,close,volume\n"
            + lines("{ms},1,9,1,{price},0.5", ms=1_000),
        ),
    ],
    "cryptodatadownload": [
        (
            "Binance_BTCUSDT_minute.csv",
            "https://www.CryptoDataDownload.com\n"
            "Unix,Date,Symbol,Open,High,Low,Close,Volume BTC,Volume USDT,tradecount\n"
            + lines("{ms},2024-01-01 00:00:00,BTCUSDT,1,9,1,{price},0.5,5.25,7", ms=1_000),
        ),
        (
            "Bitstamp_BTCUSD_minute.csv",
            "https://www.CryptoDataDownload.com\nunix,date,symbol,open,high,low,close,Volume BTC\n"
            + lines("{ts},2024-01-01 00:00:00,BTC/USD,1,9,1,{price},0.5"),
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "name", "content"),
    [(layout, *file) for layout, files in PRODUCED.items() for file in files],
)
def test_a_file_of_a_known_producer_opens_by_the_name_of_its_layout(
    tmp_path: Path, layout: str, name: str, content: str | bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    mine = own_series(path, KEY, layout=layout)
    assert mine.rows.select("ts", "price").rows() == list(zip(MINUTES, PRICES, strict=True))
    in_quote = layout == "binance-klines" or name.startswith("Binance")
    assert mine.rows["volume"].to_list() == [5.25 if in_quote else None] * 3


def test_each_layout_is_opened_once() -> None:
    assert set(PRODUCED) == set(LAYOUTS)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layout": "binance"}, "'binance' is not allowed.*nearest: binance-klines"),
        ({"layout": "ccxt-ohlcv"}, "'7 columns'.*6: ccxt's fetch_ohlcv"),
        ({"layout": "kraken-ohlcvt", "unit": "ms"}, "these are seconds"),
    ],
)
def test_a_layout_that_is_not_the_file_s_is_refused(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    path = tmp_path / "XBTUSDT_1.csv"
    path.write_text(str(PRODUCED["kraken-ohlcvt"][0][1]))
    with pytest.raises(InputError, match=says):
        own_series(path, KEY, **options)


def test_a_layout_of_prices_is_refused_for_another_key() -> None:
    with pytest.raises(InputError, match="the key of a price"):
        own_series("bars.csv", "BTC_USDT:X.spot:Y.spot", layout="ccxt-ohlcv")
