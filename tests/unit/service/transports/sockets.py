"""An outside WebSocket client, as the tests of the service speak with it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

PATIENCE_S = 60
PRICE = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
PAIR = {"symbol": "BTC_USDT", "buy_exchange": "AURORA", "buy_market": "spot"}
PAIR |= {"sell_exchange": "DRACO", "sell_market": "futures"}
"""Queries of the simulated market."""


@contextlib.contextmanager
def opened(
    base_url: str, path: str, key: str = "demo-pro", **options: Any
) -> Iterator[ClientConnection]:
    """A connection under a key."""
    headers = {"apikey": key} if key else {}
    options = {"additional_headers": headers, "close_timeout": 1, "max_size": None, **options}
    with connect(f"ws{base_url.removeprefix('http')}{path}", **options) as socket:
        yield socket


def ask(socket: ClientConnection, **message: object) -> dict[str, Any]:
    """Send a message, and give the next one that comes."""
    socket.send(json.dumps(message))
    return heard(socket)


def heard(socket: ClientConnection) -> dict[str, Any]:
    """The next message."""
    found: dict[str, Any] = json.loads(socket.recv(timeout=PATIENCE_S))
    return found


def close_code(socket: ClientConnection) -> int | None:
    """The code that the service closes with, whatever comes before."""
    try:
        while True:
            socket.recv(timeout=PATIENCE_S)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None
