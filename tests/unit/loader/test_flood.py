"""A capture or a webhook receiver that is flooded: its memory stays bounded, and what is refused
is named.

RAIL_FLOOD_S says for how long; `make soak` sets ten seconds.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from toolkit.service.transports.courier import new_secret, signed_headers

pytestmark = pytest.mark.slow
SECONDS = os.environ.get("RAIL_FLOOD_S", "2")

FLOOD = """
import itertools, json, sys, time
from email.utils import formatdate
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response
from websockets.sync.server import serve
kind, size = sys.argv[1], int(sys.argv[2])
pads = {"lists": "[" + ",".join(["[]"] * (size // 3)) + "]"}
pad = pads.get(kind, '"' + "x" * size + '"')
numbers = itertools.count()
def answer(connection, request):
    if request.headers.get("Upgrade"):
        return None
    body = b'{"items":[],"next_cursor":null,"has_more":false,"next_end_time":null}'
    if "schemas" in request.path:
        body = b'{"source":{"kind":"live","id":"x"}}'
    if "symbols" in request.path:
        venue = b'{"exchange":"A","market":"spot"}'
        body = b'{"items":[{"symbol":"BTC_USD","venues":[' + venue + b']}],"truncated":false}'
    length = str(len(body))
    headers = {"Date": formatdate(usegmt=True), "Content-Length": length, "Connection": "close"}
    return Response(200, "OK", Headers(headers), body)
def handle(socket):
    try:
        if kind == "rows":
            socket.recv()
        while True:
            n, now = next(numbers), int(time.time())
            if kind == "rows":
                item = '{"ts":%d,"price":1.0,"mark_price":1.0,"volume":1.0,"pad":%s}' % (
                    now // 60 * 60 - 60 * n, pad)
                socket.send('{"type":"price","id":0,"item":%s}' % item)
            else:
                event = "same" if kind == "versions" else "e%d" % n
                socket.send('{"schema":"s.splash.v1","event_type":"splash.pump","event_id":"%s",'
                    '"ts":%d,"n":%d,"pad":%s}' % (event, now // 86400 * 86400, n, pad))
    except ConnectionClosed:
        pass
with serve(handle, "127.0.0.1", 0, process_request=answer, compression=None) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
"""

CAPTURE = """
import re, sys
from toolkit.client import Client
from toolkit.loader import Pace, follow
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.store import Store
rows = Trajectory.parse("BTC_USD:A.spot")
of = rows if sys.argv[3] == "rows" else EventLog(EventFamily.SPLASH)
with Client(sys.argv[1], "key") as client:
    store, seconds = Store(sys.argv[2]), float(sys.argv[4])
    done = follow(client, store, [of], duration_s=seconds, pace=Pace(sweep_s=2.0))
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024 // 10**6
print(peak, done.messages, done.rows.new, done.rows.revised, sum(done.rows.unkept.values()))
print(sorted({finding.kind for finding, _ in done.findings}))
print(done)
"""


def flooded(kind: str, size: int, folder: Path) -> tuple[list[int], str, str]:
    """Capture from a server in another process, which sends without a pause."""
    server = [sys.executable, "-c", FLOOD, kind, str(size)]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as flood:
        assert flood.stdout is not None
        address = f"http://127.0.0.1:{flood.stdout.readline().strip()}"
        command = [sys.executable, "-c", CAPTURE, address, str(folder / "s.duckdb"), kind, SECONDS]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        finally:
            flood.kill()
    assert not done.returncode, done.stderr[-2000:]
    counts, kinds, words = done.stdout.splitlines()
    return [int(each) for each in counts.split()], kinds, words


@pytest.mark.parametrize(
    ("kind", "size"), [("texts", 15_000), ("lists", 15_000), ("texts", 600), ("rows", 15_000)]
)
def test_a_flood_of_what_is_accepted_takes_no_more_than_400_mb(
    kind: str, size: int, tmp_path: Path
) -> None:
    (peak_mb, messages, new, *_), kinds, _ = flooded(kind, size, tmp_path)
    assert peak_mb <= 400
    assert messages == new > 200
    assert "unreadable" not in kinds


@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_a_flood_of_what_is_too_large_to_keep_is_named(kind: str, tmp_path: Path) -> None:
    (peak_mb, messages, new, *_), kinds, _ = flooded(kind, 3_500_000, tmp_path)
    assert peak_mb <= 400
    assert (messages > 2, new) == (True, 0)
    assert ("row_too_large" if kind == "rows" else "document_too_large") in kinds


def test_a_flood_of_versions_of_one_event_is_counted(tmp_path: Path) -> None:
    (peak_mb, messages, new, revised, unkept), kinds, words = flooded("versions", 5_000, tmp_path)
    assert peak_mb <= 400
    assert (new, revised, unkept) == (1, 99, messages - 100)
    assert "versions_not_kept" in kinds
    assert f"{unkept:,} versions not kept (see the findings)" in words


RECEIVER = """
import re, sys
from toolkit.loader.webhook.webhooks import receive
from toolkit.loader.webhook.webhooks import webhook_app
from toolkit.market import Source
from toolkit.store import Store, StoreWriter
store = Store(sys.argv[1])
StoreWriter(store).bind(Source("live", "x"))
app = webhook_app(store, secrets=[sys.argv[2]])
done = receive(app, ready=lambda address: print(address, flush=True))
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024 // 10**6
print(peak, done.stored, done.events, done.kept)
"""
CONNECTIONS = 200


def deliveries(kind: str, size: int, numbers: Iterator[int]) -> Iterator[tuple[str, bytes]]:
    """Yield ids and bodies without end: event documents, or what is kept whole."""
    pad = "[" + ",".join(["[]"] * (size // 3)) + "]" if kind == "lists" else f'"{"x" * size}"'
    schema = "other" if kind == "others" else "svc.splash.v1"
    for number in numbers:
        head = f'"schema":"{schema}","event_type":"{schema}","event_id":"e{number}"'
        yield f"m{number}", f'{{{head},"ts":{1_790_000_000 + number},"pad":{pad}}}'.encode()


def send(address: str, secret: str, bodies: Iterator[tuple[str, bytes]], until: float) -> int:
    """Send one delivery after the other over one connection. Return how many were taken."""
    url, taken = urlsplit(address), 0
    with closing(HTTPConnection(url.hostname or "", url.port, timeout=60)) as connection:
        for identity, body in bodies:
            if time.monotonic() > until:
                break
            headers = signed_headers(secret, identity, int(time.time()), body)
            connection.request("POST", "/", body, dict(headers))
            answer = connection.getresponse()
            answer.read()
            taken += answer.status == 204
    return taken


@pytest.mark.parametrize(
    ("kind", "size"), [("texts", 16_000), ("lists", 16_000), ("texts", 600), ("others", 16_000)]
)
def test_a_flood_of_deliveries_takes_no_more_than_330_mb(
    kind: str, size: int, tmp_path: Path
) -> None:
    secret, numbers = new_secret(), itertools.count()
    command = [sys.executable, "-c", RECEIVER, str(tmp_path / "s.duckdb"), secret]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        address = receiver.stdout.readline().strip()
        until = time.monotonic() + float(SECONDS)
        bodies = [deliveries(kind, size, numbers) for _ in range(CONNECTIONS)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            sent = pool.map(lambda each: send(address, secret, each, until), bodies)
            taken = sum(sent)
        receiver.send_signal(signal.SIGTERM)
        said = receiver.stdout.read()
    peak_mb, stored, events, kept = (int(each) for each in said.split())
    assert peak_mb <= 330
    assert stored == taken > 20
    assert (events, kept) == ((0, stored) if kind == "others" else (stored, 0))
