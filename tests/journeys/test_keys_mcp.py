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

KEYS = {Plan.PRO: "k9-very-secret-0042", Plan.FREE: "k9-very-secret-0043"}
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}


def test_neither_side_of_mcp_shows_a_key(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    owners = tuple(Owner(f"ann-{plan}", plan, (key,)) for plan, key in KEYS.items())
    clock = Clock(fixed_at=miniature.END)
    config = Config(miniature.source(), port=0, clock=clock, owners=owners)
    said = repr(config)
    with running(config) as service:
        with McpClient(service.base_url, KEYS[Plan.PRO]) as client:
            page = client.call("price_history", **LEG, limit=1)
            with pytest.raises(RailError) as bad:
                client.call("price_history", **LEG | {"market": "perp"})
            said += f"{client!r} {client.profile()} {page}"
        with (
            McpClient(service.base_url, KEYS[Plan.FREE]) as client,
            pytest.raises(RailError) as refused,
        ):
            client.tools()
        with (
            McpClient(service.base_url, "another-secret-77") as client,
            pytest.raises(RailError) as unknown,
        ):
            client.tools()
    for error in (bad, refused, unknown):
        said += "".join(traceback.format_exception(error.value)) + f"{vars(error.value)}"
    said += caplog.text + "".join(capfd.readouterr())
    assert "DEBUG" in caplog.text
    assert "data.get_price_history" in caplog.text
    for key in (*KEYS.values(), "another-secret-77"):
        assert key not in said
