"""An answer has all that its figures rest on, in bounds, and no text that could mislead."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import msgspec
import polars as pl
import pytest

from toolkit.assistant.answers import MOST_BYTES, MOST_ROWS, ToolAnswer
from toolkit.errors import InputError


def document(frame: pl.DataFrame, **more: Any) -> dict[str, Any]:
    return ToolAnswer(frame, "SIMULATED market", True, **more).document()


def test_rows_beyond_the_limit_are_left_out_and_counted() -> None:
    frame = pl.DataFrame({"n": range(500)})
    assert document(frame)["shown"] == "20 of 500 rows"
    assert document(frame, limit=3)["rows"] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert len(document(frame, limit=9_999)["rows"]) == MOST_ROWS
    assert "there are more" in document(frame, more=True)["shown"]


def test_of_a_curve_evenly_spaced_rows_are_shown() -> None:
    made = document(pl.DataFrame({"offset_s": range(-60, 61)}), curve=True, limit=41)
    assert made["shown"] == "41 of 121 rows, one in 3"
    assert [row["offset_s"] for row in made["rows"]] == list(range(-60, 61, 3))


def test_an_answer_is_no_larger_than_its_bound() -> None:
    wide = pl.DataFrame({f"column_{k}": [f"{k} {n}" * 60 for n in range(200)] for k in range(9)})
    made = document(wide, limit=200)
    assert len(msgspec.json.encode(made)) <= MOST_BYTES
    assert 0 < len(made["rows"]) < 200
    assert made["shown"] == f"{len(made['rows'])} of 200 rows"


def test_a_null_with_a_reason_is_in_the_reasons_and_any_other_in_its_row() -> None:
    frame = pl.DataFrame(
        {
            "trajectory": ["A", "B", "C"],
            "free": [None, None, 1],
            "mean_bps": [None, 1.0, None],
            "std_bps": [None, None, None],
            "level_reason": ["empty", "too_few", "empty"],
            "last": [None, 2, 3],
        },
        schema_overrides={"std_bps": pl.Float64},
    )
    made = document(frame)
    assert made["reason"] == [
        "free, mean_bps, std_bps: no observation in the window (A)",
        "free, std_bps: too few observations for this statistic (B)",
        "mean_bps, std_bps: no observation in the window (C)",
    ]
    assert made["rows"] == [
        {"trajectory": "A", "last": None},
        {"trajectory": "B", "mean_bps": 1.0, "last": 2},
        {"trajectory": "C", "free": 1, "last": 3},
    ]


def test_what_all_rows_share_is_given_once() -> None:
    made = document(pl.DataFrame({"n": [1, 2], "method": ["a.b/1"] * 2, "x": [None, None]}))
    assert made["rows"] == [{"n": 1}, {"n": 2}]
    assert made["in_every_row"] == {"method": "a.b/1", "x": None}
    assert document(pl.DataFrame({"n": [1]}))["in_every_row"] == {}


def test_bounds_of_an_interval_are_named_and_a_log_or_a_low_is_none() -> None:
    frame = pl.DataFrame({"mean_log_bps": [1.0], "price_low": [1.0], "mean_lower_log_bps": [0.5]})
    assert document(frame)["interval"] == "95 %: mean_lower_log_bps; other figures have none"
    assert document(frame.drop("mean_lower_log_bps"))["interval"].startswith("none")


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("ts", 1_793_750_400, "2026-11-04 00:00 UTC"),
        ("ts", 10**15, 10**15),
        ("n", 2**60, str(2**60)),
        ("x", float("nan"), "nan"),
        ("x", True, True),
        ("day", date(2026, 11, 4), "2026-11-04"),
        ("time", datetime(2026, 11, 4), "2026-11-04 00:00:00 UTC"),  # noqa: DTZ001 - SQL has none
        ("time", datetime(2026, 11, 4, tzinfo=UTC), "2026-11-04 00:00:00 UTC"),
        ("text", "a\x1b[31m\n\u202eb", "a�[31m �b"),
        ("list", [1, 2], "[1, 2]"),
    ],
)
def test_a_value_is_written_as_json_has_it(name: str, value: Any, written: Any) -> None:
    assert document(pl.DataFrame({name: [value]}))["rows"] == [{name: written}]


def test_a_text_that_explains_no_null_is_in_its_row_even_where_it_is_named_a_reason() -> None:
    frame = pl.DataFrame({"event_id": ["a", "b"], "close_reason": ["timeout", None], "n": [1, 2]})
    made = document(frame)
    assert made["rows"] == [
        {"event_id": "a", "close_reason": "timeout", "n": 1},
        {"event_id": "b", "n": 2},
    ]
    assert made["reason"] == []


def test_a_unit_is_that_of_the_statistic_else_of_the_names_end() -> None:
    frame = pl.DataFrame({"method": ["spread.summary/5"], "n_segments": [1], "x_bps": [1.0]})
    assert document(frame)["unit"] == {"n_segments": "count", "x_bps": "bps"}
    of_sql = pl.DataFrame({"method": ["a text of a query"], "x_s": [1]})
    assert document(of_sql)["unit"] == {"x_s": "s"}


def test_columns_are_chosen_by_name_and_an_unknown_one_is_refused() -> None:
    answer = ToolAnswer(pl.DataFrame({"n": [1], "a_bps": [1.0], "b_bps": [2.0]}), "x", False)
    assert answer.narrowed(" b_bps, ").rows.columns == ["n", "b_bps"]
    with pytest.raises(InputError, match="'c_bps' is not allowed; allowed: n, a_bps, b_bps"):
        answer.narrowed("c_bps")
