"""What proves a field or a request: one reading that fits. Two, or too few rows, do not."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import polars as pl
import pytest

from toolkit.market import Family
from toolkit.wire.doctor.proofs import (
    HOURS,
    RATES,
    beside_prices,
    judged,
    names_all,
    numbers_of,
    prove_differential,
    prove_spread,
    question_named,
    stated_question,
    time_field,
)
from toolkit.wire.listing import market_words
from toolkit.wire.profile.profile import BUILT_IN

NOW = 1_794_268_800
SPREAD, FUNDING = BUILT_IN.histories[Family.SPREAD], BUILT_IN.histories[Family.FUNDING]
AT = range(20)
TIMES = [NOW - 1_200 + 60 * at for at in AT]
BUYS = pl.DataFrame({"ts": TIMES, "px": [97.123456 + at for at in AT], "size": 2.0})
SELLS = pl.DataFrame({"ts": TIMES, "px": [99.654321 - at / 3 for at in AT], "size": 3.0})
RATIO = SELLS["px"] / BUYS["px"]
SPREADS = BUYS.select("ts", d=100 * (RATIO - 1))
LEGS = BUYS.select("ts", one="px", two=SELLS["px"])
PLACES = dict(zip((*RATES, *HOURS), "bshh", strict=True))


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
    assert numbers_of(rows, "at", "iso").rows(named=True) == [{"ts": NOW, "px": 97.5}]


def test_a_price_is_what_the_legs_repeat_and_nothing_that_only_comes_near() -> None:
    places = ["px", "size"]
    found = prove_spread(LEGS, BUYS, SELLS, places)
    wires = {"price": "px", "buy_price": "one", "sell_price": "two"}
    assert found == {column: {"wire": at, "unit": "quote"} for column, at in wires.items()}
    near = LEGS.with_columns(pl.col("one") * (1 + 1e-9))
    for rows in (near, LEGS[:9], LEGS.with_columns(copy="one")):
        assert prove_spread(rows, BUYS, SELLS, places) == {}


@pytest.mark.parametrize(("unit", "times"), [("percent", 1), ("fraction", 0.01), ("bps", 100)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_spread_is_proved_in_its_unit_and_sign(unit: str, times: float, *, turned: bool) -> None:
    sent = SPREADS.with_columns(d=pl.col("d") * times * (-1 if turned else 1))
    found = prove_spread(sent, BUYS, SELLS.drop("size"), ["px", "size"])  # one leg has none
    way = {"reversed": True} if turned else {}
    figure = {"wire": "d", "unit": unit} | way
    assert found == {"price": {"wire": "px", "unit": "quote"}, "spread_pct": figure}


def test_a_spread_that_one_row_breaks_is_not_proved() -> None:
    odd = SPREADS.with_columns(
        d=pl.col("d") + pl.when(pl.col("ts") == NOW - 60).then(0.1).otherwise(0)
    )
    assert prove_spread(odd, BUYS, SELLS, ["px"]) == {}


def settled(times: float = 1.0) -> pl.DataFrame:
    """Rates of which each leg settles every other row, and the differential of those in force."""
    rows, buy, sell = [], 1e-4, 2e-4
    for at in range(40):
        buy, sell = (1e-4 + at * 1.5e-5, sell) if at % 2 else (buy, 2e-4 - at * 1e-5)
        rates = {"b": buy, "s": None} if at % 2 else {"b": None, "s": sell}
        rows.append({"ts": at, **rates, "h": 8.0, "d": 100 * (sell - buy) * times})
    return pl.DataFrame(rows, infer_schema_length=None)


def test_a_differential_is_proved_by_the_rates_in_force() -> None:
    found = prove_differential(settled(-1.0), PLACES, {"d": "percent_per_8h"})
    figure = {"wire": "d", "unit": "percent_per_8h", "reversed": True}
    units = dict.fromkeys(RATES, "fraction_per_interval") | dict.fromkeys(HOURS, "hours")
    legs = {column: {"wire": at, "unit": units[column]} for column, at in PLACES.items()}
    assert found == {"differential_pct_8h": figure} | legs


@pytest.mark.parametrize(
    "said", [{}, {"d": "percent_per_hour", "b": "bps_per_interval", "s": "bps_per_interval"}]
)
def test_rates_prove_nothing_without_a_stated_unit_or_by_one_that_they_do_not_give(
    said: dict[str, str],
) -> None:
    assert prove_differential(settled(), PLACES, said) == {}


def test_rates_of_an_hour_need_no_interval() -> None:
    rates = [{"ts": n, "b": n * 1e-4, "s": 3e-4, "d": 3e-4 - n * 1e-4} for n in range(12)]
    said, places = dict.fromkeys("bsd", "percent_per_hour"), {"buy_rate": "b", "sell_rate": "s"}
    found = prove_differential(pl.DataFrame(rates), places, said)
    assert found == {"differential_pct_8h": {"wire": "d", "unit": "percent_per_hour"}}
    assert prove_differential(pl.DataFrame(rates), {"buy_rate": "b"}, said) == {}


@pytest.mark.parametrize(
    ("sent", "right", "says"),
    [
        (100 * (RATIO - 1), True, "in all of 20 rows"),
        (100 * (1 - RATIO), False, "it is percent, of the other sign"),
        (1e4 * (RATIO - 1), False, "it is bps"),
        (RATIO, False, "it is sell / buy"),
        (1 / RATIO, False, "it is buy / sell"),
        (1e4 * (1 / RATIO - 1), False, "it is 10000 (buy / sell - 1)"),
        (100 * (1 - 1 / RATIO), False, "it is 100 (buy / sell - 1), of the other sign"),
        (pl.Series([float(at % 7) for at in AT]) * 1e3, False, "no unit and no sign makes it"),
        (100 * (RATIO - 1) + 0.02, None, "no other reading is nearer"),
        (RATIO * 0, None, "cannot be told"),
        (RATIO * float("nan"), None, "nothing beside it"),
    ],
)
def test_a_spread_as_it_was_read_is_judged_by_the_prices_of_both_legs(
    sent: pl.Series, right: bool | None, says: str
) -> None:
    rows = BUYS.select("ts", spread_pct=sent)
    verdict = judged(SPREAD, beside_prices(rows, BUYS, SELLS, "px"))
    assert verdict.right is right, verdict
    assert says in verdict.says


def test_a_verdict_counts_from_the_unit_and_sign_that_the_profile_has() -> None:
    rules = [
        replace(rule, unit="bps", reversed=True) if rule.column == "spread_pct" else rule
        for rule in SPREAD.fields
    ]
    read = BUYS.select("ts", spread_pct=-0.01 * 100 * (RATIO - 1))
    found = judged(replace(SPREAD, fields=tuple(rules)), beside_prices(read, BUYS, SELLS, "px"))
    assert found.line == 'fields.spread_pct = { unit = "percent", reversed = false }'


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (RATIO, 'unit = "ratio", reversed = false'),
        (1 / RATIO, 'unit = "ratio", reversed = false, inverse = true'),
        (1e4 * (1 / RATIO - 1), 'unit = "bps", reversed = false, inverse = true'),
        (100 * (1 - 1 / RATIO), 'unit = "percent", reversed = true, inverse = true'),
    ],
)
def test_the_line_of_a_verdict_reads_each_form_of_a_spread_right(
    sent: pl.Series, said: str
) -> None:
    first = judged(SPREAD, beside_prices(BUYS.select("ts", spread_pct=sent), BUYS, SELLS, "px"))
    assert first.line == f"fields.spread_pct = {{ {said} }}"
    layer = {"history": {"spread": tomllib.loads(first.line)}}
    route = BUILT_IN.over(layer).histories[Family.SPREAD]
    rule = next(rule for rule in route.fields if rule.column == "spread_pct")
    read = BUYS.select("ts", spread_pct=rule.ours(pl.lit(sent)))
    assert judged(route, beside_prices(read, BUYS, SELLS, "px")).right
    plain = BUYS.select("ts", spread_pct=rule.ours(pl.lit(100 * (RATIO - 1))))
    again = judged(route, beside_prices(plain, BUYS, SELLS, "px"))
    assert (again.right, '"percent"' in again.line) == (False, True), again


def test_a_differential_is_judged_by_its_rates() -> None:
    forward = settled().with_columns(pl.col("b", "s").forward_fill())
    rows = forward.select("ts", differential_pct_8h="d", **PLACES)
    assert judged(FUNDING, rows).right
    hourly = rows.with_columns(pl.col("differential_pct_8h") / 8)
    assert '"percent_per_hour"' in judged(FUNDING, hourly).line


MARKETS = ("spot", "futures", "SWAP")


@pytest.mark.parametrize(
    "message",
    [
        *("Mandatory parameter 'pair' was not sent", "query.pair: field required"),
        *("the parameter pair is missing, such as BTC_USDT", "`pair` must not be empty"),
        "pair is required",
    ],
)
def test_the_parameter_that_is_missing_is_named_in_many_ways(message: str) -> None:
    assert question_named(message, {}, 1, MARKETS) == {"pair": "{symbol}"}


@pytest.mark.parametrize(
    ("message", "asked", "legs"),
    [
        *((said, {"pair": "{symbol}"}, 2) for said in ("no such trajectory", "", "bad request")),
        *((f"{what} is missing", {"pair": "{symbol}"}, 2) for what in ("it", "the parameter")),
        ("pair is missing, such as BTC_USDT", {"pair": "{symbol}"}, 2),  # again
        ("key is missing, such as KRAKEN.spot,COINBASE.spot", {}, 1),  # two legs, of a price
        *(
            (f"{leg} is missing, such as KRAKEN:spot", {}, 2)
            for leg in ("venue", "buy_or_sell_leg")
        ),
    ],
)
def test_words_that_name_no_parameter_or_no_side_change_no_question(
    message: str, asked: dict[str, str], legs: int
) -> None:
    assert question_named(message, asked, legs, MARKETS) is None


@pytest.mark.parametrize(
    ("example", "template"),
    [
        (
            "legs=, e.g. KRAKEN.spot,COINBASE.spot",
            "{buy.exchange}.{buy.market},{sell.exchange}.{sell.market}",
        ),
        ("such as BTC_USDT@KRAKEN-SWAP.", "{symbol}@{exchange}-{market}"),
        ("such as BTC_USDT", "{symbol}"),
        ("such as {limit}|BTC_USDT", None),
        ("such as KRAKEN:margin", None),
        ("such as A:spot,B:spot,C:spot", None),
        ("such as xKRAKEN:spotx", None),
    ],
)
def test_an_example_is_read_whole_or_not_at_all(example: str, template: str | None) -> None:
    legs = 2 if template and "{buy." in template else 1
    found = question_named(f"'key' was not sent, {example}", {}, legs, MARKETS)
    assert found == (template and {"key": template})


ROUTE = "/history/spread"
STATED = {"pair": "BTC_USDT", "buy": "KRAKEN/spot", "sell": "COINBASE/SWAP"}
ASK = {
    "pair": "{symbol}",
    "buy": "{buy.exchange}/{buy.market}",
    "sell": "{sell.exchange}/{sell.market}",
}


def openapi(parameters: list[dict[str, object]]) -> dict[str, object]:
    return {"paths": {ROUTE: {"get": {"parameters": parameters}}}}


QUERY: dict[str, object] = {"in": "query", "required": True}
EXAMPLES = [{"name": name, "example": text, **QUERY} for name, text in STATED.items()]
SCHEMAS = [{"name": n, "schema": {"examples": [e]}, **QUERY} for n, e in STATED.items()]
PROPERTIES = {name: {"example": text} for name, text in STATED.items()}
TOOL = {"route": ROUTE, "input_schema": {"required": [*STATED], "properties": PROPERTIES}}
HEADER = {"name": "Authorization", "in": "header", "required": True}


@pytest.mark.parametrize(
    "said",
    [openapi([HEADER, *EXAMPLES, {"name": "size"}]), openapi(SCHEMAS), {"tools": {"x": TOOL}}],
)
def test_a_question_is_read_from_openapi_and_from_the_input_schema_of_a_tool(said: object) -> None:
    assert stated_question(said, ROUTE, {}, 2, MARKETS) == ASK
    assert stated_question(said, "/history/funding", {}, 2, MARKETS) is None


@pytest.mark.parametrize(
    "said", [None, 3, [], {ROUTE: {"parameters": [3, {"required": True}]}}, {ROUTE: ROUTE}]
)
def test_a_document_that_states_no_question_gives_none(said: object) -> None:
    assert stated_question(said, ROUTE, {}, 2, MARKETS) is None


def test_a_question_is_whole_where_it_names_the_symbol_and_every_leg() -> None:
    legs = {"first": "{buy.exchange}:{buy.market}", "second": "{sell.exchange}:{sell.market}"}
    assert names_all({"pair": "{symbol}", **legs}, 2)
    assert not names_all(legs, 2)
    assert not names_all({"pair": "{symbol}"}, 1)


def test_two_words_for_one_market_are_none() -> None:
    assert market_words(["A:PERP", "B:SWAP", "C:Cash"]) == {"spot": "Cash"}
