"""Which rows are bars and settlements: the same whenever and in whatever parts they are asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from toolkit.market import Leg, Market
from toolkit.service.market.exchanges import LegKey, ListedLeg, accepted, frontier, settled

DAY = 1_795_651_200
HOUR = 3_600
MINUTES = 40
LEG = ListedLeg(
    LegKey("BTC_USDT", Leg("BINANCE", Market.SPOT)), "binance", "BTC/USDT", 1.0, 1.0, funding=False
)
Row = list[Any]


def row(ts: int, close: object = 2.0, volume: float | None = 3.0, **given: Any) -> Row:
    told = {"quote": 6.0, "closed": False, **given}
    return [1000 * ts, 1.0, 1.0, 1.0, close, volume, told["quote"], told["closed"]]


def told_of(rows: Sequence[Row], at: float, *, marks: bool) -> list[Row]:
    """What an exchange tells at a moment: bars that have begun, an open or fresh one in part."""
    told = []
    for each in rows:
        age = at - each[0] / 1000
        if age >= 0:
            fresh = age < 60 + 4
            told.append([*each[:4], 9.0 if fresh else each[4], *each[5:7], marks and not fresh])
    return told


@st.composite
def markets(draw: st.DrawFn) -> list[Row]:
    """Minutes, some without a row, some flat with volume 0, some with a price that is none."""
    kinds = draw(st.lists(st.sampled_from("ttt.0n"), min_size=MINUTES, max_size=MINUTES))
    made = {
        "t": lambda ts: row(ts, close=1.0 + ts % 977),
        "0": lambda ts: row(ts, volume=0.0, quote=0.0),
        "n": lambda ts: row(ts, close=None),
    }
    return [made[kind](DAY + 60 * n) for n, kind in enumerate(kinds) if kind != "."]


@given(markets(), st.booleans(), st.lists(st.floats(0, 60 * MINUTES + 200), max_size=12))
@examples(200)
def test_bars_are_the_same_in_one_catch_up_and_at_random_moments(market, marks, moments) -> None:
    end = DAY + 60 * MINUTES
    last = 60.0 * MINUTES + 200
    found: dict[int, float] = {}
    refused = 0
    known = DAY
    for moment in [*sorted(moments), last]:
        at = DAY + moment
        told = [each for each in told_of(market, at, marks=marks) if each[0] >= 1000 * known]
        answer = accepted(told, LEG, known, end, at)
        assert known <= answer.known_until <= max(at - 4, known)
        assert answer.known_until >= min(at - 4 - 120, end)
        for ts, price in zip(answer.rows.ts.tolist(), answer.rows.price.tolist(), strict=True):
            assert ts not in found
            assert ts + 60 <= answer.known_until
            found[ts] = price
        refused += sum(answer.refused.values())
        known = answer.known_until
    whole = accepted(told_of(market, DAY + last, marks=marks), LEG, DAY, end, DAY + last)
    assert known == whole.known_until == end
    assert found == dict(zip(whole.rows.ts.tolist(), whole.rows.price.tolist(), strict=True))
    assert 9.0 not in found.values()
    assert refused == sum(whole.refused.values()) == sum(each[4] is None for each in market)


@pytest.mark.parametrize(
    ("after_s", "rows", "known"),
    [
        (63.9, [row(DAY), row(DAY + 60)], 0),
        (64.0, [row(DAY), row(DAY + 60)], 60),
        (64.0, [row(DAY)], 0),
        (64.0, [row(DAY, closed=True)], 60),
        (123.9, [row(DAY)], 0),
        (124.0, [row(DAY)], 60),
        (124.0, [], 60),
    ],
)
def test_a_bar_is_known_when_it_is_4_s_old_and_shown_closed_or_a_minute_later(after_s, rows, known):
    assert frontier(rows, DAY, DAY + 600, DAY + after_s) == DAY + known
    assert len(accepted(rows, LEG, DAY, DAY + 600, DAY + after_s).rows.ts) == bool(known and rows)


@pytest.mark.parametrize(
    ("price", "why"),
    [
        (None, "a null price"),
        (0.0, "a price of 0 or less"),
        (-1.0, "a price of 0 or less"),
        (math.nan, "a price that is not finite"),
        (math.inf, "a price that is not finite"),
    ],
)
def test_a_price_that_is_none_is_refused_and_counted(price: object, why: str) -> None:
    rows = [row(DAY), row(DAY + 60, close=price), row(DAY + 120)]
    answer = accepted(rows, LEG, DAY, DAY + 180, DAY + 900)
    assert answer.rows.ts.tolist() == [DAY, DAY + 120]
    assert answer.refused == {why: 1}


def test_an_answer_without_a_row_for_more_than_a_day_and_rows_from_elsewhere_are_told() -> None:
    empty = accepted([], LEG, DAY, DAY + 90_000, DAY + 99_999)
    assert empty.refused == {"no row in a window of more than a day": 1}
    stray = accepted([row(DAY + 7_200), row(DAY + 30)], LEG, DAY, DAY + 600, DAY + 9_999)
    assert len(stray.rows.ts) == 0
    assert stray.refused == {
        "a row outside of the window": 1,
        "a time that is not a whole minute": 1,
    }


def test_volume_is_in_quote_or_not_at_all_and_lots_divide_the_price_alone() -> None:
    lots = ListedLeg(LEG.key, "binance", "1000PEPE/USDT", 1000.0, 1.0, funding=False)
    rows = [row(DAY), row(DAY + 60, quote=None), row(DAY + 120, volume=None, quote=None)]
    answer = accepted(rows, lots, DAY, DAY + 180, DAY + 900)
    assert answer.rows.price.tolist() == [0.002, 0.002, 0.002]
    assert answer.rows.volume is not None
    assert answer.rows.volume[0] == 6.0
    assert all(map(math.isnan, answer.rows.volume[1:]))
    base_only = ListedLeg(LEG.key, "coinbaseexchange", "BTC/USDT", 1.0, None, funding=False)
    volume = accepted(rows, base_only, DAY, DAY + 180, DAY + 900).rows.volume
    assert volume is not None
    assert all(map(math.isnan, volume))


def stated(hours: int) -> Callable[[], int]:
    return lambda: hours


def paid(hours: Sequence[int], late_ms: int = 31) -> list[tuple[int, float]]:
    """Settlements at these hours of the day, stamped late."""
    return [(1000 * (DAY + HOUR * each) + late_ms, each / 1e4) for each in hours]


@pytest.mark.parametrize(
    ("hours", "intervals"),
    [
        ([0, 8, 16, 24], [8, 8, 8, 8]),
        ([0, 8, 16, 20, 24, 25, 26], [8, 8, 8, 4, 4, 1, 1]),
        ([0, 8, 24, 32], [8, 8, 8, 8]),  # one of them is missing
        ([0, 1, 4], [8, 1, 1]),
        ([0, 40, 48], [8, 8, 8]),
        ([0, 11], [8, 8]),
    ],
)
def test_an_interval_is_the_distance_to_the_settlement_before(hours, intervals) -> None:
    rows = paid(hours, late_ms=111_000)
    answer = settled(rows[::-1], DAY, DAY + 60 * HOUR, DAY + HOUR * hours[-1] + 200.0, stated(8))
    assert answer.rows.ts.tolist() == [DAY + HOUR * each for each in hours]
    assert answer.rows.interval_hours.tolist() == intervals
    assert answer.rows.rate.tolist() == [each / 1e4 for each in hours]


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8]), st.data())
@examples(200)
def test_settlements_are_the_same_in_one_catch_up_and_at_random_moments(before, after, data):
    hours = [*range(-48, 24, before), *range(24, 73, after)]
    late_ms = data.draw(st.integers(0, 111_000))
    last = DAY + 72 * HOUR + 200
    moments = data.draw(st.lists(st.integers(DAY, last), max_size=9))

    def ask(start: int, at: int) -> list[tuple[int, float]]:
        told = paid(hours, late_ms)
        return [each for each in told if 1000 * (start - 86_700) <= each[0] <= 1000 * at]

    found: list[tuple[Any, ...]] = []
    known = DAY
    for at in [*sorted(moments), last]:
        answer = settled(ask(known, at), known, last, at, stated(8))
        found += zip(*(each.tolist() for each in rows_of(answer.rows)), strict=True)
        assert answer.known_until <= at
        known = max(answer.known_until + 1, known)
    whole = settled(ask(DAY, last), DAY, last, last, stated(8))
    assert found == list(zip(*(each.tolist() for each in rows_of(whole.rows)), strict=True))
    assert [each[0] for each in found] == [DAY + HOUR * each for each in hours if each >= 0]


def rows_of(rows: Any) -> tuple[Any, ...]:
    return rows.ts, rows.rate, rows.interval_hours


@pytest.mark.parametrize(
    ("after_s", "known_s", "missing"),
    [(0, -1, ()), (129, -1, ()), (130, 130, (0,)), (HOUR, HOUR, (0,))],
)
def test_a_settlement_that_is_due_holds_what_is_known_back_for_130_s(after_s, known_s, missing):
    due = DAY + 8 * HOUR
    answer = settled(paid([-8, 0]), DAY, DAY + 72 * HOUR, due + after_s, stated(8))
    assert answer.known_until == due + known_s
    assert answer.missing == tuple(due + each for each in missing)


def test_a_settlement_that_is_none_is_told() -> None:
    rows = [*paid([0]), (1000 * (DAY + HOUR) + 1_700_000, 0.1), (1000 * (DAY + 2 * HOUR), None)]
    answer = settled(rows, DAY, DAY + 3 * HOUR, DAY + 4 * HOUR, stated(1))
    assert answer.rows.ts.tolist() == [DAY]
    assert answer.refused == {"a settlement off the hour": 1, "a null rate": 1}
    assert answer.missing == (DAY + HOUR, DAY + 2 * HOUR)
