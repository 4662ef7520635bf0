"""What the loader's benchmark loads, as its peers ask for it. Imports nothing of the toolkit."""

from __future__ import annotations

from typing import Any

START = 1_767_225_600
KEY = "demo-pro"
HISTORY = "/api/v1/data/history/price"
EVENTS = "/api/v1/data/history/spread-events"
EVENTS_A_PAGE = 500
WEEK_S = 7 * 86_400


def prices(leg: int, limit: int, end: int) -> dict[str, Any]:
    """Return what asks for the page of a leg's prices before ``end``."""
    leg_query = {"symbol": "AAA_USDT", "exchange": f"LEG{leg}", "market": "spot"}
    return {**leg_query, "end_time": end, "limit": limit}


def weeks(end: int) -> list[dict[str, Any]]:
    """Return what asks for the first page of each window of the event log."""
    starts = range(START, end, WEEK_S)
    return [
        {"start_time": start, "end_time": min(start + WEEK_S, end), "limit": EVENTS_A_PAGE}
        for start in starts
    ]
