"""Limits on bytes, values, seconds, pages and documents, against a faulty service.

The user's profile sets them under ``[limits]`` (`toolkit.wire.profile.user_profile`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from toolkit.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a client, a capture and a webhook receiver. Each is above 0.

    docs/interface.md, "Limits", describes what happens beyond each.

    Parameters
    ----------
    body_bytes
        Bytes of an answer's body, after inflating. A page of 10,000 rows has 2 MB.
    body_values
        Values of a body, counted by its commas and opening brackets. Each becomes an object of
        Python, of up to 270 bytes. A page of 10,000 rows has 50,000.
    mcp_body_values
        The same over MCP, whose library holds each value several times.
    page_items
        Items of a page. 5,000 rows or 500 documents are asked for.
    document_bytes
        Bytes of an event document, or of the unknown fields of a row. A document has 600, and
        DuckDB takes 2,048 of them into memory at once: 32 MiB.
    answer_s
        Seconds in which an answer is whole, headers included: 64 MiB at 0.2 MiB per second.
    mcp_answer_s
        The same over MCP, whose answers are small.
    silence_s
        Seconds without a byte within an answer.
    connect_s
        Seconds in which a connection opens, and a socket with its headers.
    asked_wait_s
        Seconds that ``Retry-After`` may ask to wait. Quotas are counted per hour or less.
    retry_wait_s
        Seconds that the waits of one question take in all.
    cursor_bytes
        Bytes of a cursor. It becomes part of an address, and servers refuse addresses over 8 KiB.
    unmoved_pages
        Pages of an event log in a row without a step in time. A thousand pages, also of one
        document each, hold what happens in one millisecond.
    empty_pages
        Pages of a history in a row without a row.
    tool_pages
        Pages of MCP tools. A service has eleven tools.
    message_bytes
        Bytes of a stream's message. A record or document has 1 kB.
    socket_messages
        Messages that wait in a socket before no more is read: 16 MiB.
    waiting_bytes
        Bytes of messages that wait to be written. The reader then waits, and the sender with it.
        They are written together, half of these bytes at a time.
    delivery_bytes
        Bytes of a webhook delivery's body. A document has 600, and each commit takes up to 4,096
        bodies into memory.
    delivery_s
        Seconds in which a delivery's body is whole, so that a slow sender holds nothing.
    waiting_delivery_bytes
        Bytes of deliveries that wait to be written. Further ones are answered 503.
    document_versions
        Versions of a document: of one event id, type and time. A document is corrected once or
        twice.
    event_documents
        Documents of one event id and type in one week of Unix time. An update per minute makes
        10,080, and a service may use an id again.
    findings
        Findings of a load that are listed each by itself. Further ones are counted by kind.
    buffer_bytes
        Bytes of DuckDB's buffers in a process that captures or receives. Each commit writes the
        file's last 122,880 rows anew.

    Examples
    --------
    >>> Limits(body_bytes=2**20).body_bytes
    1048576
    >>> Limits(empty_pages=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: limits.empty_pages: 0 is not allowed; allowed: a whole number ...
    """

    body_bytes: int = 64 * 2**20
    body_values: int = 1_000_000
    mcp_body_values: int = 250_000
    page_items: int = 10_000
    document_bytes: int = 16 * 2**10
    answer_s: float = 300.0
    mcp_answer_s: float = 30.0
    silence_s: float = 30.0
    connect_s: float = 10.0
    asked_wait_s: float = 3_600.0
    retry_wait_s: float = 120.0
    cursor_bytes: int = 4 * 2**10
    unmoved_pages: int = 1_000
    empty_pages: int = 100
    tool_pages: int = 100
    message_bytes: int = 4 * 2**20
    socket_messages: int = 4
    waiting_bytes: int = 2 * 2**20
    delivery_bytes: int = 16 * 2**10
    delivery_s: float = 10.0
    waiting_delivery_bytes: int = 16 * 2**20
    document_versions: int = 100
    event_documents: int = 20_000
    findings: int = 1_000
    buffer_bytes: int = 64_000_000

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            seconds = each.name.endswith("_s")
            if type(value) not in ((int, float) if seconds else (int,)) or not 0 < value < math.inf:
                allowed = "seconds above 0" if seconds else "a whole number of 1 or more"
                raise InputError(f"limits.{each.name}", value, allowed)


LIMITS = Limits()
"""The limits where no others are given."""
