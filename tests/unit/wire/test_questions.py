"""Parameters and templates out of the words of a refusal: what is clear is read, nothing else."""

from __future__ import annotations

import pytest

from toolkit.wire.doctor.proofs import names_all, question_named, stated_question
from toolkit.wire.listing import market_words

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
    "message",
    ["no such trajectory", "", "it is missing", "bad request", "the parameter is missing"],
)
def test_words_that_name_no_parameter_change_no_question(message: str) -> None:
    assert question_named(message, {"pair": "{symbol}"}, 2, MARKETS) is None


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


def test_an_example_of_two_legs_is_none_for_a_price() -> None:
    said = "key is missing, such as KRAKEN.spot,COINBASE.spot"
    assert question_named(said, {}, 1, MARKETS) is None


@pytest.mark.parametrize("name", ["venue", "buy_or_sell_leg"])
def test_a_leg_of_no_side_is_not_guessed(name: str) -> None:
    said = f"{name} is missing, such as KRAKEN:spot"
    assert question_named(said, {}, 2, MARKETS) is None


def test_a_parameter_that_is_missed_again_ends_the_questions() -> None:
    said = "pair is missing, such as BTC_USDT"
    assert question_named(said, {"pair": "{symbol}"}, 2, MARKETS) is None


SPREAD = "/history/spread"
STATED = {"pair": "BTC_USDT", "buy": "KRAKEN/spot", "sell": "COINBASE/SWAP"}
ASK = {
    "pair": "{symbol}",
    "buy": "{buy.exchange}/{buy.market}",
    "sell": "{sell.exchange}/{sell.market}",
}


def openapi(parameters: list[dict[str, object]]) -> dict[str, object]:
    return {"paths": {SPREAD: {"get": {"parameters": parameters}}}}


QUERY: dict[str, object] = {"in": "query", "required": True}
EXAMPLES = [{"name": name, "example": text, **QUERY} for name, text in STATED.items()]
SCHEMAS = [{"name": n, "schema": {"examples": [e]}, **QUERY} for n, e in STATED.items()]
PROPERTIES = {name: {"example": text} for name, text in STATED.items()}
TOOL = {"route": SPREAD, "input_schema": {"required": [*STATED], "properties": PROPERTIES}}
HEADER = {"name": "Authorization", "in": "header", "required": True}


@pytest.mark.parametrize(
    "said",
    [openapi([HEADER, *EXAMPLES, {"name": "size"}]), openapi(SCHEMAS), {"tools": {"x": TOOL}}],
)
def test_a_question_is_read_from_openapi_and_from_the_input_schema_of_a_tool(said: object) -> None:
    assert stated_question(said, SPREAD, {}, 2, MARKETS) == ASK
    assert stated_question(said, "/history/funding", {}, 2, MARKETS) is None


@pytest.mark.parametrize(
    "said", [None, 3, [], {SPREAD: {"parameters": [3, {"required": True}]}}, {SPREAD: SPREAD}]
)
def test_a_document_that_states_no_question_gives_none(said: object) -> None:
    assert stated_question(said, SPREAD, {}, 2, MARKETS) is None


def test_a_question_is_whole_where_it_names_the_symbol_and_every_leg() -> None:
    legs = {"first": "{buy.exchange}:{buy.market}", "second": "{sell.exchange}:{sell.market}"}
    assert names_all({"pair": "{symbol}", **legs}, 2)
    assert not names_all(legs, 2)
    assert not names_all({"pair": "{symbol}"}, 1)


def test_two_words_for_one_market_are_none() -> None:
    assert market_words(["A:PERP", "B:SWAP", "C:Cash"]) == {"spot": "Cash"}
