"""The key and http: sent to this machine alone, and through no proxy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from websockets.sync.server import serve

from tests import miniature
from tests.listening import listening
from toolkit.client import AsyncClient, Client
from toolkit.client.contact import Contact
from toolkit.client.mcp import McpClient
from toolkit.client.stream import stream, upgrade
from toolkit.client.transport import tls
from toolkit.errors import InputError, RailError, UnreachableError
from toolkit.market import EventFamily
from toolkit.service import Config, running
from toolkit.wire.address import is_loopback
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.socket_steps import Interrupted, ReconnectPolicy
from toolkit.workspace import Settings

from .test_stream import Bare

KEY = "k9-very-secret-0042"
ONCE = RetryPolicy(attempts=1)
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class Proxy:
    """A proxy that refuses everything and keeps what it hears."""

    def __init__(self, listener: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.heard: list[bytes] = []
        self._listener = listener

    def answer(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy that every variable of the environment names."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Proxy(listener)
        for name in VARIABLES[:3]:
            monkeypatch.setenv(name, found.url)
            monkeypatch.setenv(name.lower(), found.url)
        for name in (VARIABLES[3], VARIABLES[3].lower()):
            monkeypatch.delenv(name, raising=False)
        thread = threading.Thread(target=found.answer)
        thread.start()
        yield found
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


OFF_LOOPBACK = [
    *("http://rail.example", "http://10.0.0.1:8700", "http://128.0.0.1", "http://0.0.0.0:8700"),
    *("http://[2001:db8::1]", "http://127.0.0.1.rail.example", "http://localhost.rail.example"),
    "HTTP://rail.example",
]


@pytest.mark.parametrize("address", OFF_LOOPBACK)
@pytest.mark.parametrize("kind", [Client, AsyncClient, McpClient, Contact])
def test_http_off_this_machine_is_refused_in_one_line_before_the_network_is_asked(
    kind: type[Contact], address: str
) -> None:
    with pytest.raises(InputError, match=r"^base_url: ") as caught:
        kind(address, KEY)
    said = str(caught.value)
    assert "unencrypted" in said
    assert "use https" in said
    assert "--allow-http" in said
    assert "RAIL_ALLOW_HTTP=1" in said


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.8.7", "::1", "localhost", "LOCALHOST", "localhost.", "a.localhost"]
)
def test_this_machine_may_be_asked_over_http(host: str) -> None:
    assert is_loopback(host)
    address = f"http://[{host}]:9" if ":" in host else f"http://{host}:9"
    assert Contact(address, KEY).base_url == address


def test_http_that_is_allowed_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for kind in (Contact, Contact, Client):
        kind("http://allowed.rail.example", KEY, allow_http=True)
    (record,) = caplog.records
    assert "unencrypted" in record.getMessage()
    assert KEY not in record.getMessage()


def test_the_setting_is_a_parameter_or_a_variable() -> None:
    said = {"RAIL_BASE_URL": "http://rail.example", "RAIL_API_KEY": KEY}
    with pytest.raises(InputError, match="base_url"):
        Settings.read(said).client()
    for allowed in (
        Settings.read(said, allow_http=True),
        Settings.read({**said, "RAIL_ALLOW_HTTP": "1"}),
    ):
        allowed.client().close()
    with pytest.raises(InputError, match="RAIL_ALLOW_HTTP"):
        Settings.read({**said, "RAIL_ALLOW_HTTP": "yes please"})


def first_loss(client: Client) -> str:
    """How the first connection of a stream ends."""
    said = stream(client, EventFamily.SPREAD, policy=ReconnectPolicy(first_wait_s=0.01))
    return next(item.why for item in said if isinstance(item, Interrupted))


def test_http_to_this_machine_travels_through_no_proxy(proxy: Proxy) -> None:
    async def asked(base_url: str) -> None:
        async with AsyncClient(base_url, "demo-pro", retries=ONCE) as client:
            await client.profile()

    with running(Config(miniature.source(), port=0)) as service:
        with Client(service.base_url, "demo-pro", retries=ONCE) as client:
            client.profile()
            upgrade(client, "/api/v1/data/ws")
        asyncio.run(asked(service.base_url))
        assert McpClient(service.base_url, "demo-pro").listing().tools
    closing = serve(lambda connection: connection.close(1011), "127.0.0.1", 0)
    with listening(closing) as base_url, Bare(base_url, KEY) as client:
        assert "1011" in first_loss(client)
    assert proxy.heard == []


def test_http_that_is_allowed_travels_through_no_proxy_either(proxy: Proxy) -> None:
    nowhere = "http://no.such.host.invalid"
    client = Client(nowhere, KEY, retries=ONCE, allow_http=True)
    with client, pytest.raises(UnreachableError):
        client.profile()
    with Bare(nowhere, KEY, allow_http=True) as client:
        first_loss(client)
    assert proxy.heard == []


ASKS: dict[str, Callable[[str], object]] = {
    "client": lambda address: Client(address, KEY, retries=ONCE).profile(),
    "mcp": lambda address: McpClient(address, KEY).listing(),
    "stream": lambda address: first_loss(Bare(address, KEY)),
}


@pytest.mark.parametrize("ask", ASKS)
def test_https_goes_through_a_tunnel_and_the_proxy_does_not_hear_the_key(
    proxy: Proxy, ask: str
) -> None:
    with contextlib.suppress(RailError):
        ASKS[ask]("https://rail.invalid")
    assert proxy.heard
    for heard in proxy.heard:
        assert heard.startswith(b"CONNECT rail.invalid:443 ")
        assert KEY.encode() not in heard


def test_a_host_without_a_proxy_is_asked_directly(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "rail.invalid")
    with pytest.raises(UnreachableError), Client("https://rail.invalid", KEY, retries=ONCE) as asks:
        asks.profile()
    assert proxy.heard == []


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    "url", ["socks5://user:s3cret@h:1080", "http://", "h:abc", "ftp://h", "http://a b"]
)
def test_a_proxy_that_is_not_http_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, url: str, variable: str
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, url)
    with pytest.raises(InputError, match=rf"^{variable}: '\*\*\*'") as caught:
        Client("https://rail.example", KEY)
    assert "s3cret" not in str(caught.value)


@pytest.mark.usefixtures("proxy")
def test_who_is_not_reached_through_a_proxy_reads_which_variable_names_it() -> None:
    with (
        pytest.raises(UnreachableError, match=r"through the proxy of \w+_(proxy|PROXY)"),
        Client("https://rail.invalid", KEY, retries=ONCE) as asks,
    ):
        asks.profile()


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSLKEYLOGFILE"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_variable_of_tls_that_names_no_file_is_named(
    monkeypatch: pytest.MonkeyPatch, kind: type, variable: str
) -> None:
    tls.cache_clear()
    monkeypatch.setenv(variable, "/nowhere/at/all")
    with pytest.raises(InputError, match=rf"^{variable}: '/nowhere/at/all' .*No such file"):
        kind("https://rail.invalid", KEY)
