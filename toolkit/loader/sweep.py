"""Asking the archive, again and again, for what the ledger lacks of a capture's streams.

A sweep asks for each stream from where the ledger's answers end to the service's present, and for
the gaps that are still open. The youngest part is asked for in every sweep until the archive has
settled past it: so much overlap is what loses nothing, however late the archive is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from toolkit.client import Client
from toolkit.intervals import Interval, union
from toolkit.loader.clock import ClockReading
from toolkit.loader.plan import plan
from toolkit.loader.sync import bound_source
from toolkit.loader.tasks import Piece, Task
from toolkit.market import Stream
from toolkit.store import StoreWriter
from toolkit.tables import GapStatus


class Sweeper:
    """Asks for what the store lacks of some streams since a moment.

    ``put`` takes the pages, and returns whether more are wanted.
    """

    def __init__(
        self,
        client: Client,
        writer: StoreWriter,
        streams: Sequence[Stream],
        since: int,
        put: Callable[[Piece], bool],
        *,
        workers: int,
    ) -> None:
        self._client = client
        self._store = writer.store
        self._writer = writer
        self._streams = streams
        self._since = since
        self._put = put
        self._workers = workers
        self._unwanted = False

    def sweep(self) -> None:
        """Sweep once. Raises what a load raises. What came before is handed on."""
        profile = self._client.discover()
        served_at = self._client.served_at()
        bound_source(self._client, self._writer)
        window = Interval(self._since, max(served_at, self._since + 1))
        self._writer.ask(self._streams, window)
        ledger = self._store.ledger(self._streams)
        clock = ClockReading.held_against(served_at, ledger.values())
        if clock.findings:
            self._put(Piece(lambda _: None, 0, 0, clock.findings))
        planned = plan(profile, ledger, self._windows(window), clock)
        with ThreadPoolExecutor(self._workers, thread_name_prefix="rail-sweep") as pool:
            for _ in pool.map(self._fetch, planned.tasks):
                pass

    def _fetch(self, task: Task) -> None:
        if self._unwanted:
            return
        for piece in task.fetch(self._client):
            if not self._put(piece):
                self._unwanted = True
                return

    def _windows(self, whole: Interval) -> dict[Stream, list[Interval]]:
        """Return for each stream the time since the capture began, and the gaps left open."""
        left = self._store.gaps().filter(
            pl.col("status") == GapStatus.OPEN, pl.col("end_ts").is_not_null()
        )
        gaps: dict[str, list[tuple[int, int]]] = {}
        for key, start, end in left.select("stream", "start_ts", "end_ts").rows():
            gaps.setdefault(key, []).append((start, end))
        return {stream: union([whole, *gaps.get(stream.key, [])]) for stream in self._streams}
