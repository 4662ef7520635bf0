"""Overload and shutdown: a clean 503 or a whole answer, over real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests import miniature
from toolkit.errors import InputError
from toolkit.market import Leg
from toolkit.service import Bars, Clock, Config, running
from toolkit.service.market.source import SettlementSeries, Whole
from toolkit.service.problems import Problem
from toolkit.service.transports.access import Capacity, Gate

DATA = "/api/v1/data"
DAY_S = 86_400
PRICE = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot", "limit": "1000"}
UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


class Held(Whole):
    """The miniature market; what asks for funding waits while it is held."""

    kind = "simulated"

    def __init__(self) -> None:
        self._source = miniature.source()
        self.id = self._source.id
        self.listing: Mapping[str, tuple[Leg, ...]] = self._source.listing
        self.entered, self.let_go = threading.Event(), threading.Event()
        self.let_go.set()

    def hold(self) -> None:
        self.entered.clear()
        self.let_go.clear()

    def bars(self, symbol: str, leg: Leg) -> Bars:
        return self._source.bars(symbol, leg)

    def funding(self, symbol: str, leg: Leg) -> SettlementSeries | None:
        self.entered.set()
        assert self.let_go.wait(60)
        return self._source.funding(symbol, leg)


def config(source: Held, **changes: object) -> Config:
    given = {"source": source, "port": 0, "clock": Clock(fixed_at=miniature.END + 3_600)} | changes
    return Config(**given)  # type: ignore[arg-type] # written out by the callers


@contextmanager
def occupied(source: Held, base_url: str) -> Iterator[Future[httpx.Response]]:
    """One request under way for as long as the block lasts, and a little longer."""
    window = {"start_time": miniature.END - DAY_S, "end_time": miniature.END}
    source.hold()
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(
            httpx.get,
            f"{base_url}{DATA}/history/funding-events",
            params=window,
            headers={"apikey": "demo-pro"},
            timeout=60,
        )
        try:
            assert source.entered.wait(60)
            yield asked
        finally:
            source.let_go.set()


def check_refusal(answer: httpx.Response) -> None:
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["date"]
    problem = answer.json()
    assert (problem["title"], problem["code"]) == ("Service Unavailable", "unavailable")


def test_what_exceeds_the_capacity_is_a_503_that_spends_no_quota() -> None:
    source, key = Held(), {"apikey": "demo-pro"}
    with (
        running(config(source, capacity=1, quota=2)) as service,
        httpx.Client(base_url=f"{service.base_url}{DATA}/") as client,
    ):
        with occupied(source, service.base_url) as first:
            for headers in (key, {"apikey": "nobody's"}, {}, key):
                check_refusal(client.get("history/price", params=PRICE, headers=headers))
        assert first.result().status_code == 200
        statuses = [client.get("history/price", params=PRICE, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in statuses] == [200, 429]


def test_up_to_its_capacity_requests_are_answered_beside_one_another() -> None:
    source = Held()
    with (
        running(config(source, capacity=2)) as service,
        occupied(source, service.base_url) as first,
    ):
        route = f"{service.base_url}{DATA}/history/price"
        second = httpx.get(route, params=PRICE, headers={"apikey": "demo-pro"})
        assert not first.done()
    assert (first.result().status_code, second.status_code) == (200, 200)


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True, None])
def test_a_capacity_that_is_none_is_refused(capacity: object) -> None:
    wrong = config(Held(), capacity=capacity)
    with pytest.raises(InputError, match=r"capacity: .* allowed: a whole number"), running(wrong):
        pass


def ask_until_refused(base_url: str, stopping: threading.Event) -> list[object]:
    """Ask on and on over one connection; each answer's status and body, or what came of it."""
    outcomes: list[object] = []
    headers = {"apikey": "demo-pro"}
    with httpx.Client(base_url=f"{base_url}{DATA}/", headers=headers, timeout=60) as client:
        while outcomes[-1:] in ([], [200]):
            try:
                with client.stream("GET", "history/price", params=PRICE) as answer:
                    try:
                        answer.read()
                    except httpx.HTTPError:
                        outcomes.append("half an answer")
                        continue
            except httpx.HTTPError:
                outcomes.append("no answer")
                continue
            if answer.status_code == 503:
                assert stopping.is_set()
                check_refusal(answer)
                assert answer.headers["connection"] == "close"
            else:
                assert len(answer.json()["items"]) == 1000
            outcomes.append(answer.status_code)
    return outcomes


def test_who_asks_a_service_that_stops_is_refused_and_who_has_asked_is_answered() -> None:
    source, stopping = Held(), threading.Event()
    service = running(config(source, quota=1_000_000))
    base_url = service.__enter__().base_url
    with ThreadPoolExecutor(10) as threads:
        with occupied(source, base_url) as first:
            crowd = [threads.submit(ask_until_refused, base_url, stopping) for _ in range(8)]
            stopping.set()
            stopped = threads.submit(service.__exit__, None, None, None)
            outcomes = [each.result() for each in crowd]
            upgrade = httpx.get(f"{base_url}{DATA}/ws", headers=UPGRADE | {"apikey": "demo-pro"})
            assert not first.done()
            assert not stopped.done()
        stopped.result()
    assert [each[-1] for each in outcomes] == [503] * 8
    assert {status for each in outcomes for status in each[:-1]} <= {200}
    check_refusal(upgrade)
    last = first.result()
    assert (last.status_code, last.headers["connection"]) == (200, "close")
    assert last.json()["type"] == "funding_events_page"
    with pytest.raises(httpx.ConnectError):
        httpx.get(base_url)


App = Callable[[Scope, Receive, Send], object]


def through(gate: Gate, kind: str, inner: App) -> list[Message]:
    """What one connection through the gate is sent."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Capacity(inner, gate)({"type": kind, "path": "/"}, receive, send))  # type: ignore[arg-type] # a coroutine function
    return sent


async def accepts(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "websocket.accept"})


def test_a_websocket_takes_no_place_and_needs_none() -> None:
    gate = Gate(1, under_way=1)
    assert through(gate, "websocket", accepts) == [{"type": "websocket.accept"}]
    assert gate.under_way == 1
    gate.closing = True
    with pytest.raises(Problem, match="shutting down"):
        through(gate, "websocket", accepts)


@pytest.mark.parametrize(
    ("begun", "closing", "raised"),
    [
        (False, True, Problem),
        (True, True, asyncio.CancelledError),
        (False, False, asyncio.CancelledError),
    ],
)
def test_a_request_that_shutdown_cancels_is_refused_unless_its_answer_has_begun(
    begun: bool, closing: bool, raised: type[BaseException]
) -> None:
    async def cancelled(_scope: Scope, _receive: Receive, send: Send) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        gate.closing = closing
        raise asyncio.CancelledError

    gate = Gate(1)
    with pytest.raises(raised):
        through(gate, "http", cancelled)
    assert gate.under_way == 0
