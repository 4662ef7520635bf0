"""What waits for a follow's writer: bounded in bytes and pages, whatever the readers bring."""

from __future__ import annotations

import queue
import threading
from collections import deque

from toolkit.loader.reader import Message, ReaderItem
from toolkit.loader.tasks import Piece
from toolkit.wire.limits import LIMITS, Limits

InboxItem = ReaderItem | Piece | threading.Event

_WAITING_ITEMS, _WAITING_PAGES = 10_000, 32
_LOOK_S = 0.1


class Inbox:
    """Items that several threads put and one thread gets, in their order.

    A reader waits while ``waiting_bytes`` of the limits wait here, and its socket with it.

    >>> inbox = Inbox()
    >>> inbox.put(threading.Event()), inbox.empty
    (True, False)
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most_bytes = limits.waiting_bytes
        self.abandoned = threading.Event()
        self._items: deque[InboxItem] = deque()
        self._pages = self._bytes = 0
        self._changed = threading.Condition()

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._items

    def put(self, item: InboxItem) -> bool:
        """Put an item, after waiting while too much waits there. False once it is abandoned."""
        with self._changed:
            while not self._fits(item):
                if self.abandoned.is_set():
                    return False
                self._changed.wait(_LOOK_S)
            if self.abandoned.is_set():
                return False
            self._items.append(item)
            self._count(item, 1)
            self._changed.notify_all()
        return True

    def get(self, timeout: float) -> InboxItem:
        """Take the next item. Raises `queue.Empty` where none comes in time (s)."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._items, timeout):
                raise queue.Empty
            item = self._items.popleft()
            self._count(item, -1)
            self._changed.notify_all()
        return item

    def _fits(self, item: InboxItem) -> bool:
        if isinstance(item, Piece):
            return self._pages < _WAITING_PAGES
        if isinstance(item, Message) and self._bytes + len(item.body) > self._most_bytes:
            return self._bytes == 0  # a message that is larger than all that may wait goes alone
        return len(self._items) < _WAITING_ITEMS

    def _count(self, item: InboxItem, sign: int) -> None:
        if isinstance(item, Piece):
            self._pages += sign
        elif isinstance(item, Message):
            self._bytes += sign * len(item.body)
