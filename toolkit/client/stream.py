"""WebSockets: streams by the steps of `toolkit.wire.socket_steps`, and a client of the data socket.

Stars replace the key in the library's logs, which show headers.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Unpack

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, reconnect

from toolkit.client.contact import Contact, ContactOptions
from toolkit.client.http import Client
from toolkit.client.transport import tls
from toolkit.ending import outside
from toolkit.errors import ServiceError
from toolkit.market import EventFamily, Trajectory
from toolkit.wire.exchange import Failure, Request, Response, Wait
from toolkit.wire.rows.body import Body
from toolkit.wire.secrets import Secret
from toolkit.wire.socket_steps import (
    Listen,
    Loss,
    Open,
    Ping,
    ReconnectPolicy,
    Renew,
    Say,
    StreamItem,
    StreamStep,
    action_of,
    answer_of,
    is_fatal,
    lasting,
    subscription,
)

_TOO_BIG = 1009
_CLOSE_S = 1
_LOOK_S = 0.2  # how often a stream that waits looks whether it is to stop


def stream(
    client: Client,
    of: EventFamily | Sequence[Trajectory],
    *,
    policy: ReconnectPolicy | None = None,
    stop: threading.Event | None = None,
    admitted: Callable[[], object] | None = None,
) -> Iterator[StreamItem]:
    """Yield what a stream delivers: `Joined`, `Received`, `Interrupted`, `Joined` ...

    A message is an event document, or for trajectories one for
    `toolkit.wire.socket_steps.read_market_message`: a subscription's id is the place in ``of``. A
    lost connection is reopened by ``policy``; what happened meanwhile is NOT loaded, as
    `toolkit.loader.follow` does. Ends soon after ``stop`` is set. A redirect is a refusal.
    ``admitted`` is called whenever a connection opens, before anything is received; a passing error
    in it closes the connection.

    Raises `KeyRefusedError`, `PlanRefusedError` and others if trying again is useless.

    >>> from toolkit.service import Config, Simulated, SpedClock, running
    >>> from toolkit.wire.socket_steps import Received
    >>> clock = SpedClock(start=1_795_046_400, speed=600.0)
    >>> with running(Config(Simulated(7), port=0, clock=clock)) as service:
    ...     with Client(service.base_url, "demo-pro") as client:
    ...         said = stream(client, EventFamily.SPREAD)
    ...         next(item.body[:23] for item in said if isinstance(item, Received))
    b'{"schema":"svc.spread.v'
    """
    driver = _Driver(client, stop or threading.Event(), admitted)
    profile = client.profile()
    path, greetings = profile.streams.market, list[bytes]()
    if isinstance(of, EventFamily):
        path = profile.streams.events[of]
    else:
        greetings = [
            subscription(profile.streams, profile.histories[each.family], each, number)
            for number, each in enumerate(of)
        ]
    policy = policy or ReconnectPolicy(longest_asked_s=client.limits.asked_wait_s)
    flow = lasting(path, greetings, policy, time.monotonic)
    with contextlib.closing(flow), contextlib.closing(driver):
        outcome: Loss | bytes | None = None
        while not driver.stop.is_set():
            step = flow.send(outcome)
            outcome = None
            if isinstance(step, StreamStep):
                outcome = driver.carry_out(step)
            else:
                yield step


class _Straight(reconnect):
    """A connection without redirects: another place may be another source."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


def socket_to(contact: Contact, path: str, largest: int, logger: logging.Logger) -> reconnect:
    """Make a socket to a path, of messages up to ``largest`` bytes, for ``with``."""
    return _Straight(
        f"ws{contact.base_url.removeprefix('http')}{path}",
        additional_headers=contact.key_header,
        proxy=contact.proxy,
        ssl=tls() if contact.base_url.startswith("https:") else None,
        max_size=largest,
        max_queue=contact.limits.socket_messages,
        open_timeout=contact.limits.connect_s,
        ping_interval=None,  # the stream pings; the library's own logs a traceback
        close_timeout=_CLOSE_S,
        logger=logger,
    )


def refused_upgrade(contact: Contact, error: InvalidStatus, path: str) -> Response:
    """Return the answer of a refused socket, without the key."""
    said = error.response
    headers, body = said.headers.raw_items(), bytes(said.body or b"")
    return contact.answer(said.status_code, headers, body, contact.base_url + path)


