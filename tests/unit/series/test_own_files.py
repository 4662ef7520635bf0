"""Files and frames of one's own, their columns, times and layouts: read, or refused in a line."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import zstandard

from toolkit.errors import InputError
from toolkit.series import own_series, pair_series
from toolkit.series.own_files import LAYOUTS, bar_starts, moments, number

KEY = "BTC_USD:VENDOR.spot"
START = 1_704_067_200  # 2024-01-01
MINUTES = list(range(START, START + 300, 60))
PRICES = [100.5, 101.0, 102.25, 103.0, 104.5]
ROWS = list(zip(MINUTES, PRICES, strict=True))
LINES = [f"{ts},{price}" for ts, price in ROWS]
CSV = "\n".join(["ts,price", *LINES]) + "\n"
COLUMNS = {"columns": (1, 2)}


def semicolons(text: str) -> str:
    return text.replace(",", ";").replace(".", ",")


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("header.csv", CSV, {}),
        ("none.csv", "\n".join(LINES), COLUMNS),
        ("places.csv", CSV, COLUMNS),
        ("index.csv", CSV.replace("ts,price", ",0"), COLUMNS),
        ("semicolons.csv", semicolons(CSV), {}),
        ("tabs.tsv", CSV.replace(",", "\t"), {}),
        ("pipes.txt", CSV.replace(",", "|"), {}),
        ("mark.csv", "\ufeff" + CSV, {}),
        ("excel.csv", CSV.replace(",", "\t").encode("utf-16"), {}),
        ("packed.csv.gz", gzip.compress(CSV.encode(), mtime=0), {}),
        ("packed.csv.zst", zstandard.compress(semicolons(CSV).encode()), {}),
        ("preface.csv", f"sep=,\n# by a vendor\n\n{CSV}", {}),
        ("quoted.csv", CSV.replace("price", '"price; of the bar, in USD"'), COLUMNS),
        ("latin.csv", CSV.replace("price", "pr\xeds").encode("latin-1"), COLUMNS),
        ("rows.json", json.dumps([{"ts": ts, "price": price} for ts, price in ROWS]), {}),
        ("lists.json", json.dumps({"error": [], "result": {"XXBTZUSD": [
            (ts, str(price)) for ts, price in ROWS]}}), COLUMNS),
        (
            "two.csv",
            "\n".join(["Date;Time;Close"] + [
                f"2024.01.01;00:0{minute};{price}" for minute, price in enumerate(PRICES)]),
            {"columns": ("Date+Time", "Close"), "timezone": "UTC"},
        ),
        (
            "terminal.csv",
            "\n".join(f"2024.01.01,00:0{minute},1,1,1,{price}"
                      for minute, price in enumerate(PRICES)),
            {"columns": ("1+2", 6), "timezone": "UTC"},
        ),
    ],
)  # fmt: skip
def test_a_file_opens_however_it_is_written(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any]
) -> None:
    mine = own_series(written(tmp_path, name, content), KEY, **options)
    assert mine.rows["ts"].to_list() == MINUTES
    assert mine.rows["price"].to_list() == PRICES
    assert mine.source.id.startswith(f"{name} ")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.csv", "\n".join(LINES), r"there is no header: columns=\(1, 5\).*--columns 1,5"),
        ("cut.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-9], "a file that can be read"),
        ("cut.csv.zst", zstandard.compress(CSV.encode())[:-9], "a file that can be read|no row"),
        ("no.json", "{}", "a list of rows is needed"),
        ("cut.json", '[{"ts": 1', "a file that can be read"),
        ("empty.csv", "", "a file that can be read"),
        ("text.parquet", CSV, "a file that can be read"),
        ("bars.xlsx", CSV, "a file .csv, .tsv, .txt or .json"),
        ("longer.csv", f"{CSV}1,2,3,4\n", "a file that can be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, name: str, content: str | bytes, says: str
) -> None:
    with pytest.raises(InputError, match=says) as refused:
        own_series(written(tmp_path, name, content), KEY)
    assert "\n" not in str(refused.value)


def test_types_are_those_of_all_rows_and_of_the_columns_asked_for(tmp_path: Path) -> None:
    minutes = range(START, START + 130 * 60, 60)
    price = [20_100.0] * 120 + [20_100.5] * 10
    rows = {"ts": minutes, "price": [f"{each:g}" for each in price], "note": ["5"] * 129 + ["n/a"]}
    pl.DataFrame(rows).write_csv(tmp_path / "bars.csv")
    assert own_series(tmp_path / "bars.csv", KEY).rows["price"].to_list() == price


def test_dates_of_a_file_of_parquet_and_the_unnamed_index_of_pandas_are_read(
    tmp_path: Path,
) -> None:
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 5), eager=True)
    pl.DataFrame({"ts": days, "price": PRICES}).write_parquet(tmp_path / "days.parquet")
    mine = own_series(tmp_path / "days.parquet", KEY, timezone="UTC")
    assert mine.rows["ts"].to_list() == [START + 86_400 * day for day in range(5)]
    pd.DataFrame({"price": PRICES}, index=stamps()).to_parquet(tmp_path / "pandas.parquet")
    assert own_series(tmp_path / "pandas.parquet", KEY).rows["ts"].to_list() == MINUTES


def stamps() -> Any:
    return pd.to_datetime(MINUTES, unit="s", utc=True)


def of_two(symbols: list[str]) -> Any:
    return pd.MultiIndex.from_arrays([symbols, stamps()], names=["symbol", "time"])


@pytest.mark.parametrize(
    "made",
    [
        lambda: pd.DataFrame({"price": PRICES}, index=stamps()),
        lambda: own_series(pd.Series(PRICES, index=stamps()), KEY).pandas()[["price"]],
        lambda: pd.DataFrame({"price": PRICES}, index=pd.Index(MINUTES)),
        lambda: pd.DataFrame({"price": PRICES}, index=pd.Index(map(str, MINUTES))),
        lambda: pd.DataFrame({"price": PRICES}, index=stamps().tz_localize(None).to_period("min")),
        lambda: pd.DataFrame({"price": PRICES}, index=of_two(["BTC"] * 5)).rename_axis(
            ["symbol", "ts"]
        ),
        lambda: pd.DataFrame({("price", "BTC"): PRICES, ("volume", "BTC"): PRICES}, index=stamps()),
        lambda: pd.Series(PRICES, index=stamps()),
        lambda: pd.Series(PRICES, index=stamps(), name="close"),
        lambda: pd.DataFrame({"ts": MINUTES, "price": PRICES}, index=[3, 5, 7, 9, 11]),
    ],
)
def test_a_frame_or_series_of_pandas_is_taken_with_its_index(made: Callable[[], Any]) -> None:
    mine = own_series(made(), KEY, timezone="UTC")
    assert mine.rows["ts"].to_list() == MINUTES
    assert mine.rows["price"].to_list() == PRICES


def test_a_frame_of_pandas_without_names_has_places_and_one_of_two_symbols_is_refused() -> None:
    plain = pd.DataFrame(list(zip(MINUTES, PRICES, strict=True)))
    assert own_series(plain, KEY, columns=(1, 2)).rows["price"].to_list() == PRICES
    several = pd.DataFrame({"price": PRICES}, index=of_two(["BTC", *["ETH"] * 4]))
    with pytest.raises(InputError, match=r"2 levels of an index.*rows of one symbol"):
        own_series(several, KEY)


@pytest.mark.parametrize(
    ("texts", "decimal", "found"),
    [
        (["100.5", "NaN", "null", "NA", "-", "None", "", " 7 "], None, [100.5, *[None] * 6, 7.0]),
        (["1,5", "2,25"], None, [1.5, 2.25]),
        (["1.234,5", "7"], ",", [1234.5, 7.0]),
        (["1,234.5", "1,234,567"], ".", [1234.5, 1234567.0]),
        (["1e3", "2.5E-1"], None, [1000.0, 0.25]),
    ],
)
def test_texts_are_numbers_by_their_mark_and_words_for_none_are_null(
    texts: list[str], decimal: str | None, found: list[float | None]
) -> None:
    read = number(pl.Series("price", texts), decimal)  # type: ignore[arg-type]  # as parametrised
    assert read.to_list() == pytest.approx(found, nan_ok=True)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["1,234", "5,678"], 'price such as 1,234.*decimal="," or ".".*--decimal'),
        (["1,234.5", "2"], "one mark of decimals"),
        (["1.5", "five", "six"], "2 texts of price, the first five"),
        ([True, False], "price is Boolean"),
    ],
)
def test_texts_that_may_be_two_numbers_or_none_are_refused(values: list[object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        number(pl.Series("price", values), None)


def test_rows_that_repeat_another_are_left_out_and_counted() -> None:
    ts = [START, START + 60, START + 60, START + 120]
    twice = pl.DataFrame({"ts": ts, "price": [1.0, 2.0, 2.0, 3.0]})
    mine = own_series(twice, KEY)
    assert mine.rows["price"].to_list() == [1.0, 2.0, 3.0]
    assert "1 row left out that repeats another" in mine.origin.notes


@pytest.mark.parametrize(("shared", "price"), [("first", 1.0), ("last", 3.0), ("mean", 2.0)])
def test_rows_of_one_second_are_one_by_a_rule(shared: str, price: float) -> None:
    ticks = pl.DataFrame({"ts": [1000 * START + ms for ms in (400, 0, 800)], "price": [2.0, 1, 3]})
    mine = own_series(ticks, KEY, unit="ms", shared=shared)  # type: ignore[arg-type]  # as parametrised
    assert mine.rows.select("ts", "price").rows() == [(START, price)]
    assert f"of 3 rows in 1 second the {shared} of each" in mine.origin.notes
    with pytest.raises(InputError, match=r'3 rows that share a time.*shared="last".*--shared'):
        own_series(ticks, KEY, unit="ms")


def test_names_or_places_are_those_of_ts_and_what_is_needed() -> None:
    frame = pl.DataFrame({"when": [START], "close": [1.0], "volume": [2.0]})
    with pytest.raises(InputError, match=r"'when, close, volume'.*those of ts, price"):
        own_series(frame, KEY, columns=("when", "close", "volume"))


HALF_HOUR = list(range(START, START + 1_800, 60))
CLOSES = [42_000.0 + (7 * k) % 11 for k in range(30)]


def bars(ts: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"ts": ts, "price": CLOSES[: len(ts)]})


@pytest.mark.parametrize(
    ("ts", "options", "says"),
    [
        (HALF_HOUR, {"unit": "ms"}, 'these are seconds; unit="s", --unit s'),
        ([10**9 * ts for ts in HALF_HOUR], {"unit": "us"}, "these are nanoseconds"),
        (
            [1_000 * ts for ts in HALF_HOUR[:20]] + [10**6 * ts for ts in HALF_HOUR[20:]],
            {"unit": "ms"},
            "20 in milliseconds and 10 in microseconds.*one unit; row 21 is the first",
        ),
        ([20_230_310, 20_230_311], {}, "2 numbers, the first 20230310.*2009 to 2099"),
        ([dt.datetime(1970, 1, 2, tzinfo=dt.UTC)], {}, "1 time, the first 1970-01-02 00:00:00 UTC"),
        (
            pl.Series(HALF_HOUR).cast(pl.Datetime("ns", "UTC")),
            {},
            "they were made of seconds taken for ",
        ),
        (
            [f"{month:02}/01/2023 00:00" for month in range(1, 13)],
            {"timezone": "UTC"},
            'one way; format="%m/%d/%Y %H:%M" reads the month first.*--format',
        ),
        (
            [f"01.{month}.2023 9:05:00 PM" for month in (1, 2)],
            {"timezone": "UTC"},
            r'"%d\.%m\.%Y %I:%M:%S %p" the day',
        ),
        (["Mar 10, 2023"], {"timezone": "UTC"}, "1 text, the first Mar 10, 2023.*--format"),
        (["-"], {"timezone": "UTC"}, "1 null"),
        (["10/03/2023"], {"timezone": "UTC", "format": "%Y-%m-%d"}, "1 text, the first 10/03"),
        ([ts + 59 for ts in HALF_HOUR], {}, '30 of 30 times.*stamped="end"'),
    ],
)
def test_times_that_may_be_others_are_refused_with_what_would_do(
    ts: list[object], options: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        own_series(bars(ts), KEY, **options)  # type: ignore[arg-type]  # as parametrised


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["13/03/2023 00:00", "02/03/2023 00:00"], None),
        (["03.13.2023 00:00", "03.02.2023 00:00"], None),
        (["03/13/2023", "03/02/2023"], "%m/%d/%Y"),
        (["2023.03.13 00:00", "2023.03.02 00:00"], None),
        (["2023-03-13", "2023-03-02"], None),
        (["2023-03-13 00:00:00 UTC", "2023-03-02 00:00:00 UTC"], None),
        (["20230313", "20230302"], "%Y%m%d"),
        (["1678665600.0", "1677715200.0"], None),
    ],
)
def test_texts_that_can_be_read_in_one_way_are(texts: list[str], form: str | None) -> None:
    found = moments(pl.Series("ts", texts), ["s"], "UTC", form)
    assert (found // 10**6).to_list() == [1_678_665_600, 1_677_715_200]


@pytest.mark.parametrize(("last", "unit"), [(59, "s"), (59_999, "ms"), (59_999_999, "us")])
def test_bars_stamped_by_their_last_moment_pair_with_the_same_bars_without_a_difference(
    last: int, unit: str
) -> None:
    per_s = {"s": 1, "ms": 1_000, "us": 10**6}[unit]
    closes = bars([ts * per_s + last for ts in HALF_HOUR])
    mine = own_series(closes, KEY, unit=unit, stamped="end")  # type: ignore[arg-type]  # a unit
    assert mine.rows["ts"].to_list() == HALF_HOUR
    assert "30 times moved from a bar's last moment to its end" in mine.origin.notes
    pair = pair_series(mine, own_series(bars(HALF_HOUR), "BTC_USD:OTHER.spot"))  # type: ignore[arg-type]  # prices
    row = pair.summary().row(0, named=True)
    assert (row["n"], row["coverage"], row["spread_std_log_bps"]) == (30, 1.0, 0.0)


def test_rows_off_the_grid_are_kept_and_counted() -> None:
    mine = own_series(bars([*HALF_HOUR[:28], HALF_HOUR[28] + 7, HALF_HOUR[29] + 20]), KEY)
    assert len(mine) == 30
    off = "2 of 30 rows are off the grid of 1 min, the first at 2024-01-01 00:28:07 UTC"
    assert off in mine.origin.notes


def test_more_rows_than_the_step_has_room_for_are_no_whole_coverage() -> None:
    mine = own_series(bars(HALF_HOUR), KEY, step_s=120)
    assert mine.coverage()["coverage"][0] is None
    assert "coverage" not in mine.footnote


def test_the_first_and_the_last_time_are_always_told() -> None:
    told = "first row 2024-01-01 00:00 UTC, last 2024-01-01 00:29 UTC"
    assert told in repr(own_series(bars(HALF_HOUR), KEY))


def test_bars_of_a_second_stamped_by_their_last_millisecond_start_with_their_second() -> None:
    ends = pl.Series([10**6 * ts + 999_000 for ts in (START, START + 1)])
    assert bar_starts(ends, 1, "end")[0].to_list() == [START, START + 1]


USDT_KEY = "BTC_USDT:VENDOR.spot"
CLOSED = list(zip(MINUTES, (42_000.5, 42_001.5, 42_002.5), strict=False))


def lines(form: str, **scale: int) -> str:
    return "".join(
        form.format(ts=ts, price=price, **{name: ts * by for name, by in scale.items()}) + "\n"
        for ts, price in CLOSED
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
        ("rest.json", json.dumps([
            [1_000 * ts, "1", "9", "1", str(price), "12.5", 0, "5.25", 3, "1", "2", "0"]
            for ts, price in CLOSED])),
    ],
    "coinbase-candles": [
        ("candles.json", json.dumps([[ts, 1, 9, 2, price, 0.5] for ts, price in CLOSED[::-1]])),
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
        ("ohlcv.json", json.dumps([[1_000 * ts, 1, 9, 1, price, 0.5] for ts, price in CLOSED])),
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
    [(layout, *file) for layout in LAYOUTS for file in PRODUCED[layout]],
)
def test_a_file_of_a_known_producer_opens_by_the_name_of_its_layout(
    tmp_path: Path, layout: str, name: str, content: str | bytes
) -> None:
    mine = own_series(written(tmp_path, name, content), USDT_KEY, layout=layout)
    assert mine.rows.select("ts", "price").rows() == CLOSED
    in_quote = layout == "binance-klines" or name.startswith("Binance")
    assert mine.rows["volume"].to_list() == [5.25 if in_quote else None] * 3


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
    with pytest.raises(InputError, match=says):
        own_series(written(tmp_path, *PRODUCED["kraken-ohlcvt"][0]), USDT_KEY, **options)


def test_a_layout_of_prices_is_refused_for_another_key() -> None:
    with pytest.raises(InputError, match="the key of a price"):
        own_series("bars.csv", "BTC_USDT:X.spot:Y.spot", layout="ccxt-ohlcv")
