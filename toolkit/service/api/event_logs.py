"""The bodies of the event logs: pages of documents, newest first, with a cursor."""

from __future__ import annotations

from dataclasses import fields

import msgspec
from msgspec import UNSET

from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.service.accounts.problems import bad_request
from toolkit.service.api.calls import Call
from toolkit.service.api.queries import LONGEST_WINDOW_S, EventQuery
from toolkit.service.events.archive import EventFilters
from toolkit.service.events.cursors import Position, open_, seal, secret_of
from toolkit.service.market.source import before_all

_FILTERS = [field.name for field in fields(EventFilters)]


def event_page(family: EventFamily, call: Call[EventQuery]) -> bytes:
    """Return the newest documents of a window that the plan shows, up to the limit.

    A document is shown when its second is over. An empty or too long window, and a cursor
    that is invalid or of another query, are a 400.
    """
    query = call.query
    _check_window(query)
    filters = {
        name: value for name in _FILTERS if (value := getattr(query, name, UNSET)) is not UNSET
    }
    bound = msgspec.json.encode(
        [family, query.start_time, query.end_time, filters, call.limit], order="sorted"
    )
    secret = secret_of(call.service.source.id)
    start = query.start_time if call.since is None else max(query.start_time, call.since)
    items, following = call.service.archive.page(
        family,
        start,
        query.end_time,
        filters=EventFilters(**filters),
        limit=call.limit,
        after=_after(query, bound, secret),
        visible_until=call.now,
    )
    page = {
        "type": f"{family}_events_page",
        "items": [msgspec.Raw(item) for item in items],
        "has_more": following is not None,
    }
    if lost := before_all(call.service.source, start, query.end_time):
        page["lost"] = [each._asdict() for each in lost]
    if following is not None:
        page["next_cursor"] = seal(following, bound, secret)
    return msgspec.json.encode(page)


def _check_window(query: EventQuery) -> None:
    length_s = query.end_time - query.start_time
    if length_s <= 0:
        raise bad_request([("start_time", "is not before end_time")])
    if length_s > LONGEST_WINDOW_S:
        detail = f"the window is {length_s} s long; at most {LONGEST_WINDOW_S} s (7 days)"
        raise bad_request([("end_time", detail)])


def _after(query: EventQuery, bound: bytes, secret: bytes) -> Position | None:
    if query.cursor is UNSET:
        return None
    try:
        return open_(query.cursor, bound, secret)
    except InputError as error:
        refused = f"{error.value!r} is not allowed; allowed: {error.allowed}"
        raise bad_request([("cursor", refused)]) from None
