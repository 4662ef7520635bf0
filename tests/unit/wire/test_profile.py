"""What `/schemas` may correct: units, signs, keys and tools; and what it may say without harm."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import WireError
from toolkit.market import Family, Source, Trajectory
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import (
    BUILT_IN,
    LARGEST_PAGE,
    Profile,
    is_reversed,
    timed,
    with_schemas,
)

KEY = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.futures")
SEARCH = "data.search_symbols"
SPREAD = BUILT_IN.histories[Family.SPREAD].tool


def tool(path: str, **more: object) -> dict[str, Any]:
    limit = {"properties": {"limit": {"maximum": 1000}}}
    return {"route": path, "retention_s": 2592000, "delay_s": 0, "input_schema": limit, **more}


def history_tool(route: HistoryRoute) -> dict[str, Any]:
    return tool(
        route.path,
        input_schema={"properties": {"limit": {"maximum": 5000}}},
        record={"fields": {rule.wire: {"unit": rule.unit} for rule in route.fields}},
        pagination={"kind": "end_time", "order": "desc", "next": "next_end_time"},
    )


DOCUMENT: dict[str, Any] = {
    "source": {"kind": "live", "id": "rail-1"},
    "tools": {
        SEARCH: tool(BUILT_IN.symbols_path),
        **{route.tool: history_tool(route) for route in BUILT_IN.histories.values()},
        **{route.tool: tool(route.path) for route in BUILT_IN.events.values()},
    },
}


def told(*changes: tuple[tuple[str, ...], object]) -> Profile:
    """The profile of `DOCUMENT` with values put in at paths."""
    document = copy.deepcopy(DOCUMENT)
    for path, value in changes:
        place = document
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
    return with_schemas(BUILT_IN, json.dumps(document).encode())


def told_of_spread(*path: str, value: object) -> tuple[HistoryRoute, list[tuple[str, str]]]:
    """The spread route and the findings, with one value of its tool changed."""
    profile = told((("tools", SPREAD, *path), value))
    return profile.histories[Family.SPREAD], [(f.kind, f.where) for f in profile.findings]


def test_a_document_that_says_what_is_assumed_leaves_no_finding() -> None:
    profile = told()
    assert profile.findings == ()
    assert profile.source == Source("live", "rail-1")
    assert profile.schema_hash == hashlib.sha256(json.dumps(DOCUMENT).encode()).hexdigest()
    for family, built_in in BUILT_IN.histories.items():
        route = profile.histories[family]
        assert (route.path, route.fields, route.next) == (
            built_in.path,
            built_in.fields,
            built_in.next,
        )
        assert (route.limit, route.retention_s, route.delay_s) == (5000, 2592000, 0)


def test_a_tool_under_another_name_is_found_by_its_route() -> None:
    document = copy.deepcopy(DOCUMENT)
    document["tools"][SPREAD]["delay_s"] = 30
    document["tools"] = {f"x.{n}": each for n, each in enumerate(document["tools"].values())}
    profile = with_schemas(BUILT_IN, json.dumps(document).encode())
    assert profile.histories[Family.SPREAD].delay_s == 30
    assert profile.findings == ()


def test_a_tool_at_another_route_is_found_by_its_name_and_asked_there() -> None:
    profile = told(
        (("tools", SPREAD, "route"), "/api/v2/spread-history"),
        (("tools", SEARCH, "route"), "/api/v2/symbols"),
        (("tools", SEARCH, "input_schema"), {"properties": {"limit": {"maximum": 7}}}),
    )
    assert profile.histories[Family.SPREAD].path == "/api/v2/spread-history"
    assert (profile.symbols_path, profile.symbols_limit) == ("/api/v2/symbols", 7)
    assert profile.findings == ()


@pytest.mark.parametrize(
    "route",
    [
        *("http://elsewhere.example/api", "//elsewhere.example/api", "https:api", "api/v1/data"),
        *("/api?apikey=1", "/api#x", "/a b", "/a\nb", "/{symbol}", "/", "", 7, None),
    ],
)
@pytest.mark.parametrize("name", [SPREAD, SEARCH])
def test_a_route_that_is_no_plain_path_is_not_followed(name, route) -> None:
    profile = told((("tools", name, "route"), route))
    assert profile.histories[Family.SPREAD].path == "/api/v1/data/history/spread"
    assert profile.symbols_path == "/api/v1/data/symbols/search"
    assert [f.kind for f in profile.findings] == ["route_unusable"]


def test_the_name_of_the_paging_value_is_taken_over() -> None:
    route, findings = told_of_spread("pagination", "next", value="older_than")
    assert (route.next, findings) == ("older_than", [])


@pytest.mark.parametrize(("part", "value"), [("kind", "cursor"), ("order", "asc")])
def test_paging_of_another_kind_is_recorded(part, value) -> None:
    _, findings = told_of_spread("pagination", part, value=value)
    assert findings == [("paging_differs", SPREAD)]


@pytest.mark.parametrize(
    ("maximum", "limit"), [(1, 1), (1000, 1000), (5000, 5000), (10_000, LARGEST_PAGE)]
)
def test_pages_are_as_large_as_the_plan_allows_up_to_the_largest_of_use(maximum, limit) -> None:
    route, _ = told_of_spread("input_schema", value={"properties": {"limit": {"maximum": maximum}}})
    assert route.limit == limit
    assert route.query(KEY, 60)["limit"] == limit


@pytest.mark.parametrize("maximum", [0, -1, True, 10.5, "500", None, [500], {}])
def test_a_limit_that_is_no_count_is_not_taken_over(maximum) -> None:
    route, _ = told_of_spread("input_schema", value={"properties": {"limit": {"maximum": maximum}}})
    assert route.limit == BUILT_IN.histories[Family.SPREAD].limit


@pytest.mark.parametrize(
    ("value", "retention_s", "delay_s"),
    [(0, 0, 0), (604800, 604800, 604800), (604800.0, 604800, 604800), (None, None, 0)],
)
def test_retention_and_delay_are_the_plans_or_everything_and_none(
    value, retention_s, delay_s
) -> None:
    profile = told((("tools", SPREAD, "retention_s"), value), (("tools", SPREAD, "delay_s"), value))
    route = profile.histories[Family.SPREAD]
    assert (route.retention_s, route.delay_s, profile.findings) == (retention_s, delay_s, ())


@pytest.mark.parametrize("value", [-1, True, 0.5, "30 days", [1], {}, 10**40, 1e300])
@pytest.mark.parametrize("name", ["retention_s", "delay_s"])
def test_a_retention_or_delay_that_cannot_be_read_is_recorded(name, value) -> None:
    _, findings = told_of_spread(name, value=value)
    assert findings == [("seconds_unreadable", name)]


@pytest.mark.parametrize(
    ("field", "unit", "factor"), [("spread_pct", "bps", 0.01), ("ts", "ms", 0.001)]
)
def test_a_convertible_unit_is_converted_and_recorded(field: str, unit: str, factor: float) -> None:
    route, findings = told_of_spread("record", "fields", field, "unit", value=unit)
    assert route.rule(field).factor == factor
    assert findings == [("unit_converted", f"{SPREAD}.{field}")]


@pytest.mark.parametrize("unit", ["furlong", "quote", "s", ""])
def test_a_value_in_a_unit_that_cannot_be_converted_gets_no_column(unit) -> None:
    route, findings = told_of_spread("record", "fields", "spread_pct", "unit", value=unit)
    assert [rule.column for rule in route.fields] == ["ts", "buy_price", "sell_price"]
    assert findings == [("unit_unusable", f"{SPREAD}.spread_pct")]


@pytest.mark.parametrize("unit", ["quote", "minutes"])
def test_a_time_in_a_unit_that_is_none_of_time_is_refused(unit) -> None:
    with pytest.raises(WireError, match=r"data.get_spread_history no usable time"):
        timed(told((("tools", SPREAD, "record", "fields", "ts", "unit"), unit)))


@pytest.mark.parametrize("described", [None, 7, [], "percent"])
def test_a_field_that_is_not_described_is_taken_as_assumed(described) -> None:
    route, findings = told_of_spread("record", "fields", "spread_pct", value=described)
    assert route.fields == BUILT_IN.histories[Family.SPREAD].fields
    assert findings == [("field_missing", f"{SPREAD}.spread_pct")]


def test_a_field_nobody_assumed_is_recorded() -> None:
    _, findings = told_of_spread("record", "fields", "depth", value={"unit": "quote"})
    assert findings == [("field_unknown", f"{SPREAD}.depth")]


@pytest.mark.parametrize("source", [None, 7, "live", [], {}, {"kind": "live"}, {"id": 7}])
def test_a_source_that_is_not_named_is_recorded(source) -> None:
    profile = told((("source",), source))
    assert profile.source is None
    assert [f.kind for f in profile.findings] == ["source_missing"]


@pytest.mark.parametrize("kind", [None, 7, ["live"]])
def test_a_source_without_a_readable_kind_is_of_an_unknown_one(kind) -> None:
    assert told((("source", "kind"), kind)).source == Source("unknown", "rail-1")


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b"7", b'"schemas"', b'{"tools": []}'])
def test_a_document_of_another_shape_leaves_everything_as_assumed(body) -> None:
    profile = with_schemas(BUILT_IN, body)
    assert profile.histories == BUILT_IN.histories
    assert profile.events == BUILT_IN.events
    assert profile.symbols_path == BUILT_IN.symbols_path
    routes = [*BUILT_IN.histories.values(), *BUILT_IN.events.values()]
    assert {f.where for f in profile.findings if f.kind == "tool_missing"} == {
        route.tool for route in routes
    }
    assert {f.kind for f in profile.findings} == {"tool_missing", "source_missing"}


@pytest.mark.parametrize(
    "body", [b"", b"<html>\n", b'{"tools":', b'"\xff"', b'{"\xff":1}', b"NaN", b"[" * 100_000]
)
def test_a_body_that_is_not_json_is_a_wire_error_of_one_line(body) -> None:
    with pytest.raises(WireError, match=r"^the answer of /api/v1/data/schemas is not JSON") as told:
        with_schemas(BUILT_IN, body)
    assert "\n" not in str(told.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
PATHS = st.sampled_from(
    [
        ("source",),
        ("source", "id"),
        ("tools",),
        *[("tools", name) for name in (SEARCH, SPREAD)],
        *[("tools", SPREAD, part) for part in DOCUMENT["tools"][SPREAD]],
        ("tools", SEARCH, "input_schema"),
        ("tools", SPREAD, "input_schema", "properties"),
        ("tools", SPREAD, "record", "fields"),
        ("tools", SPREAD, "record", "fields", "spread_pct"),
        ("tools", SPREAD, "pagination", "next"),
        ("tools", SPREAD, "pagination", "kind"),
    ]
)


@settings(deadline=None)
@given(PATHS, JSON)
def test_no_value_anywhere_in_the_document_breaks_the_reading(path, value) -> None:
    route = told((path, value)).histories[Family.SPREAD]
    query = route.query(KEY, 60)
    assert isinstance(query["limit"], int)
    assert route.path.startswith("/")
    assert route.fields[0].column == "ts"


PRICES, SPREADS = BUILT_IN.histories[Family.PRICE], BUILT_IN.histories[Family.SPREAD]


def declared(
    route: HistoryRoute, key: object = None, **fields: dict[str, Any]
) -> tuple[HistoryRoute, list[tuple[str, str]]]:
    """Return the route after a /schemas document, and the findings on its tool."""
    record: dict[str, Any] = {
        "fields": {rule.wire: {"unit": rule.unit} for rule in route.fields} | fields
    }
    if key is not None:
        record["key"] = key
    body = json.dumps({"tools": {route.tool: {"route": route.path, "record": record}}}).encode()
    profile = with_schemas(BUILT_IN, body)
    found = [(f.kind, f.where) for f in profile.findings if f.where.startswith(route.tool)]
    return profile.histories[route.family], found


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("positive: long the buy leg, short the sell leg", False),
        ("what a position that is short the buy leg and long the sell leg earns", True),
        ("what a position that is long the buy leg and short the sell leg pays", True),
        ("Positive where the sell leg's price is above the buy leg's.", False),
        ("the buy price is higher than the sell price", True),
        ("buy leg cheaper than sell leg", False),
        ("100 * (sell_price / buy_price - 1)", False),
        ("100 * (buy_price/sell_price - 1)", True),
        ("buy - sell", True),
        ("sell rate minus buy rate", False),
        ("LONG BUY / SHORT SELL", False),
        ("the usual one", None),
        ("Negative where the sell leg is above the buy leg", None),
        ("sell / buy - 1, or buy / sell - 1", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("where", ["sign", "positive_means"])
def test_a_sign_of_two_legs_is_read_from_either_sentence(where, sentence, found) -> None:
    assert is_reversed({where: sentence}, "spread_pct") is found
    assert is_reversed({where: sentence}, "differential_pct_8h") is found


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Positive where longs pay shorts.", False),
        ("what a short position receives", False),
        ("the long side pays", False),
        ("shorts pay longs", True),
        ("what a long position receives, per interval", True),
        ("as on the venue", None),
        ("sell above buy", None),
    ],
)
def test_the_sign_of_a_rate_is_read_by_who_pays(sentence, found) -> None:
    assert is_reversed({"sign": sentence}, "buy_rate") is found


def test_sentences_that_contradict_each_other_are_not_understood() -> None:
    both = {"sign": "sell / buy - 1", "positive_means": "long the sell leg, short the buy leg"}
    assert is_reversed(both, "spread_pct") is None


@pytest.mark.parametrize(
    ("column", "unit", "sign", "factor", "kinds"),
    [
        ("spread_pct", "bps", "buy / sell - 1", -0.01, ["unit_converted", "sign_reversed"]),
        ("spread_pct", "percent", "green is good", 1.0, ["sign_unclear"]),
        ("spread_pct", "percent", "sell / buy", 1.0, []),
        ("spread_pct", "percent", None, 1.0, []),
        ("buy_price", "quote", "buy / sell", 1.0, []),
    ],
)
def test_a_declared_sign_turns_the_factor_and_an_unclear_one_is_ours(
    column: str, unit: str, sign: str | None, factor: float, kinds: list[str]
) -> None:
    route, findings = declared(SPREADS, **{column: {"unit": unit, "sign": sign}})
    assert route.rule(column).factor == factor
    assert findings == [(kind, f"{SPREADS.tool}.{column}") for kind in kinds]


@pytest.mark.parametrize(
    ("said", "key", "kinds"),
    [
        *((said, ("ts",), []) for said in (["ts"], ["symbol", "exchange", "market", "ts"])),
        *((said, ("ts",), []) for said in (None, "ts", [1])),
        (["symbol", "ts", "seq"], ("ts", "seq"), ["ties_allowed"]),
        ([], (), ["ties_allowed"]),
        (["ts", "lot"], ("ts",), ["key_unusable"]),  # no field of the record
    ],
)
def test_a_declared_key_is_the_time_or_allows_ties(
    said: object, key: tuple[str, ...], kinds: list[str]
) -> None:
    route, (unknown, *findings) = declared(PRICES, said, seq={"type": "integer"})
    assert unknown == ("field_unknown", f"{PRICES.tool}.seq")
    assert (route.key, findings) == (key, [(kind, f"{PRICES.tool}.key") for kind in kinds])
    assert replace(route, key=("ts",)) == PRICES


def schemas(tools: dict[str, object]) -> bytes:
    return json.dumps({"source": {"kind": "live", "id": "x"}, "tools": tools}).encode()


def test_a_tool_renamed_by_the_schemas_is_known_by_its_route() -> None:
    assert set(BUILT_IN.routes) == set(BUILT_IN.tools)
    assert len(set(BUILT_IN.routes.values())) == len(set(BUILT_IN.tools.values())) == 11
    body = schemas({f"market.{role}": {"route": path} for role, path in BUILT_IN.routes.items()})
    assert with_schemas(BUILT_IN, body).tools == {role: f"market.{role}" for role in BUILT_IN.tools}


@pytest.mark.parametrize("odd", [None, 5, [], {"route": None}, {"route": ["/x"]}, {}])
def test_an_odd_description_leaves_the_built_in_names(odd: object) -> None:
    assert with_schemas(BUILT_IN, schemas({"a": odd})).tools == BUILT_IN.tools
