"""The asyncio client: the same flows as `Client`'s, over real sockets."""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import logging

import pytest

from tests import miniature
from toolkit.client import AsyncClient, Client
from toolkit.errors import InputError, UnreachableError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, SnapshotKind, Trajectory, format_ts
from toolkit.wire.exchange import RetryPolicy

SPREAD = Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures")
PRICE = Trajectory.parse("ETH_USDT:BOREAS.spot")
LAST_DAY = Interval(miniature.END - 86_400, miniature.END)


def asked(base_url: str, key: str = "demo-pro", **options) -> AsyncClient:
    return AsyncClient(base_url, key, **options)


@pytest.mark.parametrize(
    "window",
    [
        (format_ts(LAST_DAY.start), dt.datetime.fromtimestamp(LAST_DAY.end, dt.UTC)),
        ("24h", None),
        (LAST_DAY.start, None),
    ],
    ids=["text and datetime", "a named window", "up to the present"],
)
def test_both_clients_take_text_as_a_workspace_does(base_url: str, window) -> None:
    named = "24h" if window[0] == "24h" else window
    both: dict[str, list[object]] = {}

    async def awaited():
        async with asked(base_url) as client:
            return [
                await client.history(SPREAD.key, *window),
                [page.answered async for page in client.pages(SPREAD.key, named)],
                [page.frame.height async for page in client.event_pages("events/spread", named)],
                await client.snapshot("snapshot/funding"),
            ]

    with Client(base_url, "demo-pro") as client:
        both["with objects"] = [
            client.history(SPREAD, *LAST_DAY),
            [page.answered for page in client.pages(SPREAD, LAST_DAY)],
            [page.frame.height for page in client.event_pages(EventFamily.SPREAD, LAST_DAY)],
            client.snapshot(SnapshotKind.FUNDING),
        ]
        both["with text"] = [
            client.history(SPREAD.key, *window),
            [page.answered for page in client.pages(SPREAD.key, named)],
            [page.frame.height for page in client.event_pages("events/spread", named)],
            client.snapshot("snapshot/funding"),
        ]
    both["awaited"] = asyncio.run(awaited())
    rows, *rest = both["with objects"]
    assert rows.height > 1_000
    for others, *other in (both["with text"], both["awaited"]):
        assert rows.equals(others)
        assert other == rest


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda client: client.history("BTC_USDT", "7d"), "BTC_USDT"),
        (lambda client: client.history(PRICE.key, "last week"), "start"),
        (lambda client: client.history(PRICE, 60, 60), "window"),
        (lambda client: client.history(PRICE, 61, 60), "window"),
        (lambda client: client.pages(PRICE.key, "last week"), "window"),
        (lambda client: client.pages(PRICE.key, ("2023-03-02", "2023-03-01")), "before its end"),
        (lambda client: client.event_pages("pump", "7d"), "pump"),
    ],
)
def test_what_is_no_key_or_window_is_refused_before_the_service_is_asked(ask, word: str) -> None:
    async def awaited() -> None:
        async with AsyncClient("http://127.0.0.1:9", "key") as client:
            found = ask(client)
            if inspect.isasyncgen(found):
                await anext(found)
            else:
                await found

    with Client("http://127.0.0.1:9", "key") as client, pytest.raises(InputError) as refused:
        ask(client)
    with pytest.raises(InputError) as refused_later:
        asyncio.run(awaited())
    assert str(refused.value) == str(refused_later.value)
    assert word in str(refused.value)


def test_it_brings_the_same_listing_documents_clock_and_plan(base_url: str) -> None:
    async def everything():
        async with asked(base_url) as client:
            return (
                [p.frame async for p in client.event_pages(EventFamily.SPREAD, LAST_DAY)],
                await client.symbols("btc"),
                await client.served_at(),
                await client.discover(),
                client.allowance.plan,
            )

    documents, listing, served_at, profile, plan = asyncio.run(everything())
    with Client(base_url, "demo-pro") as client:
        others = [page.frame for page in client.event_pages(EventFamily.SPREAD, LAST_DAY)]
        assert len(documents) == len(others)
        assert all(one.equals(other) for one, other in zip(documents, others, strict=True))
        assert listing == client.symbols("btc")
        assert served_at == client.served_at() == miniature.END
        assert profile == client.profile()
    assert plan == "pro"


def test_many_calls_at_once_ask_for_the_schemas_once(scripted) -> None:
    scripted.answer(body={"tools": {}})
    scripted.answer(body={"items": [], "truncated": False})

    async def ask():
        async with asked(scripted.base_url) as client:
            await asyncio.gather(*(client.symbols() for _ in range(5)))

    asyncio.run(ask())
    assert scripted.paths.count("schemas") == 1
    assert scripted.paths.count("search") == 5


def test_waits_are_awaited_and_retries_counted(scripted) -> None:
    scripted.answer(503, headers={"Retry-After": "2"}, times=2)
    scripted.answer(body={"tools": {}})
    waits = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def ask():
        async with asked(scripted.base_url, sleep=sleep) as client:
            return await client.profile()

    assert asyncio.run(ask()).schema_hash
    assert all(2.0 <= wait <= 2.5 for wait in waits)
    assert len(waits) == 2


def test_a_cancelled_call_closes_its_connection_and_leaves_no_task(scripted) -> None:
    scripted.answer(body=b"{" + b" " * 100, sent=10, stalls=True)

    async def cancel():
        async with asked(scripted.base_url) as client:
            call = asyncio.create_task(client.profile())
            while not scripted.asked:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert asyncio.all_tasks() == {asyncio.current_task()}
            scripted.over.set()
            scripted.replies.clear()
            scripted.answer(body={"tools": {}})
            assert (await client.profile()).schema_hash  # neither lock nor pool is held
            return scripted.connections

    assert asyncio.run(cancel()) == 2
    scripted.wait_until_closed()
    assert not scripted.open_connections


def test_pages_that_are_not_read_to_the_end_leave_no_task(base_url: str) -> None:
    async def first():
        async with asked(base_url) as client:
            pages = client.pages(SPREAD, LAST_DAY)
            page = await anext(pages)
            await pages.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            again = await client.history(SPREAD, LAST_DAY.end - 600, LAST_DAY.end)
            return page, again

    page, again = asyncio.run(first())
    assert page.frame.height > again.height == 10


def test_nothing_that_is_logged_raised_or_shown_has_the_key(
    scripted, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sekrit-4711"
    caplog.set_level(logging.DEBUG)
    scripted.answer(400, {"detail": f"your key {key} is odd"})
    scripted.answer(status=0)
    shown = []

    async def ask():
        async with asked(scripted.base_url, key, retries=RetryPolicy(attempts=1)) as client:
            shown.append(repr(client))
            for _ in range(2):
                try:
                    await client.profile()
                except Exception as error:  # noqa: BLE001 - whatever it is, it shows no key
                    shown.append(repr(error) + str(error) + repr(error.__dict__))

    asyncio.run(ask())
    assert len(shown) == 3
    assert "***" in shown[1]
    assert UnreachableError.__name__ in shown[2]
    assert scripted.asked[0].headers["authorization"] == f"Bearer {key}"
    assert key not in "".join(shown) + caplog.text