class _Driver:
    """The socket of one stream, reopened as needed."""

    def __init__(
        self, client: Client, stop: threading.Event, admitted: Callable[[], object] | None
    ) -> None:
        self.stop = stop
        self._client = client
        self._admitted = admitted
        self._logger = discreet_logger(client.without_key)
        self._socket: ClientConnection | None = None
        self._closing = contextlib.ExitStack()
        self._before = contextlib.ExitStack()
        self._left: deque[bytes] = deque()

    def close(self) -> None:
        """Let go of the socket."""
        self._socket = None
        self._left.clear()
        self._before.close()
        self._closing.close()

    def carry_out(self, step: StreamStep) -> Loss | bytes | None:
        """Take a step, and return its outcome."""
        match step:
            case Open(path):
                self.close()
                return self._open(path)
            case Say(message):
                return self._carefully(lambda socket: socket.send(message.decode()))
            case Listen(seconds):
                return self._listen(seconds)
            case Ping(seconds):
                return self._ping(seconds)
            case Renew(path):
                return self._renew(path)
            case Wait(seconds):
                self.close()
                self.stop.wait(seconds)
                return None

    def _open(self, path: str) -> Loss | None:
        url = self._client.base_url + path
        try:
            self._socket = self._closing.enter_context(
                socket_to(self._client, path, self._client.limits.message_bytes, self._logger)
            )
            if self._admitted:
                self._admitted()
        except InvalidStatus as error:
            answer = refused_upgrade(self._client, error, path)
            return Loss(f"refused with {answer.status}", url, answer=answer)
        except (OSError, WebSocketException) as error:
            return Loss(self._client.without_key(f"{type(error).__name__}: {error}"), url)
        except ServiceError as error:
            if error.status is not None and is_fatal(
                Loss("", answer=Response(error.status, {}, b""))
            ):
                raise
            return Loss(str(error), url)
        return None

    def _ping(self, seconds: float) -> Loss | None:
        """Wait for a ping's answer, or a message, many of which may precede it."""
        answers: list[threading.Event] = []
        if isinstance(loss := self._carefully(lambda s: answers.append(s.ping())), Loss):
            return loss
        until = time.monotonic() + seconds
        while not self.stop.is_set() and not answers[0].is_set():
            came = self._carefully(lambda socket: socket.recv(_LOOK_S, decode=False))
            if isinstance(came, Loss):
                return came
            if came is not None:
                self._left.append(came)
                return None
            if time.monotonic() >= until:
                return Loss("a ping was not answered")
        return None

    def _renew(self, path: str) -> Loss | None:
        """Open another socket, and keep the previous one until that is listened to."""
        before, closing = self._socket, self._closing
        self._closing = contextlib.ExitStack()
        if loss := self._open(path):
            self._closing.close()
            self._socket, self._closing = before, closing
            return loss
        if before is not None:
            self._before.callback(lambda: self._left.extend(_waiting(before)))
        self._before.callback(closing.close)  # before it is read to its end: last in, first out
        return None

    def _listen(self, seconds: float) -> Loss | bytes | None:
        self._before.close()
        if self._left:
            return self._client.struck(self._left.popleft())
        until = time.monotonic() + seconds
        while not self.stop.is_set():
            left_s = until - time.monotonic()
            outcome = self._carefully(
                lambda socket: socket.recv(max(0.0, min(left_s, _LOOK_S)), decode=False)  # noqa: B023 - called at once
            )
            if isinstance(outcome, bytes):
                return self._client.struck(outcome)
            if outcome is not None or left_s <= _LOOK_S:
                return outcome
        return None

    def _carefully(self, use: Callable[[ClientConnection], bytes | None]) -> Loss | bytes | None:
        """Use the socket. Return None on a time-out, the loss on a close."""
        if self._socket is None:
            return Loss("no connection")
        try:
            return use(self._socket)
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            if error.sent and error.sent.code == _TOO_BIG and not error.rcvd_then_sent:
                most = f"{self._client.limits.message_bytes:,} bytes"
                why = f"a message came that is larger than {most}; message_bytes of the limits"
                return Loss(f"{why} allows more", self._client.base_url)
            code = error.rcvd.code if error.rcvd else None
            why = f"closed with {code}" if code else "the connection broke"
            reason = self._client.without_key(error.rcvd.reason) if error.rcvd else ""
            return Loss(f"{why}: {reason}" if reason else why, self._client.base_url, code=code)


