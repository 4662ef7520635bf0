"""Section 4.4, webhook management, and what sections 1, 5 and 6 say of webhooks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from jsonschema import Draft202012Validator
from standardwebhooks.webhooks import Webhook

from tests.listening import Handler, listening
from toolkit.market import EventFamily, Plan
from toolkit.service import Config, Simulated, SpedClock, WebhookSettings, running

SESSION, WEBHOOKS = "/api/v1/auth/session", "/api/v1/auth/webhooks"
ELSEWHERE = {"url": "https://hooks.example/rail", "families": ["spread"]}


@pytest.fixture(scope="module")
def config() -> Config:
    """A simulated market whose hours last three seconds, and webhooks to this machine."""
    clock = SpedClock(start=1_795_046_400, speed=1200.0)
    return Config(Simulated(7), port=0, clock=clock, webhooks=WebhookSettings(loopback=True))


@pytest.fixture(scope="module")
def address(config: Config) -> Iterator[str]:
    with running(config) as service:
        yield service.base_url


@contextmanager
def dashboard(config: Config, address: str, plan: str) -> Iterator[httpx.Client]:
    """A browser that is signed in as the demo owner of a plan."""
    with httpx.Client(base_url=address, timeout=60) as client:
        code = config.sessions.issue(f"demo-{plan}")
        assert client.post(SESSION, json={"code": code}).status_code == 200
        yield client
        client.delete(WEBHOOKS)


def test_the_management_route_uses_the_dashboard_session(config: Config, address: str) -> None:
    assert httpx.get(address + WEBHOOKS).status_code == 401
    with dashboard(config, address, "pro") as client:
        assert client.get(WEBHOOKS).status_code == 200


@pytest.mark.parametrize("plan", Plan)
@pytest.mark.parametrize("form", ["apikey", "Authorization"])
def test_an_api_key_is_not_used_for_webhooks(address: str, plan: Plan, form: str) -> None:
    key = f"demo-{plan}" if form == "apikey" else f"Bearer demo-{plan}"
    for method, path in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test")]:
        answer = httpx.request(
            method, f"{address}{WEBHOOKS}{path}", headers={form: key}, json=ELSEWHERE
        )
        assert answer.status_code == 401


@pytest.mark.parametrize("plan", ["builder", "pro"])
def test_builder_and_pro_configure_one_signed_https_endpoint(
    config: Config, address: str, plan: str
) -> None:
    with dashboard(config, address, plan) as client:
        assert client.put(WEBHOOKS, json=ELSEWHERE).json()["secret"].startswith("whsec_")
        other = {"url": "https://other.example/", "families": ["splash"]}
        assert client.put(WEBHOOKS, json=other).status_code == 200
        shown = client.get(WEBHOOKS).json()
        assert {"url": shown["url"], "families": shown["families"]} == other
        plain = client.put(WEBHOOKS, json=ELSEWHERE | {"url": "http://hooks.example/"})
        assert plain.status_code == 400


def test_free_configures_none(config: Config, address: str) -> None:
    with dashboard(config, address, "free") as client:
        for method, path in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test")]:
            answer = client.request(method, f"{WEBHOOKS}{path}", json=ELSEWHERE)
            assert (answer.status_code, answer.json()["code"]) == (403, "tier_required")


@pytest.fixture
def received() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]], threading.Event]]:
    """A receiver's address, what came to it, and an event set when each family has come."""
    found: list[tuple[dict[str, str], bytes]] = []
    enough = threading.Event()

    class Receiver(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.append(({n.lower(): v for n, v in self.headers.items()}, body))
            if len({json.loads(body)["schema"] for _, body in found}) == len(EventFamily):
                enough.set()
            self.reply(204)

    with listening(Receiver) as address:
        yield f"{address}/", found, enough


@pytest.mark.slow
def test_delivery_is_pushed_by_the_service_signed_and_of_canonical_events(
    config: Config,
    address: str,
    received: tuple[str, list[tuple[dict[str, str], bytes]], threading.Event],
) -> None:
    url, found, enough = received
    tools = httpx.get(
        f"{address}/api/v1/data/schemas", headers={"apikey": "demo-pro"}, timeout=60
    ).json()["tools"]
    schemas = {
        f"svc.{family}.v1": Draft202012Validator(tools[f"data.get_{family}_events"]["document"])
        for family in EventFamily
    }
    with dashboard(config, address, "pro") as client:
        endpoint = {"url": url, "families": list(EventFamily)}
        secret = client.put(WEBHOOKS, json=endpoint).json()["secret"]
        assert enough.wait(200)
    for headers, body in list(found):
        document = Webhook(secret).verify(body, headers)
        schemas[document["schema"]].validate(document)


def test_it_is_not_polled_through_the_public_api(address: str) -> None:
    for path in ("/api/v1/data/webhooks", "/api/v1/webhooks", "/api/v1/data/history/webhooks"):
        answer = httpx.get(address + path, headers={"apikey": "demo-pro"})
        assert answer.status_code == 404
