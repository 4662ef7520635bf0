"""Asking the archive, again and again, for what a capture's ledger lacks.

A sweep asks for each stream from where the ledger's answers end to the service's present, and for
the gaps that are still open. The youngest part is asked for in every sweep until the archive has
settled past it: so much overlap is what loses nothing, however late the archive is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from toolkit.client import Client
from toolkit.intervals import Interval, split, union
from toolkit.loader.events import DAY_S, Window
from toolkit.loader.progress import Asked
from toolkit.loader.run import Piece, Task
from toolkit.loader.sync import Work, bound_source
from toolkit.market import EventFamily
from toolkit.store import Edge, Store, to_ask
from toolkit.tables import GapStatus

__all__ = ["Sweeper"]


class Sweeper:
    """Asks for what the store lacks of some streams since a moment.

    ``put`` takes the pages, and says whether more are wanted.
    """

    def __init__(
        self,
        client: Client,
        store: Store,
        asked: Sequence[Asked],
        since: int,
        put: Callable[[Piece], bool],
        *,
        workers: int,
    ) -> None:
        self._client = client
        self._store = store
        self._asked = asked
        self._since = since
        self._put = put
        self._workers = workers
        self._unwanted = False

    def sweep(self) -> None:
        """One sweep; raises what a load raises, what came before is handed on."""
        profile = self._client.discover()
        served_at = self._client.served_at()
        bound_source(self._client, self._store)
        windows = self._windows(served_at)
        ledger, event_ledger = self._store.ledger(), self._store.event_ledger()
        tasks: list[Task] = []
        for asked in self._asked:
            if isinstance(asked, EventFamily):
                log, held = profile.events[asked], event_ledger.get(asked)
                edge = Edge(served_at, log.delay_s, log.retention_s, step_s=0)
                longest_s = min(DAY_S, log.longest_window_s - 1)
                for window in windows[asked]:
                    for stretch in to_ask(window, held.answered if held else [], edge):
                        tasks += [Window(log, part, edge) for part in split(stretch, longest_s)]
            else:
                route, known = profile.histories[asked.family], ledger.get(asked)
                step_s = known.edge.step_s if known else None
                edge = Edge(served_at, route.delay_s, route.retention_s, step_s)
                for window in windows[asked]:
                    for stretch in to_ask(window, known.answered if known else [], edge):
                        tasks.append(Work(asked, stretch, edge))
        with ThreadPoolExecutor(self._workers, thread_name_prefix="rail-sweep") as pool:
            for _ in pool.map(self._fetch, tasks):
                pass

    def _fetch(self, task: Task) -> None:
        if self._unwanted:
            return
        for piece in task.fetch(self._client):
            if not self._put(piece):
                self._unwanted = True
                return

    def _windows(self, served_at: int) -> dict[Asked, list[Interval]]:
        """Per stream: since the capture began, and the gaps that some capture left open."""
        left = self._store.gaps().filter(
            pl.col("status") == GapStatus.OPEN, pl.col("end_ts").is_not_null()
        )
        gaps: dict[tuple[str, str | None], list[tuple[int, int]]] = {}
        for stream, key, start, end in left.select("stream", "key", "start_ts", "end_ts").rows():
            gaps.setdefault((stream, key), []).append((start, end))
        whole = (self._since, max(served_at, self._since + 1))
        return {asked: union([whole, *gaps.get(_name(asked), [])]) for asked in self._asked}


def _name(asked: Asked) -> tuple[str, str | None]:
    """How `Store.gaps` names a stream."""
    if isinstance(asked, EventFamily):
        return f"{asked} events", None
    return asked.family.value, asked.key
