"""What stands before a dashboard that others reach: nothing passes it without a login.

It is an ASGI middleware around the whole of Streamlit: pages, files and the socket that carries the
data. So no page, no button and no row is behind a check of its own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from toolkit.foreign import Html
from toolkit.wire.address import is_loopback
from toolkit.workspace.login import PasswordFile

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "rail_session"
SESSION_S = 12 * 3_600
"""A login lasts so long (s), and until the dashboard ends."""

TRIES, TRIES_S = 5, 60
"""An address may be wrong so often in so many seconds."""

_HEALTH = "/_stcore/health"
_MOST_SESSIONS, _MOST_ADDRESSES, _MOST_WAITING = 1_000, 10_000, 4
_MOST_BODY = 8_192
_LOOKS = Path(__file__).with_name("door.css").read_bytes()
_PAGE = Html(
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Log in</title>'
    '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/login.css">'
    "</head><body><main>"
    '<h1>machine-rail toolkit</h1><form method="post" action="/login">'
    '<input type="hidden" name="next" value="{next}">'
    '<label for="password">Password</label><input id="password" name="password" type="password" '
    'autocomplete="current-password" required autofocus><button>Log in</button>'
    '<p role="alert">{fault}</p></form></main></body></html>'
)
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "content-type": "text/html; charset=utf-8",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class LoginSessions:
    """Who is logged in, kept in memory alone: each by a random token, for twelve hours.

    >>> sessions = LoginSessions()
    >>> token = sessions.begin()
    >>> sessions.holds(token), sessions.holds("guess"), sessions.end(token), sessions.holds(token)
    (True, False, None, False)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[str, float] = {}

    def begin(self) -> str:
        """Return the token of a new session. Of more than 1,000 the oldest ends."""
        while len(self._ends) >= _MOST_SESSIONS:
            del self._ends[next(iter(self._ends))]
        token = secrets.token_urlsafe(32)
        self._ends[token] = self._clock() + SESSION_S
        return token

    def holds(self, token: str | None) -> bool:
        """Check whether a session goes on."""
        return token is not None and self._ends.get(token, 0.0) > self._clock()

    def end(self, token: str | None) -> None:
        """End a session, where there is one."""
        self._ends.pop(token or "", None)


