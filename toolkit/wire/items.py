"""The items of a page and of a stream, bounded in number and size before they are read.

Each item becomes objects of Python and a value of DuckDB, which takes 2,048 values at a time into
memory. So a few large ones, or very many small ones, would cost gigabytes.
"""

from __future__ import annotations

import msgspec

from toolkit.errors import WireError
from toolkit.wire.exchange import Answer

MOST_ITEMS = 10_000
"""Items of a page. The client asks for 5,000 rows, or 500 documents."""

LARGEST_ITEM = 16_384
"""Bytes of a row's unknown fields or of an event document. A document has about 600."""


def check_number(items: bytes, answer: Answer, path: str) -> None:
    """Raise `WireError` where an array of objects has more than `MOST_ITEMS`.

    Opening braces are counted first, which costs next to nothing.

    >>> check_number(b"[" + b"{}," * 10_000 + b"{}]", Answer(200, {}, b""), "/p")
    Traceback (most recent call last):
    toolkit.errors.WireError: /p answered 200 with a page of 10,001 items; at most 10,000 are read
    """
    if items.count(b"{") <= MOST_ITEMS:
        return
    number = len(msgspec.json.decode(items, type=list[msgspec.Raw]))
    if number > MOST_ITEMS:
        message = f"{answer.url or path} answered {answer.status} with a page of {number:,} items"
        raise WireError(
            f"{message}; at most {MOST_ITEMS:,} are read", status=answer.status, url=answer.url
        )


def check_size(size: int, what: str) -> None:
    """Raise `WireError` where an item is larger than `LARGEST_ITEM`.

    >>> check_size(70_000, "/p sent a document")
    Traceback (most recent call last):
    toolkit.errors.WireError: /p sent a document of 70,000 bytes; at most 16,384 are kept
    """
    if size > LARGEST_ITEM:
        raise WireError(f"{what} of {size:,} bytes; at most {LARGEST_ITEM:,} are kept")
