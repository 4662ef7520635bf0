from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from toolkit.market import Leg
from toolkit.service import Bars, Clock, Config, Replay, running
from toolkit.service.accounts import Policy
from toolkit.service.api.calls import Call, Service
from toolkit.service.api.registry import TOOLS
from toolkit.service.api.tools import NoQuery
from toolkit.service.market.source import Whole
from toolkit.service.problems import Problems
from toolkit.service.transports.rest import application

DATA = "/api/v1/data"
PRICE = {"symbol": "BTC_USDT", "exchange": "ALPHA", "market": "spot"}

FAILING = [
    ("GET", f"{DATA}/schemas", {}, 401, "unauthorized"),
    ("GET", f"{DATA}/symbols/search", {"apikey": "bad"}, 401, "unauthorized"),
    ("GET", f"{DATA}/symbols/search?limit=0", {"apikey": "demo-pro"}, 400, "bad_request"),
    ("GET", f"{DATA}/symbols/search?token=1", {"apikey": "demo-pro"}, 400, "bad_request"),
    ("GET", f"{DATA}/history/price", {"apikey": "demo-pro"}, 400, "bad_request"),
    ("GET", f"{DATA}/history/spread", {"apikey": "demo-pro"}, 400, "bad_request"),
    ("GET", f"{DATA}/history/nothing", {"apikey": "demo-pro"}, 404, "not_found"),
    ("GET", f"{DATA}/schemas/", {"apikey": "demo-pro"}, 404, "not_found"),
    ("GET", "/", {}, 404, "not_found"),
    ("GET", "/v1/spread/recent", {}, 404, "not_found"),
    ("POST", f"{DATA}/schemas", {"apikey": "demo-pro"}, 405, "method_not_allowed"),
    ("DELETE", f"{DATA}/history/price", {"apikey": "demo-pro"}, 405, "method_not_allowed"),
    ("OPTIONS", f"{DATA}/history/spread", {"apikey": "demo-pro"}, 405, "method_not_allowed"),
]


@pytest.mark.parametrize("failing", FAILING, ids=lambda failing: f"{failing[0]} {failing[1]}")
def test_every_failure_is_a_problem_document(anonymous, failing) -> None:
    method, path, headers, status, code = failing
    answer = anonymous.request(method, path, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "about:blank"
    assert problem["title"] == HTTPStatus(status).phrase
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["detail"]
    assert ("errors" in problem) is (status == 400)
    assert all(value is not None for value in problem.values())


@pytest.mark.parametrize("path", ["schemas", "symbols/search", "history/price"])
def test_head_answers_as_get_without_the_body(pro: httpx.Client, path: str) -> None:
    got, headed = pro.get(path), pro.head(path)
    assert headed.status_code == got.status_code
    counting = {"ratelimit", "date"}  # these two moved on between the questions
    said = [{n: v for n, v in a.headers.items() if n not in counting} for a in (got, headed)]
    assert said[0] == said[1]
    assert "ratelimit" in headed.headers
    assert headed.content == b""


@pytest.mark.parametrize("query", ["", "?limit=0"])
def test_a_plan_is_refused_before_the_parameters_are_looked_at(anonymous, query) -> None:
    answer = anonymous.get(f"{DATA}/history/funding{query}", headers={"apikey": "demo-free"})
    assert (answer.status_code, answer.json()["code"]) == (403, "tier_required")


class Broken(Whole):
    """A source whose bars cannot be read."""

    kind = "simulated"
    id = "broken"
    listing: Mapping[str, tuple[Leg, ...]] = {"BTC_USDT": (Leg.parse("ALPHA.spot"),)}

    def bars(self, symbol: str, leg: Leg) -> Bars:
        raise OSError(f"the disk is gone: {symbol} {leg}")


@pytest.fixture(scope="module")
def broken() -> Iterator[httpx.Client]:
    with (
        running(Config(Broken(), port=0)) as service,  # type: ignore[arg-type] # Literal kind
        httpx.Client(base_url=service.base_url, headers={"apikey": "demo-pro"}) as client,
    ):
        yield client


def test_an_unforeseen_failure_is_a_500_that_tells_nothing_and_is_logged_and_others_go_on(
    broken: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    answer = broken.get(f"{DATA}/history/price", params=PRICE)
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal"
    assert "disk" not in answer.text
    assert "Traceback" not in answer.text
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert record.name == "toolkit.service.problems"
    assert record.getMessage().endswith(f"{DATA}/history/price")
    assert record.exc_info is not None
    assert str(record.exc_info[1]).startswith("the disk is gone")
    assert broken.get(f"{DATA}/symbols/search").status_code == 200


def test_a_failure_in_the_middle_of_an_answer_is_raised_on(caplog) -> None:
    sent: list[str] = []

    async def breaks_off(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise OSError("the disk is gone")

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message["type"])

    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(Problems(breaks_off)({"type": "http", "path": "/x"}, receive, send))
    assert sent == ["http.response.start"]
    assert "unforeseen failure in answering /x" in caplog.text


def test_a_slow_answer_keeps_no_other_waiting(replay: Replay) -> None:
    """The slow one waits until the other has been answered."""
    answered = threading.Event()

    def slow(_: Call[NoQuery]) -> bytes:
        assert answered.wait(60)
        return b'"slow"'

    def quick(_: Call[NoQuery]) -> bytes:
        answered.set()
        return b'"quick"'

    plain = replace(TOOLS[0], answer=quick, path="quick")
    tools = [replace(plain, answer=slow, path="slow", slow=True), plain]
    app = application(Service(replay, Clock(), Policy()), tools)

    async def ask() -> list[str]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://rail") as client:
            client.headers["apikey"] = "demo-free"
            answers = await asyncio.gather(
                *(client.get(f"{DATA}/{path}") for path in ("slow", "quick"))
            )
        return [answer.json() for answer in answers]

    assert asyncio.run(ask()) == ["slow", "quick"]
