"""Guesses about a service's names: plausible ones are proposed, impossible ones are not."""

from __future__ import annotations

import json
import tomllib

import pytest

from toolkit.market import Family
from toolkit.wire.doctor.draft import ProfileDraft
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.survey import (
    ShownField,
    described_fields,
    guessed,
    rows_of,
    shown_fields,
    survey_fields,
)

FUNDING = BUILT_IN.histories[Family.FUNDING]


@pytest.mark.parametrize(
    ("column", "unit", "name"),
    [
        ("ts", "s", "t"),
        ("ts", "s", "timestamp"),
        ("ts", "s", "openTime"),
        ("buy_price", "quote", "bid_px"),
        ("buy_price", "quote", "longPrice"),
        ("spread_pct", "percent", "spread"),
        ("volume", "quote", "vol"),
        ("mark_price", "quote", "markPx"),
        ("buy_interval_hours", "hours", "long_interval_h"),
    ],
)
def test_names_in_other_words_are_proposed(column: str, unit: str, name: str) -> None:
    assert guessed({column: unit}, [ShownField(name, "number", None, 1)])[column].name == name


@pytest.mark.parametrize(
    ("column", "unit", "field"),
    [
        ("buy_price", "quote", ShownField("sell_px", "number", "quote")),
        ("buy_price", "quote", ShownField("ask_price", "number")),
        ("price", "quote", ShownField("price_change", "number", "percent")),
        ("price", "quote", ShownField("price", "string")),
        ("spread_pct", "percent", ShownField("zzz", "number")),
        ("volume", "quote", ShownField("depth", "object")),
    ],
)
def test_what_speaks_against_a_field_is_heard(column: str, unit: str, field: ShownField) -> None:
    assert guessed({column: unit}, [field]) == {}


def test_no_field_is_proposed_twice_and_the_likeliest_comes_first() -> None:
    px, mark = ShownField("price_usd", "number", "quote"), ShownField("mark", "number", "quote")
    found = guessed({"price": "quote", "mark_price": "quote"}, [px, mark])
    assert {column: guess.name for column, guess in found.items()} == {
        "price": "price_usd",
        "mark_price": "mark",
    }


def test_a_time_is_known_by_its_size_where_no_unit_is_said() -> None:
    moment, count = ShownField("t0", "integer", None, 1_700_000_000), ShownField("n", "integer")
    assert guessed({"ts": "s"}, [count, moment])["ts"] is moment


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"3", b'{"tools": 3}', b'{"tools": {"a": 3}}']
)
def test_documents_that_describe_nothing_describe_no_fields(body: bytes) -> None:
    assert described_fields(body, FUNDING) == {}
    assert rows_of(body, "items")[0] == []


def test_rows_and_descriptions_are_laid_together() -> None:
    schemas = b'{"funding": {"t": {"type": "integer", "unit": "s"}, "odd": {"unit": 3}}}'
    described = described_fields(schemas, FUNDING)
    shown = shown_fields(described, [{"t": None, "x": "a"}, {"t": 60, "ok": True}])
    assert [(f.name, f.type, f.unit, f.example) for f in shown] == [
        ("t", "integer", "s", 60),
        ("odd", None, None, None),
        ("x", "string", None, "a"),
        ("ok", "boolean", None, True),
    ]


def test_everything_found_leaves_nothing_to_say() -> None:
    shown = [ShownField(rule.wire, "number", rule.unit) for rule in FUNDING.fields]
    found = survey_fields(FUNDING, shown)
    assert (len(found.matched), found.missing, found.unknown) == (6, {}, ())
    draft = ProfileDraft()
    draft.fields("funding", found)
    assert not draft
    assert tomllib.loads(draft.text("https://rail.example")) == {}


def test_times_of_other_units_and_numbers_as_text_are_drafted_so() -> None:
    price = BUILT_IN.histories[Family.PRICE]
    for time, unit in ((1_700_000_000_000, "ms"), ("2023-11-14T22:14:00Z", "iso")):
        row = {"t": time, "last": "97.6", "mark": None, "vol": "note"}
        found = survey_fields(price, shown_fields({}, [row]))
        draft = ProfileDraft()
        draft.fields("price", found)
        said = draft.text("http://h").splitlines()
        assert f'# fields.ts = {{ wire = "t", unit = "{unit}" }}' in said
        assert '# fields.price = { wire = "last", unit = "quote" }' in said
        assert '# numbers = "text"' in said
        assert not any('wire = "vol"' in line for line in said)


@pytest.mark.parametrize(
    ("page", "place"),
    [
        ({"rows": [], "next": 3}, "rows"),
        ({"result": {"list": [], "n": 0}, "time": 1}, "result.list"),
        ({"items": [], "rows": []}, "items"),
        ({"asks": [], "bids": []}, "items"),
        ({"a": {"rows": []}, "b": {"rows": []}}, "items"),
        ({}, "items"),
        ([[60, 3]], "[]"),
        (3, "items"),
    ],
)
def test_the_only_list_of_a_page_is_where_its_rows_are(page, place: str) -> None:
    assert rows_of(json.dumps(page).encode(), "items")[1] == place
