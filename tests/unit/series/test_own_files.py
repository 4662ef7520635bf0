"""Files and frames of one's own as people have them: each opens, or says in a line why not."""

from __future__ import annotations

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
from toolkit.series import own_series

KEY = "BTC_USD:VENDOR.spot"
START = 1_704_067_200  # 2024-01-01
MINUTES = list(range(START, START + 300, 60))
PRICES = [100.5, 101.0, 102.25, 103.0, 104.5]
LINES = [f"{ts},{price}" for ts, price in zip(MINUTES, PRICES, strict=True)]
CSV = "\n".join(["ts,price", *LINES]) + "\n"
COLUMNS = {"columns": (1, 2)}


def semicolons(text: str) -> str:
    return text.replace(",", ";").replace(".", ",")


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
        ("rows.json", json.dumps([dict(zip(("ts", "price"), row, strict=True)) for row in
                                  zip(MINUTES, PRICES, strict=True)]), {}),
        ("lists.json", json.dumps({"error": [], "result": {"XXBTZUSD": list(
            zip(MINUTES, map(str, PRICES), strict=True))}}), COLUMNS),
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
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    mine = own_series(path, KEY, **options)
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
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=says) as refused:
        own_series(path, KEY)
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
    ("name", "options", "count"),
    [
        ("f01_klines_no_header.csv", {"layout": "binance-klines"}, 6),
        ("f01_klines_no_header.csv", {"columns": (1, 5), "unit": "ms"}, 6),
        ("f08_derivative_ticker.csv.gz",
         {"layout": "tardis-derivative-ticker", "shared": "last"}, 5),
        ("f16_month_first.csv",
         {"columns": ("Date", "Close"), "format": "%m/%d/%Y %H:%M", "timezone": "UTC"}, 12),
        ("f18_whole_then_decimals.csv", {"columns": ("ts", "close")}, 130),
        ("f18b_other_column.csv", {"columns": ("ts", "close")}, 130),
        ("f19_null_words.csv", {}, 10),
        ("f22_pages_overlap.csv", {"columns": ("timestamp", "close"), "unit": "ms"}, 12),
        ("f31_float_seconds.csv", {"columns": ("timestamp", "close")}, 5),
        ("f39_close_time.csv",
         {"columns": ("close_time", "close"), "unit": "ms", "stamped": "end"}, 30),
        ("f41_date_and_time.csv", {"columns": ("Date+Time", "Close"), "timezone": "UTC"}, 12),
    ],
)  # fmt: skip
def test_inputs_shaped_by_reports_have_the_rows_they_should(
    real_data: Path, name: str, options: dict[str, Any], count: int
) -> None:
    if not (real_data / "reports").is_dir():
        pytest.skip("the inputs shaped by reports are not here")
    mine = own_series(real_data / "reports" / name, KEY, **options)
    assert len(mine) == count
    assert (mine.rows["ts"] % (mine.origin.step_s or 1)).max() == 0
