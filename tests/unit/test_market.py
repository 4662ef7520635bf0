from __future__ import annotations

import datetime as dt
import itertools
import time
from collections.abc import Iterator

import pytest

from toolkit.errors import InputError
from toolkit.market import (
    UNIT_FACTORS,
    Family,
    Leg,
    Market,
    Plan,
    Source,
    Symbol,
    Trajectory,
    format_ts,
    parse_ts,
    unit_factor,
)

MARCH = 1677628800  # 2023-03-01 00:00 UTC


@pytest.fixture(params=["America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[str]:
    """Local time is that of another zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def test_plans_are_ranked_from_free_to_pro() -> None:
    assert sorted(Plan, key=lambda plan: plan.rank) == [Plan.FREE, Plan.BUILDER, Plan.PRO]


@pytest.mark.parametrize("text", ["", "BTC", "BTC_", "_USDT", "A_B_C", "A_B:C", "A B_C", "A_B\n"])
def test_a_symbol_that_is_not_base_and_quote_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="BASE_QUOTE"):
        Symbol.parse(text)


@pytest.mark.parametrize(("base", "quote"), [("A_B", "C"), ("", "C"), ("A", "B?"), ("A:", "B")])
def test_a_symbol_cannot_be_made_of_parts_that_would_not_read_back(base: str, quote: str) -> None:
    with pytest.raises(InputError, match="symbol"):
        Symbol(base, quote)


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("KRAKEN", "leg"),
        ("KRAKEN.swap", "market"),
        ("KRAKEN.SPOT", "market"),
        ("kraken.spot", "exchange"),
        (".spot", "exchange"),
        ("KRA KEN.spot", "exchange"),
        ("KRAKEN.spot ", "market"),
    ],
)
def test_a_leg_that_cannot_be_read_names_the_part_that_is_wrong(text: str, parameter: str) -> None:
    with pytest.raises(InputError) as caught:
        Leg.parse(text)
    assert caught.value.parameter == parameter


def test_a_leg_made_from_a_plain_text_market_equals_the_parsed_one() -> None:
    assert Leg("KRAKEN", Market("spot")) == Leg.parse("KRAKEN.spot")
    with pytest.raises(InputError, match="spot, futures, dex"):
        Leg("KRAKEN", "swap")


@pytest.mark.parametrize(
    "key",
    [
        *("", "BTC_USD", "BTC_USD:", "BTC_USD:KRAKEN.spot:", ":KRAKEN.spot"),
        *("BTC_USD:A.spot:B.spot:C.spot", "BTC_USD:KRAKEN.spot:KRAKEN.spot"),
    ],
)
def test_a_key_that_is_no_trajectory_is_refused(key: str) -> None:
    with pytest.raises(InputError):
        Trajectory.parse(key)


def test_legs_stay_in_the_order_asked() -> None:
    there = Trajectory.spread("BTC_USD", "KRAKEN.spot", "COINBASE.spot")
    back = Trajectory.spread("BTC_USD", "COINBASE.spot", "KRAKEN.spot")
    assert (str(there.buy), str(there.sell)) == ("KRAKEN.spot", "COINBASE.spot")
    assert there != back


def test_one_exchange_may_give_both_legs_of_a_basis() -> None:
    basis = Trajectory.parse("BTC_USDT:BINANCE.spot:BINANCE.futures")
    assert basis.family is Family.SPREAD
    assert basis.spread_type == "spot/futures"


@pytest.mark.parametrize(("family", "legs"), [(Family.PRICE, 2), (Family.SPREAD, 1)])
def test_a_trajectory_with_the_wrong_number_of_legs_is_refused(family: Family, legs: int) -> None:
    with pytest.raises(InputError, match="legs"):
        Trajectory(family, Symbol("BTC", "USD"), tuple(map(Leg.parse, ["A.spot", "B.spot"][:legs])))


def test_a_source_in_words_says_when_no_market_showed_its_numbers() -> None:
    assert "SIMULATED" in Source("simulated", "m-1").label
    for kind in ("live", "replay", "unknown"):
        assert "SIMULATED" not in Source(kind, "m-1").label
        assert Source(kind, "m-1").label.endswith("m-1")


@pytest.mark.parametrize(
    ("given", "wanted", "factor"),
    [
        ("fraction", "percent", 100.0),
        ("percent", "bps", 100.0),
        ("bps", "fraction", 0.0001),
        ("ms", "s", 0.001),
        ("hours", "s", 3600.0),
        ("ms", "hours", 1 / 3_600_000),
    ],
)
def test_a_unit_factor_is_the_exact_decimal_number(given: str, wanted: str, factor: float) -> None:
    assert unit_factor(given, wanted) == factor


def test_units_of_two_dimensions_are_never_converted() -> None:
    for given, wanted in itertools.product(UNIT_FACTORS, repeat=2):
        if UNIT_FACTORS[given][0] == UNIT_FACTORS[wanted][0]:
            there_and_back = unit_factor(given, wanted) * unit_factor(wanted, given)
            assert there_and_back == pytest.approx(1, rel=1e-9), (given, wanted)
        else:
            with pytest.raises(InputError, match="same dimension"):
                unit_factor(given, wanted)


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="percent, bps"):
        unit_factor("permille", "percent")


@pytest.mark.parametrize(
    "moment",
    [
        *(MARCH, "1677628800", "2023-03-01", "20230301", "2023-03-01 00:00 UTC"),
        *("2023-03-01T00:00:00Z", "2023-03-01T02:00+02:00"),
        dt.date(2023, 3, 1),
        dt.datetime(2023, 3, 1),  # noqa: DTZ001 - a time without a zone is the case
        dt.datetime(2023, 2, 28, 19, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    ],
)
def test_a_moment_is_the_same_second_in_every_form_and_every_local_zone(moment, elsewhere) -> None:
    assert parse_ts(moment) == MARCH, elsewhere


def test_a_time_is_printed_in_utc_in_every_local_zone(elsewhere: str) -> None:
    assert format_ts(MARCH + 61) == "2023-03-01 00:01:01 UTC", elsewhere


@pytest.mark.parametrize(
    "moment",
    [
        *("", "now", "2023-02-30", "2023-03-01T00:00:00.5Z", "2023-03-01T00:00+02:00 UTC"),
        *("1677628800000", MARCH * 1000, -MARCH * 1000, 1.5, True, None),
        dt.datetime(2023, 3, 1, microsecond=1, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ],
)
def test_what_is_no_whole_second_of_our_calendar_is_refused_by_the_name_given(moment) -> None:
    with pytest.raises(InputError) as caught:
        parse_ts(moment, parameter="start")
    assert caught.value.parameter == "start"


def test_a_time_on_the_minute_is_printed_without_its_seconds_and_milliseconds_are_refused() -> None:
    assert format_ts(MARCH + 60) == "2023-03-01 00:01 UTC"
    assert format_ts(MARCH + 119) == "2023-03-01 00:01:59 UTC"
    with pytest.raises(InputError, match="Unix seconds"):
        format_ts(MARCH * 1000)
