"""The page's tables and its file."""

import csv
import io

import polars as pl

from toolkit.dashboard.export import rows_csv
from toolkit.dashboard.pages.trajectory.below import gap_table, row_table
from toolkit.market import Source

ROWS = pl.DataFrame({"trajectory": ["a"] * 3, "ts": [0, 60, 120], "price": [1.0, None, 1 / 3]})


def test_the_file_has_every_row_with_time_and_source_and_exact_numbers():
    text = rows_csv(ROWS, Source("simulated", "mini")).decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [int(line["ts"]) for line in lines] == [0, 60, 120]
    assert [line["price"] for line in lines] == ["1.0", "", "0.3333333333333333"]
    assert lines[2]["time_utc"] == "1970-01-01T00:02:00Z"
    assert {line["source"] for line in lines} == {"SIMULATED market, mini"}


def test_rows_without_a_time_are_a_file_with_their_source():
    rows = ROWS.drop("ts", "price").head(1)
    assert (
        rows_csv(rows, Source("simulated", "m")) == b'trajectory,source\na,"SIMULATED market, m"\n'
    )


def test_the_newest_rows_come_first_and_no_more_than_the_limit():
    table = row_table(ROWS, "Asia/Tokyo", 2)
    assert table["time (Asia/Tokyo)"].to_list() == ["1970-01-01 09:02", "1970-01-01 09:01"]
    assert table["price"].to_list() == [1 / 3, None]


def test_gaps_are_what_is_not_held_longest_first():
    ledger = pl.DataFrame(
        {
            "start_ts": [0, 60, 120, 500],
            "end_ts": [60, 120, 500, 700],
            "state": ["held", "missing", "held", "not yet known"],
        }
    )
    assert gap_table(ledger, "UTC").select("length", "state").rows() == [
        ("3 min 20 s", "not yet known"),
        ("1 min", "missing"),
    ]
    assert gap_table(ledger[:1], "UTC").is_empty()
