"""A fake of exchanges on loopback: the real, unmodified classes of ccxt read its answers.

It answers under ``/HOST/PATH``. ``RAIL_EXCHANGES_AT`` is its address.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.exchanges.fake.binance import Binance, Mexc
from tests.exchanges.fake.bybit import Bitget, Bybit
from tests.exchanges.fake.gate import Gate, Kucoin
from tests.exchanges.fake.hyperliquid import Deribit, Hyperliquid
from tests.exchanges.fake.kraken import Coinbase, Kraken
from tests.exchanges.fake.okx import Okx
from tests.exchanges.fake.venue import TooLongAgo, Trouble, Unknown, Venue
from tests.exchanges.truth import Truth
from tests.other_services.server import HANGS_UP, Answer, Question, serving

__all__ = ["Fake", "Trouble"]

VENUES: tuple[type[Venue], ...] = (
    *(Binance, Bybit, Okx, Kraken, Coinbase, Hyperliquid),
    *(Gate, Kucoin, Bitget, Deribit, Mexc),
)
HTML = b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body></body></html>"


@dataclass(frozen=True)
class _Dated:
    """The clock of the header ``Date``, where an answer has none of its own."""

    now: Callable[[], float]

    def http_date(self) -> str:
        return formatdate(self.now(), usegmt=True)


class Fake:
    """Exchanges over a truth, by a clock that tests step; ``trouble`` is by name, in upper case.

    >>> with Fake(Truth(), now=lambda: 1795651200.0) as fake:
    ...     fake.trouble["KRAKEN"].down = "reset"
    ...     print(fake.at.rpartition(":")[0])
    http://127.0.0.1
    """

    def __init__(
        self, truth: Truth | None = None, now: Callable[[], float] = time.time, port: int = 0
    ) -> None:
        self.now, self.at, self._port = now, "", port
        self.clock: Any = _Dated(now)
        self.requests: list[str] = []  # by the name of the exchange
        self.trouble: dict[str, Trouble] = defaultdict(Trouble)
        self.truth = truth or Truth()
        venues = [each(self.truth, self.trouble[each.name]) for each in VENUES]
        self._venues = {host: venue for venue in venues for host in venue.hosts}
        self._saved: dict[tuple[str, ...], list[dict[str, Any]]] | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._open = ExitStack()

    @classmethod
    def replaying(cls, path: Path, now: Callable[[], float] = time.time) -> Self:
        """Answer what a file saved by `rail serve --check-exchanges --save` holds, and no more."""
        fake = cls(now=now)
        fake._saved = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            saved = json.loads(line)
            url = urlsplit(saved["url"])
            asked = _asked(dict(parse_qsl(url.query)), saved.get("body") or "")
            fake._saved.setdefault(_question(url.netloc, url.path, asked), []).append(saved)
        return fake

    def __enter__(self) -> Self:
        self.at = self._open.enter_context(serving(self, self._port))
        self._open.callback(self._closing.set)  # before the server waits for its threads
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def answer(self, question: Question) -> Answer:
        """Answer a request: by what is wrong, by a saved file, or as the exchange does."""
        _, host, path = question.path.split("/", 2)
        path = f"/{path}"
        asked = _asked(question.parameters, question.content.decode())
        venue = self._venues.get(host)
        exchange = venue.name if venue else host
        with self._lock:
            self.requests.append(exchange)
            trouble = self.trouble[exchange]
            refused = _refused(trouble, self.now()) if trouble.meets(path) else None
            if refused is None:
                answer = self._told(host, path, asked)
        if refused is not None:
            if trouble.down == "silence":
                self._closing.wait(60)
            return refused
        date = formatdate(self.now() + trouble.skew_s, usegmt=True)
        return Answer(answer.body, answer.status, {"Date": date, **answer.headers})

    def _told(self, host: str, path: str, asked: dict[str, Any]) -> Answer:
        if self._saved is not None:
            saved = self._saved.get(_question(host, path, asked))
            return _replayed(saved) if saved else Answer({"message": f"not saved: {asked}"}, 404)
        if host not in self._venues:
            return Answer({"message": f"no exchange has the host {host}"}, 404)
        venue = self._venues[host]
        venue.trouble = self.trouble[venue.name]
        venue.host, venue.now_ms = host, int(1000 * (self.now() + venue.trouble.skew_s))
        try:
            told = venue.answer(path, asked)
        except TooLongAgo:
            told = venue.too_long_ago()
        except Unknown:
            told = venue.unknown()
        return told if isinstance(told, Answer) else Answer(told)


def _replayed(saved: list[dict[str, Any]]) -> Answer:
    """Return the first of the answers to a question, and the last of them from then on."""
    told = saved.pop(0) if len(saved) > 1 else saved[0]
    left_out = {"content-length", "content-encoding", "transfer-encoding", "connection"}
    headers = {x: y for x, y in told["headers"].items() if x.lower() not in left_out}
    return Answer(told["text"].encode(), told["status"], headers)


def _asked(parameters: Any, content: str) -> dict[str, Any]:
    """Return what is asked: the query, and a body of JSON."""
    body = json.loads(content) if content.startswith("{") else {}
    return {**parameters, **body}


def _question(host: str, path: str, asked: dict[str, Any]) -> tuple[str, ...]:
    """Return what two requests have in common that ask the same at other times."""
    flat = {**asked, **asked.get("req", {})}
    told = sorted(f"{x}={y}" for x, y in flat.items() if x != "req" and not _is_time(x, y))
    return (host, path, *told)


def _is_time(name: str, value: object) -> bool:
    """Return whether a field of a question is a moment: a date, or a number as large as one."""
    text = str(value)
    if text.lstrip("-").isdigit():
        return len(text) >= 9 or name in {"startTime", "since", "from", "start", "before"}
    return text[:4].isdigit() and text[4:5] == "-"


def _refused(trouble: Trouble, now_s: float) -> Answer:
    if trouble.down in {"reset", "silence"}:
        return Answer(HANGS_UP)
    date = {"Date": formatdate(now_s + trouble.skew_s, usegmt=True)}
    if trouble.down == "html":
        return Answer(HTML, 200, {"Content-Type": "text/html; charset=utf-8", **date})
    if trouble.retry_after is not None:
        date["Retry-After"] = trouble.retry_after_text(now_s + trouble.skew_s)
    if trouble.status in {403, 502}:
        return Answer(HTML, trouble.status, {"Content-Type": "text/html", **date})
    message = {429: "Too many requests", 451: "Service unavailable from a restricted location"}
    return Answer({"code": 0, "msg": message.get(trouble.status, "")}, trouble.status, date)
