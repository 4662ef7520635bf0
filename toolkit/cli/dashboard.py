"""`rail app` and `rail open`: the dashboard over a store, and a page of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from importlib.util import find_spec
from threading import Thread
from typing import Annotated
from urllib.parse import urlencode

import typer

from toolkit.cli.options import Browser, Host, StorePath
from toolkit.cli.running_app import answers, noted, running_address
from toolkit.cli.show import console, errors
from toolkit.errors import InputError, MissingExtraError, RailError
from toolkit.market import EventLog, Family, Stream, Trajectory
from toolkit.store import Store, held_trajectory
from toolkit.workspace import store_path

_SIGNALS_THAT_END = (signal.SIGTERM, signal.SIGHUP)
_LOOK_S = 0.2
_GRACE_S = 5.0


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
    run_dashboard(Store(store_path(store)), host=host, port=port, browser=browser)


def open_command(
    key: Annotated[
        str,
        typer.Argument(help="A trajectory, or an event log: events/spread, splash or funding."),
    ],
    store: StorePath = None,
    port: Annotated[int, typer.Option("--port", help="Where a new page listens.")] = 8501,
    host: Host = "127.0.0.1",
    browser: Browser = True,
) -> None:
    """Open the page of a trajectory or an event log, and print its address.

    It opens in the dashboard of the `rail app` that runs over the store. Where none does, it starts
    one, which Ctrl-C ends.

    Example: rail open LTC_USDT:AURORA.spot:BOREAS.spot --no-browser
    """
    kept = Store(store_path(store))
    page = _page_of(kept, Stream.parse(key))
    address = running_address(kept.path)
    if address is None:
        check_dashboard()
        run_dashboard(kept, host=host, port=port, browser=browser, page=page)
        return
    typer.echo(f"{address}/{page}")
    if browser:
        webbrowser.open(f"{address}/{page}")


def _page_of(store: Store, stream: Stream) -> str:
    """Return the page that shows a stream, and what it is asked for."""
    if isinstance(stream, EventLog):
        return f"events?{urlencode({'family': stream.family.value})}"
    if not isinstance(stream, Trajectory):
        raise InputError("key", stream.key, "a trajectory or an event log")
    held = held_trajectory(store, stream)
    if held != stream:
        errors.print(f"{stream.key} is held as {held.key}: the page shows that")
    page = "funding" if held.family is Family.FUNDING else "trajectory"
    return f"{page}?{urlencode({'trajectory': held.key})}"


def check_dashboard() -> None:
    """Raise `MissingExtraError` where the packages of the dashboard are not installed."""
    if find_spec("streamlit") is None:
        raise MissingExtraError("dashboard", "streamlit")


def run_dashboard(store: Store, *, host: str, port: int, browser: bool, page: str = "") -> None:
    """Serve the dashboard until it is stopped. The store must be readable, the port free.

    ``page`` is the page that a browser opens, "" for the first one.
    """
    source = store.source
    with claim_port(host, port) as claimed:
        port = claimed.getsockname()[1]
    at = f"http://{host}:{port}" + (f"/{page}" if page else "")
    console.print(f"dashboard over {store.path} ({source.label}) at {at}, Ctrl-C ends")
    try:
        with (
            ended_by_signals(),
            dashboard(store, host=host, port=port, browser=browser, page=page) as process,
        ):
            code = process.wait()
    except KeyboardInterrupt:
        return
    check_ended(code)


def check_ended(code: int) -> None:
    """Raise `RailError` where the dashboard ended by itself, and not well."""
    if code:
        raise RailError(f"the dashboard ended with exit code {code}")


def claim_port(host: str, port: int, *, tries: int = 1) -> socket.socket:
    """Return a socket that keeps a port until it is closed: this one, or one of those after it.

    Raises `InputError` where none of so many is free.
    """
    reason = "ports are 0 to 65535"
    for number in range(port, min(port + tries, 65_536)) if port >= 0 else ():
        try:
            return socket.create_server((host, number))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
    allowed = "a free port" if tries == 1 else f"a free port, or one of {tries - 1} after it free"
    raise InputError("--port", port, allowed, advice=f"at {host}: {reason}") from None


@contextlib.contextmanager
def dashboard(
    store: Store,
    *,
    host: str,
    port: int,
    browser: bool,
    page: str = "",
    follows: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the dashboard for the length of a ``with`` block. The port must be free.

    ``page`` is the page that a browser opens, "" for the first one. With ``follows`` the pages
    follow the store until a reader switches that off. `rail open` finds it by a note beside the
    store.
    """
    argv = [sys.executable, "-m", "toolkit.dashboard", "--store", str(store.path.resolve())]
    argv += ["--host", host, "--port", str(port), *([] if browser and not page else ["--headless"])]
    argv += ["--follow"] if follows else []
    environment = {k: v for k, v in os.environ.items() if k != "RAIL_API_KEY"}
    came: list[int] = []  # a Ctrl-C while it is started would leave it without anybody to end it
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # Streamlit prints there that it stops; errors are on stderr
            process_group=0,  # Ctrl-C is for us: we end it
        )
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
    address = f"http://{host}:{port}"
    if browser and page:
        Thread(target=_open_when_it_answers, args=(process, address, page), daemon=True).start()
    try:
        if came:
            raise KeyboardInterrupt
        with noted(store.path, address):
            yield process
    finally:
        process.terminate()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:  # Streamlit forgets a signal that comes while it starts
            process.kill()
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


def _open_when_it_answers(process: subprocess.Popen[bytes], address: str, page: str) -> None:
    while process.poll() is None:
        if answers(address):
            webbrowser.open(f"{address}/{page}")
            return
        time.sleep(_LOOK_S)
