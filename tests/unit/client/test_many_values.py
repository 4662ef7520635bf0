"""Answers of very many small values, or of one very large: refused by name, in bounded memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

import pytest

from tests.listening import Handler, listening
from toolkit.client import Client
from toolkit.errors import WireError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory
from toolkit.wire.limits import Limits
from toolkit.wire.rows.body import Body

LONG = "RAIL_FLOOD_S" in os.environ  # `make soak` sets it
KEY = "k7-very-secret-0815"
ENDS = b'"next_end_time":null,"next_cursor":null,"has_more":false,"truncated":false'


def page(item: bytes, number: int, ends: bytes = ENDS) -> bytes:
    return b'{"items":[' + b",".join([item] * number) + b"]," + ends + b"}"


class Huge(Handler):
    """A service that answers questions with one body, over REST and as a tool's result."""

    protocol_version = "HTTP/1.1"
    body: bytes
    events: bool

    def do_GET(self) -> None:
        schemas = b'{"source":{"kind":"live","id":"x"}}'
        self._send(200, schemas if "schemas" in self.path else self.body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tool = {"name": "data.get_schemas", "inputSchema": {"type": "object"}}
        results = {
            "initialize": lambda: {
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            },
            "tools/list": lambda: {"tools": [tool]},
        }
        if asked["method"] == "tools/call":
            result = b'{"content":[],"structuredContent":' + self.body + b"}"
        elif asked["method"] in results:
            result = json.dumps(results[asked["method"]]()).encode()
        else:
            self._send(202, b"")
            return
        head = b'{"jsonrpc":"2.0","id":%d,"result":' % asked["id"]
        whole = head + result + b"}"
        self._send(200, b"data: " + whole + b"\n\n" if self.events else whole)

    def _send(self, status: int, body: bytes) -> None:
        kind = "text/event-stream" if self.events else "application/json"
        with contextlib.suppress(OSError):  # it is given up
            self.reply(status, body, {"Content-Type": kind})


class Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Pass over it: a client that gives up resets its connection."""


@contextmanager
def answering(body: bytes, *, events: bool = False) -> Iterator[str]:
    handler = type("Handler", (Huge,), {"body": body, "events": events})
    with listening(Server(("127.0.0.1", 0), handler)) as address:
        yield address


CHILD = """
import re, sys
from toolkit.client import Client
from toolkit.client.mcp import McpClient
from toolkit.errors import WireError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory
def mcp(url):
    return McpClient(url, "key").listing().tools
def rest(ask):
    def asked(url):
        with Client(url, "key") as client:
            return ask(client)
    return asked
ways = {
    "symbols": rest(lambda client: client.symbols()),
    "history": rest(lambda client: list(
        client.pages(Trajectory.parse("BTC_USD:A.spot"), Interval(0, 86400)))),
    "events": rest(lambda client: list(
        client.event_pages(EventFamily.SPLASH, Interval(0, 86400)))),
    "mcp": mcp,
}
try:
    found = ways[sys.argv[2]](sys.argv[1])
except WireError as error:
    found = error
peak_mb = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024 / 1e6
print(f"{peak_mb:.0f} {found}")
"""

MANY = 22_000_000  # of three bytes each: a body just below 64 MiB
TOO_MANY = "more than 1,000,000 values"
DEEP = b"[" * 400 + b"]" * 400
BOMBS = {
    "objects": (b"{}", MANY, TOO_MANY),
    "nests": (DEEP, 80_000, TOO_MANY),
    "below": (b"{}", 490_000, "a page of 490,000 items; at most 10,000 are read"),
    "minimal": (b'{"ts":1}', 490_000, "a page of 490,000 items; at most 10,000 are read"),
    "wide": (b'{"ts":1,"price":1.0,"x":"%bPOO"}', 1, "at most 16,384 are kept"),
}
"""An item, how many of it, and the error."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "bomb"),
    [
        *(("history", bomb) for bomb in BOMBS if LONG or bomb != "minimal"),
        *(("events", bomb) for bomb in (("nests", "minimal", "wide") if LONG else ("minimal",))),
        ("symbols", "below"),
    ],
)
def test_no_answer_of_many_values_takes_more_than_400_mb(way: str, bomb: str) -> None:
    item, number, says = BOMBS[bomb]
    if bomb == "wide":  # as a text, one such character makes each of the others four times as wide
        item = (item % (b"y" * 66_000_000)).replace(b"POO", "\N{PILE OF POO}".encode())
    peak_mb, found = peak_of(page(item, number), way)
    assert says in found
    assert peak_mb <= 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "number", "events", "says"),
    [
        (b"{}", MANY, True, "more than 250,000 values"),
        (DEEP, 80_000, False, "more than 250,000 values"),
        *((b"{}", 124_000, False, "data.get_schemas") for _ in range(LONG)),
        *((b'{"a":"x"}', 83_000, True, "data.get_schemas") for _ in range(LONG)),
    ],
    ids=["objects", "nests", *(["below", "texts"] if LONG else [])],
)
def test_no_tool_result_of_many_values_takes_more_than_300_mb(
    item: bytes, number: int, says: str, *, events: bool
) -> None:
    peak_mb, found = peak_of(page(item, number), "mcp", events=events)
    assert says in found
    assert peak_mb <= 300


