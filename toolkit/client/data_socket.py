"""A client that asks histories and event logs over the data socket, and the rest over HTTP."""

from __future__ import annotations

import contextlib
import math
import time
import weakref
from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Unpack

from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection

from toolkit.client.contact import ContactOptions
from toolkit.client.http import Client
from toolkit.client.stream import discreet_logger, refused_upgrade, socket_to
from toolkit.client.transport import check_open
from toolkit.ending import outside
from toolkit.errors import ServiceError
from toolkit.wire.exchange import Answer, Failure, Request
from toolkit.wire.rows.body import Body
from toolkit.wire.secrets import Secret
from toolkit.wire.socket_steps import action_of, answer_of


class SocketClient(Client):
    """A machine-rail service whose pages are asked by the history actions of its data socket.

    A load by it gives the rows and the ledger of a `toolkit.client.Client`. Schemas, symbols,
    snapshots and what a profile pages by headers are asked over HTTP. Each thread that waits has a
    connection of its own, and free ones are used again. A lost connection is a failed request. The
    sockets begin at the Builder plan.

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

    def _send(self, request: Request) -> Answer | Failure:
        profile = self._profile or self.assumed
        identity = next(self._ids)
        message = action_of(profile, request, identity)
        if message is None:
            return super()._send(request)
        check_open(self._http)
        for wait_s in self._waits():
            with outside():
                self._sleep(wait_s)
        self._count(request)
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
        """Yield a connection of one's own, which is kept only where the block ends well."""
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
