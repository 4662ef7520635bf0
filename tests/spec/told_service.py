"""A service that is told rows and documents, answers as the specification says, and keeps what
it was asked. It shares nothing with the client."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.listening import Handler, listening

NOW = 1_795_953_607
DATE = "Sun, 29 Nov 2026 12:00:07 GMT"
DATA = "/api/v1/data/"


@dataclass
class Told:
    """What it has, and the questions that came: method, path, query, headers (in lower case).

    ``bodies`` are answers of a route, word for word, one after the other.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    schemas: dict[str, Any] = field(default_factory=dict)
    page: int = 1_000
    bodies: dict[str, list[str]] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    base_url: str = ""

    def queries(self, route: str) -> list[dict[str, str]]:
        """Return the queries of a route, in the order they came."""
        return [query for _, path, query, _ in self.asked if path == DATA + route]

    def answer(self, path: str, query: dict[str, str]) -> str | None:
        """Return the body of an answer, None where there is no such route."""
        route = path.removeprefix(DATA)
        if self.bodies.get(route):
            return self.bodies[route].pop(0)
        if route == "schemas":
            return json.dumps({"source": {"kind": "live", "id": "told"}, **self.schemas})
        if route == "symbols/search":
            return json.dumps({"items": [], "truncated": False})
        if route.endswith("-events"):
            return self._documents(query)
        return self._rows(query) if route.startswith("history/") else None

    def _rows(self, query: dict[str, str]) -> str:
        before = [row for row in self.rows if row["ts"] < int(query["end_time"])]
        page = sorted(before, key=lambda row: -row["ts"])[: min(self.page, int(query["limit"]))]
        more = len(page) < len(before)
        return json.dumps({"items": page, "next_end_time": page[-1]["ts"] if more else None})

    def _documents(self, query: dict[str, str]) -> str:
        low, high = int(query["start_time"]), int(query["end_time"])
        assert high - low <= 7 * 86_400
        found = [each for each in self.documents if low <= json.loads(each)["ts"] < high]
        found.sort(key=lambda each: -json.loads(each)["ts"])
        at = int(base64.urlsafe_b64decode(query["cursor"])) if "cursor" in query else 0
        end = at + min(self.page, int(query.get("limit", 200)), 500)
        cursor = json.dumps(base64.urlsafe_b64encode(str(end).encode()).decode())
        more = f'true,"next_cursor":{cursor}' if end < len(found) else "false"
        return f'{{"type":"page","items":[{",".join(found[at:end])}],"has_more":{more}}}'


@contextmanager
def told_service(**told: Any) -> Iterator[Told]:
    """Run the service at a free port."""
    service = Told(**told)

    class Telling(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            headers = {name.lower(): value for name, value in self.headers.items()}
            service.asked.append((self.command, parts.path, query, headers))
            body = (service.answer(parts.path, query) or "{}").encode()
            self.reply(200, body, {"Date": DATE})

    with listening(Telling) as service.base_url:
        yield service


def document(event: str | None, kind: str, ts: int, **more: Any) -> str:
    """Write a document of a spread event, with blanks and an odd number that no reader writes."""
    said = {"schema": "svc.spread.v1", "event_type": f"spread.{kind}", "ts": ts}
    said |= {"event_id": event} if event else {}
    said |= {"instrument": {"symbol": "BTC_USDT"}, "odd": 1.10, **more}
    return json.dumps(said, separators=(" , ", " : ")).replace("1.1", "1.10")
