"""machine-rail.md, section 9: versioning."""

from __future__ import annotations

import httpx
import pytest

from .conftest import tools_listed
from .sockets import PATHS, status_of


def test_the_live_interface_is_versioned_by_its_path_prefix(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    key = {"apikey": "demo-pro"}
    assert rail.get(path, params=query, headers=key).status_code == 200
    for other in ("/data", "/api/data", "/api/v2/data", "/v1/data"):
        moved = path.replace("/api/v1/data", other)
        assert rail.get(moved, params=query, headers=key).status_code == 404


def test_schemas_states_its_version(rail: httpx.Client) -> None:
    document = rail.get("/api/v1/data/schemas", headers={"apikey": "demo-free"}).json()
    assert document["version"] == "2026-11-01"


@pytest.mark.parametrize("path", PATHS)
def test_the_socket_paths_are_versioned_by_the_same_prefix(rail: httpx.Client, path: str) -> None:
    base_url, key = str(rail.base_url).rstrip("/"), [("apikey", "demo-pro")]
    assert status_of(base_url, path, key) == 101
    for other in ("", "/api", "/api/v2", "/v1"):
        assert status_of(base_url, path.replace("/api/v1", other), key) == 404


def test_mcp_has_one_path_without_a_version(rail: httpx.Client) -> None:
    key = {"apikey": "demo-pro"}
    assert tools_listed(rail, key).status_code == 200
    for path in ("/api/v1/mcp", "/v1/mcp", "/api/mcp"):
        assert tools_listed(rail, key, path).status_code == 404


@pytest.mark.parametrize("family", ["spread", "splash", "funding"])
def test_the_schema_identifier_of_event_documents_has_a_version_suffix(
    market: httpx.Client, family: str
) -> None:
    tool = market.get("schemas").json()["tools"][f"data.get_{family}_events"]
    assert tool["document"]["properties"]["schema"]["enum"] == [f"svc.{family}.v1"]