class Tries:
    """How often an address was wrong of late. Addresses of one IPv6 network (/64) count as one.

    >>> tries = Tries(lambda: 0.0)
    >>> [tries.wait_s("10.0.0.1") for _ in range(6) if not tries.wrong("10.0.0.1")]
    [0, 0, 0, 0, 60, 60]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at: dict[str, list[float]] = {}

    def wrong(self, address: str) -> None:
        """Count a wrong password."""
        name = _network(address)
        while len(self._at) >= _MOST_ADDRESSES and name not in self._at:
            del self._at[next(iter(self._at))]
        self._at[name] = [*self._lately(name), self._clock()][-TRIES:]

    def right(self, address: str) -> None:
        """Take the last count back."""
        self._at[_network(address)] = self._lately(_network(address))[:-1]

    def wait_s(self, address: str) -> int:
        """Return how long the address has to wait (s), 0 where it may try."""
        lately = self._lately(_network(address))
        return 0 if len(lately) < TRIES else int(lately[0] + TRIES_S - self._clock()) or 1

    def _lately(self, name: str) -> list[float]:
        since = self._clock() - TRIES_S
        return [at for at in self._at.get(name, ()) if at > since]


class Door:
    """The middleware. ``names`` are those by which others reach the dashboard, as by a proxy.

    With ``password`` nothing but the health check passes without a session. Without one the pages
    ask for the login themselves: then it refuses strange names alone.
    """

    def __init__(self, app: Asgi, password: PasswordFile | None, names: Iterable[str]) -> None:
        self._app = app
        self._password = password
        self._names = frozenset(name.lower() for name in names)
        self._sessions = LoginSessions()
        self._tries = Tries()
        self._checking = asyncio.Lock()
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        token = _token(headers.get("cookie", ""))
        host, origin = headers.get("host", ""), headers.get("origin")
        if not _is_known(host, self._names):
            await _refuse(scope, send, 421, "rail app --share --name NAME lets this name in")
        elif origin is not None and _place(origin) != host:
            await _refuse(scope, send, 403, "this comes from the page of another site")
        elif self._password is None or scope["path"] == _HEALTH:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._connect(token, scope, receive, send)
        elif scope["path"] == "/login" and scope["method"] == "POST":
            await self._log_in(self._password, scope, receive, send)
        elif scope["path"] == "/login.css":
            await _answer(send, 200, _LOOKS, _HEADERS | {"content-type": "text/css"})
        elif scope["path"] == "/logout":
            self._sessions.end(token)
            await _answer(send, 303, headers={"location": "/", "set-cookie": _cookie("", 0, scope)})
        elif self._sessions.holds(token):
            await self._app(scope, receive, send)
        elif scope["method"] == "GET":
            query = scope["query_string"].decode("latin-1")
            await _ask(send, 401, scope["path"] + (f"?{query}" if query else ""))
        else:
            await _refuse(scope, send, 401, "log in first")

    async def _connect(self, token: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a socket on for as long as its session lasts."""
        if not self._sessions.holds(token):
            await send({"type": "websocket.close", "code": 1008})
            return
        closed = False

        async def receive_while() -> Message:
            message = await receive()
            if not self._sessions.holds(token):
                return {"type": "websocket.disconnect", "code": 1008}
            return message

        async def send_while(message: Message) -> None:
            nonlocal closed
            if closed:
                return
            if not self._sessions.holds(token):
                closed, message = True, {"type": "websocket.close", "code": 1008}
            await send(message)

        await self._app(scope, receive_while, send_while)

    async def _log_in(
        self, password: PasswordFile, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Check a password, one at a time: each takes memory and a core."""
        if (body := await _body(receive)) is None:
            await _refuse(scope, send, 400, "this is not the form of the dashboard")
            return
        form = dict(parse_qsl(body))
        given, target = form.get("password", ""), form.get("next", "")
        address = (scope.get("client") or ("",))[0]
        wait_s = self._tries.wait_s(address) or int(self._waiting >= _MOST_WAITING)
        if wait_s:
            await _ask(send, 429, target, f"Too many tries. Wait {wait_s} s.", wait_s)
            return
        self._tries.wrong(address)  # until it is right, so that tries side by side count
        self._waiting += 1
        try:
            async with self._checking:
                right = await asyncio.to_thread(password.matches, given)
        finally:
            self._waiting -= 1
        if right:
            self._tries.right(address)
        else:
            await _ask(send, 401, target, "That is not the password.")
            return
        cookie = _cookie(self._sessions.begin(), SESSION_S, scope)
        await _answer(send, 303, headers={"location": _own_page(target), "set-cookie": cookie})


def _is_known(host: str, names: frozenset[str]) -> bool:
    """Check the name that a browser was given: an address, this machine's, or one of ``names``.

    A page of another site cannot lead a browser to an address by a name of its own.

    >>> names = frozenset({"desk.example"})
    >>> [_is_known(h, names) for h in ("10.0.0.5:8501", "[::1]:80", "DESK.example", "evil.example")]
    [True, True, True, False]
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return is_loopback(name) or name in names
    return True


def _place(origin: str) -> str | None:
    """Return the host and port of an origin, None for what is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _network(address: str) -> str:
    try:
        return str(ipaddress.IPv6Network((ipaddress.IPv6Address(address), 64), strict=False))
    except ValueError:
        return address


def _own_page(target: str) -> str:
    r"""Return a path of this dashboard, "/" for what leads elsewhere.

    >>> [_own_page(t) for t in ("/spreads?symbol=BTC", "//evil.example", "/\\evil", "x:y", "/\r\n")]
    ['/spreads?symbol=BTC', '/', '/', '/', '/']
    """
    printable = target.isascii() and target.isprintable() and "\\" not in target
    whole = target.startswith("/") and not target.startswith("//")
    return target if whole and printable else "/"


def _token(cookies: str) -> str | None:
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None


def _cookie(token: str, seconds: int, scope: Scope) -> str:
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    return f"{COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


async def _body(receive: Receive) -> str | None:
    """Return the body of a request, None for one that is too long or no text."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if message["type"] != "http.request" or len(body) > _MOST_BODY:
            return None
        if not message.get("more_body"):
            return body.decode("ascii", "replace")


async def _ask(send: Send, status: int, target: str, fault: str = "", wait_s: int = 0) -> None:
    """Answer with the form."""
    page = _PAGE.format(next=_own_page(target), fault=fault)
    more = {"retry-after": str(wait_s)} if wait_s else {}
    await _answer(send, status, page.encode(), _HEADERS | more)


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await _answer(send, status, why.encode(), _HEADERS | {"content-type": "text/plain"})


async def _answer(send: Send, status: int, body: bytes = b"", headers: Any = ()) -> None:
    named = {"content-length": str(len(body)), **dict(headers)}
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
