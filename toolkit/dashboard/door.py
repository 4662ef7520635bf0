"""The login before a shared dashboard, as an ASGI middleware around all of Streamlit.

It covers pages, files and the data's socket.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.foreign import Html
from toolkit.wire.address import is_loopback
from toolkit.workspace.login import PasswordFile

COOKIE = "rail_session"
SESSION_S = 12 * 3_600
"""The life of a login (s), which also ends with the dashboard."""

TRIES, TRIES_S = 5, 60
"""Wrong passwords allowed per address, and in how many seconds."""

_HEALTH = "/_stcore/health"
_MOST_ADDRESSES, _MOST_WAITING = 10_000, 4
_MOST_BODY = 8_192
_LOOKS = Path(__file__).with_name("door.css").read_bytes()
_PAGE = Html(
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/login.css">'
    "</head><body><main><h1>machine-rail toolkit</h1>{form}</main></body></html>"
)
_LOGIN = Html(
    '<form method="post" action="/login"><input type="hidden" name="next" value="{next}">'
    '<label for="password">Password</label><input id="password" name="password" type="password" '
    'autocomplete="current-password" required autofocus><button>Log in</button>'
    '<p role="alert">{fault}</p></form>'
)
_LOGOUT = Html(
    '<form method="post" action="/logout"><input type="hidden" name="token" value="{token}">'
    "<button>Log out</button></form>"
)
_OF_ALL = {
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "content-security-policy": "default-src 'self'; script-src 'self' 'unsafe-inline' "
    "'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; worker-src 'self' blob:; media-src 'self' data: blob:; "
    "frame-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'self'",
}
"""Headers of every answer. Streamlit's scripts are inline and evaluate code of charts."""

_OWN = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-frame-options": "DENY",
}
"""Headers of the door's own answers."""


class Tries:
    """Recent wrong passwords per address. An IPv6 network (/64) counts as one address."""

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
        """Return how long the address must wait (s), 0 if it may try."""
        lately = self._lately(_network(address))
        return 0 if len(lately) < TRIES else int(lately[0] + TRIES_S - self._clock()) or 1

    def _lately(self, name: str) -> list[float]:
        since = self._clock() - TRIES_S
        return [at for at in self._at.get(name, ()) if at > since]


