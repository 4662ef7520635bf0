from __future__ import annotations

import dataclasses
from pathlib import Path

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core import contract
from toolkit.statistics.core.contract import Question, checked_columns, column_for


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("start", 0.0),
        ("start", "2023-03-01"),
        ("end", True),
        ("end", None),
        ("step_s", 0),
        ("step_s", 60.0),
        ("step_s", 2**63),
        ("max_stale_s", -1),
        ("max_stale_s", "180"),
    ],
)
def test_a_question_refuses_what_is_no_whole_number_of_seconds(parameter, value):
    given = {"start": 0, "end": 3600, parameter: value}
    with pytest.raises(InputError, match="a whole number of") as caught:
        Question("some/1", **given)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("end", [0, -60])
def test_a_window_that_holds_no_second_is_refused(end):
    with pytest.raises(InputError, match="a start before its end"):
        Question("some/1", 0, end)


def test_the_hash_of_the_parameters_ignores_the_window_and_nothing_else():
    question = Question("some/1", 0, 3600, "spread_log_bps", 60, 180)
    others = {"method": "some/2", "column": "spread_bps", "step_s": None, "max_stale_s": None}
    changed = [dataclasses.replace(question, **{name: to}) for name, to in others.items()]
    assert len({q.params_hash for q in [question, *changed]}) == 5
    moved = dataclasses.replace(question, start=60, end=7200)
    assert moved.params_hash == question.params_hash
    assert len(question.params_hash) == 16


def test_every_reason_is_told_in_words():
    words = {reason.words for reason in Reason}
    assert len(words) == len(Reason)
    assert all(reason.value not in reason.words for reason in Reason if "_" in reason.value)


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("spread_log_bps", "spread_mean_log_bps"),
        ("spread_bps", "spread_mean_bps"),
        ("spread_pct", "spread_mean_pct"),
        ("mark_price", "mark_price_mean"),
    ],
)
def test_the_unit_stays_at_the_end_of_a_name(column, name):
    assert column_for(column, "mean") == name


def test_a_wrong_frame_is_told_every_column_that_is_wrong_and_all_that_are_expected():
    frame = pl.DataFrame({"trajectory": [1.5], "buy_price": [100]})
    with pytest.raises(InputError) as caught:
        checked_columns(frame, "buy_price")
    message = str(caught.value)
    assert "trajectory is Float64, no ts, buy_price is Int64" in message
    assert "trajectory (String or integer), ts (Int64), buy_price (Float64)" in message


@pytest.mark.parametrize("dtype", [pl.String, pl.Int32, pl.UInt32, pl.Int64])
def test_a_trajectory_is_a_string_or_an_integer(dtype):
    frame = pl.DataFrame(schema={"trajectory": dtype, "ts": pl.Int64})
    checked_columns(frame)
    checked_columns(frame.lazy())


def test_one_function_alone_reads_rows_into_memory_by_the_order_of_the_query() -> None:
    modules = Path(contract.__file__).parent.glob("*.py")
    assert [each.stem for each in modules if "engine=" in each.read_text()] == ["contract"]
