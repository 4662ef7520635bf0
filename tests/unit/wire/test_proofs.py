"""What proves a field: one reading that fits every row. Two readings, or too few rows, do not."""

from __future__ import annotations

import pytest

from toolkit.market import Family
from toolkit.wire.profile import BUILT_IN
from toolkit.wire.proofs import (
    by_time,
    differential_figure,
    leg_prices,
    spread_figure,
    time_field,
)

NOW = 1_794_268_800
SPREAD, FUNDING = BUILT_IN.histories[Family.SPREAD], BUILT_IN.histories[Family.FUNDING]
TIMES = range(NOW - 1_200, NOW, 60)
BUYS = {ts: {"px": 97.123456 + at, "size": 2.0} for at, ts in enumerate(TIMES)}
SELLS = {ts: {"px": 99.654321 - at / 3, "size": 3.0} for at, ts in enumerate(TIMES)}
SPREADS = {ts: 100 * (SELLS[ts]["px"] / BUYS[ts]["px"] - 1) for ts in TIMES}
RATES = {
    "buy_rate": "b",
    "sell_rate": "s",
    "buy_interval_hours": "h",
    "sell_interval_hours": "h",
}


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([NOW, NOW - 60], "s"),
        ([(NOW - 60) * 1_000, NOW * 1_000], "ms"),
        (["2026-11-09T00:00:00Z", "2026-11-09T00:01:00Z"], "iso"),
        ([NOW, NOW], None),
        ([NOW, NOW - 60, NOW], None),
        ([NOW + 10**7, NOW], None),
        ([NOW, None], None),
        ([True, False], None),
        (["97.5", "98.5"], None),
        ([NOW], None),
    ],
)
def test_a_time_lies_in_the_past_and_always_rises_or_always_falls(
    values: list[object], unit: str | None
) -> None:
    found = time_field([{"at": value} for value in values], NOW)
    assert found == (unit and ("at", unit))


def test_two_times_are_none_and_documents_may_share_one() -> None:
    rows = [{"at": NOW - n, "seen": NOW - n} for n in range(3)]
    assert time_field(rows, NOW) is None
    assert time_field([{"at": NOW}, {"at": NOW}, {"at": NOW - 1}], NOW, ties=True) == ("at", "s")
    assert time_field([], NOW) is None


def test_numbers_are_read_by_their_second_also_those_that_are_text() -> None:
    rows = [{"at": "2026-11-10T00:00:00Z", "px": "97.5", "on": True, "who": "x", "none": None}]
    assert by_time(rows, "at", "iso") == {NOW: {"px": 97.5}}


def test_a_price_is_what_the_legs_repeat_and_nothing_that_only_comes_near() -> None:
    legs = {ts: {"one": BUYS[ts]["px"], "two": SELLS[ts]["px"]} for ts in TIMES}
    assert leg_prices(legs, BUYS, SELLS) == ("px", "one", "two")
    near = {ts: {**row, "one": row["one"] * (1 + 1e-9)} for ts, row in legs.items()}
    assert leg_prices(near, BUYS, SELLS) is None
    few = dict(list(legs.items())[:9])
    assert leg_prices(few, BUYS, SELLS) is None
    twice = {ts: {**row, "copy": row["one"]} for ts, row in legs.items()}
    assert leg_prices(twice, BUYS, SELLS) is None


@pytest.mark.parametrize(("unit", "times"), [("percent", 1), ("fraction", 0.01), ("bps", 100)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_spread_is_proved_in_its_unit_and_sign(unit: str, times: float, *, turned: bool) -> None:
    sent = {ts: {"d": value * times * (-1 if turned else 1)} for ts, value in SPREADS.items()}
    found = spread_figure(SPREAD, sent, BUYS, SELLS, ["px", "size"])
    assert found is not None
    assert (found.place, found.unit, found.reversed, found.price) == ("d", unit, turned, "px")


def test_a_spread_that_one_row_breaks_is_not_proved() -> None:
    sent = {ts: {"d": value} for ts, value in SPREADS.items()}
    sent[NOW - 60] = {"d": SPREADS[NOW - 60] + 0.1}
    assert spread_figure(SPREAD, sent, BUYS, SELLS, ["px"]) is None


def settled(times: float = 1.0) -> dict[int, dict[str, float]]:
    """Rates of which each leg settles every other row, and the differential of those in force."""
    rows, buy, sell = {}, 1e-4, 2e-4
    for at in range(40):
        row = {"h": 8.0}
        if at % 2:
            row["b"] = buy = 1e-4 + at * 1.5e-5
        else:
            row["s"] = sell = 2e-4 - at * 1e-5
        rows[at] = {**row, "d": 100 * (sell - buy) * times}
    return rows


def test_a_differential_is_proved_by_the_rates_in_force() -> None:
    found = differential_figure(FUNDING, settled(-1.0), RATES, {"d": "percent_per_8h"})
    assert found is not None
    assert (found.place, found.reversed, found.rate_unit) == ("d", True, "fraction_per_interval")


def test_rates_and_a_differential_without_a_stated_unit_prove_nothing() -> None:
    assert differential_figure(FUNDING, settled(), RATES, {}) is None


def test_a_stated_unit_that_the_rates_do_not_give_proves_nothing() -> None:
    said = {"d": "percent_per_hour", "b": "bps_per_interval", "s": "bps_per_interval"}
    assert differential_figure(FUNDING, settled(), RATES, said) is None


def test_rates_of_an_hour_need_no_interval() -> None:
    rows = {at: {"b": at * 1e-4, "s": 3e-4, "d": 3e-4 - at * 1e-4} for at in range(12)}
    said = dict.fromkeys("bsd", "percent_per_hour")
    places = {"buy_rate": "b", "sell_rate": "s"}
    found = differential_figure(FUNDING, rows, places, said)
    assert found is not None
    assert (found.place, found.unit, found.reversed) == ("d", "percent_per_hour", False)
    assert differential_figure(FUNDING, rows, {"buy_rate": "b"}, said) is None
