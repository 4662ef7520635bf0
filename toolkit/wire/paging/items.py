"""The items of a page and of a stream, bounded in number and size before they are read.

Each item becomes objects of Python and a value of DuckDB, which takes 2,048 values at a time into
memory. So a few large ones, or very many small ones, would cost gigabytes.
"""

from __future__ import annotations

import msgspec

from toolkit.errors import WireError
from toolkit.wire.exchange import Answer
from toolkit.wire.rows.body import occurrences


def check_number(items: msgspec.Raw, answer: Answer, path: str, most: int) -> None:
    """Raise `WireError` where an answer's array of objects has more than ``most``.

    Opening braces of the whole answer are counted first, which costs next to nothing.

    >>> body = b'{"items":[{},{},{}]}'
    >>> check_number(msgspec.Raw(body[9:-1]), Answer(200, {}, body), "/p", 2)
    Traceback (most recent call last):
    toolkit.errors.WireError: /p answered 200 with a page of 3 items; at most 2 are read; ...
    """
    if occurrences(answer.body, b"{") <= most:
        return
    number = len(msgspec.json.decode(items, type=list[msgspec.Raw]))
    if number > most:
        message = f"{answer.url or path} answered {answer.status} with a page of {number:,} items"
        raise WireError(
            f"{message}; at most {most:,} are read; page_items of the limits allows more",
            status=answer.status,
            url=answer.url,
        )


def too_large(what: str, size: int, most: int) -> str:
    """Return the words for an item of more bytes than are kept.

    >>> too_large("/p sent a document of", 70_000, 16_384)
    '/p sent a document of 70,000 bytes, and at most 16,384 are kept; document_bytes of ...'
    """
    advice = "document_bytes of the limits allows more"
    return f"{what} {size:,} bytes, and at most {most:,} are kept; {advice}"
