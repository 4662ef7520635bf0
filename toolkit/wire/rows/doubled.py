"""Fields that an object of JSON has twice: the last value counts, and a finding names the field.

What is sent is held against what was read of it by its colons: so many as there are fields, and
those in texts. Only where these differ is each object looked into.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from toolkit.cards import counted
from toolkit.foreign import plain
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.findings import Finding
from toolkit.wire.rows.body import occurrences

_BEFORE_COLON = np.isin(np.arange(256), list(b'" \t\r\n'))
"""The bytes that may stand between a name and its colon."""


def doubled_fields(bodies: Iterable[bytes], path: str) -> list[Finding]:
    """Return a finding for each field that objects of these bodies have twice, at any depth.

    >>> doubled_fields([b'{"ts":60,"price":1,"price":2}', b'{"ts":0,"price":3}'], "/p")
    [Finding(kind='doubled_field', where='/p.price', says='in 1 object; the last value counts')]
    """
    return _findings((body for body in bodies if not _each_once(body)), path)


def doubled_in_page(
    body: bytes, parts: Mapping[str, msgspec.Raw], rows: msgspec.Raw | None, fields: int, path: str
) -> list[Finding]:
    """Return what `doubled_fields` does of a page, of which ``fields`` were read in its ``rows``.

    ``parts`` are the values of the page, ``rows`` is one of them. This costs a hundredth of what
    the page does.

    >>> body = b'{"items":[{"ts":60,"ts":0}],"items":[]}'
    >>> parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    >>> [each.where for each in doubled_in_page(body, parts, parts["items"], 0, "/p")]
    ['/p.items', '/p.ts']
    """
    others = [bytes(raw) for raw in parts.values() if raw is not rows]
    for count in (_colons, _after_names):
        if count(body) == fields + len(parts) + sum(map(count, others)):
            return []
    return _findings([body], path)


def _colons(body: bytes) -> int:
    return occurrences(body, b":")


def _after_names(body: bytes) -> int:
    """Count the colons that may stand after a name, which those in a time do not."""
    sent = np.frombuffer(body, np.uint8)
    return int(np.count_nonzero(_BEFORE_COLON[sent[:-1][sent[1:] == ord(":")]]))


def _each_once(body: bytes) -> bool:
    """Check by the colons of the same value written anew. An escaped one would hide another."""
    try:
        anew = msgspec.json.encode(msgspec.json.decode(body))
    except UNREADABLE:
        return False
    return anew.count(b":") == body.count(b":") and b"\\u003" not in body


def _findings(bodies: Iterable[bytes], path: str) -> list[Finding]:
    found = Counter[str]()

    def note(pairs: list[tuple[str, object]]) -> None:
        times = Counter(name for name, _ in pairs)
        found.update(name for name, number in times.items() if number > 1)

    reader = json.JSONDecoder(object_pairs_hook=note, parse_int=float)
    for body in bodies:
        with contextlib.suppress(ValueError, RecursionError):  # who reads it says so
            reader.decode(body.decode())
    return [
        Finding(
            "doubled_field",
            f"{path}.{plain(name, 80)}",
            f"in {counted(times, 'object')}; the last value counts",
        )
        for name, times in sorted(found.items())
    ]
