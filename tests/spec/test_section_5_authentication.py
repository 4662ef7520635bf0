"""machine-rail.md, section 5: authentication."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests import miniature
from toolkit.service import Config, running

from .conftest import DATA, tools_listed
from .sockets import PATHS, status_of

KEY, OTHER = "demo-builder", "demo-pro"
HEADERS = {
    "apikey": lambda key: {"apikey": key},
    "bearer": lambda key: {"Authorization": f"Bearer {key}"},
}


def test_both_header_forms_are_served_alike(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    answers = [rail.get(path, params=query, headers=HEADERS[form](KEY)) for form in HEADERS]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


def test_when_both_headers_are_present_authorization_wins(rail: httpx.Client) -> None:
    def schemas(**headers: str) -> bytes:
        answer = rail.get("/api/v1/data/schemas", headers=headers)
        assert answer.status_code == 200
        return answer.content

    both = schemas(apikey=OTHER, Authorization=f"Bearer {KEY}")
    assert both == schemas(Authorization=f"Bearer {KEY}") != schemas(apikey=OTHER)


@pytest.mark.parametrize("form", HEADERS)
@pytest.mark.parametrize("key", ["nobody's", "demo-buildeR", "demo-builder2", "demo"])
def test_an_invalid_key_yields_http_401(
    rail: httpx.Client, route: tuple[str, dict[str, str]], form: str, key: str
) -> None:
    path, query = route
    answer = rail.get(path, params=query, headers=HEADERS[form](key))
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == (
        'Bearer realm="machine-rail", error="invalid_token"'
    )


@pytest.mark.parametrize("path", ["/x402", "/api/v1/x402", "/checkout", "/api/v1/checkout"])
def test_no_public_402_route_or_self_serve_checkout_exists(rail: httpx.Client, path: str) -> None:
    assert rail.get(path).status_code == 404
    assert rail.post(path).status_code == 404


def test_nothing_is_answered_with_402(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    for headers in ({}, {"apikey": "nobody's"}, {"apikey": "demo-free"}):
        assert rail.get(path, params=query, headers=headers).status_code in (200, 401, 403)


ANN = '[owners.ann]\nplan = "pro"\nkeys = ["old"]\n'


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[tuple[Path, Callable[[str], int]]]:
    """A file of owners, and what a service that reads it answers a key."""
    path = tmp_path / "owners.toml"
    path.write_text(ANN)
    config = Config(miniature.source(), port=0, owners_file=path)
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        route = "/api/v1/data/schemas"
        yield path, lambda key: client.get(route, headers={"apikey": key}).status_code


def test_a_key_can_be_rotated(owned: tuple[Path, Callable[[str], int]]) -> None:
    path, status = owned
    assert (status("old"), status("new")) == (200, 401)
    path.write_text(ANN.replace("old", "new"))
    assert (status("old"), status("new")) == (401, 200)


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
    found = status_of(str(rail.base_url).rstrip("/"), surface + query, [*headers.items()])
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


@pytest.mark.parametrize("surface", SURFACES)
def test_no_surface_asks_for_a_payment(rail: httpx.Client, surface: str) -> None:
    for headers in ({}, {"apikey": "demo-free"}, {"apikey": "demo-pro"}):
        assert status(rail, surface, headers) in (200, 401, 403)


@pytest.mark.parametrize("path", ["/x402", "/api/v1/x402", "/api/v1/data/x402", "/checkout"])
def test_x402_is_no_socket_either_nor_a_route_with_a_key(rail: httpx.Client, path: str) -> None:
    base_url = str(rail.base_url).rstrip("/")
    assert status_of(base_url, path, [("apikey", "demo-pro")]) == 404
    assert rail.get(path, headers={"apikey": "demo-pro"}).status_code == 404
