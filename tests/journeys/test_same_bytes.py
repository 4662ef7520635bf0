"""A seed's answers are the same bytes after a restart, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
import msgspec
import pytest

from toolkit.market import parse_ts

from .conftest import serving

SERVING = ("--seed", "7", "--now", "2026-11-20")
END = parse_ts("2026-11-20")
LEGS = {
    "symbol": "BTC_USDT",
    "buy_exchange": "AURORA",
    "buy_market": "futures",
    "sell_exchange": "BOREAS",
    "sell_market": "futures",
}
PRICE = {"symbol": "BTC_USDT", "exchange": "BOREAS", "market": "spot"}
EVENTS = {"start_time": END - 7 * 86_400, "end_time": END, "limit": 500}
QUESTIONS: list[tuple[str, dict[str, str | int]]] = [
    *(("history/price", PRICE | {"limit": 3_000, "end_time": END - d * 86_400}) for d in (0, 12)),
    *(("history/spread", LEGS | {"limit": 3_000, "end_time": END - d * 86_400}) for d in (0, 12)),
    ("history/funding", LEGS | {"limit": 500}),
    *((f"history/{family}-events", EVENTS) for family in ("splash", "funding", "spread")),
]


def ask(base_url: str, questions: Sequence[tuple[str, dict[str, str | int]]]) -> list[bytes]:
    headers = {"apikey": "demo-pro"}
    with httpx.Client(base_url=f"{base_url}/api/v1/data/", headers=headers, timeout=300) as client:
        answers = [client.get(path, params=query) for path, query in questions]
    assert {answer.status_code for answer in answers} == {200}
    assert all(len(answer.json()["items"]) > 50 for answer in answers)
    return [answer.content for answer in answers]


def test_another_process_answers_in_the_same_bytes_and_goes_on_with_a_cursor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    with serving(*SERVING) as one:
        first = ask(one, QUESTIONS)
        cursor = msgspec.json.decode(first[-1])["next_cursor"]
        older = [(QUESTIONS[-1][0], QUESTIONS[-1][1] | {"cursor": cursor})]
        following = ask(one, older)
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    with serving(*SERVING) as restarted:
        assert ask(restarted, older) == following
        assert ask(restarted, QUESTIONS[::-1])[::-1] == first
