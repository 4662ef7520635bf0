"""Cursors of the event logs: where a page ended, sealed for the request it came from.

A cursor is base64url without padding over an HMAC-SHA256 and the position. The HMAC also covers
route, window, filters and limit, however the caller writes them. Its secret is derived from the
source's id, so that a client goes on paging after a restart. Who knows the id can forge a cursor,
and gains a place in a log that may be read anyway.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple

import msgspec

from toolkit.errors import InputError

_SEAL_BYTES = 16


class Position(NamedTuple):
    """A document's place in a log. Logs run from the largest to the smallest."""

    ts_ms: int
    event_id: str
    event_type: str


def secret_of(source_id: str) -> bytes:
    """Derive the secret of a source's cursors, the same after every start."""
    return hashlib.sha256(b"machine-rail cursor\0" + source_id.encode()).digest()


def seal(position: Position, bound: bytes, secret: bytes) -> str:
    """Return the cursor for a position, valid only with the same ``bound`` and ``secret``.

    >>> seal(Position(1000, "spread-1", "spread.opened"), b"a window", b"secret")
    'Bwz5UxR1zUwn8lZ18ugXXFsxMDAwLCJzcHJlYWQtMSIsInNwcmVhZC5vcGVuZWQiXQ'
    """
    place = msgspec.json.encode(position)
    return base64.urlsafe_b64encode(_sealed(place, bound, secret) + place).rstrip(b"=").decode()


def open_(cursor: str, bound: bytes, secret: bytes) -> Position:
    """Return the position in a cursor. Any other text is an `InputError`, a ValueError.

    >>> cursor = seal(Position(1000, "spread-1", "spread.opened"), b"a window", b"secret")
    >>> open_(cursor, b"a window", b"secret").ts_ms
    1000
    >>> open_(cursor, b"another", b"secret")
    Traceback (most recent call last):
    toolkit.errors.InputError: cursor: ... is not allowed; allowed: the next_cursor of ...
    """
    refusal = InputError(
        "cursor", cursor[:80], "the next_cursor of a page, with that page's window, filters, limit"
    )
    try:
        content = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise refusal from None
    found, place = content[:_SEAL_BYTES], content[_SEAL_BYTES:]
    if not hmac.compare_digest(found, _sealed(place, bound, secret)):
        raise refusal
    position = msgspec.json.decode(place, type=Position)
    if seal(position, bound, secret) != cursor:  # another spelling of the same bytes
        raise refusal
    return position


def _sealed(place: bytes, bound: bytes, secret: bytes) -> bytes:
    """Compute the HMAC. The length keeps ``bound`` and ``place`` apart."""
    content = b"%d:%b%b" % (len(bound), bound, place)
    return hmac.digest(secret, content, "sha256")[:_SEAL_BYTES]
