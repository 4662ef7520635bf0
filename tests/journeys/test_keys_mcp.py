"""A key never shows on the way of MCP: client and service in one process, everything at DEBUG."""

from __future__ import annotations

import logging
import traceback

import pytest

from tests import miniature
from toolkit.client.mcp import McpClient
from toolkit.errors import RailError
from toolkit.market import Plan
from toolkit.service import Clock, Config, Owner, running

STRANGER = "another-secret-77"
KEYS = {Plan.PRO: "k9-very-secret-0042", Plan.FREE: "k9-very-secret-0043"}


def test_neither_side_of_mcp_shows_a_key(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    owners = tuple(Owner(f"ann-{plan}", plan, (key,)) for plan, key in KEYS.items())
    clock = Clock(fixed_at=miniature.END)
    config = Config(miniature.source(), port=0, clock=clock, owners=owners)
    said = repr(config)
    with running(config) as service:
        client = McpClient(service.base_url, KEYS[Plan.PRO])
        said += f"{client!r} {client.listing()}"
        with pytest.raises(RailError) as refused:
            McpClient(service.base_url, KEYS[Plan.FREE]).listing()
        with pytest.raises(RailError) as unknown:
            McpClient(service.base_url, STRANGER).listing()
    for error in (refused, unknown):
        said += "".join(traceback.format_exception(error.value)) + f"{vars(error.value)}"
    said += caplog.text + "".join(capfd.readouterr())
    assert "DEBUG" in caplog.text
    assert "data.get_schemas" in caplog.text
    for key in (*KEYS.values(), STRANGER):
        assert key not in said
