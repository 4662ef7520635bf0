"""The items of a page and of a stream, bounded in number and size before they are read.

Each item becomes objects of Python and a value of DuckDB, which takes 2,048 values at a time into
memory. So a few large ones, or very many small ones, would cost gigabytes.
"""

from __future__ import annotations

import msgspec

from toolkit.errors import WireError
from toolkit.wire.exchange import Answer


def check_number(items: bytes, answer: Answer, path: str, most: int) -> None:
    """Raise `WireError` where an array of objects has more than ``most``.

    Opening braces are counted first, which costs next to nothing.

    >>> check_number(b"[{},{},{}]", Answer(200, {}, b""), "/p", 2)
    Traceback (most recent call last):
    toolkit.errors.WireError: /p answered 200 with a page of 3 items; at most 2 are read; ...
    """
    if items.count(b"{") <= most:
        return
    number = len(msgspec.json.decode(items, type=list[msgspec.Raw]))
    if number > most:
        message = f"{answer.url or path} answered {answer.status} with a page of {number:,} items"
        raise WireError(
            f"{message}; at most {most:,} are read; page_items of the limits allows more",
            status=answer.status,
            url=answer.url,
        )


def check_size(size: int, what: str, most: int) -> None:
    """Raise `WireError` where an item is larger than ``most`` bytes.

    >>> check_size(70_000, "/p sent a document", 16_384)
    Traceback (most recent call last):
    toolkit.errors.WireError: /p sent a document of 70,000 bytes; at most 16,384 are kept; ...
    """
    if size > most:
        advice = "document_bytes of the limits allows more"
        raise WireError(f"{what} of {size:,} bytes; at most {most:,} are kept; {advice}")
