"""Services: no address, a wrong one, a wrong key, a plan that is too small."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolkit.client import AsyncClient, Client
from toolkit.errors import (
    InputError,
    KeyRefusedError,
    NotFoundError,
    PlanRefusedError,
    RailError,
    UnreachableError,
)

from .conftest import NOW, PRICE
from .judged import Row, fault, fault_of

MISTAKES: list[Row] = [
    ("Client('', 'k')", InputError, ("base_url: ''", "http://HOST")),
    ("Client(None, 'k')", InputError, ("base_url: nothing is given", "http://HOST")),
    ("Client(8700, 'k')", InputError, ("base_url: 8700", "http://HOST")),
    ("Client('rail.example', 'k')", InputError, ("'rail.example'", "https://HOST")),
    ("AsyncClient('rail.example', 'k')", InputError, ("https://HOST",)),
    ("tk.open('x.duckdb', base_url='127.0.0.1:8700')", InputError, ("http://HOST",)),
    ("tk.open('x.duckdb', base_url='https://rail.example').sync(PRICE)", InputError,
     ("api_key", "RAIL_API_KEY")),
    ("tk.open('x.duckdb', base_url=8700)", InputError, ("base_url: 8700", "http://HOST")),
    ("Client('http://127.0.0.1:9', 'k', retries=once).symbols()", UnreachableError,
     ("http://127.0.0.1:9",)),
    ("Client('http://no.such.host.invalid', 'k', retries=once, allow_http=True).symbols()",
     UnreachableError, ("no.such.host.invalid",)),
    ("Client(service + '/nothing', 'demo-pro', retries=once).symbols()", NotFoundError, ("404",)),
    ("Client(service, 'wrong').symbols()", KeyRefusedError, ("key",)),
    ("Client(service, None)", InputError, ("api_key", "the key as issued")),
    ("Client(service, 5)", InputError, ("api_key", "the key as issued")),
    ("tk.open('x.duckdb', base_url=service, api_key='wrong').sync(PRICE, '1h')", KeyRefusedError,
     ("key",)),
    ("tk.open('x.duckdb', base_url=service, api_key=5)", InputError, ("api_key",)),
    ("Client(service, 'demo-pro').history([PRICE], NOW - 60, NOW)", InputError, ("one key",)),
    ("Client(service, 'demo-pro').snapshot('prices')", InputError, ("symbols, activity",)),
    ("Client(service, 'demo-pro').snapshot(None)", InputError, ("symbols, activity",)),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "kind", "words"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_wrong_service_is_one_line_that_says_what_to_do(
    ground: dict[str, Any], typed: str, kind: type[RailError], words: tuple[str, ...]
) -> None:
    assert fault(typed, ground, kind, words) == ""


ASKED: list[tuple[Any, type[RailError], tuple[str, ...]]] = [
    ([PRICE], InputError, ("one key",)),
    ("BTC_USDT:AURORRA.spot", RailError, ("does not list BTC_USDT",)),
    ("BTC_USDT", InputError, ("SYMBOL:EXCHANGE.market",)),
]


@pytest.mark.parametrize(("key", "kind", "words"), ASKED)
def test_a_client_of_asyncio_refuses_as_the_other_does(
    service: str, key: Any, kind: type[RailError], words: tuple[str, ...]
) -> None:
    async def ask() -> None:
        async with AsyncClient(service, "demo-pro") as client:
            await client.history(key, NOW - 60, NOW)

    with pytest.raises(RailError) as refused:
        asyncio.run(ask())
    assert fault_of(refused.value, kind, words) == ""


def test_a_closed_client_says_so(service: str) -> None:
    client = Client(service, "demo-pro")
    client.symbols()
    client.close()
    with pytest.raises(RailError, match="closed") as refused:
        client.symbols("BTC")
    assert fault_of(refused.value) == ""

    async def ask() -> None:
        other = AsyncClient(service, "demo-pro")
        await other.close()
        await other.symbols()

    with pytest.raises(RailError, match="closed") as refused:
        asyncio.run(ask())
    assert fault_of(refused.value) == ""


@pytest.mark.parametrize("asked", ["RATES", "'events/funding'"])
def test_a_plan_that_is_too_small_is_one_line(ground: dict[str, Any], asked: str) -> None:
    free = f"tk.open('x.duckdb', base_url=service, api_key='demo-free').sync({asked}, '1h')"
    assert fault(free, ground, PlanRefusedError, ("plan",)) == ""
