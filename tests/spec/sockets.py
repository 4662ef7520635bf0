"""An outside WebSocket client, as the sentences about sockets need it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from .conftest import DATA

MARKET = f"{DATA}/ws"
STREAMS = {
    "/api/v1/spreadbot/ws": "svc.spread.v1",
    "/api/v1/xbot/ws": "svc.splash.v1",
    "/api/v1/fundingbot/ws": "svc.funding.v1",
}
PATHS = [MARKET, *STREAMS]


@contextlib.contextmanager
def upgraded(
    address: str, path: str, headers: Sequence[tuple[str, str]] = (("apikey", "demo-pro"),)
) -> Iterator[ClientConnection]:
    url = f"ws{address.removeprefix('http')}{path}"
    with connect(url, additional_headers=headers, close_timeout=1) as socket:
        yield socket


def heard(socket: ClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(socket.recv(timeout=60))
    return found


def status_of(address: str, path: str, headers: Sequence[tuple[str, str]]) -> int:
    """101, or the status of the plain HTTP answer that refuses the upgrade."""
    try:
        with upgraded(address, path, headers):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def close_code(socket: ClientConnection) -> int | None:
    """The code that the service closes with, whatever comes before."""
    try:
        while True:
            socket.recv(timeout=60)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None
