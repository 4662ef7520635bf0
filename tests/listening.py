"""Servers that tests write themselves: a handler, a thread that answers, and a port for others."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer

from websockets.sync.server import Server


class Handler(BaseHTTPRequestHandler):
    """Answers and prints nothing."""

    def reply(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer. Its headers are these and the length of the body."""
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at what arrived instead."""


@contextmanager
def listening(server: BaseServer | Server | type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address at which a server, or one made of a handler, answers until the block ends."""
    if isinstance(server, type):
        server = ThreadingHTTPServer(("127.0.0.1", 0), server)
    every_s = (0.01,) if isinstance(server, BaseServer) else ()
    with server:
        thread = threading.Thread(target=server.serve_forever, args=every_s)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


def free_port() -> int:
    """One below those that the kernel gives to outgoing connections: it stays free in between."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", random.SystemRandom().randint(20_000, 32_000)))
            except OSError:
                continue
            return int(probe.getsockname()[1])
