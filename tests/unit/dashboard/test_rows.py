"""The table whose rows open: what its script gets, and which row was opened."""

from __future__ import annotations

import csv
import io

import polars as pl

from toolkit.dashboard.export import rows_csv
from toolkit.dashboard.pages.trajectory.below import gap_table, row_table
from toolkit.dashboard.parts.rows import RowColumn
from toolkit.market import Source


def test_a_number_is_as_fine_as_its_order_or_a_dash_and_no_zero_has_a_sign():
    data = RowColumn("spread_mean_log_bps", "number", [12.25, None]).data
    assert data["name"] == "mean (bps)"
    assert data["shown"] == ["12.25", "–"]
    assert data["values"] == [12.25, None]
    assert data["className"] == "number"
    sent = RowColumn("spread_mean_log_bps", "number", [1.23456789, None, 1.0]).data["values"]
    assert sent == [1.234568, None, 1.0]
    assert RowColumn("bps", "number", [-0.04, -0.06]).texts == ["0.0", "-0.1"]
    assert RowColumn("noise_share", "number", [-1e-9]).texts == ["0.00 %"]


def test_a_bar_is_as_long_as_its_percent_and_a_line_says_in_words_what_it_draws():
    data = RowColumn("coverage", "bar", [0.975, None]).data
    assert data["values"] == [97.5, None]
    assert data["shown"] == ["97.50 %", "–"]
    column = RowColumn("recent", "line", [[None, 2.0, -1.0], [1.0], None], narrow=False)
    few = "fewer than two values"
    assert column.texts == ["from 2.0 to -1.0, lowest -1.0, highest 2.0", few, few]
    assert column.data["className"] == "narrow-out"


def test_a_heading_has_what_is_beside_its_column_in_brackets_and_texts_of_others_are_plain():
    data = RowColumn("opened_at", "text", ["01-01 00:00"], of="Europe/Berlin").data
    assert data["name"] == "opened at (Europe/Berlin)"
    assert data["help"] == "opened at: when the event of the spread opened"
    data = RowColumn("symbol", "text", ["A\u202e\nB"], titles=["x\x1b[31m"]).data
    assert data["shown"] == ["A� B"]
    assert data["titles"] == ["x�[31m"]


def test_an_age_has_the_limits_from_which_the_browser_colours_it():
    data = RowColumn("age_s", "age", [90, None], limits=[(300, 900), (None, None)]).data
    assert data["shown"] == ["1 min 30 s", "–"]
    assert data["values"] == [90, None]
    assert data["limits"] == [(300, 900), (None, None)]
    assert data["className"] == "number age"


ROWS = pl.DataFrame({"trajectory": ["a"] * 3, "ts": [0, 60, 120], "price": [1.0, None, 1 / 3]})


def test_the_file_has_every_row_with_time_where_it_has_one_and_source_and_exact_numbers():
    text = rows_csv(ROWS, Source("simulated", "mini")).decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [int(line["ts"]) for line in lines] == [0, 60, 120]
    assert [line["price"] for line in lines] == ["1.0", "", "0.3333333333333333"]
    assert lines[2]["time_utc"] == "1970-01-01T00:02:00Z"
    assert {line["source"] for line in lines} == {"SIMULATED market, mini"}
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
