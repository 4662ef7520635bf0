"""Loading the event logs: window by window, each paged to its end, every document once.

A log's window is answered for only when its last page has come, so a killed load asks for the
windows under way again and finds their documents held. Windows are days, the oldest first: what
leaves the archive soonest is fetched first. Neighbouring windows share a second, because whether a
window's end belongs to it is the service's affair; documents that come twice are stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from toolkit.client import Client
from toolkit.intervals import Interval, difference, split
from toolkit.loader.progress import Asked, LoadResult, Progress
from toolkit.loader.run import Piece, Run
from toolkit.loader.sync import begin_load, bound_source, checked_workers
from toolkit.market import EventFamily
from toolkit.store import Batch, Edge, Store, to_ask
from toolkit.wire.event_routes import EventRoute
from toolkit.wire.events import EventPage

__all__ = ["DAY_S", "Window", "sync_events"]

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Window:
    """One window of a log, to be paged to its end."""

    route: EventRoute
    window: Interval
    edge: Edge

    @property
    def asked_s(self) -> int:
        """Seconds of the window."""
        return self.window.length_s

    def fetch(self, client: Client) -> Iterator[Piece]:
        """The window's pages; the last one vouches for all of it."""
        shared = Interval(self.window.start, self.window.end + 1)
        for page in client.event_pages(self.route.family, shared):
            answered_s = self.asked_s if page.last else 0
            yield Piece(partial(self._put, page), page.frame.height, answered_s, page.findings)

    def _put(self, page: EventPage, batch: Batch) -> None:
        answered = self.window if page.last else None
        batch.add_documents(self.route.family, page.frame, answered, self.edge)


def sync_events(
    client: Client,
    store: Store,
    families: Sequence[EventFamily],
    start: int,
    end: int,
    *,
    workers: int = 4,
    on_progress: Callable[[Progress], object] | None = None,
) -> LoadResult:
    """Bring every document of the logs with ``start <= ts < end`` into the store, once.

    Asks only for what the ledger lacks; the youngest part (younger than the plan's delay and the
    time an archive settles) is asked for again each time. Raises as `toolkit.loader.sync`.
    """
    window = Interval.checked(start, end)
    checked_workers(workers)
    began = time.monotonic()
    profile, served_at = client.discover(), client.served_at()
    source = bound_source(client, store)
    ledger = store.event_ledger()
    load_id = begin_load(client, store, served_at)
    tasks: list[Window] = []
    beyond: dict[Asked, list[Interval]] = {}
    for family in dict.fromkeys(families):
        route = profile.events[family]
        edge = Edge(served_at, route.delay_s, route.retention_s, step_s=0)
        answered = ledger[family].answered if family in ledger else []
        longest_s = min(DAY_S, route.longest_window_s - 1)
        for stretch in to_ask(window, answered, edge):
            tasks.extend(Window(route, part, edge) for part in split(stretch, longest_s))
        oldest = edge.reachable_from
        gone = [] if oldest is None else [(window.start, min(oldest, window.end))]
        if lost := difference(gone, answered):
            beyond[family] = lost
    tasks.sort(key=lambda task: task.window)
    run = Run(store, load_id, tasks, on_progress)
    run.carry_out(client, workers)
    findings = tuple(sorted(run.findings.items(), key=str))
    store.finish_load(load_id, [asdict(f) | {"times": times} for f, times in findings])
    held = store.event_counts(*window)
    return LoadResult(
        source=source,
        window=window,
        asked=tuple(dict.fromkeys(families)),
        rows=run.inserted,
        pages=run.pages,
        elapsed_s=time.monotonic() - began,
        silent=tuple(family for family in dict.fromkeys(families) if family not in held),
        unrecoverable=beyond,
        findings=findings,
    )
