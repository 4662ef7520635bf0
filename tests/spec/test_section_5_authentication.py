"""machine-rail.md, section 5: authentication."""

from __future__ import annotations

import httpx
import pytest

from tests import miniature
from toolkit.service import Config, running

from .conftest import DATA, tools_listed
from .sockets import PATHS, status_of


def test_the_rate_limit_derives_from_the_key() -> None:
    refused = {}
    with running(Config(miniature.source(), port=0)) as service:
        for key in ("demo-free", "demo-builder"):
            with httpx.Client(base_url=service.base_url, headers={"apikey": key}) as client:
                answers = [client.get("/api/v1/data/schemas") for _ in range(61)]
            refused[key] = sum(answer.status_code == 429 for answer in answers)
    assert refused == {"demo-free": 1, "demo-builder": 0}


SURFACES = ["rest", "mcp", *PATHS]


def status(rail: httpx.Client, surface: str, headers: dict[str, str], query: str = "") -> int:
    """What a surface answers to a GET, a POST or an upgrade; 200 where it opens."""
    if surface == "rest":
        return rail.get(f"{DATA}/schemas{query}", headers=headers).status_code
    if surface == "mcp":
        return tools_listed(rail, headers, f"/mcp{query}").status_code
    found = status_of(str(rail.base_url).rstrip("/"), surface + query, headers)
    return 200 if found == 101 else found


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"apikey": "demo-pro"}, 200),
        ({"Authorization": "Bearer demo-pro"}, 200),
        ({"authorization": "bearer demo-pro"}, 200),
        ({"Authorization": "Bearer demo-pro", "apikey": "nobody's"}, 200),
        ({"Authorization": "Bearer nobody's", "apikey": "demo-pro"}, 401),
        ({"Authorization": "Basic demo-pro", "apikey": "demo-pro"}, 401),
        ({"apikey": "nobody's"}, 401),
        ({"Authorization": "Bearer nobody's"}, 401),
        ({"apikey": ""}, 401),
        ({}, 401),
    ],
)
def test_a_key_is_accepted_in_either_header_and_authorization_wins(
    rail: httpx.Client, surface: str, headers: dict[str, str], expected: int
) -> None:
    assert status(rail, surface, headers) == expected


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", ["apikey", "api_key", "token", "Authorization"])
def test_a_key_in_the_address_is_refused_as_a_browser_would_send_it(
    rail: httpx.Client, surface: str, name: str
) -> None:
    assert status(rail, surface, {}, f"?{name}=demo-pro") == 400
    assert status(rail, surface, {"apikey": "demo-pro"}, f"?{name}=demo-pro") == 400


def test_a_web_page_of_elsewhere_may_not_ask_mcp(rail: httpx.Client) -> None:
    headers = {"apikey": "demo-pro", "Origin": "https://elsewhere.example"}
    assert tools_listed(rail, headers).status_code == 403


def test_no_answer_invites_a_browser_to_send_keys(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    headers = {"apikey": "demo-pro", "Origin": "https://elsewhere.example"}
    said = rail.get(path, params=query, headers=headers).headers
    assert not [name for name in said if name.startswith("access-control-")]
    asked = {"Access-Control-Request-Method": "GET", "Origin": "https://elsewhere.example"}
    assert rail.options(path, headers=asked).status_code in (401, 405)


@pytest.mark.parametrize("path", ["/x402", "/api/v1/x402", "/api/v1/data/x402", "/checkout"])
def test_there_is_no_402_route_and_no_checkout(rail: httpx.Client, path: str) -> None:
    base_url, key = str(rail.base_url).rstrip("/"), {"apikey": "demo-pro"}
    for method in ("GET", "POST"):
        assert rail.request(method, path, headers=key).status_code == 404
    assert status_of(base_url, path, key) == 404
