"""Whether a socket opens: one upgrade, looked at and let go. It needs no library of sockets."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
from urllib.parse import urlsplit

from toolkit.client.contact import Contact
from toolkit.wire.exchange import Answer, Failure

_LARGEST_BODY = 65_536


def upgrade(contact: Contact, path: str, *, timeout_s: float = 10.0) -> Answer | Failure:
    """Ask for a WebSocket at a path of the service, with its key. Status 101 means that it opens.

    An open socket is closed at once. Any other answer is the service's refusal.

    >>> from toolkit.service import Config, Simulated, running
    >>> with running(Config(Simulated(7), port=0)) as service:
    ...     upgrade(Contact(service.base_url, "demo-free"), "/api/v1/xbot/ws").status
    403
    """
    parts = urlsplit(contact.base_url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    url = contact.base_url.replace("http", "ws", 1) + path
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        **contact.key_header,
    }
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    with contextlib.closing(connection):
        try:
            connection.request("GET", parts.path + path, headers=headers)
            response = connection.getresponse()
            body = b"" if response.status == 101 else response.read(_LARGEST_BODY)
        except (OSError, http.client.HTTPException) as error:
            told = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return Failure(contact.without_key(told).rstrip(": "), url)
        said = {name.lower(): contact.without_key(value) for name, value in response.getheaders()}
        text = contact.without_key(body.decode(errors="replace")).encode()
        return Answer(response.status, said, text, url)