def peak_of(body: bytes, way: str, *, events: bool = False) -> tuple[int, str]:
    """Ask in a process of its own. Return the most memory that it took (MB), and what it found."""
    with answering(body, events=events) as base_url:
        command = [sys.executable, "-c", CHILD, base_url, way]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    peak_mb, _, found = done.stdout.partition(" ")
    return int(peak_mb), found


QUICK = [
    (page(b"{}", 500_001), TOO_MANY),
    (page(b"[" * 9 + b"]" * 9, 100_001), TOO_MANY),
    (page(b"{}", 10_001), "a page of 10,001 items; at most 10,000 are read"),
]


@pytest.mark.parametrize(("body", "says"), QUICK, ids=["objects", "nests", "items"])
def test_each_route_refuses_more_than_a_page_has(body: bytes, says: str) -> None:
    window = Interval(0, 86_400)
    with answering(body) as base_url, Client(base_url, KEY) as client:
        for ask in (
            client.symbols,
            lambda: list(client.pages(Trajectory.parse("BTC_USD:A.spot"), window)),
            lambda: list(client.event_pages(EventFamily.SPLASH, window)),
        ):
            with pytest.raises(WireError, match=says) as refused:
                ask()
            assert str(refused.value).startswith(base_url)


def test_the_values_of_a_stream_of_events_are_counted_for_each() -> None:
    event = b"data: [" + b"0," * 9 + b"0]" + b"\r\n\r\n"
    for cut in range(1, len(event)):
        body = Body({}, Limits(body_values=10), events=True)
        stream = event * 5
        for start in range(0, len(stream), cut):
            body.inflated(stream[start : start + cut])
        with pytest.raises(WireError, match="more than 10 values"):
            body.inflated(b"data: [" + b"0," * 10 + b"0]")


@pytest.mark.slow
def test_a_frame_of_a_stream_of_many_values_takes_no_more_than_300_mb() -> None:
    command = [sys.executable, "-c", FRAME]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) <= 300


FRAME = """
import re
from toolkit.errors import WireError
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.loader.follow.reader import Messages
from toolkit.loader.follow.reader import Message
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.socket_steps import read_market_message
for item, number in ((b"{}", 1_390_000), (b"[" * 400 + b"]" * 400, 5_200), (b'{"a":"x"}', 410_000)):
    many = b'{"ts":1,"x":[' + b",".join([item] * number) + b"]}"
    body = b'{"type":"price","id":0,"item":' + many + b"}"
    message = read_market_message(BUILT_IN.streams, body, [])
    pending = Messages(BUILT_IN)
    pending.add(Message(EventLog(EventFamily.SPLASH), many))
    pending.add(Message(Trajectory.parse("BTC_USD:A.spot"), message.record))
    batch, _, findings = pending.batch_of_all()
    kinds = {finding.kind for finding in findings}
    assert not batch.documents and {"document_too_large", "row_too_large"} <= kinds, findings
    assert all(frame.is_empty() for frames in batch.rows.values() for frame in frames)
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024 // 10**6)
"""
