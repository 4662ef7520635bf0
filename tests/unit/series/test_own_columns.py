"""Columns of one's own by name or place, and their numbers, whoever wrote them."""

from __future__ import annotations

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.series import own_series
from toolkit.series.own_files import number

KEY = "BTC_USD:VENDOR.spot"
START = 1_704_067_200  # 2024-01-01


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
