"""Serve another service over HTTP/1.1 on a free port of this machine."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from toolkit.service.market.source import Clock

API_KEY = "key-of-the-other-services"
"""The one key that is valid."""

HANGS_UP = object()


@dataclass(frozen=True, slots=True)
class Question:
    """A request: its path, its query, its headers with names in lower case, and its body."""

    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    method: str = "GET"
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a body (a JSON value, or bytes as they go out) and further headers.

    `HANGS_UP` as a body ends the connection without a word.
    """

    body: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Answering(Protocol):
    """A service behind the server."""

    @property
    def clock(self) -> Clock:
        """Return the clock of the header ``Date``."""

    def answer(self, question: Question) -> Answer:
        """Return the answer to a request, also where it is refused."""


@contextmanager
def serving(service: Answering, port: int = 0) -> Iterator[str]:
    """Serve for the length of a ``with`` block, which gets the base URL."""
    server = _Server(service, port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 128

    def __init__(self, service: Answering, port: int) -> None:
        self.service = service
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: a client may go away whenever it likes."""

    def hang_up(self) -> None:
        """End connections that clients keep, whose threads would wait for a further request."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        parameters = dict(parse_qsl(url.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        content = self.rfile.read(int(headers.get("content-length", 0)))
        question = Question(url.path, parameters, headers, self.command, content)
        answer = self.server.service.answer(question)
        body = answer.body
        if body is HANGS_UP:
            self.close_connection = True
            return
        if not isinstance(body, bytes):
            body = json.dumps(body, separators=(",", ":")).encode()
        self.send_response_only(answer.status)
        given = {"Content-Type": "application/json", "Date": self.date_time_string()}
        for name, value in {**given, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def date_time_string(self, timestamp: float | None = None) -> str:
        return (
            self.server.service.clock.http_date()
            if timestamp is None
            else super().date_time_string(timestamp)
        )

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """Write nothing to the terminal of the tests."""
