"""Stretches that a page's source has lost: their rows will not come, or come late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from toolkit.intervals import Interval, difference, intersection
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.findings import Finding

_Second = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_800)]


class LostStretch(msgspec.Struct, frozen=True):
    """A stretch ``[start, end)`` (s, Unix UTC) that the source has lost, and why, in its words."""

    start: _Second
    end: _Second
    why: Annotated[str, msgspec.Meta(max_length=1_000)] = "no reason given"


def read_lost(said: msgspec.Raw, where: str, findings: list[Finding]) -> Iterator[LostStretch]:
    """Yield the stretches that a page calls lost. What can't be read is a finding and none.

    >>> findings = []
    >>> said = msgspec.Raw(b'[{"start":0,"end":60,"why":"no answer"},{"start":"x"}]')
    >>> [*read_lost(said, "/p.lost", findings)], [found.kind for found in findings]
    ([LostStretch(start=0, end=60, why='no answer')], ['lost_unreadable'])
    """
    whole = bytes(said).startswith(b"[")
    for each in msgspec.json.decode(said, type=list[msgspec.Raw]) if whole else [said]:
        try:
            found = msgspec.json.decode(each, type=LostStretch if whole else None)
        except UNREADABLE as error:
            findings.append(Finding("lost_unreadable", where, str(error)))
        else:
            yield from [found] if found else []


def lost_within(lost: Iterable[LostStretch], parts: Iterable[Interval]) -> list[LostStretch]:
    """Return the lost stretches inside of some parts. Of a second that is told twice, the first."""
    left, found = list(parts), list[LostStretch]()
    for each in lost:
        whole = [(each.start, each.end)]
        found += [LostStretch(*part, each.why) for part in intersection(left, whole)]
        left = difference(left, whole)
    return found
