"""Limits against a faulty service, which the user's profile sets under ``[limits]``."""

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
        Values of a body, by its commas and opening brackets. Each becomes an object of up to 270
        bytes. A page of 10,000 rows has 50,000.
    mcp_body_values
        The same over MCP, whose library copies each value.
    page_items
        Items of a page. Requests are for 5,000 rows or 500 documents.
    document_bytes
        Bytes of an event document, or of a row's unknown fields. A document has 600, and DuckDB
        takes 2,048 into memory at once: 32 MiB.
    answer_s
        Seconds for a whole answer with its headers: 64 MiB at 0.2 MiB per second.
    mcp_answer_s
        The same over MCP, whose answers are small.
    silence_s
        Seconds without a byte within an answer.
    connect_s
        Seconds for a connection to open, and a socket with its headers.
    asked_wait_s
        Seconds that ``Retry-After`` may request. Quotas are per hour or less.
    retry_wait_s
        Seconds of all waits of one question.
    cursor_bytes
        Bytes of a cursor. Servers refuse addresses, of which it is a part, over 8 KiB.
    unmoved_pages
        Successive pages of an event log without a step in time. A thousand pages, even of one
        document each, have what happens in one millisecond.
    empty_pages
        Successive pages of a history without rows.
    tool_pages
        Pages of MCP tools. A service has eleven tools.
    message_bytes
        Bytes of a stream's message. A record or document has 1 kB.
    socket_messages
        Messages waiting in a socket before reading stops: 16 MiB.
    waiting_bytes
        Bytes of messages waiting to be written, half of them at a time. Beyond, the reader waits,
        and the sender with it.
    delivery_bytes
        Bytes of a webhook delivery's body. A document has 600. A commit loads up to 4,096 bodies.
    delivery_s
        Seconds for a delivery's whole body, so that a slow sender blocks nothing.
    waiting_delivery_bytes
        Bytes of deliveries waiting to be written. Further ones are answered 503.
    document_versions
        Versions of a document: of one event id, type and time. One or two corrections are usual.
    event_documents
        Documents of one event id and type in one week of Unix time: 10,080 at one per minute. A
        service may use an id again.
    findings
        Findings of a load listed one by one. Further ones are counted by kind.
    buffer_bytes
        Bytes of DuckDB's buffers in a capture or receiver. Each commit rewrites the file's last
        122,880 rows.

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
