"""machine-rail.md, section 1: what the service does."""

from __future__ import annotations

import re
from typing import Any

import httpx

from tests import miniature

PRO = {"apikey": "demo-pro"}


def symbols(rail: httpx.Client) -> list[dict[str, Any]]:
    answer = rail.get("/api/v1/data/symbols/search", headers=PRO)
    assert answer.status_code == 200
    items: list[dict[str, Any]] = answer.json()["items"]
    assert items
    return items


def test_each_request_resolves_to_the_owner_of_the_api_key(rail: httpx.Client) -> None:
    """Two keys of one owner are served alike, and unlike another owner's."""
    first, second, other = (
        rail.get("/api/v1/data/schemas", headers={"apikey": key}).content
        for key in ("ann-1", "ann-2", "demo-pro")
    )
    assert first == second != other


def test_the_tier_derives_from_the_keys_machine_plan(rail: httpx.Client) -> None:
    maxima = []
    for plan in ("free", "builder", "pro"):
        schemas = rail.get("/api/v1/data/schemas", headers={"apikey": f"demo-{plan}"}).json()
        schema = schemas["tools"]["data.get_price_history"]["input_schema"]
        maxima.append(schema["properties"]["limit"]["maximum"])
    assert maxima == sorted(set(maxima))


def test_live_routes_are_under_api_v1_data(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    assert path.startswith("/api/v1/data/")
    assert rail.get(path, params=query, headers=PRO).status_code == 200


def test_all_timestamps_are_unix_seconds(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    """Every number named as a time lies in the market's days, as a whole number of seconds."""
    path, query = route
    document = rail.get(path, params=query, headers=PRO).json()
    for item in document.get("items", []):
        for name in {"ts", "updated_at"} & item.keys():
            assert isinstance(item[name], int)
            assert miniature.START <= item[name] <= miniature.END
    if document.get("next_end_time") is not None:
        assert miniature.START <= document["next_end_time"] < miniature.END


def test_symbols_are_canonical_base_quote(rail: httpx.Client) -> None:
    for item in symbols(rail):
        assert item["symbol"] == f"{item['base']}_{item['quote']}"


def test_centralised_exchange_names_are_uppercase_and_dex_legs_name_their_chain(
    rail: httpx.Client,
) -> None:
    venues = [venue for item in symbols(rail) for venue in item["venues"]]
    assert all(re.fullmatch(r"[A-Z0-9-]+", venue["exchange"]) for venue in venues)
    on_chain = [venue for venue in venues if venue["market"] == "dex"]
    assert on_chain
    assert all(venue["exchange"] == f"DEX-{venue['dex_network']}" for venue in on_chain)
