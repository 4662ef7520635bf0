"""`rail app` and `rail open`: the dashboard over a store, or one of its pages."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import typer

from toolkit.cli.options import DashboardPort, asks
from toolkit.cli.show import console, errors
from toolkit.errors import InputError, MissingExtraError, RailError
from toolkit.interrupts import one_interrupt
from toolkit.market import EventLog, Family, SnapshotTrajectory, Stream, Trajectory
from toolkit.store import Store, check_known, held_trajectory
from toolkit.wire.address import is_loopback
from toolkit.workspace import named_store
from toolkit.workspace.login import PasswordFile, ProviderLogin, find_login
from toolkit.workspace.pairs import HeldPairs, Joining

_NOTE = re.compile(r"(?P<pid>\d+) (?P<address>http://[^\s/]+:\d{1,5})\n")
_HEALTH_S = 2.0


def note_path(store: Path) -> Path:
    """Return the path of the note: the file beside a store that names its dashboard.

    >>> note_path(Path("data/rail.duckdb"))
    PosixPath('data/.rail.duckdb.app')
    """
    return store.with_name(f".{store.name}.app")


@contextlib.contextmanager
def noted(store: Path, address: str) -> Iterator[None]:
    """Write a note for the length of a ``with`` block, if the folder lets us.

    Of two dashboards over one store it names the one that began last.
    """
    path, text = note_path(store), f"{os.getpid()} {address}\n"
    with contextlib.suppress(OSError):
        path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text(encoding="utf-8") == text:
                path.unlink()


def running_address(store: Path) -> str | None:
    """Return the address of the dashboard over a store, None if none runs.

    A note counts while its process lives and a dashboard answers at its address.
    """
    try:
        note = _NOTE.fullmatch(note_path(store).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    if note is None or not _lives(int(note["pid"])) or not answers(note["address"]):
        return None
    return note["address"]


def answers(address: str) -> bool:
    """Return whether a dashboard answers at an address, without a proxy."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    connection = HTTPConnection(host.strip("[]"), int(port), timeout=_HEALTH_S)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().read(2) == b"ok"
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _lives(pid: int) -> bool:
    if os.name != "posix":
        return True  # there a signal that only looks would end the process
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


_SIGNALS_THAT_END = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
_LOOK_S = 0.2
_GRACE_S = 5.0
_PORTS = 20
_HERE, _ALL = "127.0.0.1", "0.0.0.0"  # noqa: S104 - what --share is for
_TLS = (
    "warning: http is read on the way: put TLS in front, as by `caddy reverse-proxy --from {name} "
    "--to 127.0.0.1:{port}` with --host 127.0.0.1 --name {name} --proxy 127.0.0.1; "
    "docs/sharing.md has more"
)


@asks(
    host="The address to listen on. Default: 127.0.0.1, with --share 0.0.0.0.",
    set_password="Ask for the password of --share, store its hash, then exit.",  # noqa: S106 - a help
)
def app_command(
    store: Path | None = None,
    port: DashboardPort = 8501,
    host: str | None = None,
    browser: bool = True,
    share: bool = False,
    name: list[str] | None = None,
    proxy: list[str] | None = None,
    set_password: bool = False,
) -> None:
    """Open the dashboard over a store. Ctrl-C ends it.

    Only this machine can reach it. With --share others can, after a login with a password or at an
    OpenID Connect provider. --store archive shows published data.

    Example: rail app --port 8600 --no-browser
    """
    if set_password:
        kept = PasswordFile.of_user()
        kept.write(_asked_password())
        typer.echo(f"the hash of the password is in {kept.path}; it is in force from now on")
        return
    check_dashboard()
    names, proxies = name or [], proxy or []
    if share:
        names = _checked_share(names, proxies)
    else:
        for option, given in (("--name", names), ("--proxy", proxies)):
            if given:
                raise InputError(option, given[0], "one with --share")
        _check_loopback(host or _HERE)
    at, shown = host or (_ALL if share else _HERE), named_store(store)
    run_dashboard(shown, host=at, port=port, browser=browser, names=names, proxies=proxies)


def _asked_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    asked: str = typer.prompt("password", hide_input=True, confirmation_prompt=True)
    return asked


def _check_loopback(host: str) -> None:
    if not is_loopback(host.strip("[]")):
        allowed = "an address of this machine alone"
        raise InputError("--host", host, allowed, advice="or add --share")


def _checked_share(names: Sequence[str], proxies: Sequence[str]) -> list[str]:
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9.-]+", name):
            raise InputError("--name", name, "a host name, such as desk.example.com")
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            raise InputError("--proxy", proxy, "an address or a network in numbers") from None
    if isinstance(find_login(), ProviderLogin) and find_spec("authlib") is None:
        raise MissingExtraError("login", "authlib")
    return [*names, socket.gethostname(), socket.getfqdn()]


