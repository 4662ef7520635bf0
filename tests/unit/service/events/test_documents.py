"""Documents are what the contract says, and what their own JSON Schema says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import msgspec
import pytest

from toolkit.market import EventFamily
from toolkit.service.events.documents import document_schema
from toolkit.service.events.lives import Life

UNITS = {
    *("s", "ms", "quote", "percent", "bps", "fraction", "fraction_per_interval"),
    *("percent_per_8h", "hours", "count"),
}
LEG = {"exchange", "market"}
FIELDS: dict[EventFamily, dict[str, set[str] | None]] = {
    EventFamily.SPREAD: {
        "spread_type": None,
        "buy": LEG | {"price"},
        "sell": LEG | {"price"},
        "spread": {"pct", "peak_pct"},
        "opened_at": None,
        "closed_at": None,
        "close_reason": None,
    },
    EventFamily.SPLASH: dict.fromkeys(
        [
            *("exchange", "market", "kind", "pct", "window_s", "start_price", "spot_price"),
            *("futures_price", "volume_24h"),
        ]
    ),
    EventFamily.FUNDING: {
        "buy": LEG | {"rate", "interval_hours", "next_funding_time"},
        "sell": LEG | {"rate", "interval_hours", "next_funding_time"},
        "differential": {"pct_8h", "apr_pct"},
        "net_of_fees": {"pct_8h", "apr_pct"},
    },
}
COMMON: dict[str, set[str] | None] = {
    **dict.fromkeys(["schema", "event_type", "event_id", "lifecycle", "ts", "ts_ms"]),
    "instrument": {"symbol", "base", "quote"},
}

Lives = Callable[..., dict[int, list[Life]]]


@pytest.fixture(params=EventFamily)
def family(request: pytest.FixtureRequest) -> EventFamily:
    found: EventFamily = request.param
    return found


@pytest.fixture
def documents(lives_of: Lives, family: EventFamily) -> list[dict[str, Any]]:
    """A day's documents of the family, as on the wire."""
    found = [
        msgspec.json.decode(msgspec.json.encode(document))
        for lives in lives_of(family).values()
        for life in lives
        for document in life.documents
    ]
    assert found
    return found


def test_a_document_has_exactly_the_fields_of_the_contract(documents, family) -> None:
    wanted = COMMON | FIELDS[family]
    for document in documents:
        assert set(document) == set(wanted)
        for name, inner in wanted.items():
            assert inner is None or set(document[name]) == inner


@pytest.mark.slow
def test_every_document_validates_against_the_exported_schema(documents, family) -> None:
    schema = document_schema(family)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for document in documents:
        validator.validate(document)


def test_a_document_without_any_one_field_does_not_validate(documents, family) -> None:
    validator = jsonschema.Draft202012Validator(document_schema(family))
    for name in documents[0]:
        lacking = {key: value for key, value in documents[0].items() if key != name}
        assert not validator.is_valid(lacking)


def nodes(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [node for each in schema for node in nodes(each)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(node for each in schema.values() for node in nodes(each))]


def test_a_schema_stands_on_its_own_and_names_known_units(family: EventFamily) -> None:
    found = nodes(document_schema(family))
    assert not any("$ref" in node for node in found)
    assert {node["unit"] for node in found if isinstance(node.get("unit"), str)} <= UNITS


def test_every_number_of_a_schema_has_a_unit(family: EventFamily) -> None:
    def bare(node: Any, unit: bool) -> bool:
        unit = unit or isinstance(node.get("unit"), str)
        if node.get("type") in {"number", "integer"}:
            return not unit
        inner = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
        return any(bare(each, unit) for each in inner)

    assert not bare(document_schema(family), unit=False)


def test_a_changed_schema_document_leaves_the_next_one_alone(family: EventFamily) -> None:
    document_schema(family)["properties"].clear()
    assert "event_id" in document_schema(family)["properties"]


def test_seconds_are_the_whole_seconds_of_the_milliseconds(documents: list[dict[str, Any]]) -> None:
    assert {document["ts_ms"] // 1000 - document["ts"] for document in documents} == {0}