class Door:
    """The middleware. ``names`` are the host names of the dashboard, such as a proxy's.

    With ``password`` only the health check passes without a session. Without one it only refuses
    unknown names, and pages ask for the login. Sessions are cookies signed with a key of this run.
    ``clock`` returns Unix seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        password: PasswordFile | None,
        names: Iterable[str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._password = password
        self._names = frozenset(name.lower() for name in names)
        self._clock = clock
        self._ended: dict[str, float] = {}
        self._tries = Tries()
        self._checking = asyncio.Lock()
        self._waiting = 0
        key = secrets.token_urlsafe(32)
        self._plain, self._tls = (
            SessionMiddleware(self._enter, key, COOKIE, SESSION_S, https_only=tls)
            for tls in (False, True)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        app = self._tls if scope.get("scheme") in ("https", "wss") else self._plain
        await (self._app if scope["type"] == "lifespan" else app)(scope, receive, send)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
        except ClientDisconnect:
            return
        if scope["type"] == "websocket":
            if answer is None:
                await self._connect(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _OF_ALL.items():
                    headers.setdefault(name, value)
            await send(message)

        passed = dict(scope) if answer is None else scope  # Streamlit has sessions of its own
        await (answer or self._app)(passed, receive, guarded)

    def _holds(self, session: Mapping[str, Any]) -> bool:
        """Return whether a session is valid. A socket may outlast its cookie."""
        return session.get("ends", 0.0) > self._clock() and session["token"] not in self._ended

    async def _answer(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the door's own answer to a request, None to let it pass."""
        asked, path, method = HTTPConnection(scope), scope["path"], scope.get("method")
        host, origin = asked.headers.get("host", ""), asked.headers.get("origin")
        if not _is_known(host, self._names):
            return _refused(421, "rail app --share --name NAME lets this name in")
        if origin is not None and _place(origin) != host:
            return _refused(403, "this comes from the page of another site")
        if self._password is None or path == _HEALTH:
            return None
        if method and path in ("/login", "/login.css", "/logout"):
            return await self._own(self._password, Request(scope, receive))
        if self._holds(asked.session):
            return None
        query = scope["query_string"].decode("latin-1")
        target = path + (f"?{query}" if query else "")
        return _ask(401, target) if method == "GET" else _refused(401, "log in first")

    async def _own(self, password: PasswordFile, asked: Request) -> Response:
        """Answer a request to the door's own paths."""
        path, held = asked.url.path, self._holds(asked.session)
        if path == "/login.css":
            return Response(_LOOKS, media_type="text/css", headers=_OWN)
        if path == "/login" and asked.method == "POST":
            return await self._log_in(password, asked, await _form(asked))
        if path == "/logout" and held and asked.method == "POST":
            return self._log_out(asked.session, (await _form(asked)).get("token", ""))
        if path == "/logout" and held:
            return _page(200, "Log out", _LOGOUT.format(token=asked.session["token"]))
        return _ask(401, "/")

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a socket on while its session lasts."""
        closed, session = False, scope["session"]

        def ended() -> bool:
            return self._password is not None and not self._holds(session)

        async def receive_while() -> Message:
            message = await receive()
            return {"type": "websocket.disconnect", "code": 1008} if ended() else message

        async def send_while(message: Message) -> None:
            nonlocal closed
            if not closed:
                closed = ended()
                await send({"type": "websocket.close", "code": 1008} if closed else message)

        await self._app(dict(scope), receive_while, send_while)

    async def _log_in(
        self, password: PasswordFile, asked: Request, form: dict[str, str]
    ) -> Response:
        """Check passwords one at a time, as each takes memory and a core."""
        target, address = form.get("next", ""), asked.client.host if asked.client else ""
        wait_s = self._tries.wait_s(address) or int(self._waiting >= _MOST_WAITING)
        if wait_s:
            return _ask(429, target, f"Too many tries. Wait {wait_s} s.", wait_s)
        self._tries.wrong(address)  # until it is right, so that tries side by side count
        self._waiting += 1
        try:
            async with self._checking:
                right = await asyncio.to_thread(password.matches, form.get("password", ""))
        finally:
            self._waiting -= 1
        if not right:
            return _ask(401, target, "That is not the password.")
        self._tries.right(address)
        asked.session.clear()  # nothing of before the login is kept
        asked.session.update(token=secrets.token_urlsafe(32), ends=self._clock() + SESSION_S)
        return RedirectResponse(_own_page(target), 303, headers=_OWN)

    def _log_out(self, session: dict[str, Any], token: str) -> Response:
        """End a session, given the token of its own form."""
        if not secrets.compare_digest(token.encode(), session["token"].encode()):
            return _refused(403, "this does not come from the dashboard")
        now = self._clock()
        self._ended = {each: ends for each, ends in self._ended.items() if ends > now}
        self._ended[session["token"]] = session["ends"]
        session.clear()
        return RedirectResponse("/", 303, headers=_OWN)


def _is_known(host: str, names: frozenset[str]) -> bool:
    """Return whether a host is an IP address, a name of this machine, or one of ``names``.

    Other names are refused against DNS rebinding.
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
    """Return the host and port of an origin, None for a malformed one."""
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
    r"""Return a path of this dashboard, "/" for a target elsewhere."""
    printable = target.isascii() and target.isprintable() and "\\" not in target
    whole = target.startswith("/") and not target.startswith("//")
    return target if whole and printable else "/"


async def _form(request: Request) -> dict[str, str]:
    """Return the form of a request, an empty one if it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BODY:
            return {}
    return dict(parse_qsl(body.decode("ascii", "replace")))


def _ask(status: int, target: str, fault: str = "", wait_s: int = 0) -> Response:
    answer = _page(status, "Log in", _LOGIN.format(next=_own_page(target), fault=fault))
    if wait_s:
        answer.headers["retry-after"] = str(wait_s)
    return answer


def _page(status: int, title: str, form: Html) -> Response:
    return HTMLResponse(_PAGE.format(title=title, form=form), status, headers=_OWN)


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(why, status, headers=_OWN)
