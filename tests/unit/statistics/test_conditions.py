"""What a condition may be made of, and that it reaches nothing but the rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.statistics.core.conditions import column, condition

ROWS = pl.DataFrame(
    {
        "trajectory": ["A_B:X.spot:Y.spot", "A_B:X.spot:Z.spot", "C_D:X.spot:Y.spot", "it's"],
        "n": [10, 20, 30, None],
        "coverage": [0.5, 0.95, 1.0, None],
        "differs": [True, False, None, True],
    }
)


def passing(text: str) -> list[int]:
    """The places of the rows of which the condition is true."""
    rows = ROWS.with_row_index("place").filter(condition(text, ROWS.schema))
    return rows["place"].to_list()


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("coverage >= 0.95", [1, 2]),
        ("coverage >= 0.95 and n < 25", [1]),
        ("n = 10 or n == 30", [0, 2]),
        ("not (coverage >= 0.95)", [0]),
        ("n <> 10", [1, 2]),
        ("n != 10 AND n < 1e3", [1, 2]),
        ("n in (10, 20)", [0, 1]),
        ("n not in (10, 20)", [2]),
        ("n between 15 and 30", [1, 2]),
        ("n * coverage - 1 > 4.5", [1, 2]),
        ("-n < -15", [1, 2]),
        ("trajectory like 'A_B:%'", [0, 1]),
        ("trajectory = 'it''s'", [3]),
        ('"n" > 20', [2]),
        ("differs", [0, 3]),
        ("n is null", [3]),
        ("n is not null and differs is null", [2]),
        ("1 = 1", [0, 1, 2, 3]),
    ],
)
def test_a_condition_keeps_the_rows_of_which_it_is_true_and_no_null(
    text: str, places: list[int]
) -> None:
    assert passing(text) == places


@pytest.mark.parametrize(
    "text",
    [
        "n in (select x from read_csv('{file}'))",
        "n in (SELECT 1)",
        "exists (from read_csv('{file}'))",
        "(table secret) = 1",
        "(values (1)) = 1",
        "with x as (select 1) select 1",
        "read_csv('{file}')",
        "\"read_csv\"('{file}')",
        "n > 1; drop table x",
        "n > avg(n)",
        "columns('.*') > 0",
        "case when n > 1 then true end",
        "trajectory = 'a\\' in (select x from read_csv('{file}')) or 'b'",
        "n > 1 /* ' */ in (select x from read_csv('{file}')) --'",
        "n > 1 -- '\n in (select x from read_csv('{file}')) or 'b' = '",
        "n > 1 # comment",
        "trajectory = $$a$$",
        "trajectory = e'a'",
        "`n` > 1",
        "[n] > 1",
        "n::text = '1'",
        "n > ?",
        "trajectory ~ 'A'",
    ],
)
def test_nothing_else_is_read_not_even_by_the_parser(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("hush\n1\n")
    with pytest.raises(InputError) as refused:
        condition(text.replace("{file}", str(file)), ROWS.schema)
    assert "hush" not in str(refused.value)
    assert str(refused.value).startswith("where: ")


@pytest.mark.parametrize(
    "text",
    ["", "  ", "n", "n +", "n > 'a'", "coverage >= 95%", "n > 1 n", "((n > 1)", "n > 1" * 400, "*"],
)
def test_what_is_no_condition_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as refused:
        condition(text, ROWS.schema)
    assert "\n" not in str(refused.value)
    assert "coverage >= 0.95" in str(refused.value) or "1,000 characters" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("coverag > 1", "coverage"), ("Coverage > 1", "coverage"), ('"trajectry" = 1', "trajectory")],
)
def test_a_column_that_is_not_there_is_refused_with_the_nearest_and_all_of_them(
    text: str, nearest: str
) -> None:
    with pytest.raises(InputError) as refused:
        condition(text, ROWS.schema)
    assert f"nearest: {nearest}" in str(refused.value)
    assert refused.value.allowed == "trajectory, n, coverage, differs"


def test_a_text_without_quotes_is_refused_with_the_way_to_write_it() -> None:
    with pytest.raises(InputError, match="single quotes: 'BTC_USD'"):
        condition("trajectory = BTC_USD", ROWS.schema)


def test_a_sort_column_has_the_same_refusal() -> None:
    with pytest.raises(InputError, match=r"--sort: 'cover' is not allowed.*nearest: coverage"):
        column("cover", ROWS.columns, parameter="--sort")


@given(st.text(max_size=60))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        found = condition(text, ROWS.schema)
    except InputError:
        return
    assert ROWS.lazy().select(found).collect_schema().dtypes() == [pl.Boolean]


PARTS = "n coverage ' '' \" ( ) and not > = 1 -- /* */ \\ select from read_csv('x') in , is null -"


@given(st.lists(st.sampled_from([*PARTS.split(), " ", "\n"]), max_size=12))
def test_no_mixture_of_quotes_and_comments_hides_a_query(parts: list[str]) -> None:
    text = " ".join(parts)
    try:
        found = condition(text, ROWS.schema)
    except InputError:
        return
    assert "subplan" not in str(found)
