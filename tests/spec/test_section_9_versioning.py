"""machine-rail.md, section 9: versioning."""

from __future__ import annotations

import httpx


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
