"""Selections of a store's event logs: families, window, and the rows around events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import polars as pl

from toolkit.analyses import Analysis
from toolkit.client import Client
from toolkit.errors import BadRequestError, EmptyWindowError, InputError
from toolkit.intervals import Interval, intersection, total_s
from toolkit.market import (
    EventFamily,
    EventLog,
    EventRole,
    Family,
    Stream,
    Trajectory,
    When,
    parse_length,
)
from toolkit.series.logs import HeldEvents
from toolkit.statistics import events as event_statistics
from toolkit.statistics.core.contract import whole_number
from toolkit.statistics.events import STILL_OPEN, event_lifecycles
from toolkit.statistics.events.changes import CONTROL_DAYS, STUDIED, usual_s
from toolkit.statistics.events.documents import event_role
from toolkit.store import (
    Ledger,
    Store,
    chosen_window,
    event_logs,
    held_key,
    held_stretches,
    sync_advice,
)
from toolkit.wire.event_log import EventPage, document_frame
from toolkit.wire.findings import Finding
from toolkit.workspace.selection import OfLegs, Passes, Selection

AROUND = frozenset(("values", "rows", "spreads"))
"""Parameters of analyses for the rows of `toolkit.workspace.Workspace.around`."""
MARGIN_S = 28 * 86_400
"""The default margin of rows before and after a window."""


def rows_around(
    store: Store,
    trajectories: Iterable[str],
    window: Interval,
    margin_s: int,
    *,
    on: Trajectory | str | None = None,
    as_of: int | None = None,
) -> pl.LazyFrame:
    """Return the stored rows of the trajectories in which a window's events opened.

    With ``on`` those of that trajectory. A pair stored in the other orientation is turned.
    """
    whole_number("margin_s", margin_s, 0)
    keys = sorted({each for each in trajectories if each}) if on is None else [str(on)]
    asked = [Trajectory.parse(key) for key in keys]
    known = set(store.catalogue().filter(pl.col("rows") > 0)["stream"])
    found: dict[OfLegs, OfLegs] = {
        each: Trajectory.parse(at) for each in asked if (at := held_key(each.key, known))
    }
    if not found:
        if not asked:
            raise EmptyWindowError(f"no event opened in {window}")
        what, does = f"no rows of {on}", "loads it"
        if on is None:
            what = f"none of the {len(asked)} trajectories in which events opened"
            does = "loads the first"
        advice = sync_advice(store, asked[0].key, does=does)
        raise EmptyWindowError(f"{store.name} holds {what}; {advice}")
    read = Interval(window.start - margin_s, window.end + margin_s)
    passes = Passes.of(store, as_of=as_of)
    return Selection(passes, asked[0].kind, found, read).scan(read)


OF_FAMILY = {
    EventFamily.SPLASH: Family.PRICE,
    EventFamily.SPREAD: Family.SPREAD,
    EventFamily.FUNDING: Family.FUNDING,
}
"""The family of the rows in which events of a family open."""

_LATE_S = 86_400
"""Margin beyond a path's sides: it may start, and a value be used, up to three steps late."""


