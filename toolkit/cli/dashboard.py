"""`rail app`: the dashboard over a store."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated

import typer

from toolkit.cli.options import Browser, Host, StorePath
from toolkit.cli.show import console
from toolkit.errors import InputError, MissingExtraError, RailError
from toolkit.store import Store
from toolkit.workspace import store_path

_SIGNALS_THAT_END = (signal.SIGTERM, signal.SIGHUP)


def app_command(
    store: StorePath = None,
    port: Annotated[int, typer.Option("--port", help="Where the page listens.")] = 8501,
    host: Host = "127.0.0.1",
    browser: Browser = True,
) -> None:
    """Open the dashboard over a store. Ctrl-C ends it.

    Example: rail app --port 8600 --no-browser
    """
    check_dashboard()
    held = Store(store_path(store))
    source = held.source
    with claim_port(host, port) as claimed:
        port = claimed.getsockname()[1]
    console.print(
        f"dashboard over {held.path} ({source.label}) at http://{host}:{port}, Ctrl-C ends"
    )
    with ended_by_signals(), dashboard(held, host=host, port=port, browser=browser) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            return
    check_ended(code)


def check_dashboard() -> None:
    """Raise `MissingExtraError` where the packages of the dashboard are not installed."""
    if find_spec("streamlit") is None:
        raise MissingExtraError("dashboard", "streamlit")


def check_ended(code: int) -> None:
    """Raise `RailError` where the dashboard ended by itself, and not well."""
    if code:
        raise RailError(f"the dashboard ended with exit code {code}")


def claim_port(host: str, port: int, *, tries: int = 1) -> socket.socket:
    """Return a socket that keeps a port until it is closed: this one, or one of those after it.

    Raises `InputError` where none of so many is free.
    """
    reason = ""
    for number in range(port, min(port + tries, 65_536)):
        try:
            return socket.create_server((host, number))
        except (OSError, OverflowError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
    allowed = "a free port" if tries == 1 else f"a free port, or one of {tries - 1} after it free"
    raise InputError("--port", port, allowed, advice=f"at {host}: {reason}") from None


@contextlib.contextmanager
def dashboard(
    store: Store, *, host: str, port: int, browser: bool, follows: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the dashboard for the length of a ``with`` block. The port must be free.

    With ``follows`` its pages follow the store until a reader switches that off.
    """
    argv = [sys.executable, "-m", "toolkit.dashboard", "--store", str(store.path.resolve())]
    argv += ["--host", host, "--port", str(port), *([] if browser else ["--headless"])]
    argv += ["--follow"] if follows else []
    environment = {k: v for k, v in os.environ.items() if k != "RAIL_API_KEY"}
    process = subprocess.Popen(  # noqa: S603 - our own command
        argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # Streamlit prints there that it stops; errors are on stderr
        process_group=0,  # Ctrl-C is for us: we end it, also while it starts
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the block as Ctrl-C does, so that it cleans up."""

    def ended(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    interrupt = signal.getsignal(signal.SIGINT)
    # SIGINT anew too: a library has set it so that a wait goes on after it.
    handlers = dict.fromkeys(_SIGNALS_THAT_END, ended) | {
        signal.SIGINT: interrupt if callable(interrupt) else signal.default_int_handler
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