def _waiting(socket: ClientConnection) -> Iterator[bytes]:
    with contextlib.suppress(TimeoutError, ConnectionClosed):
        while True:
            yield socket.recv(0, decode=False)


def discreet_logger(hide: Callable[[str], str]) -> logging.Logger:
    """Return a logger below the library's that hides the key."""

    def without_key(record: logging.LogRecord) -> bool:
        record.msg, record.args = hide(record.getMessage()), ()
        return True

    logger = logging.Logger("websockets.client")  # noqa: LOG001 - one a stream, each hides its key
    logger.parent = logging.getLogger("websockets.client")
    logger.addFilter(without_key)
    return logger


def upgrade(client: Client, path: str) -> Response | Failure:
    """Request a WebSocket at a path. Status 101: it opens, and is closed at once.

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


class SocketClient(Client):
    """A `toolkit.client.Client` whose pages come by the history actions of the data socket.

    A load gives the same rows and ledger. Schemas, symbols, snapshots and pages by headers come
    over HTTP. Each waiting thread has its own connection; free ones are reused. A lost connection
    is a failed request. The sockets begin at the Builder plan.

    >>> from toolkit.service import Clock, Config, Simulated, running
    >>> config = Config(Simulated(7), port=0, clock=Clock(fixed_at=1_795_046_400))
    >>> with running(config) as service:
    ...     with SocketClient(service.base_url, "demo-pro") as client:
    ...         client.history("BTC_USDT:AURORA.spot", "1h").height
    60
    """

    def __init__(
        self, base_url: str, api_key: str | Secret, **options: Unpack[ContactOptions]
    ) -> None:
        api_key = Secret(api_key)
        super().__init__(base_url, api_key, **options)
        self._ids = count(1)
        self._logger = discreet_logger(self.without_key)
        self._free = deque[tuple[ClientConnection, contextlib.ExitStack]]()
        self._end = weakref.finalize(self, _closed, self._free)
        self._end.atexit = False

    def close(self) -> None:
        """Close the connections."""
        super().close()
        _closed(self._free)

    def _send(self, request: Request) -> Response | Failure:
        profile = self._profile or self.assumed
        identity = next(self._ids)
        message = action_of(profile, request, identity)
        if message is None:
            return super()._send(request)
        self._begin(request)
        until = time.monotonic() + self.limits.answer_s
        try:
            with outside(), self._connection(profile.streams.market) as socket:
                socket.send(message.decode())
                while True:
                    body = socket.recv(max(0.0, until - time.monotonic()), decode=False)
                    if found := answer_of(profile.streams, body, identity):
                        break
            Body({}, self.limits).inflated(body)
        except InvalidStatus as error:
            self._unanswered()
            return refused_upgrade(self, error, profile.streams.market)
        except TimeoutError:
            return self._late(request)
        except (OSError, WebSocketException, ServiceError) as error:
            return self._failed(request, error)
        status, asked_s = found
        headers = [] if asked_s is None else [("Retry-After", f"{math.ceil(asked_s)}")]
        return self._answered(request, status, headers, body)

    @contextlib.contextmanager
    def _connection(self, path: str) -> Iterator[ClientConnection]:
        """Yield a connection of one's own, kept only if the block ends well."""
        try:
            socket, closing = self._free.pop()
        except IndexError:
            socket, closing = None, contextlib.ExitStack()
        with contextlib.ExitStack() as unless_well:
            unless_well.callback(closing.close)
            if socket is None or socket.close_code is not None:
                closing.close()
                opening = socket_to(self, path, self.limits.body_bytes, self._logger)
                try:
                    socket = closing.enter_context(opening)
                except TimeoutError:
                    raise ConnectionError("the socket was not open in time") from None
            yield socket
            unless_well.pop_all()
        self._free.append((socket, closing))
        if self._http.is_closed:
            _closed(self._free)


def _closed(free: deque[tuple[ClientConnection, contextlib.ExitStack]]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            free.pop()[1].close()
