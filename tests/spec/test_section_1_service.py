"""machine-rail.md, section 1: what the service does, by four transports with one key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import miniature
from toolkit.market import Plan
from toolkit.service import Config, Running, Simulated, SpedClock, running

from .conftest import DATA, tools_listed
from .sockets import MARKET, PATHS, close_code, status_of, upgraded

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


def test_plans_are_free_builder_and_pro(rail: httpx.Client) -> None:
    assert [plan.value for plan in Plan] == ["free", "builder", "pro"]
    for plan in Plan:
        assert status(rail, f"demo-{plan}") == 200


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


SESSION, WEBHOOKS = "/api/v1/auth/session", "/api/v1/auth/webhooks"


def statuses(base_url: str, key: str) -> dict[str, int]:
    """What each transport that takes a key answers it."""
    headers = {"apikey": key}
    with httpx.Client(base_url=base_url, headers=headers, timeout=60) as client:
        return {
            "rest": client.get(f"{DATA}/dashboards/funding-overview").status_code,
            "mcp": tools_listed(client, headers).status_code,
            **{path: status_of(base_url, path, [*headers.items()]) for path in PATHS},
        }


def all_of(status: int, opened: int | None = None) -> dict[str, int]:
    """The same from every transport; an upgrade that succeeds is 101."""
    return {"rest": status, "mcp": status} | dict.fromkeys(PATHS, opened or status)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "owners.toml"
    path.write_text(ANN)
    clock = SpedClock(start=1_795_046_400, speed=60.0)
    return Config(Simulated(7), port=0, clock=clock, owners_file=path)


@pytest.fixture
def service(config: Config) -> Iterator[Running]:
    with running(config) as found:
        yield found


@pytest.fixture
def rewrite(config: Config) -> Callable[[str], object]:
    """Puts other owners into the service's file."""
    assert config.owners_file is not None
    return config.owners_file.write_text


@pytest.mark.parametrize("plan", ["builder", "pro"])
def test_one_api_key_opens_rest_mcp_and_the_four_sockets(rail: httpx.Client, plan: str) -> None:
    assert statuses(str(rail.base_url).rstrip("/"), f"demo-{plan}") == all_of(200, opened=101)


def test_one_entitlement_policy_refuses_free_on_every_transport_above_it(
    rail: httpx.Client,
) -> None:
    assert statuses(str(rail.base_url).rstrip("/"), "demo-free") == all_of(403)


def test_the_refusal_of_a_plan_reads_alike_on_rest_mcp_and_webhooks() -> None:
    config = Config(Simulated(7), port=0)
    with running(config) as found, httpx.Client(base_url=found.base_url) as client:
        key = {"apikey": "demo-free"}
        rest = client.get(f"{DATA}/event-activity", headers=key).json()
        mcp = tools_listed(client, key).json()["error"]["data"]
        client.post(SESSION, json={"code": config.sessions.issue("demo-free")})
        webhooks = client.get(WEBHOOKS).json()
    for problem in (rest, mcp, webhooks):
        said = {name: problem[name] for name in ("status", "code", "plan", "minimum_plan")}
        assert said == {
            "status": 403,
            "code": "tier_required",
            "plan": "free",
            "minimum_plan": "builder",
        }


def test_quota_is_the_owner_s_over_all_transports_and_keys(tmp_path: Path) -> None:
    path = tmp_path / "owners.toml"
    path.write_text(ANN)
    spent = len(PATHS) + 2
    with running(Config(Simulated(7), port=0, owners_file=path, quota=spent)) as found:
        assert statuses(found.base_url, "one") == all_of(200, opened=101)
        assert statuses(found.base_url, "two") == all_of(429)


def test_revocation_takes_effect_on_every_transport_and_leaves_the_owner_s_other_key(
    service: Running, rewrite: Callable[[str], object]
) -> None:
    assert statuses(service.base_url, "two") == all_of(200, opened=101)
    rewrite(f'{ANN}revoked = ["two"]')
    assert statuses(service.base_url, "two") == all_of(401)
    assert statuses(service.base_url, "one") == all_of(200, opened=101)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "owners",
    [f'{ANN}revoked = ["two"]', ANN.replace('"two"', '"three"'), ANN.replace("builder", "free")],
    ids=["revoked", "rotated", "downgraded"],
)
@pytest.mark.slow
def test_an_open_socket_ends_when_its_key_or_plan_does(
    service: Running, rewrite: Callable[[str], object], path: str, owners: str
) -> None:
    with upgraded(service.base_url, path, [("apikey", "two")]) as socket:
        rewrite(owners)
        assert close_code(socket) == 1008


def test_entitlements_follow_the_owner_s_plan_on_every_transport(
    config: Config, service: Running, rewrite: Callable[[str], object]
) -> None:
    with httpx.Client(base_url=service.base_url) as browser:
        browser.post(SESSION, json={"code": config.sessions.issue("ann")})
        assert browser.get(WEBHOOKS).status_code == 200
        rewrite(ANN.replace("builder", "free"))
        assert statuses(service.base_url, "one") == all_of(403)
        assert browser.get(WEBHOOKS).status_code == 403


def test_every_live_address_lies_below_one_base(rail: httpx.Client) -> None:
    tools = rail.get(f"{DATA}/schemas", headers={"apikey": "demo-pro"}).json()["tools"]
    assert all(tool["route"].startswith(f"{DATA}/") for tool in tools.values())
    assert MARKET.startswith(f"{DATA}/")
    assert tools_listed(rail, {"apikey": "demo-pro"}).status_code == 200
