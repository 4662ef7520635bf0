"""machine-rail.md, section 7: errors."""

from __future__ import annotations

import httpx
import pytest


def test_an_invalid_api_key_is_http_401(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    answer = rail.get(path, params=query, headers={"apikey": "nobody's"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("path", ["/v1/prices/latest", "/v1/meta", "/v1", "/v1/spread/history"])
def test_a_request_to_a_planned_v1_url_is_http_404(rail: httpx.Client, path: str) -> None:
    answer = rail.get(path, headers={"apikey": "demo-pro"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_no_x402_payment_route_exists(rail: httpx.Client) -> None:
    for path in ("/api/v1/data/x402", "/x402"):
        assert rail.get(path, headers={"apikey": "demo-pro"}).status_code == 404
