"""The dashboard session of a service's customer, which sets up a webhook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import httpx
import msgspec

from toolkit.client.contact import proxy_for
from toolkit.errors import KeyRefusedError, ServiceError, UnreachableError
from toolkit.market import EventFamily
from toolkit.wire.address import base_address, sends_key_in_clear
from toolkit.wire.exchange import UNREADABLE, Response, refusal, unreadable
from toolkit.wire.limits import LIMITS
from toolkit.wire.message import message_and_code
from toolkit.wire.rows.body import ACCEPTED_ENCODINGS, Body
from toolkit.wire.secrets import Secrets

_SESSION, _WEBHOOKS = "/api/v1/auth/session", "/api/v1/auth/webhooks"
_ANEW = "sign in anew with a new code, or with the cookie of the dashboard"


class WebhookSession:
    """The routes that set a webhook up, which take a dashboard session and no API key.

    ``cookie`` is the Cookie header of a browser's session; without one, `sign_in` begins one. No
    error or repr shows a code or cookie, and no redirect is followed. Over http they go only to
    this machine, unless ``allow_http``.

    >>> from toolkit.service import Config, Simulated, running
    >>> config = Config(Simulated(7), port=0)
    >>> with running(config) as service, WebhookSession(service.base_url) as session:
    ...     session.sign_in(config.sessions.issue("demo-pro"))
    ...     session.endpoint()["url"] is None
    True
    """

    def __init__(self, base_url: str, *, cookie: str = "", allow_http: bool = False) -> None:
        self.base_url = base_address(base_url)
        sends_key_in_clear(self.base_url, allow_http=allow_http)
        self.cookie = cookie
        transport = httpx.HTTPTransport(proxy=proxy_for(self.base_url))
        timeout = httpx.Timeout(LIMITS.silence_s, connect=LIMITS.connect_s)
        self._http = httpx.Client(transport=transport, timeout=timeout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def sign_in(self, code: str) -> None:
        """Begin a session with a one-time code, as `rail serve` prints it. See ``cookie``."""
        self._ask("POST", _SESSION, {"code": code}, secret=code)
        self.cookie = "; ".join(f"{name}={value}" for name, value in self._http.cookies.items())

    def endpoint(self) -> dict[str, Any]:
        """Return the endpoint: url (None for none), families, enabled, secret_hint."""
        return self._ask("GET", _WEBHOOKS)

    def set(self, url: str, families: Iterable[EventFamily]) -> dict[str, Any]:
        """Set the endpoint and return it. Only the first answer has ``secret``."""
        return self._ask("PUT", _WEBHOOKS, {"url": url, "families": [*families]})

    def remove(self) -> None:
        """Remove the endpoint."""
        self._ask("DELETE", _WEBHOOKS)

    def test(self) -> dict[str, Any]:
        """Have a test delivered, and return delivered, status and reason."""
        return self._ask("POST", f"{_WEBHOOKS}/test")

    def _ask(
        self, method: str, path: str, said: dict[str, Any] | None = None, *, secret: str = ""
    ) -> dict[str, Any]:
        values = [part.partition("=")[2].strip() for part in self.cookie.split(";")]
        url, hidden = self.base_url + path, Secrets([secret, *values]).hidden
        headers = {"Accept": "application/json", "Accept-Encoding": ACCEPTED_ENCODINGS}
        if self.cookie:
            headers["Cookie"] = self.cookie
        content = None if said is None else msgspec.json.encode(said)
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            with self._http.stream(method, url, headers=headers, content=content) as answer:
                body = Body(answer.headers)
                came = b"".join(body.inflated(piece) for piece in answer.iter_raw())
                body.end()
        except (httpx.HTTPError, ServiceError) as error:
            reason = hidden(f"{type(error).__name__}: {error}")
            raise UnreachableError(f"no answer from {url} ({reason})", url=url) from None
        if answer.status_code not in (200, 201, 204):
            raise _refused(url, answer.status_code, hidden(came.decode(errors="replace")).encode())
        try:
            return msgspec.json.decode(came or b"{}", type=dict[str, Any])
        except UNREADABLE:
            wanted = "a JSON object"
            raise unreadable(Response(answer.status_code, {}, b"", url), path, wanted) from None


def _refused(url: str, status: int, body: bytes) -> ServiceError:
    if status != 401:
        return refusal(Response(status, {}, body, url))
    said, code = message_and_code(body)
    words = f"{url} refused the session (401); {_ANEW}"
    message = f"{words}; it says: {said}" if said else words
    return KeyRefusedError(message, status=status, url=url, detail=said, code=code)
