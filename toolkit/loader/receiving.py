"""Runs the webhook receiver by itself, until a signal ends it."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from toolkit.errors import InputError
from toolkit.loader.webhooks import Receipts, WebhookApp

__all__ = ["receive"]

_GRACE_S = 15  # for deliveries under way; a sender waits no longer
_BACKLOG = 2048


def receive(
    app: WebhookApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str], object],
    on_progress: Callable[[Receipts], object] | None = None,
    progress_every_s: int = 10,
) -> Receipts:
    """Receive until SIGINT or SIGTERM. What is under way then is stored and answered first.

    ``ready`` is called once with the address, when it accepts. ``on_progress`` with the counts so
    far every ``progress_every_s`` seconds. Returns the counts. A port that is taken and a host
    that is not this machine's are an `InputError`.

    Examples
    --------
    >>> import os, tempfile
    >>> from toolkit.loader.webhooks import webhook_app
    >>> from toolkit.market import Source
    >>> from toolkit.store import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/rail.duckdb")
    ...     store.bind(Source("replay", "example"))
    ...     app = webhook_app(store, secrets=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    ...     print(receive(app, ready=lambda address: os.kill(os.getpid(), signal.SIGTERM)))
    0 stored (0 new events), 0 repeated, 0 refused
    """
    with _bound(host, port) as listener:
        at, number = listener.getsockname()[:2]
        address = f"http://[{at}]:{number}/" if ":" in at else f"http://{at}:{number}/"

        async def tell() -> None:
            if on_progress is not None:
                on_progress(app.receipts)

        settings = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            callback_notify=tell,
            timeout_notify=progress_every_s,
            timeout_graceful_shutdown=_GRACE_S,
        )
        _Server(settings, lambda: ready(address)).run(sockets=[listener])
    return app.receipts


class _Server(uvicorn.Server):
    """Uvicorn that says when it accepts, and that returns after a signal."""

    def __init__(self, config: uvicorn.Config, accepting: Callable[[], object]) -> None:
        super().__init__(config)
        self._accepting = accepting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._accepting()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, without raising them again as uvicorn does."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise InputError("port", port, "0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.socket(family, kind, protocol)
    except socket.gaierror as error:
        raise InputError("host", host, "a name or address of this machine") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError("host", host, "a name or address of this machine") from error
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            "port", port, "a free port", advice=f"at {host}: {reason}; choose another"
        ) from error
    return listener
