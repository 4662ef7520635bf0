"""Open events of a log, asked of the service by its filter. Nothing of it is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from toolkit.client import Client
from toolkit.errors import BadRequestError, InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, EventRole, parse_length
from toolkit.statistics.events import STILL_OPEN, event_lifecycles
from toolkit.statistics.events.documents import event_role
from toolkit.wire.event_log import EventPage, document_frame
from toolkit.wire.findings import Finding

_STATES = ("open", "closed")


@dataclass(frozen=True, slots=True)
class OpenEvents:
    """The events that are open, over which window they were asked for, and what was odd."""

    rows: pl.DataFrame
    window: Interval
    findings: Counter[Finding]


def open_events(client: Client, family: EventFamily | str, back: str = "7d") -> OpenEvents:
    """Ask which events of a log are open now, by the clock of the service.

    The log is asked for documents of the state open, then of the state closed, since it may show
    the opening of an event that is over; without the filter where the service refuses that.
    ``back`` is how far back it looks (90s, 10m, 2h, 7d), at most as far as the log reaches: an
    event that opened earlier and was not updated since is not found.

    The rows are those of `toolkit.statistics.events.event_lifecycles` that are not closed, the
    newest first: ``t_open`` is null where the opening was not seen, ``known_until`` is now. Raises
    `InputError` for an unknown family or length of time, and `ServiceError`.
    """
    log = EventLog.of(str(family).removeprefix("events/")).family
    seconds = parse_length(back, parameter="back")
    route = client.discover().events[log]
    if route.retention_s is not None and seconds > route.retention_s:
        raise InputError("back", back, f"at most the {route.retention_s} s that the log reaches")
    now = client.served_at()
    window = Interval.checked(now - seconds, now)
    try:
        pages = [page for each in _STATES for page in _pages(client, log, window, each)]
    except BadRequestError:
        pages = list(_pages(client, log, window, None))
    documents = pl.concat([document_frame([]), *(page.frame for page in pages)]).unique()
    closes = (event_role() == EventRole.CLOSES).fill_null(value=False)
    documents = documents.sort("ts_ms", "event_id", closes, "document").with_row_index("arrival")
    lives = event_lifecycles(documents.with_columns(pl.col("arrival").cast(pl.Int64)), *window)
    found = lives.filter(pl.col("kind").is_in(STILL_OPEN))
    return OpenEvents(found, window, Counter(each for page in pages for each in page.findings))


def _pages(
    client: Client, family: EventFamily, window: Interval, lifecycle: str | None
) -> Iterator[EventPage]:
    longest_s = client.profile().events[family].window_s
    for start in range(window.start, window.end, longest_s):
        part = Interval(start, min(start + longest_s, window.end))
        yield from client.event_pages(family, part, lifecycle=lifecycle)
