"""Names of tools: built in, then as the schemas say, then as the user says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.wire.profile.profile import BUILT_IN, with_schemas
from toolkit.wire.profile.user_profile import UserProfile


def schemas(tools: dict[str, object]) -> bytes:
    return json.dumps({"source": {"kind": "live", "id": "x"}, "tools": tools}).encode()


def test_every_built_in_tool_has_a_route_to_be_known_by() -> None:
    assert set(BUILT_IN.routes) == set(BUILT_IN.tools)
    assert len(set(BUILT_IN.routes.values())) == len(set(BUILT_IN.tools.values())) == 11


def test_a_tool_renamed_by_the_schemas_is_known_by_its_route() -> None:
    body = schemas({f"market.{role}": {"route": path} for role, path in BUILT_IN.routes.items()})
    assert with_schemas(BUILT_IN, body).tools == {role: f"market.{role}" for role in BUILT_IN.tools}


@pytest.mark.parametrize("odd", [None, 5, [], {"route": None}, {"route": ["/x"]}, {}])
def test_an_odd_description_leaves_the_built_in_names(odd: object) -> None:
    assert with_schemas(BUILT_IN, schemas({"a": odd})).tools == BUILT_IN.tools


def test_the_users_file_has_the_last_word(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text('mcp_path = "/rpc"\n[tools]\nsymbols = "find"')
    found = with_schemas(BUILT_IN, schemas({"market.find": {"route": BUILT_IN.symbols_path}}))
    applied = UserProfile.read(path).applied(found)
    assert (found.tools["symbols"], applied.tools["symbols"]) == ("market.find", "find")
    assert applied.mcp_path == "/rpc"
