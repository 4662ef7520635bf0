"""Rows served per CPU-second of the service's process, beside json.dumps of dicts in the same run.

The service runs in a process of its own, and a raw socket asks it for every page of every
trajectory, twice: a first read joins and renders, a second one cuts text that is kept.
``json.dumps`` builds and encodes the same rows as dicts, without any HTTP.
"""

from __future__ import annotations

import argparse
import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np

from toolkit.market import Leg
from toolkit.service import Bars, Config, running
from toolkit.service.market.source import Kind, Whole

LEGS = tuple(Leg.parse(f"EXCHANGE{number}.spot") for number in range(8))
SYMBOL = "BTC_USDT"


@dataclass(frozen=True)
class Walks(Whole):
    """A source of random walks, one a leg."""

    series: Mapping[Leg, Bars]
    kind: Kind = "simulated"
    id: str = "walks"

    @classmethod
    def of(cls, rows: int) -> Walks:
        random = np.random.default_rng(1)
        ts = 1_600_000_020 + 60 * np.arange(rows, dtype=np.int64)
        walks = (30_000 * np.exp(random.standard_normal(rows).cumsum() / 2_000) for _ in LEGS)
        return cls({leg: Bars(ts, np.round(w, 2), 60) for leg, w in zip(LEGS, walks, strict=True)})

    @property
    def listing(self) -> Mapping[str, tuple[Leg, ...]]:
        return {SYMBOL: LEGS}

    def bars(self, symbol: str, leg: Leg) -> Bars:
        assert symbol == SYMBOL
        return self.series[leg]


def _serve(pipe: Connection, rows: int) -> None:
    """Serve in a child process, and tell its CPU time whenever asked."""
    config = Config(Walks.of(rows), port=0, retention_s=10**10, quota=10**9)
    with running(config) as service:
        pipe.send(service.base_url)
        while pipe.recv():
            pipe.send(time.process_time())


@contextmanager
def _child(rows: int) -> Iterator[tuple[Connection, socket.socket]]:
    context = get_context("spawn")
    pipe, other = context.Pipe()
    process = context.Process(target=_serve, args=(other, rows))
    process.start()
    other.close()  # so that a child which dies is an EOFError here, not a wait without end
    host, _, port = str(pipe.recv()).removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        yield pipe, connection
    pipe.send(False)
    process.join()


def _get(connection: socket.socket, path: str) -> bytes:
    """The body of one answer, read with as little work as possible."""
    connection.sendall(
        f"GET /api/v1/data/{path} HTTP/1.1\r\nhost: x\r\napikey: demo-pro\r\n\r\n".encode()
    )
    got = bytearray()
    while (end := got.find(b"\r\n\r\n")) < 0:
        got += connection.recv(1 << 20)
    head = bytes(got[:end]).lower()
    assert b" 200 " in head[:14], head
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(got) < end + 4 + length:
        got += connection.recv(1 << 20)
    return bytes(got[end + 4 :])


def _read_all(connection: socket.socket, path: str, limit: int) -> int:
    """Pages of one trajectory until there is nothing older; gives the number of rows."""
    rows, end_time = 0, b""
    while end_time != b"null":
        tail = f"&end_time={end_time.decode()}" if end_time else ""
        body = _get(connection, f"{path}&limit={limit}{tail}")
        rows += body.count(b'{"ts"')
        end_time = body[body.rindex(b":") + 1 : -1]
    return rows


def _paths(*, spreads: bool) -> list[str]:
    if not spreads:
        query = f"history/price?symbol={SYMBOL}&exchange=%s&market=%s"
        return [query % (leg.exchange, leg.market) for leg in LEGS]
    query = (
        f"history/spread?symbol={SYMBOL}&buy_exchange=%s&buy_market=%s"
        "&sell_exchange=%s&sell_market=%s"
    )
    return [
        query % (buy.exchange, buy.market, sell.exchange, sell.market)
        for buy, sell in pairwise(LEGS)
    ]


def _served(rows: int, limit: int, *, spreads: bool) -> tuple[float, float]:
    """Rows for each CPU-second of the service's process: read first, and read again."""
    paths = _paths(spreads=spreads)
    rates = []
    with _child(rows) as (pipe, connection):
        for _ in ("first", "again"):
            pipe.send(True)
            before = pipe.recv()
            served = sum(_read_all(connection, path, limit) for path in paths)
            assert served == rows * len(paths), (served, rows * len(paths))
            pipe.send(True)
            rates.append(served / (pipe.recv() - before))
    first, again = rates
    return first, again


def _dumped(rows: int) -> float:
    """Rows for each CPU-second of building dicts and json.dumps, without a server."""
    bars = Walks.of(rows).series[LEGS[0]]
    before = time.process_time()
    for end in range(rows, 0, -10_000):
        part = slice(max(end - 10_000, 0), end)
        json.dumps(
            [
                {"ts": ts, "price": price, "mark_price": None, "volume": None}
                for ts, price in zip(bars.ts[part].tolist(), bars.price[part].tolist(), strict=True)
            ]
        )
    return rows / (time.process_time() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    rows = 10_000 if parser.parse_args().quick else 100_000
    peer = _dumped(rows)
    print(f"{len(LEGS)} legs of {rows} rows each; rows per CPU-second, and times json.dumps")
    print(f"{'json.dumps of dicts, no server':36} {peer:12,.0f}")
    ratios = {}
    for family, spreads in (("price", False), ("spread", True)):
        for limit in (10_000, 500):
            rates = _served(rows, limit, spreads=spreads)
            for when, rate in zip(("first read", "read again"), rates, strict=True):
                name = f"{family}, pages of {limit}, {when}"
                ratios[name] = round(rate / peer, 2)
                print(f"{name:36} {rate:12,.0f}  {ratios[name]:6.1f} x")
    print(json.dumps({"name": "service", "rows": rows * len(LEGS), "ratios": ratios}))


if __name__ == "__main__":
    main()
