"""machine-rail.md, section 4.5: the planned event API is not there, and nobody calls it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import httpx
import pytest

from toolkit.wire.profile.profile import BUILT_IN

from .sockets import STREAMS, status_of

ROOT = Path(__file__).parents[2]
FAMILIES = ["spread", "splash", "funding"]
PLANNED = [
    *(f"/v1/{family}/{what}" for family in FAMILIES for what in ("recent", "history", "live")),
    *("/v1/prices/latest", "/v1/prices/live", "/v1/prices/meta", "/v1/meta", "/v1"),
]
PLANNED_PATH = re.compile(r"(?<!/api)/v1(?:/|$)")
PRO = {"apikey": "demo-pro"}


def planned_addresses(path: Path) -> list[str]:
    """The texts of a file that name a planned address, but for docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        f"{path.name}:{node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said
        if PLANNED_PATH.search(node.value)
    ]


@pytest.mark.parametrize("path", PLANNED)
@pytest.mark.parametrize("headers", [{}, PRO, {"apikey": "nobody's"}], ids=["none", "good", "bad"])
def test_a_planned_url_answers_404_to_get_whatever_the_key(
    rail: httpx.Client, path: str, headers: dict[str, str]
) -> None:
    answer = rail.get(path, headers=headers, params={"min_pct": "1", "delay": "60"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", PLANNED)
def test_a_planned_url_answers_404_to_an_upgrade(rail: httpx.Client, path: str) -> None:
    base_url = str(rail.base_url).rstrip("/")
    assert status_of(base_url, path, [*PRO.items()]) == 404
    assert status_of(base_url, path, []) == 404


@pytest.mark.slow
def test_no_code_of_ours_names_a_planned_url() -> None:
    files = [*(ROOT / "toolkit").rglob("*.py"), *ROOT.glob("app.py")]
    assert len(files) > 100
    assert [found for file in files for found in planned_addresses(file)] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('def f():\n    """See /v1/spread/recent."""\n    return 1', 0),
        ('path = "/api/v1/data/history/price"', 0),
        ('path = "/v1/spread/recent"', 1),
        ('path = f"{base}/v1/{family}/history"', 1),
        ('path = "/v1"', 1),
    ],
)
def test_a_planned_url_in_code_would_be_found(tmp_path: Path, source: str, count: int) -> None:
    (tmp_path / "asks.py").write_text(source)
    assert len(planned_addresses(tmp_path / "asks.py")) == count


def test_every_address_that_the_client_knows_is_a_live_one() -> None:
    known = {
        *BUILT_IN.routes.values(),
        *BUILT_IN.snapshots.values(),
        BUILT_IN.mcp_path,
        BUILT_IN.streams.market,
        *BUILT_IN.streams.events.values(),
    }
    assert STREAMS.keys() <= known
    assert all(path == "/mcp" or path.startswith("/api/v1/") for path in known)
