"""Whether a socket opens: one upgrade, looked at and let go."""

from __future__ import annotations

import base64
import os

from toolkit.client.http import Client
from toolkit.wire.exchange import Answer, Failure, Request


def upgrade(client: Client, path: str) -> Answer | Failure:
    """Ask for a WebSocket at a path of the service, with its key. Status 101 means that it opens.

    An open socket is closed at once. Any other answer is the service's refusal.

    >>> from toolkit.service import Config, Simulated, running
    >>> with running(Config(Simulated(7), port=0)) as service:
    ...     with Client(service.base_url, "demo-free") as client:
    ...         upgrade(client, "/api/v1/xbot/ws").status
    403
    """
    asked = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }
    return client.ask(Request(path, headers=tuple(asked.items())))
