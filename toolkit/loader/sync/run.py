"""One load under way: workers fetch and decode pages, one thread commits them.

The store's file is open only while a batch is written. What a batch carries, rows and the ledger
entries that vouch for them, is one transaction: a killed load goes on where the last commit ended.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from toolkit.client import Client
from toolkit.ending import under_way
from toolkit.errors import (
    KeyRefusedError,
    QuotaError,
    ServiceError,
    StoreSourceError,
    UnavailableError,
    UnreachableError,
)
from toolkit.loader.sync.progress import Progress
from toolkit.loader.sync.tasks import Piece, Task
from toolkit.loader.sync.workers import workers_on
from toolkit.market import Stream
from toolkit.store import Batch, Inserted, StoreWriter
from toolkit.wire.findings import Findings
from toolkit.wire.limits import LIMITS, Limits

_PAGES_A_COMMIT = 250
_ROWS_A_COMMIT = 250_000
_SECONDS_A_COMMIT = 2.0
_WAITING_PIECES = 32
OF_ALL = (KeyRefusedError, QuotaError, UnreachableError)
"""The refusals that concern all that a service is asked for."""
_FAILED_STREAMS = 3
_LOOK_S = 0.5  # a wait without an end would not hear Ctrl-C: polars sets the signal so


@dataclass(frozen=True, slots=True)
class _RefusedStream:
    """A stream that the service refused, and how."""

    stream: Stream
    error: ServiceError


class Run:
    """Carries tasks out. Counts what came in ``pages``, ``inserted`` and ``findings``.

    ``re_asked`` of the pages were asked for again.

    A refusal of one stream ends that stream alone: it is kept in ``refused``. What concerns all of
    them ends the run: the key, the quota, a service that is out of reach or fails stream after
    stream.

    ``check_source`` asks the service whose it is, and raises where that has changed. It is called
    before each commit, since another service may have taken the address over in the meantime. What
    came since the last commit is then dropped. When an error ends the run nothing is asked: what
    had come is kept.
    """

    def __init__(
        self,
        writer: StoreWriter,
        load_id: int,
        tasks: Sequence[Task],
        on_progress: Callable[[Progress], object] | None,
        check_source: Callable[[], object],
        *,
        limits: Limits = LIMITS,
    ) -> None:
        self._check_source = check_source
        self.pages = self.re_asked = 0
        self.inserted = Inserted()
        self.findings = Findings(limits)
        self.refused: dict[Stream, ServiceError] = {}
        self._failed_in_a_row = 0
        self._limits = limits
        self._writer = writer
        self._load_id = load_id
        self._tasks = tasks
        self._asked_s = sum(task.asked_s for task in tasks)
        self._answered_s = 0
        self._rows = 0
        self._on_progress = on_progress
        self._arrived: queue.Queue[Piece | _RefusedStream | BaseException | None] = queue.Queue(
            _WAITING_PIECES
        )
        self._stop = threading.Event()
        self._batch = Batch()
        self._in_batch = Counter[str]()
        self._began = self._batch_began = time.monotonic()

    def carry_out(self, client: Client, workers: int) -> None:
        """Fetch everything. Whatever ends it, the pages received whole are committed.

        The exception is another source at the address: see the class. Where the process ends
        meanwhile, the thread that called ends with it, quietly.
        """
        threads = workers_on(
            self._tasks,
            lambda task: self._fetch(client, task),
            self._hand_over,
            workers=workers,
            stop=self._stop,
        )
        with under_way(self._stop.set):
            for thread in threads:
                thread.start()
            try:
                self._receive(len(threads))
                self._commit_checked()
            finally:
                self._stop.set()
                self._commit()
                if self.pages:
                    self._writer.keep_allowance(self._load_id, client.allowance)
            for thread in threads:
                thread.join()

    def _fetch(self, client: Client, task: Task) -> Iterator[Piece]:
        """Yield what a task brings, and hand it over; runs in a worker."""
        if task.stream in self.refused:
            return
        try:
            for piece in task.fetch(client):
                yield piece
                self._hand_over(piece)
                if self._stop.is_set():
                    return
        except OF_ALL:
            raise
        except ServiceError as error:
            self._hand_over(_RefusedStream(task.stream, error))

    def _hand_over(self, item: Piece | _RefusedStream | BaseException | None) -> None:
        while not self._stop.is_set():
            try:
                self._arrived.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def _receive(self, workers: int) -> None:
        while workers:
            if self._stop.is_set():  # because the process ends: nobody is left to raise anything to
                raise SystemExit
            try:
                item = self._arrived.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if item is None:
                workers -= 1
            elif isinstance(item, BaseException):
                raise item
            elif isinstance(item, _RefusedStream):
                self._keep_refusal(item)
            else:
                self._failed_in_a_row = 0
                self._take(item)

    def _keep_refusal(self, refused: _RefusedStream) -> None:
        if isinstance(refused.error, UnavailableError):
            self._failed_in_a_row += 1
        if self._failed_in_a_row == _FAILED_STREAMS:
            raise refused.error
        self.refused.setdefault(refused.stream, refused.error)

    def _take(self, piece: Piece) -> None:
        if not self._in_batch:
            self._batch_began = time.monotonic()
        piece.put(self._batch)
        self._in_batch.update(pages=piece.pages, rows=piece.rows * piece.row_size)
        self.pages += piece.pages
        self.re_asked += piece.re_asked
        self._rows += piece.rows
        self._answered_s += piece.answered_s
        self.findings.add(piece.findings)
        full = (
            self._in_batch["pages"] >= _PAGES_A_COMMIT
            or self._in_batch["rows"] >= _ROWS_A_COMMIT
            or time.monotonic() - self._batch_began >= _SECONDS_A_COMMIT
        )
        if full:
            self._commit_checked()
        self._report()

    def _commit_checked(self) -> None:
        if not self._in_batch:
            return
        try:
            self._check_source()
        except StoreSourceError:
            self._batch = Batch()
            self._in_batch.clear()
            raise
        self._commit()

    def _commit(self) -> None:
        if self._in_batch:
            batch, self._batch = self._batch, Batch()
            self._in_batch.clear()
            self.inserted += self._writer.commit(self._load_id, batch, self._limits)

    def _report(self) -> None:
        if self._on_progress:
            elapsed_s = time.monotonic() - self._began
            self._on_progress(
                Progress(self._rows, self.pages, self._answered_s, self._asked_s, elapsed_s)
            )
