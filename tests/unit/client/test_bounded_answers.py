"""Answers without bound: each is given up by name, in bounded time and memory."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client import AsyncClient, Client
from toolkit.client.mcp import McpClient
from toolkit.errors import UnreachableError, WireError
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.limits import Limits
from toolkit.wire.rows.body import Body

MIB = 2**20
ONCE = RetryPolicy(attempts=1)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def deflated_zeros(n: int) -> bytes:
    """A stretch of a deflate stream that inflates to n zeros, and may be repeated."""
    made = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return made.compress(bytes(n)) + made.flush(zlib.Z_FULL_FLUSH)


def endless(head: bytes, piece: bytes) -> Iterator[bytes]:
    """An answer that begins so, and then is one piece again and again."""
    return itertools.chain([head], itertools.repeat(piece))


GZIP = b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n"
BOMBS: dict[str, Callable[[], Iterator[bytes]]] = {
    "gzip": lambda: endless(HEAD + GZIP + gzip.compress(b"")[:10], deflated_zeros(16 * MIB)),
    "gzip members": lambda: endless(HEAD + GZIP, gzip.compress(bytes(MIB))),
    "chunks": lambda: endless(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + bytes(MIB) + b"\r\n"
    ),
    "body": lambda: endless(HEAD + b"Connection: close\r\n\r\n", bytes(MIB)),
    "declared": lambda: endless(HEAD + b"Content-Length: 2500000000\r\n\r\n", bytes(MIB)),
    "refusal": lambda: endless(
        HEAD.replace(b"200 OK", b"403 No") + b"Content-Encoding: deflate\r\n\r\n",
        deflated_zeros(16 * MIB),
    ),
}


class Sender:
    """A server that sends what it is given to each connection, until that is closed."""

    def __init__(self, listener: socket.socket) -> None:
        self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.pieces: Callable[[], Iterator[bytes]] = lambda: iter(())
        self.pause_s = 0.0
        self.over = threading.Event()
        self.closed = threading.Semaphore(0)
        self._listener = listener
        self._threads: list[threading.Thread] = []

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                break
            self._threads.append(threading.Thread(target=self._send, args=(connection,)))
            self._threads[-1].start()
        for thread in self._threads:
            thread.join()

    def _send(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                for piece in self.pieces():
                    connection.sendall(piece)
                    if self.over.wait(self.pause_s):
                        break
            except OSError:
                pass
            finally:
                self.closed.release()


@pytest.fixture
def sender() -> Iterator[Sender]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Sender(listener)
        thread = threading.Thread(target=found.serve)
        thread.start()
        yield found
        found.over.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def ask(kind: type, base_url: str, **options: object) -> None:
    """One question of `Client` or `AsyncClient`."""

    async def asked() -> None:
        async with AsyncClient(base_url, "key", **options) as client:
            await client.profile()

    if kind is AsyncClient:
        asyncio.run(asked())
    else:
        with Client(base_url, "key", **options) as client:
            client.profile()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_body_over_the_limit_is_given_up_at_once_and_not_asked_for_again(
    sender: Sender, kind: type, bomb: str
) -> None:
    sender.pieces = BOMBS[bomb]
    with pytest.raises(WireError, match=r"larger than 1,048,576 bytes; body_bytes") as caught:
        ask(kind, sender.base_url, limits=Limits(body_bytes=MIB))
    assert str(caught.value).startswith(sender.base_url)
    assert sender.closed.acquire(timeout=30), "the connection is closed"
    assert not sender.closed.acquire(blocking=False), "it was asked once"


CHILD = """
import re, sys
from toolkit.client import Client
from toolkit.errors import WireError
for _ in range(int(sys.argv[2])):
    try:
        with Client(sys.argv[1], "key") as client:
            client.profile()
    except WireError as error:
        status = open("/proc/self/status").read()  # not what a parent's memory was, as ru_maxrss
        peak_mb = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) * 1024 / 1e6
        print(f"{peak_mb:.0f} {error}")