@asks(
    stream=typer.Argument(
        help="A trajectory, two prices in the store (pair/BUY/SELL), or an event log: "
        "events/spread, splash or funding."
    )
)
def open_command(
    stream: str,
    store: Path | None = None,
    port: DashboardPort = 8501,
    host: str = _HERE,
    browser: bool = True,
) -> None:
    """Open the page of a trajectory or an event log, and print its address.

    The page opens in the dashboard that `rail app` runs over the store. If none runs, this command
    runs one until Ctrl-C.

    Example: rail open LTC_USDT:AURORA.spot:BOREAS.spot --no-browser
    """
    kept = named_store(store)
    page = _page_of(kept, stream)
    address = running_address(kept.path)
    if address is None:
        check_dashboard()
        _check_loopback(host)
        run_dashboard(kept, host=host, port=port, browser=browser, page=page)
        return
    typer.echo(f"{address}/{page}")
    if browser:
        webbrowser.open(f"{address}/{page}")


def _page_of(store: Store, key: str) -> str:
    if key.startswith("pair/"):
        (pair,) = HeldPairs.of(store, key, Joining()).pairs
        return f"trajectory?{urlencode({'trajectory': pair.key})}"
    stream = Stream.parse(key)
    if isinstance(stream, EventLog):
        return f"events?{urlencode({'family': stream.family.value})}"
    if isinstance(stream, SnapshotTrajectory):
        check_known(store, stream)
        return f"trajectory?{urlencode({'trajectory': stream.key})}"
    if not isinstance(stream, Trajectory):
        raise InputError("stream", stream.key, "a trajectory or an event log")
    held = held_trajectory(store, stream)
    if held != stream:
        errors.print(f"{stream.key} is held as {held.key}: the page shows that")
    page = "funding" if held.family is Family.FUNDING else "trajectory"
    return f"{page}?{urlencode({'trajectory': held.key})}"


def check_dashboard() -> None:
    """Raise `MissingExtraError` unless the packages of the dashboard are installed."""
    if find_spec("streamlit") is None:
        raise MissingExtraError("dashboard", "streamlit")


def run_dashboard(
    store: Store,
    *,
    host: str,
    port: int,
    browser: bool,
    page: str = "",
    names: Sequence[str] = (),
    proxies: Sequence[str] = (),
) -> None:
    """Serve the dashboard as `dashboard` does, until it is stopped.

    It listens at the port or the next free one, see `claim_port`. The store must be readable.
    """
    source = store.source
    with claim_port(host, port) as claimed:
        port = claimed.getsockname()[1]
    at = f"http://{host}:{port}" + (f"/{page}" if page else "")
    if names:
        errors.print(_TLS.format(port=port, name=names[0]))
    on: dict[str, Any] = {"port": port, "browser": browser and not names, "page": page}
    try:
        with ended_by_signals():
            shown = store.published or store.path
            console.print(f"dashboard over {shown} ({source.label}) at {at}, Ctrl-C ends")
            with dashboard(store, host=host, names=names, proxies=proxies, **on) as process:
                code = process.wait()
    except KeyboardInterrupt:
        return
    check_ended(code)


def check_ended(code: int) -> None:
    """Raise `RailError` unless the dashboard's exit code is 0."""
    if code:
        raise RailError(f"the dashboard ended with exit code {code}")


def claim_port(host: str, port: int) -> socket.socket:
    """Return a socket that keeps this port, or the next free one, until it is closed.

    Raises `InputError` if none of 20 is free.
    """
    reason = "ports are 0 to 65535"
    for number in range(port, min(port + _PORTS, 65_536)) if port >= 0 else ():
        try:
            return socket.create_server((host, number))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
    allowed = f"a free port, or one of the {_PORTS - 1} after it free"
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
    names: Sequence[str] = (),
    proxies: Sequence[str] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the dashboard for the length of a ``with`` block. The port must be free.

    A browser opens ``page``, "" for the first one. With ``follows`` pages look for new rows every 5
    s by default. With ``names`` others reach it after a login, also behind ``proxies``. `rail open`
    finds it by a note beside the store.
    """
    argv = [sys.executable, "-m", "toolkit.dashboard", "--store", str(store.path.resolve())]
    argv += ["--host", host, "--port", str(port), "--end-with-stdin"]
    flags = {"--headless": page or not browser, "--follow": follows, "--share": names}
    argv += [flag for flag, on in flags.items() if on]
    for option, given in (("--name", names), ("--proxy", proxies)):
        argv += [word for each in given for word in (option, each)]
    environment = {k: v for k, v in os.environ.items() if k != "RAIL_API_KEY"}
    came: list[int] = []  # a Ctrl-C meanwhile would leave a process that nobody ends
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command
            argv,
            env=environment,
            stdin=subprocess.PIPE,  # it ends with that, should we be killed
            stdout=subprocess.DEVNULL,  # Streamlit prints there that it stops; errors are on stderr
            process_group=0,  # Ctrl-C is for us: we end it
        )
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
    address = f"http://{_HERE if host == _ALL else host}:{port}"
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
        if process.stdin:
            process.stdin.close()


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the block as Ctrl-C does: it cleans up."""

    def ended(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, ended) for number in _SIGNALS_THAT_END}
    try:
        with one_interrupt():
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
