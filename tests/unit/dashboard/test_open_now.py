"""Open spreads by the newest answer: what is counted, and up to when their ages run."""

from __future__ import annotations

import json

import polars as pl
import pytest

from toolkit.dashboard.pages.overview.spreads import open_now

LIST_AT = 100_000
OLDER, NEWER = LIST_AT - 600, LIST_AT + 6_300
LEGS = {"buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y", "sell_market": "spot"}


def listed(*opened_at):
    item = {"symbol": "BTC_USD", **LEGS, "spread_pct": 1.0}
    return LIST_AT, json.dumps({"items": [item | {"opened_at": ts} for ts in opened_at]})


def logged(*opened):
    """Rows of `open_events`, by when each opened (None: not seen)."""
    rows = [
        {"symbol": f"S{number}_USD", **LEGS, "magnitude_pct": float(number), "t_open": ts}
        for number, ts in enumerate(opened)
    ]
    columns = dict.fromkeys(["symbol", *LEGS], pl.String)
    return pl.DataFrame(rows, schema=columns | {"magnitude_pct": pl.Float64, "t_open": pl.Int64})


def test_a_newer_log_wins_over_an_older_list_that_is_empty():
    found = open_now(listed(), logged(*[NEWER - 60] * 10), NEWER)
    assert (found.count, found.at, found.items) == ("10", NEWER, None)


def test_a_newer_list_wins_over_an_older_log():
    found = open_now(listed(), logged(*[OLDER - 60] * 10), OLDER)
    assert (found.count, found.at) == ("0", LIST_AT)
    assert found.items is not None


def test_a_newer_log_wins_over_a_list_that_is_not_understood():
    odd = LIST_AT, json.dumps({"items": [{"symbol": "BTC_USD"}]})
    assert open_now(odd, logged(), OLDER).count == "not understood"
    assert open_now(odd, logged(OLDER), NEWER).count == "1"


def test_which_are_open_is_not_known_where_the_list_does_not_say_it():
    at, document = listed(None)
    found = open_now(
        (at, json.dumps({**json.loads(document), "not_said": ["opened_at"]})), logged(), None
    )
    assert (found.count, found.tracked.height) == ("not known", 1)


def test_without_any_answer_nothing_is_counted():
    assert open_now(None, logged(), None) is None


@pytest.mark.parametrize("known_until", [None, OLDER], ids=["no log", "an older log"])
def test_the_ages_of_a_list_end_at_its_own_answer(known_until):
    found = open_now(listed(LIST_AT - 46 * 60, None), logged(), known_until)
    assert (found.open_s.to_list(), found.count, found.tracked.height) == ([46 * 60], "1", 1)


def test_the_ages_of_a_log_end_where_its_own_answers_do():
    found = open_now(None, logged(NEWER - 120, None), NEWER)
    assert dict(zip(found.rows["symbol"], found.open_s, strict=True)) == {
        "S0_USD": 120,
        "S1_USD": None,
    }


def test_what_a_list_tracks_is_known_for_an_hour_beside_a_newer_log():
    soon = open_now(listed(None), logged(), LIST_AT + 600)
    assert (soon.items, soon.tracked["symbol"].to_list()) == (None, ["BTC_USD"])
    assert open_now(listed(None), logged(), NEWER).tracked.is_empty()


def test_the_symbols_kept_are_all_that_is_counted():
    found = open_now(None, logged(NEWER - 120, None), NEWER)
    one = found.kept(lambda rows: rows.filter(symbol="S1_USD"))
    assert (one.count, one.rows["symbol"].to_list()) == ("1", ["S1_USD"])
