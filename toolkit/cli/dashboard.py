"""`rail app`: the dashboard over a store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from toolkit.cli.exit_codes import ExitCode
from toolkit.cli.options import Browser, Host, StorePath
from toolkit.cli.show import console
from toolkit.errors import InputError, MissingExtraError, RailError
from toolkit.store import Store
from toolkit.workspace import store_path


def app_command(
    store: StorePath = None,
    port: Annotated[int, typer.Option("--port", help="Where the page listens.")] = 8501,
    host: Host = "127.0.0.1",
    browser: Browser = True,
) -> None:
    """Open the dashboard over a store. Ctrl-C ends it.

    Example: rail app --store rail.duckdb --port 8600 --no-browser
    """
    check_dashboard()
    run_dashboard(Store(store_path(store)), host=host, port=port, browser=browser)


def check_dashboard() -> None:
    """Raise `MissingExtraError` where the packages of the dashboard are not installed."""
    if find_spec("streamlit") is None:
        raise MissingExtraError("dashboard", "streamlit")


def run_dashboard(store: Store, *, host: str, port: int, browser: bool) -> None:
    """Serve the dashboard until it is stopped. The store must be readable, the port free."""
    source = store.source
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError("--port", port, "a free port", advice=f"at {host}: {reason}") from None
    console.print(
        f"dashboard over {store.path} ({source.label}) at http://{host}:{port}, Ctrl-C ends"
    )
    argv = [sys.executable, "-m", "toolkit.dashboard", "--store", str(store.path.resolve())]
    argv += ["--host", host, "--port", str(port), *([] if browser else ["--headless"])]
    environment = {k: v for k, v in os.environ.items() if k != "RAIL_API_KEY"}
    process = subprocess.Popen(argv, env=environment)  # noqa: S603 - our own command
    ends = {
        signal.SIGTERM: lambda *_: sys.exit(ExitCode.ENDED),
        signal.SIGINT: signal.default_int_handler,
    }
    # SIGINT anew too: a library has set it so that a wait goes on after it.
    before = {number: signal.signal(number, handler) for number, handler in ends.items()}
    try:
        code = process.wait()
    except KeyboardInterrupt:
        return
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        process.terminate()
        process.wait()
    if code:
        raise RailError(f"the dashboard ended with exit code {code}")
