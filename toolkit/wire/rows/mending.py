r"""Faults in JSON: values such as NaN and half a surrogate pair, and fields given twice.

A value that is not JSON must not cost its page or document, so it is null and a finding. Of a field
given twice the last value counts, with a finding. Objects are inspected for those only if there are
more colons than one per field read, plus those in texts.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from toolkit.cards import counted
from toolkit.errors import WireError
from toolkit.foreign import plain
from toolkit.wire.exchange import UNREADABLE, Response, decoded
from toolkit.wire.findings import Finding
from toolkit.wire.rows.body import occurrences

Read = TypeVar("Read")

_TOKEN = re.compile(rb'("(?:[^"\\]++|\\.)*+"?)(\s*:)?|(?<![\w.])[-+]?[A-Za-z]\w*', re.DOTALL)
_WORDS = (b"true", b"false", b"null")
_PART = 2**20
_LINES = msgspec.json.Decoder(msgspec.Raw)


def read_mended(
    read: Callable[[bytes], Read], body: bytes, path: str, findings: list[Finding]
) -> Read:
    r"""Read a body, or if that fails, the body with null for each value that is not JSON.

    Each is a finding at its field's name. ``read`` raises `WireError` or one of `UNREADABLE`, which
    is raised if nothing can be mended.

    >>> findings = []
    >>> read_mended(msgspec.json.decode, b'{"price": NaN, "of": "\\ud83d"}', "/p", findings)
    {'price': None, 'of': None}
    >>> [(each.kind, each.where, each.says) for each in findings]
    [('not_json', '/p.price', 'NaN'), ('not_json', '/p.of', 'text that is not Unicode')]
    """
    try:
        return read(body)
    except (WireError, *UNREADABLE):
        if _is_json(body):
            raise
        mended, found = _mended(body, path)
        if not _is_json(mended):
            raise
        whole = read(mended)
    findings.extend(found)
    return whole


def mended_answer(answer: Response, path: str, findings: list[Finding]) -> Response:
    """Return an answer with null for values that are not JSON, unchanged if that fails.

    >>> mended_answer(Response(200, {}, b'{"rate": NaN}'), "/p", []).body
    b'{"rate": null}'
    """
    try:
        body = read_mended(checked_json, answer.body, path, findings)
    except UNREADABLE:
        return answer
    return answer if body is answer.body else replace(answer, body=body)


def check_text(body: bytes) -> None:
    """Raise `UnicodeDecodeError` unless a body is UTF-8, checked in parts to save memory."""
    if body.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), _PART):
        decoder.decode(body[start : start + _PART])
    decoder.decode(b"", final=True)


def checked_json(body: bytes) -> bytes:
    """Return a body that is JSON in UTF-8, else raise one of `UNREADABLE`."""
    check_text(body)
    msgspec.json.decode(body, type=msgspec.Raw)
    return body


def _is_json(body: bytes) -> bool:
    try:
        check_text(body)
        _LINES.decode_lines(body)
    except UNREADABLE:
        try:
            return checked_json(body) is body
        except UNREADABLE:
            return False
    return True


def _mended(body: bytes, path: str) -> tuple[bytes, list[Finding]]:
    found: list[Finding] = []
    where = path

    def token(match: re.Match[bytes]) -> bytes:
        nonlocal where
        text, colon = match[1], match[2]
        if text is None:
            if match[0] in _WORDS:
                return match[0]
            found.append(Finding("not_json", where, f"{match[0].decode():.40}"))
            return b"null"
        said = decoded(text, str)
        name = text[1:-1].decode(errors="replace") if said is None else said
        if colon is not None:
            where = f"{path}.{plain(name, 80)}"
        if said is not None:
            return match[0]
        found.append(Finding("not_json", where, "text that is not Unicode"))
        return b"null" if colon is None else msgspec.json.encode(name) + colon

    return _TOKEN.sub(token, body), found


_BEFORE_COLON = np.isin(np.arange(256), list(b'" \t\r\n'))
"""The bytes that may stand between a name and its colon."""


def doubled_fields(bodies: Iterable[bytes], path: str) -> list[Finding]:
    """Return a finding for each field twice in an object of these bodies, at any depth.

    >>> doubled_fields([b'{"ts":60,"price":1,"price":2}', b'{"ts":0,"price":3}'], "/p")
    [Finding(kind='doubled_field', where='/p.price', says='in 1 object; the last value counts')]
    """
    return _findings((body for body in bodies if not _each_once(body)), path)


def doubled_in_page(
    body: bytes, parts: Mapping[str, msgspec.Raw], rows: msgspec.Raw | None, fields: int, path: str
) -> list[Finding]:
    """Return the same for a page whose rows were read.

    ``fields`` are the fields of its rows, 0 without ``items`` if the rows are documents, which
    `doubled_fields` takes.

    >>> body = b'{"items":[{"ts":60,"ts":0}],"items":[]}'
    >>> parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    >>> [each.where for each in doubled_in_page(body, parts, parts["items"], 0, "/p")]
    ['/p.items', '/p.ts']
    """
    others = [bytes(raw) for raw in parts.values() if raw is not rows]
    for count in (partial(occurrences, mark=b":"), _after_names):
        if count(body) == fields + len(parts) + sum(map(count, others)):
            return []
    return _findings([body], path)


def _after_names(body: bytes) -> int:
    """Count the colons that may follow a name, unlike those in a time."""
    sent = np.frombuffer(body, np.uint8)
    return int(np.count_nonzero(_BEFORE_COLON[sent[:-1][sent[1:] == ord(":")]]))


def _each_once(body: bytes) -> bool:
    """Check by the colons of the value written anew, since an escaped one would hide another."""
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