@dataclass(frozen=True, slots=True)
class EventSelection:
    """Event logs of a store over a window, as analyses take them.

    ``on`` is the trajectory around the events of its symbol, by default each event's own.
    """

    store: Store
    families: tuple[EventFamily, ...]
    events: HeldEvents
    on: Trajectory | None = None

    @classmethod
    def of(
        cls,
        store: Store,
        families: EventFamily | Iterable[EventFamily] | None = None,
        start: When | None = None,
        end: When | None = None,
        *,
        on: Trajectory | str | None = None,
        names: tuple[str, str] = ("start", "end"),
    ) -> Self:
        """Read the logs of some families, by default all, in one state of the store.

        The default window is all that is known. Raises `EmptyWindowError` if no such log is stored.
        """
        wanted = [families] if isinstance(families, EventFamily) else list(families or EventFamily)
        other = None if on is None else Trajectory.parse(on)
        with store.reading():
            ledger, logs = known = _known_of(store, wanted)
            window = _window_of(store, (start, end), wanted, known, names)
            read = event_statistics.documents_window(window)
            documents = pl.concat([store.events(each, read, whole=False) for each in wanted])
            held = held_stretches(ledger, logs)
        return cls(
            store, tuple(wanted), HeldEvents(window, documents, logs, held, wanted[0]), other
        )

    @property
    def window(self) -> Interval:
        """The window."""
        return self.events.window

    @property
    def family(self) -> EventFamily:
        """The family for analyses of one log: the first."""
        return self.families[0]

    @property
    def column(self) -> str:
        """The column studied around the events."""
        return STUDIED[OF_FAMILY[self.family] if self.on is None else Family(self.on.kind)]

    @property
    def share(self) -> float | None:
        """The log's coverage of the window, None if no load requested it."""
        log = EventLog(self.family)
        with self.store.reading():
            known = self.store.ledger([log]).get(log)
            if known is None or not intersection(known.answered, [self.window]):
                return None
            states = self.store.coverage(log, self.window).filter(state="held")
        held = states.select("start_ts", "end_ts").iter_rows()
        return total_s(Interval(*each) for each in held) / self.window.length_s

    def rows_around(self, analysis: Analysis, options: Mapping[str, Any]) -> pl.LazyFrame:
        """Return the rows around events for an analysis with some options."""
        usual, less = usual_s(self.column), options.get("less")
        sides = [options.get(name) or usual for name in ("before_s", "after_s")]
        sides += options.get("horizons_s") or []
        margin_s = sum(sides) + _LATE_S * (1 + CONTROL_DAYS * (less == "controls"))
        if "runs" in analysis.takes:  # the events are moved to all other times
            margin_s = MARGIN_S
        keys = self.events.openings(self.on)["trajectory"]
        return rows_around(self.store, keys, self.window, margin_s, on=self.on)

    def answer(self, analysis: Analysis, **options: Any) -> pl.DataFrame:
        """Compute an analysis of the events, with the stored values around them."""
        if "values" in analysis.takes:
            options["values"] = self.rows_around(analysis, options)
        return self.events.answer(analysis, on=self.on, **options)


def event_window(
    store: Store,
    start: When | None,
    end: When | None,
    families: Iterable[EventFamily] = EventFamily,
    *,
    names: tuple[str, str] = ("start", "end"),
) -> Interval:
    """Return the window given, by default all that is known of some logs.

    Raises `EmptyWindowError` if none is stored.
    """
    wanted = list(families)
    with store.reading():
        known = _known_of(store, wanted)
    return _window_of(store, (start, end), wanted, known, names)


_Known = tuple[dict[Stream, Ledger], pl.DataFrame]


def _known_of(store: Store, families: Iterable[EventFamily]) -> _Known:
    """Return the ledger of some logs, and the rows of all logs in the catalogue."""
    return store.ledger([EventLog(each) for each in families]), event_logs(store.catalogue())


def _window_of(
    store: Store,
    ends: tuple[When | None, When | None],
    wanted: Sequence[EventFamily],
    known: _Known,
    names: tuple[str, str],
) -> Interval:
    ledger, logs = known
    held = logs.drop_nulls("first_ts").filter(pl.col("family").is_in([*map(str, wanted)]))
    stretches = [stretch for each in ledger.values() for stretch in each.answered]
    stretches += [Interval(a, b + 1) for a, b in held.select("first_ts", "last_ts").iter_rows()]
    if not stretches:
        which, what = wanted[0].value, f"no log of {wanted[0]} events"
        if len(wanted) > 1:
            which, what = "*", "no event log"
        advice = sync_advice(store, f"events/{which}", does="loads them")
        raise EmptyWindowError(f"{store.name} holds {what} yet; {advice}")
    everything = Interval(min(s.start for s in stretches), max(s.end for s in stretches))
    return chosen_window(store, *ends, lambda: everything, names=names)


_STATES = ("open", "closed")


@dataclass(frozen=True, slots=True)
class OpenEvents:
    """Open events, the window searched, and deviations from the expected interface."""

    rows: pl.DataFrame
    window: Interval
    findings: Counter[Finding]


def open_events(client: Client, family: EventFamily | str, back: str = "7d") -> OpenEvents:
    """Find the events of a log that are open now, by the clock of the service.

    Requests open documents, then closed ones, as a log may show the opening of an event that is
    over; all if the service refuses the filter. ``back`` (90s, 10m, 2h, 7d) is at most the log's
    retention: an event without a document since then is not found.

    The rows are the open ones of `toolkit.statistics.events.event_lifecycles`, newest first:
    ``t_open`` is null if the opening was not seen, ``known_until`` is now. Raises `InputError` for
    an unknown family or length, and `ServiceError`.
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
