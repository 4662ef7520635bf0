"""The key check, for every path that needs a key, and the limit of concurrent requests.

Both are ASGI middleware. A refused WebSocket upgrade is a plain HTTP answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.errors import InputError
from toolkit.service.accounts import Owner, Policy, Quotas
from toolkit.service.problems import CHALLENGE, Problem, bad_request

DEFAULT_CAPACITY = 64
"""The default limit of concurrent requests: as many as a loader may have workers."""


@dataclass(slots=True)
class Gate:
    """The limit of concurrent HTTP requests, their number, and whether the service is closing."""

    capacity: int = DEFAULT_CAPACITY
    closing: bool = False
    under_way: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        number = isinstance(self.capacity, int) and not isinstance(self.capacity, bool)
        if not number or self.capacity < 1:
            raise InputError("capacity", self.capacity, "a whole number of 1 or more")


class Capacity:
    """ASGI middleware: refuses requests beyond the gate's capacity.

    WebSockets do not count, and are refused only while the gate is closing. Answers then have
    ``Connection: close``, and a request that the server cancels, or whose query polars ends for a
    Ctrl-C in any thread, gets the 503 if its answer has not begun.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
            return
        if scope["type"] == "websocket" and self.gate.closing:
            raise _shutting_down()
        await self.app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.gate.closing:
            raise _shutting_down()
        if self.gate.under_way >= self.gate.capacity:
            raise _unavailable("The service is at its limit of concurrent requests; retry in 1 s.")
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start" and self.gate.closing:
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        self.gate.under_way += 1
        try:
            await self.app(scope, receive, watched)
        except asyncio.CancelledError:
            if begun or not self.gate.closing:
                raise
            raise _shutting_down() from None
        except KeyboardInterrupt:
            if begun:
                raise
            raise _unavailable("An interrupt ended this answer; retry in 1 s.") from None
        finally:
            self.gate.under_way -= 1


def _unavailable(detail: str, **headers: str) -> Problem:
    return Problem(503, "unavailable", detail, headers={"Retry-After": "1", **headers})


def _shutting_down() -> Problem:
    return _unavailable("The service is shutting down; retry when it is back.", Connection="close")


SURFACES = ("/api/v1/data", "/api/v1/fundingbot", "/api/v1/spreadbot", "/api/v1/xbot", "/mcp")
"""The paths that need a key, as does everything below them."""

KEY_PARAMETERS = frozenset(
    {
        *("accesskey", "accesstoken", "apikey", "apitoken", "authorization", "authtoken"),
        *("bearer", "key", "secret", "token", "xapikey"),
    }
)
"""Query parameters treated as a key, in lower case, without ``-`` and ``_``."""

_GUARDED = tuple(f"{surface}/" for surface in SURFACES)
_OWNER = "toolkit.service.owner"


def owner_of_scope(scope: Scope) -> Owner:
    """Return the owner that `Access` found. A request that did not pass it is a `KeyError`."""
    owner: Owner = scope[_OWNER]
    return owner


def key_of_scope(scope: Scope) -> str:
    """Return the key that a request came with, "" if it has none."""
    headers = Headers(scope=scope)
    if any(len(headers.getlist(name)) > 1 for name in ("authorization", "apikey")):
        raise _unauthorized("A key header was sent twice.", error="invalid_token")
    if "authorization" in headers:
        scheme, _, key = headers["authorization"].strip().partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""
    return headers.get("apikey", "").strip()


class Access:
    """ASGI middleware: resolves the key of each request to its owner and counts it, or refuses.

    Answers to a known owner have headers with the quota and its rest. The key comes in
    ``Authorization: Bearer``, which takes precedence even if its key is not valid, or in
    ``apikey``; blanks around it are stripped. Either header sent twice is refused. So is a key in
    the query string, even beside a valid header, since logs would show it.
    """

    def __init__(self, app: ASGIApp, policy: Policy, quotas: Quotas) -> None:
        self.app, self.policy, self.quotas = app, policy, quotas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        path = f"{scope.get('path', '')}/"
        if scope["type"] in ("http", "websocket") and path.startswith(_GUARDED):
            _refuse_keys_in_query(scope["query_string"])
            key = key_of_scope(scope)
            if not key:
                raise _unauthorized("No API key was sent; send Authorization: Bearer or apikey.")
            owner = self.policy.owners.owner_of(key)
            if owner is None:
                raise _unauthorized("The API key is not valid.", error="invalid_token")
            quota = self.policy.terms(owner.plan).quota
            told = self.quotas.spend(owner.name, quota, policy=owner.plan)
            scope[_OWNER] = owner
            send = with_headers(told, send)
        await self.app(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def with_headers(headers: Mapping[str, str], send: Send) -> Send:
    """Wrap ``send`` so that it adds the headers to the answer."""

    async def added(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return added


def _refuse_keys_in_query(query: bytes) -> None:
    names = {name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)}
    plain = {name: name.lower().replace("-", "").replace("_", "") for name in sorted(names)}
    found = [name for name, bare in plain.items() if bare in KEY_PARAMETERS]
    if found:
        raise bad_request([(name, "a key belongs in a header, never in a URL") for name in found])


def _unauthorized(detail: str, *, error: str = "") -> Problem:
    challenge = f'{CHALLENGE}, error="{error}"' if error else CHALLENGE
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": challenge})
