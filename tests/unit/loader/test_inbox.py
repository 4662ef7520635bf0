"""What waits for a capture's writer, and what has to wait before it."""

from __future__ import annotations

import queue
import threading

import pytest

from toolkit.loader.follow.capture import Inbox
from toolkit.loader.follow.reader import Message
from toolkit.market import EventFamily, EventLog
from toolkit.wire.limits import Limits

MOST = 6_000
LOG = EventLog(EventFamily.SPLASH)


def test_messages_come_in_their_order_and_none_is_waited_for_in_vain() -> None:
    inbox = Inbox()
    for number in range(5):
        assert inbox.put(Message(LOG, b"%d" % number))
    taken = [inbox.get(1.0) for _ in range(5)]
    assert [message.body for message in taken if isinstance(message, Message)] == [
        *(b"%d" % number for number in range(5))
    ]
    assert inbox.empty
    with pytest.raises(queue.Empty):
        inbox.get(0.01)


def test_no_more_bytes_wait_than_are_allowed_and_a_larger_message_goes_alone() -> None:
    inbox = Inbox(Limits(waiting_bytes=MOST))
    bodies = [bytes(MOST // 3)] * 10 + [bytes(MOST + 1), b"x"]
    thread = threading.Thread(target=lambda: [inbox.put(Message(LOG, each)) for each in bodies])
    thread.start()
    waiting: list[int] = []
    for _ in bodies:
        inbox.get(30.0)
        waiting.append(sum(len(m.body) for m in list(inbox._items) if isinstance(m, Message)))
    thread.join()
    assert max(waiting) <= MOST + 1
    assert inbox.empty


def test_who_waits_to_put_ends_when_it_is_abandoned() -> None:
    inbox, said = Inbox(Limits(waiting_bytes=MOST)), list[bool]()
    assert inbox.put(Message(LOG, bytes(MOST)))
    thread = threading.Thread(target=lambda: said.append(inbox.put(Message(LOG, b"x"))))
    thread.start()
    inbox.abandoned.set()
    thread.join()
    assert said == [False]
