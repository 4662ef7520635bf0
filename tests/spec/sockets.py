"""The socket paths of the specification, and what an upgrade to one is answered."""

from __future__ import annotations

from collections.abc import Mapping

from websockets.exceptions import InvalidStatus

from tests.unit.service.transports.sockets import opened

from .conftest import DATA

MARKET = f"{DATA}/ws"
STREAMS = {
    "/api/v1/spreadbot/ws": "svc.spread.v1",
    "/api/v1/xbot/ws": "svc.splash.v1",
    "/api/v1/fundingbot/ws": "svc.funding.v1",
}
PATHS = [MARKET, *STREAMS]


def status_of(base_url: str, path: str, headers: Mapping[str, str]) -> int:
    """101, or the status of the plain HTTP answer that refuses the upgrade."""
    try:
        with opened(base_url, path, additional_headers=headers):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code
