"""A value, its heading and the reason of a null are the same words wherever a result is shown."""

from __future__ import annotations

import math
from html import unescape

import polars as pl
import pytest

from toolkit import columns
from toolkit.assistant.answers import ToolAnswer
from toolkit.reports.answering import SHOWN_ROWS
from toolkit.reports.comparison import result_of
from toolkit.reports.recipe import Part, PartResult
from toolkit.show.html import table_html
from toolkit.show.sheet import Sheet, markdown_of
from toolkit.show.values import NULL, figures_of, heading_of, reason_words, value_text
from toolkit.statistics import events, explain, funding, spread
from toolkit.statistics.explanation import documented

DECLARED = [each for _, each in columns._first().values()]
EXTREMES = (0, -1, 1, 0.0, -1e-9, 1 - 1e-9, -95.0, 2**53, 1e300, math.inf, -math.inf, math.nan)


def few_minutes() -> pl.DataFrame:
    """A summary of two rows, of which most figures are null."""
    frame = pl.DataFrame({"trajectory": "A_B:X.spot:Y.spot", "ts": [0, 60], "bps": [1.0, 2.0]})
    return spread.summary(frame.rename({"bps": "spread_log_bps"}), 0, 120)


def settlements() -> pl.DataFrame:
    """Funding of four settlements without prices."""
    rates = {"buy_rate": 0.0001, "sell_rate": 0.0003}
    hours = {"buy_interval_hours": 8.0, "sell_interval_hours": 8.0}
    frame = pl.DataFrame({"ts": [28_800 * k for k in range(1, 5)]}).with_columns(
        pl.lit("funding/A_B:X.futures:Y.futures").alias("trajectory"),
        **{name: pl.lit(value) for name, value in (rates | hours).items()},
    )
    return funding.summary(frame, 0, 115_200)


def lives(observed: int = 1) -> pl.DataFrame:
    """Survival of one short life, seen to end or not."""
    row = {"family": "spread", "t_open": 0, "duration_s": 30.0, "entry_s": 0.0}
    row |= {"observed": observed, "kind": "closed", "known_until": 100}
    return events.survival(pl.DataFrame([row | {"window_start": 0, "window_end": 100}]))


RESULTS = {made.__name__: made() for made in (few_minutes, settlements, lives)}


def report_of(result: pl.DataFrame) -> str:
    """A result in a report, as HTML that is read."""
    shown, method = result.head(SHOWN_ROWS).to_dicts(), result["method"][0]
    answer = PartResult(None, None, "", "", "", result.height, method, shown)
    found = result_of(Part("summary", 0, 60), answer)
    return unescape(f"{found.rows}{found.others}")


@pytest.mark.parametrize("name", RESULTS)
def test_a_report_an_answer_and_explain_have_the_same_words(name: str) -> None:
    result = RESULTS[name]
    row, method = result.row(0, named=True), result["method"][0]
    page, text = report_of(result), explain(result)
    answer = ToolAnswer(result, "SIMULATED market", True).document()
    figures, nulls = figures_of(row, method), 0
    assert len(figures) > 10
    assert documented(method).prose[0].splitlines()[0].replace("``", "`") in text
    assert ("(1970" if name == "settlements" else "[1970") in text
    for figure in figures:
        one, value, why = columns.column(figure, method), row[figure], reason_words(row, figure)
        shown = value_text(value, one, unit=True)
        assert answer["unit"].get(figure, "") == one.unit
        if value is not None:
            assert f"<dt>{one.heading}</dt><dd>{shown}" in page
            assert f"\n{figure} = {shown}" in text
            written = answer["rows"][0][figure]
            assert written == value or (one.unit == "UTC" and str(written).startswith(shown[:16]))
            continue
        nulls += 1
        assert f'<dt>{one.heading}</dt><dd class="reason">{why}</dd>' in page
        assert f"\n{figure} is null: {why}\n" in text
        assert figure not in answer["rows"][0]
        assert any(figure in line and line.endswith(f": {why}") for line in answer["reason"])
    assert nulls or name == "settlements"


def test_a_table_has_the_same_words_in_a_report_and_in_markdown() -> None:
    names = ["family", "n", "coverage", "median_life_s", "life_q90_s"]
    result = pl.concat([lives(), lives(observed=0)])
    rows, method = result.to_dicts(), result["method"][0]
    page = unescape(table_html(rows, names, method))
    lines = markdown_of(Sheet("Lives", "SIMULATED market", result, names), result)
    for name in names:
        one = columns.column(name, method)
        head = heading_of(one, short=True)
        assert f">{head}</th>" in page
        assert f'data-head="{head}"><span>{value_text(rows[0][name], one)}<' in page
        assert f" {heading_of(one)} " in lines
        assert value_text(rows[0][name], one) in lines
    assert rows[1]["median_life_s"] is None
    assert f">{NULL} (a)<" in page
    said = f"(a) {reason_words(rows[1], 'median_life_s')}"
    assert f">{said}<" in page
    assert f"\n{said}\n" in lines


def test_each_declared_column_has_a_heading_and_a_text_for_any_value() -> None:
    for one in DECLARED:
        assert one.heading in heading_of(one)
        assert one.short in heading_of(one, short=True)
        assert value_text(None, one) == NULL
        values = ("", "text", True) if one.type == "String" else EXTREMES
        for value in values:
            text = value_text(value, one)
            assert text, (one.name, value)
            assert text in value_text(value, one, unit=True)
            assert text.strip("0. %") != "-", (one.name, value)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("coverage", 0.0, "0.00 %"),
        ("coverage", 1e-7, "<0.01 %"),
        ("coverage", 0.999999, ">99.99 %"),
        ("coverage", 1.0, "100.00 %"),
        ("half_life_s", -7_200.0, "-2 h"),
        ("half_life_s", math.inf, "inf"),
        ("window_start", 0, "1970-01-01 00:00"),
        ("window_start", 1e300, f"{1e300:.0f}"),
        ("carry_bps", -0.001, "0.00"),
    ],
)
def test_a_value_near_a_bound_says_on_which_side_it_is(name: str, value: float, text: str) -> None:
    assert value_text(value, columns.column(name)) == text
