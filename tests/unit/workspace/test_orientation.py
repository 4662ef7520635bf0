"""Which way round pairs are shown, by every way in which a store can hold them."""

import itertools

import polars as pl
import pytest

from toolkit.workspace.snapshot_tables import each_pair_once, held_stream, shown_as_held

KEY, TURNED = "A_B:X.spot:Y.spot", "A_B:Y.spot:X.spot"
WAYS = (KEY, TURNED, f"snapshot-spread/{KEY}", f"snapshot-spread/{TURNED}")


@pytest.mark.parametrize("kept", list(itertools.product([False, True], repeat=4)))
def test_what_was_loaded_comes_first_and_the_way_asked_for_where_both_are_held(kept):
    held = {way for way, is_held in zip(WAYS, kept, strict=True) if is_held}
    first = next((way for way in WAYS if way in held), None)
    assert held_stream(KEY, held) == (None if first is None else (first, first.endswith(TURNED)))


def test_a_row_is_turned_with_its_legs_and_signs_where_its_pair_is_held_the_other_way():
    rows = pl.DataFrame(
        {
            "trajectory": [KEY, "C_D:X.spot:Y.spot", "E_F:X.spot:Y.spot"],
            "buy": ["X.spot"] * 3,
            "sell": ["Y.spot"] * 3,
            "bps": [30.0, 20.0, None],
        }
    )
    held = {TURNED, "C_D:X.spot:Y.spot", "C_D:Y.spot:X.spot"}
    found = shown_as_held(rows, held, "bps")
    assert found.rows() == [
        (TURNED, "Y.spot", "X.spot", -30.0, TURNED),
        ("C_D:X.spot:Y.spot", "X.spot", "Y.spot", 20.0, "C_D:X.spot:Y.spot"),
        ("E_F:X.spot:Y.spot", "X.spot", "Y.spot", None, None),
    ]
    assert shown_as_held(rows.clear(), held, "bps").is_empty()


def test_funding_is_found_either_way_round_and_prices_are_not_turned():
    funding = "funding/A_B:X.futures:Y.futures"
    assert held_stream("funding/A_B:Y.futures:X.futures", {funding}) == (funding, True)
    assert held_stream("A_B:X.spot", {"A_B:X.spot"}) == ("A_B:X.spot", False)


def test_of_two_rows_of_a_pair_the_newer_stays_and_of_equal_times_the_first():
    rows = pl.DataFrame(
        {
            "symbol": ["A_B"] * 2,
            "buy": ["X.spot", "Y.spot"],
            "sell": ["Y.spot", "X.spot"],
            "ts": [60, 60],
        }
    )
    assert each_pair_once(rows, "ts")["buy"].to_list() == ["X.spot"]
    newer = rows.with_columns(ts=pl.Series([60, 120]))
    assert each_pair_once(newer, "ts")["buy"].to_list() == ["Y.spot"]
