"""The client's half of the golden messages: it asks these questions, and reads these answers so.

`test_service_writes` holds the local service to the same files; the two sides share no code.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import BadRequestError
from toolkit.market import Family, Source, Symbol, Trajectory
from toolkit.wire.exchange import Request, Response, RetryPolicy, Send, refusal
from toolkit.wire.listing import list_symbols
from toolkit.wire.profile.profile import BUILT_IN, Profile, with_schemas
from toolkit.wire.rows.rows import read_history_page

END = 1793750400  # 2026-11-04 00:00 UTC


def golden(name: str) -> tuple[Request, Response]:
    """Return the question and the answer of a file."""
    message: dict[str, Any] = json.loads(
        Path(__file__).with_name(f"{name}.json").read_text("utf-8")
    )
    path, query = message["request"]["path"], message["request"]["query"]
    answer = Response(
        message["status"],
        {"content-type": message["content_type"]},
        json.dumps(message["body"]).encode(),
        f"http://rail.example{path}",
    )
    return Request.get(path, query), answer


@pytest.fixture
def profile() -> Profile:
    """The profile that the golden /schemas gives."""
    return with_schemas(BUILT_IN, golden("schemas")[1].body)


def test_the_schemas_confirm_the_built_in_profile(profile: Profile) -> None:
    assert golden("schemas")[0] == Request.get(BUILT_IN.schemas_path, {})
    assert {f.kind for f in profile.findings} <= {"tool_missing"}  # those of other messages
    assert profile.source == Source("simulated", "miniature-f96ce803e9e7887c")
    assert (profile.symbols_path, profile.symbols_limit) == ("/api/v1/data/symbols/search", 1000)
    for family in (Family.PRICE, Family.SPREAD):
        built_in = BUILT_IN.histories[family]
        told = replace(built_in, limit=5000, retention_s=2_592_000, delay_s=0, minimum_plan="free")
        assert profile.histories[family] == told


def test_a_price_page_is_three_prices_newest_first(profile: Profile) -> None:
    request, answer = golden("price_page")
    trajectory = Trajectory.parse("ETH_USDT:BOREAS.spot")
    route = replace(profile.histories[Family.PRICE], limit=3)
    assert request == Request.get(route.path, route.query(trajectory, END))
    page = read_history_page(route, trajectory, answer)
    assert page.frame.columns == ["ts", "price", "mark_price", "volume", "extra"]
    assert page.frame.rows() == [
        (1793750340, 3534.61, None, None, None),
        (1793750280, 3532.97, None, None, None),
        (1793750220, 3533.25, None, None, None),
    ]
    assert (page.next_end_time, page.ends, page.findings) == (1793750220, False, ())


def test_a_spread_page_is_three_spreads_positive_where_the_leg_sold_is_dearer(
    profile: Profile,
) -> None:
    request, answer = golden("spread_page")
    trajectory = Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures")
    route = replace(profile.histories[Family.SPREAD], limit=3)
    assert request == Request.get(route.path, route.query(trajectory, END))
    page = read_history_page(route, trajectory, answer)
    assert page.frame.columns == ["ts", "buy_price", "sell_price", "spread_pct", "extra"]
    assert page.frame.rows() == [
        (1793750340, 97152.5, 97265.7, 100 * (97265.7 / 97152.5 - 1), None),
        (1793750280, 97150.2, 97243.6, 100 * (97243.6 / 97150.2 - 1), None),
        (1793750220, 97144.7, 97255.1, 100 * (97255.1 / 97144.7 - 1), None),
    ]
    assert (page.next_end_time, page.ends, page.findings) == (1793750220, False, ())


def test_a_symbols_page_is_one_symbol_with_four_legs(profile: Profile) -> None:
    request, answer = golden("symbols_page")
    flow = list_symbols(profile, "BTC", RetryPolicy())
    assert next(flow) == Send(request)
    with pytest.raises(StopIteration) as stop:
        flow.send(answer)
    listing = stop.value.value
    assert list(map(str, listing.legs.pop(Symbol("BTC", "USDT")))) == [
        "AURORA.spot",
        "BOREAS.spot",
        "CORONA.futures",
        "DEX-SOLARIS.dex",
    ]
    assert (listing.legs, listing.truncated, listing.findings) == ({}, False, ())


def test_a_problem_is_a_refusal_with_its_reasons() -> None:
    error = refusal(golden("problem")[1])
    assert type(error) is BadRequestError
    assert error.status == 400
    assert error.url == "http://rail.example/api/v1/data/history/price"
    why = "exchange: 'NOWHERE' does not list ETH_USDT; search symbols/search"
    assert error.detail == f"Not understood: {why}; {why}"
    assert str(error) == f"{error.url} could not read the request (400): {error.detail}"
