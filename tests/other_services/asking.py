"""Ask another service over a real socket, with no more than the interface document says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.other_services.data import NOW
from tests.other_services.server import API_KEY

KEY = {"Authorization": f"Bearer {API_KEY}"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: status, headers, and the body as JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any


def ask(
    base_url: str, path: str, headers: Mapping[str, str] | None = None, **parameters: object
) -> Reply:
    """Send a GET request to a path below ``/api/v1/data/``, with the valid key by default."""
    url = f"{base_url}/api/v1/data/{path}?{urlencode(parameters)}"
    request = Request(url, headers=dict(KEY if headers is None else headers))
    try:
        with urlopen(request, timeout=30) as answer:
            return Reply(answer.status, answer.headers, json.load(answer))
    except HTTPError as refusal:
        with refusal:
            return Reply(refusal.code, refusal.headers, json.load(refusal))


def event_pages(base_url: str, family: str, **parameters: object) -> Iterator[list[Any]]:
    """Yield the items of each page of the last seven days, as the interface document pages them."""
    window = {"start_time": NOW - 7 * 86_400, "end_time": NOW, **parameters}
    cursor: dict[str, object] = {}
    while True:
        page = ask(base_url, f"history/{family}-events", **window, **cursor).body
        yield page["items"]
        if not page["has_more"]:
            return
        cursor = {"cursor": page["next_cursor"]}