"""


@pytest.mark.slow
def test_no_bomb_takes_more_than_300_mb_of_memory(sender: Sender) -> None:
    kinds = iter(BOMBS.values())
    sender.pieces = lambda: next(kinds)()  # noqa: PLW0108 - the next kind for each connection
    command = [sys.executable, "-c", CHILD, sender.base_url, str(len(BOMBS))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(BOMBS), done.stdout
    assert all("larger than 67,108,864 bytes" in line for line in lines)
    assert max(int(line.split()[0]) for line in lines) <= 300, lines


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "x" * 99])
def test_an_encoding_that_was_not_offered_is_refused_by_name(scripted, kind, encoding) -> None:
    scripted.answer(body=b"{}", headers={"Content-Encoding": encoding})
    with pytest.raises(WireError, match=encoding[:50]):
        ask(kind, scripted.base_url, retries=ONCE)
    assert scripted.asked[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("encoding", "squeezed"),
    [
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("gzip", lambda body: gzip.compress(body[:3]) + gzip.compress(body[3:])),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body, wbits=-15)),
        ("identity", bytes),
    ],
)
def test_an_answer_in_an_encoding_that_was_offered_is_read(
    scripted, kind, encoding, squeezed
) -> None:
    body = b'{"source":{"kind":"live","id":"x"}}'
    scripted.answer(body=squeezed(body), headers={"Content-Encoding": encoding})
    ask(kind, scripted.base_url, limits=Limits(body_bytes=len(body) + 40))


@given(st.binary(max_size=200), st.lists(st.integers(0, 300)), st.sampled_from([31, 15, -15]))
def test_a_body_is_the_same_however_it_is_cut(content: bytes, cuts: list[int], form: int) -> None:
    squeezed = zlib.compress(content, wbits=form)
    edges = [0, *sorted(cut for cut in cuts if cut < len(squeezed)), len(squeezed)]
    bound = Limits(body_bytes=400)
    body = Body({"content-encoding": "gzip" if form == 31 else "deflate"}, bound)
    parts = [body.inflated(squeezed[a:b]) for a, b in itertools.pairwise(edges)]
    body.end()
    assert b"".join(parts) == content
    cut = Body({"content-encoding": "gzip"}, bound)
    cut.inflated(gzip.compress(content)[:-1])
    with pytest.raises(UnreachableError, match="cut off"):
        cut.end()


DRIPS = {
    "status line": b"",
    "header": b"HTTP/1.1 200 OK\r\nX-Long: ",
    "body": HEAD + b"Content-Length: 1000000\r\n\r\n",
    "until it closes": HEAD + b"Connection: close\r\n\r\n",
    "refusal": b"HTTP/1.1 503 No\r\nContent-Length: 1000000\r\n\r\n",
}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("place", DRIPS)
def test_an_answer_that_comes_a_byte_at_a_time_ends_at_its_deadline(
    sender: Sender, kind: type, place: str
) -> None:
    sender.pieces, sender.pause_s = lambda: endless(DRIPS[place], b"x"), 0.02
    with pytest.raises(WireError, match=r"not whole after 0\.2 s; answer_s of the limits allows"):
        ask(kind, sender.base_url, limits=Limits(answer_s=0.2))
    assert sender.closed.acquire(timeout=30), "the connection is closed"
    assert not sender.closed.acquire(blocking=False), "it was asked once"


@pytest.mark.parametrize("place", ["status line", "header", "body"])
def test_an_mcp_answer_that_comes_a_byte_at_a_time_ends_as_well(sender: Sender, place: str) -> None:
    sender.pieces, sender.pause_s = lambda: endless(DRIPS[place], b"x"), 0.02
    asking = McpClient(sender.base_url, "key", limits=Limits(mcp_answer_s=0.3))
    with pytest.raises(UnreachableError):
        asking.listing()


@pytest.mark.parametrize("bomb", BOMBS)
def test_an_mcp_answer_over_the_limit_is_given_up_by_name(sender: Sender, bomb: str) -> None:
    sender.pieces = BOMBS[bomb]
    asking = McpClient(sender.base_url, "key", limits=Limits(body_bytes=MIB))
    with pytest.raises(WireError, match=r"larger than 1,048,576 bytes"):
        asking.listing()


def test_the_deadline_counts_anew_for_each_answer(scripted) -> None:
    scripted.answer(body=b'{"source":{"kind":"live","id":"x"}}')
    with Client(scripted.base_url, "key", limits=Limits(answer_s=0.5)) as client:
        client.profile()
        scripted.over.wait(0.6)
        client.discover()
    assert scripted.connections == 1
