"""The way of a cursor through a window: where it goes in circles, or nowhere, it is ended."""

from __future__ import annotations

import hashlib

from toolkit.errors import PagingError, WireError
from toolkit.intervals import Interval
from toolkit.wire.limits import LIMITS, Limits


class CursorTrail:
    """The cursors of one window, and how far in time its pages have come.

    A page makes a step where a document is older than all before it or newer than all before it.
    Steps count up to the window's start on the way down, and up to its end on the way up.

    >>> trail = CursorTrail("/events", Interval(0, 60))
    >>> trail.follow("a", [59_000]), trail.follow("b", [58_000])
    (None, None)
    >>> trail.follow("a", [57_000])
    Traceback (most recent call last):
    toolkit.errors.PagingError: /events gave one cursor twice in ...: its pages go in circles
    """

    def __init__(self, path: str, window: Interval, limits: Limits = LIMITS) -> None:
        self._path = path
        self._window = window
        self._limits = limits
        self._seen: set[bytes] = set()
        self._oldest_ms: float = float("inf")
        self._newest_ms: float = float("-inf")
        self._without = 0

    def follow(self, cursor: str, times_ms: list[int]) -> None:
        """Take the next cursor and the times (ms) of the page that gave it.

        Raises `WireError` for one that is too long. Raises `PagingError` for one that came before,
        and after too many pages without a step in time.
        """
        size = len(cursor.encode())
        if size > (most := self._limits.cursor_bytes):
            raise WireError(
                f"{self._path} gave a cursor of {size:,} bytes in {self._window}; "
                f"at most {most:,} are followed; cursor_bytes of the limits allows more",
                url=self._path,
            )
        seen = hashlib.blake2b(cursor.encode(), digest_size=16).digest()
        if seen in self._seen:
            raise PagingError(
                f"{self._path} gave one cursor twice in {self._window}: its pages go in circles"
            )
        self._seen.add(seen)
        self._without = 0 if self._moved(times_ms) else self._without + 1
        if self._without >= self._limits.unmoved_pages:
            raise PagingError(
                f"{self._path} gave {self._without:,} pages in a row without a step in time in "
                f"{self._window}, each with another cursor: its pages do not end; "
                "unmoved_pages of the limits allows more"
            )

    def _moved(self, times_ms: list[int]) -> bool:
        if not times_ms:
            return False
        oldest = max(min(times_ms), 1000 * self._window.start)
        newest = min(max(times_ms), 1000 * self._window.end)
        moved = oldest < self._oldest_ms or newest > self._newest_ms
        self._oldest_ms = min(self._oldest_ms, oldest)
        self._newest_ms = max(self._newest_ms, newest)
        return moved
