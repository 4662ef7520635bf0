"""machine-rail.md, section 1: what is published, and to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import miniature
from toolkit.market import Plan
from toolkit.service import Clock, Config, running

SCHEMAS = "/api/v1/data/schemas"
NOW = 1_795_953_607
DAY = {"start_time": NOW - 86_400, "end_time": NOW}
LEGS = {
    "symbol": "BTC_USDT",
    "buy_exchange": "AURORA",
    "buy_market": "spot",
    "sell_exchange": "CORONA",
    "sell_market": "futures",
}
ANN = '[owners.ann]\nplan = "builder"\nkeys = ["one", "two"]\n'


def items(client: httpx.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    assert found
    return found


def every_item(market: httpx.Client) -> list[dict[str, Any]]:
    found = items(market, "symbols/search")
    found += items(market, "dashboards/spread") + items(market, "dashboards/funding-overview")
    for family in ("spread", "splash", "funding"):
        found += items(market, f"history/{family}-events", limit=500, **DAY)
    return found


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    path = tmp_path / "owners.toml"
    path.write_text(ANN)
    return path


@pytest.fixture
def rails(owners: Path) -> Iterator[httpx.Client]:
    """A service whose owners stand in a file, with a quota of 4 requests a minute."""
    clock = Clock(fixed_at=miniature.END)
    config = Config(miniature.source(), port=0, clock=clock, owners_file=owners, quota=4)
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        yield client


def status(rails: httpx.Client, key: str, path: str = SCHEMAS) -> int:
    return rails.get(path, headers={"apikey": key}).status_code


@pytest.mark.slow
def test_prices_spreads_funding_differentials_and_events_in_three_families_are_published(
    market: httpx.Client,
) -> None:
    leg = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
    assert items(market, "history/price", **leg)[0]["price"] > 0
    assert "spread_pct" in items(market, "history/spread", **LEGS)[0]
    assert "differential_pct_8h" in items(market, "history/funding", **LEGS)[0]
    for family in ("spread", "splash", "funding"):
        assert items(market, f"history/{family}-events", **DAY)


@pytest.mark.slow
def test_splash_is_pump_and_dump(market: httpx.Client) -> None:
    week = DAY | {"start_time": NOW - 7 * 86_400}
    for kind in ("pump", "dump"):
        found = items(market, "history/splash-events", event_type=f"splash.{kind}", **week)
        assert {(item["kind"], item["pct"] > 0) for item in found} == {(kind, kind == "pump")}


def test_entitlements_apply_to_the_owner(owners: Path, rails: httpx.Client) -> None:
    path = "/api/v1/data/event-activity"
    assert (status(rails, "one", path), status(rails, "two", path)) == (200, 200)
    owners.write_text(ANN.replace("builder", "free"))
    assert (status(rails, "one", path), status(rails, "two", path)) == (403, 403)


def test_quota_applies_to_the_owner(rails: httpx.Client) -> None:
    """Two keys of one owner spend one quota."""
    keys = ("one", "two", "one", "two", "one", "two")
    assert [status(rails, key) for key in keys] == [200, 200, 200, 200, 429, 429]


def test_revocation_applies_to_the_owner(owners: Path, rails: httpx.Client) -> None:
    """A revoked key opens nothing from the next request on; the owner's other key goes on."""
    assert (status(rails, "one"), status(rails, "two")) == (200, 200)
    owners.write_text(f'{ANN}revoked = ["two"]')
    assert (status(rails, "one"), status(rails, "two")) == (200, 401)


def test_plans_are_free_builder_and_pro(rail: httpx.Client) -> None:
    assert [plan.value for plan in Plan] == ["free", "builder", "pro"]
    for plan in Plan:
        assert status(rail, f"demo-{plan}") == 200


def test_surfaces_freshness_and_quota_derive_from_the_keys_machine_plan(
    rail: httpx.Client, builder_route: tuple[str, dict[str, str]]
) -> None:
    path, query = builder_route
    answers = [
        rail.get(path, params=query, headers={"apikey": f"demo-{plan}"}).status_code
        for plan in Plan
    ]
    assert answers == [403, 200, 200]


def test_the_request_quota_derives_from_the_keys_machine_plan() -> None:
    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        free = [status(client, "demo-free") for _ in range(61)]
        builder = [status(client, "demo-builder") for _ in range(61)]
    assert free == [200] * 60 + [429]
    assert builder == [200] * 61


def test_a_name_that_ends_in_ms_is_milliseconds_and_every_other_time_seconds(
    market: httpx.Client,
) -> None:
    for item in every_item(market):
        for name, value in item.items():
            if name in ("ts", "updated_at", "opened_at", "closed_at", "next_funding_time"):
                assert value is None or abs(value - NOW) < 3 * 86_400, (name, value)
            if name.endswith("_ms"):
                assert value // 1000 == item["ts"]


def test_every_symbol_is_canonical_and_every_exchange_uppercase(market: httpx.Client) -> None:
    for item in every_item(market):
        symbol = item.get("symbol") or item["instrument"]["symbol"]
        assert re.fullmatch(r"[A-Z0-9]+_[A-Z]+", symbol)
        legs = [item, *item.get("venues", []), item.get("buy", {}), item.get("sell", {})]
        for leg in legs:
            for name in ("exchange", "buy_exchange", "sell_exchange"):
                assert re.fullmatch(r"[A-Z0-9-]+", leg.get(name, "X"))


def test_decentralised_legs_are_written_dex_and_chain(market: httpx.Client) -> None:
    on_chain = 0
    for item in items(market, "dashboards/spread"):
        for side in ("buy", "sell"):
            dex = item[f"{side}_market"] == "dex"
            assert item[f"{side}_exchange"].startswith("DEX-") is dex
            on_chain += dex
    assert on_chain
