"""The cursor pager and the reading of event documents: kept whole, byte for byte.

A log's window is frozen while it is paged: start, end, filters and limit stay as they are, and the
cursor is followed exactly. An empty page ends the window; a cursor that comes twice is an error.
Source: machine-rail.md 4.1 "Retained event logs"; design.md decision 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from toolkit.errors import InputError, PagingError, WireError
from toolkit.intervals import Interval
from toolkit.tables import EVENT
from toolkit.wire.event_routes import EventRoute
from toolkit.wire.exchange import (
    UNREADABLE,
    Answer,
    Outcome,
    Request,
    RetryPolicy,
    Step,
    with_retries,
)
from toolkit.wire.profile import Finding

__all__ = ["EventPage", "event_pages", "read_document"]

_NUMBERS = {
    "ts": int,
    "ts_ms": int,
    "magnitude_pct": float,
    "peak_pct": float,
    "differential_pct_8h": float,
}


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of a window's documents, and whether the window is exhausted with it.

    ``frame`` has the columns of `toolkit.tables.EVENT` that a document fills, in the wire's order;
    documents outside the window are left out.
    """

    frame: pl.DataFrame
    last: bool
    findings: tuple[Finding, ...]


class _Envelope(msgspec.Struct):
    items: list[msgspec.Raw]
    more: bool
    cursor: str | None


def event_pages(
    route: EventRoute, window: Interval, policy: RetryPolicy
) -> Generator[Step | EventPage, Outcome, None]:
    """Yield steps to carry out and, between them, the pages of one frozen window, newest first.

    The window is at most the log's longest, else `InputError`. Raises what `with_retries` raises,
    `WireError` for a body that is no page, and `PagingError` where a cursor comes a second time.
    """
    if window.length_s > route.longest_window_s:
        raise InputError("window", str(window), f"at most {route.longest_window_s} s at a time")
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        request = Request.get(route.path, route.query(window, cursor))
        answer = yield from with_retries(request, policy)
        envelope = _envelope(route, answer)
        findings: list[Finding] = []
        cursor = envelope.cursor if envelope.more and envelope.items else None
        if envelope.more and not envelope.items:
            findings.append(Finding("more_without_more", route.path, "has_more with an empty page"))
        elif envelope.more and cursor is None:
            raise PagingError(
                f"{route.path} says that {window} has more, but gives no cursor to ask for it"
            )
        yield EventPage(
            _frame(route, envelope.items, window, findings), cursor is None, tuple(findings)
        )
        if cursor is None:
            return
        if cursor in seen:
            raise PagingError(
                f"{route.path} gave one cursor twice in {window}: its pages go in circles"
            )
        seen.add(cursor)


def _envelope(route: EventRoute, answer: Answer) -> _Envelope:
    try:
        page = msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
        items = msgspec.json.decode(page[route.items], type=list[msgspec.Raw])
        cursor = msgspec.json.decode(page.get(route.next, b"null"), type=str | None)
        more = msgspec.json.decode(page.get(route.more, b"null"), type=bool | None)
    except (*UNREADABLE, KeyError) as error:
        raise WireError(
            f"{answer.url or route.path} answered 200 with a body that is not an event page "
            f"({error})",
            status=answer.status,
            url=answer.url,
        ) from None
    return _Envelope(items, cursor is not None if more is None else more, cursor)


def _frame(
    route: EventRoute, items: list[msgspec.Raw], window: Interval, findings: list[Finding]
) -> pl.DataFrame:
    rows = [read_document(route, bytes(item), findings) for item in items]
    kept = [row for row in rows if window.start <= row["ts"] < window.end]
    if len(kept) < len(rows):
        says = f"{len(rows) - len(kept)} documents outside {window}"
        findings.append(Finding("outside_window", route.path, says))
    times = [row["ts_ms"] for row in rows]
    if times != sorted(times, reverse=True):
        findings.append(Finding("not_newest_first", route.path, "a page is out of order"))
    names = [c.name for c in EVENT.columns if c.name not in ("revision", "load_id")]
    schema = {name: EVENT.schema[name] for name in names}
    return pl.DataFrame([[row.get(name) for name in names] for row in kept], schema, orient="row")


def read_document(route: EventRoute, body: bytes, findings: list[Finding]) -> dict[str, Any]:
    """The columns of one document; what cannot be read stays null and is a finding.

    Raises `WireError` where it is no JSON object or has no time, for then nothing can be said.

    Examples
    --------
    >>> from toolkit.market import EventFamily
    >>> from toolkit.wire.event_routes import BUILT_IN_EVENTS
    >>> body = b'{"schema":"svc.splash.v1","event_type":"splash.pump","ts":60,"pct":11.4}'
    >>> row = read_document(BUILT_IN_EVENTS[EventFamily.SPLASH], body, [])
    >>> row["event_type"], row["ts_ms"], row["magnitude_pct"], row["event_id"][:7]
    ('splash.pump', 60000, 11.4, 'sha256:')
    """
    try:
        document = msgspec.json.decode(body, type=dict[str, Any])
    except UNREADABLE as error:
        raise WireError(
            f"{route.path} sent a document that is not a JSON object ({error})"
        ) from None
    row: dict[str, Any] = {"family": route.family.value, "document": body.decode()}
    for column, paths in route.paths.items():
        row[column] = _checked(route, column, _found(document, paths), findings)
    _set_times(route, row)
    if row["event_id"] is None:
        row["event_id"] = _fingerprint(document, route.volatile)
    return row


def _found(document: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    for path in paths:
        at: Any = document
        for name in path.split("."):
            at = at.get(name) if isinstance(at, dict) else None
        if at is not None:
            return at
    return None


def _checked(route: EventRoute, column: str, value: Any, findings: list[Finding]) -> Any:
    """The value if it is of the column's type; a whole float is a time, nothing else is bent."""
    kind = _NUMBERS.get(column, str)
    if kind is int and isinstance(value, int) and abs(value) >= 2**62:
        findings.append(Finding("out_of_range", f"{route.path}.{column}", "not a time"))
        return None
    if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    findings.append(Finding("type_changed", f"{route.path}.{column}", f"{type(value).__name__}"))
    return None


def _set_times(route: EventRoute, row: dict[str, Any]) -> None:
    """Seconds and milliseconds from whichever of the two is there."""
    if row["ts"] is None and row["ts_ms"] is None:
        raise WireError(f"{route.path} sent a document without a time")
    if row["ts"] is None:
        row["ts"] = row["ts_ms"] // 1000
    if row["ts_ms"] is None:
        row["ts_ms"] = row["ts"] * 1000


def _fingerprint(document: dict[str, Any], volatile: tuple[str, ...]) -> str:
    """What stands for an id where a service shows none: the hash of the lasting content."""
    lasting = {name: value for name, value in document.items() if name not in volatile}
    return "sha256:" + hashlib.sha256(msgspec.json.encode(lasting, order="sorted")).hexdigest()
