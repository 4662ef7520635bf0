"""machine-rail.md, section 1: what the service does, by four transports with one key."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.unit.service.transports.sockets import close_code, opened
from toolkit.service import Config, Running, Simulated, SpedClock, running

from .conftest import DATA, DAY, NOW, tools_listed
from .sockets import PATHS, status_of

ANN = '[owners.ann]\nplan = "builder"\nkeys = ["one", "two"]\n'


TIMES = ("ts", "updated_at", "opened_at", "closed_at", "next_funding_time")
LOGS = [f"history/{family}-events" for family in ("spread", "splash", "funding")]


@pytest.mark.parametrize(
    "path", ["symbols/search", "dashboards/spread", "dashboards/funding-overview", *LOGS]
)
def test_times_are_unix_seconds_symbols_canonical_and_exchanges_uppercase_or_dex_and_chain(
    market: httpx.Client, path: str
) -> None:
    answer = market.get(path, params={**DAY, "limit": 500})
    assert answer.status_code == 200, answer.text
    assert answer.json()["items"]
    for item in answer.json()["items"]:
        for name, value in item.items():
            if name in TIMES:
                whole = isinstance(value, int) and abs(value - NOW) < 3 * 86_400
                assert value is None or whole, (name, value)
            if name.endswith("_ms"):
                assert value // 1000 == item["ts"]
        symbol = item.get("symbol") or item["instrument"]["symbol"]
        assert re.fullmatch(r"[A-Z0-9]+_[A-Z]+", symbol)
        legs = [item, *item.get("venues", []), item.get("buy", {}), item.get("sell", {})]
        for leg, side in itertools.product(legs, ("", "buy_", "sell_")):
            exchange = leg.get(f"{side}exchange", "X")
            assert re.fullmatch(r"[A-Z0-9-]+", exchange)
            assert exchange.startswith("DEX-") is (leg.get(f"{side}market") == "dex")
    assert ('"DEX-' in answer.text) is ("funding" not in path)


SESSION, WEBHOOKS = "/api/v1/auth/session", "/api/v1/auth/webhooks"


def statuses(base_url: str, key: str) -> dict[str, int]:
    """What each transport that takes a key answers it."""
    headers = {"apikey": key}
    with httpx.Client(base_url=base_url, headers=headers, timeout=60) as client:
        return {
            "rest": client.get(f"{DATA}/dashboards/funding-overview").status_code,
            "mcp": tools_listed(client, headers).status_code,
            **{path: status_of(base_url, path, headers) for path in PATHS},
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
    with opened(service.base_url, path, "two") as socket:
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
