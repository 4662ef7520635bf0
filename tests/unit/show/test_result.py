"""A result shows the columns of its answer, and is a polars frame for all else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.analyses import find
from toolkit.show.result import ANSWERS, ROWS, Result
from toolkit.statistics import spread

MINUTES = 300
KEYS = [f"BTC_USDT:A.spot:B{number}.spot" for number in range(ROWS + 2)]
VALUES = pl.DataFrame(
    {
        "trajectory": [key for key in KEYS for _ in range(MINUTES)],
        "ts": [60 * minute for minute in range(MINUTES)] * len(KEYS),
        "spread_log_bps": [float(7 * row % 23) for row in range(MINUTES * len(KEYS))],
    }
)
FRAME = spread.summary(VALUES, 0, 60 * MINUTES)
SHOWN = find("spread.summary").columns_in(FRAME.columns)
FOUND = Result.of(FRAME, SHOWN)


def test_rows_are_shown_by_the_answer_with_units_and_reasons_and_the_number_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    lines = str(FOUND).splitlines()
    assert lines[0].split("  ")[0] == "trajectory"
    assert "std dev (bps)" in lines[0]
    assert "(a) shorter than the spacing of the observations can show" in lines
    assert lines[-2].startswith("columns: trajectory, spread_std_log_bps, ")
    shown = lines[-2].count(",") + 1
    assert shown == ANSWERS + 1
    assert (
        lines[-1] == f"… 2 more rows and {FRAME.width - shown} more columns: .frame has every one"
    )
    assert len([line for line in lines if line.startswith("BTC_USDT")]) == ROWS


def test_a_single_row_is_a_list_of_figures_with_the_names_of_their_columns() -> None:
    lines = str(Result.of(FRAME[:1], SHOWN)).splitlines()
    assert lines[0] == f"trajectory: {KEYS[0]}"
    assert any(line.startswith("standard deviation (bps)  6.") for line in lines)
    assert any(line.endswith("  spread_std_log_bps") for line in lines)


def test_what_does_not_fit_a_terminal_is_counted_as_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    text = str(FOUND)
    assert max(map(len, text.splitlines())) <= 70
    shown = text.partition("columns: ")[2].count(",") + 1
    assert shown < ANSWERS
    assert f"{FRAME.width - shown} more columns" in text


def test_a_notebook_has_a_table_with_reasons_and_what_columns_mean() -> None:
    html = FOUND._repr_html_()
    assert html.count("<tr>") == ROWS + 1
    assert "shorter than the spacing of the observations can show" in html
    assert "<code>spread_std_log_bps</code>" in html
    assert "2 more rows" in html


def test_text_of_others_is_text_in_a_notebook_and_a_terminal() -> None:
    rows = pl.DataFrame({"trajectory": ["<b>\x1b[2Jx"] * 2, "n": [1, 2], "method": ["a/1", "a/1"]})
    found = Result.of(rows, ["trajectory", "n"])
    assert "<b>" not in found._repr_html_()
    assert "\x1b" not in str(found) + found._repr_html_()


def test_it_is_a_frame_of_polars_for_all_that_takes_one() -> None:
    assert isinstance(FOUND, pl.DataFrame)
    assert_frame_equal(FOUND, FRAME)
    assert FOUND.equals(FRAME)
    assert FRAME.equals(FOUND)
    assert type(pickle.loads(pickle.dumps(FOUND))) is pl.DataFrame
    assert pickle.loads(pickle.dumps(FOUND)).equals(FRAME)
    assert pl.concat([FOUND, FRAME]).height == 2 * FRAME.height
    assert type(FOUND.frame) is type(FOUND.lazy().collect()) is pl.DataFrame
    assert duckdb.connect().execute("select count(*) from FOUND").fetchall() == [(len(FRAME),)]
    assert FOUND.to_arrow().equals(FRAME.to_arrow())


@pytest.mark.parametrize(
    "made",
    [
        *(pl.DataFrame.head, pl.DataFrame.clone, copy.copy, copy.deepcopy, lambda rows: rows[:3]),
        *(lambda rows: rows.select("n"), lambda rows: rows.with_columns(twice=2)),
    ],
)
def test_what_polars_makes_of_it_shows_itself_as_polars_does(
    made: Callable[[pl.DataFrame], pl.DataFrame],
) -> None:
    assert str(made(FOUND)) == str(made(FRAME))
    assert made(FOUND)._repr_html_() == made(FRAME)._repr_html_()


def test_a_result_without_rows_shows_itself_as_polars_does() -> None:
    assert str(Result.of(FRAME[:0], SHOWN)) == str(FRAME[:0])


def test_a_column_added_in_place_is_one_more_that_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    found = Result.of(FRAME, SHOWN)
    found.insert_column(0, pl.lit(1).alias("own"))
    assert f"{FRAME.width - ANSWERS} more columns" in str(found)
