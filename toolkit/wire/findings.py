"""Deviations of a service, the findings of a load, and stretches that a source lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from toolkit.intervals import Interval, difference, intersection
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.limits import LIMITS, Limits

_OTHERS = "others", "further findings of this kind, which are only counted"


@dataclass(frozen=True, slots=True)
class Finding:
    """A deviation of the service from what was assumed: stored, counted and shown."""

    kind: str
    where: str
    says: str


class Findings:
    """The findings of a load with their counts.

    Beyond the limit of `Limits` they are counted by kind only.

    >>> found = Findings(Limits(findings=1))
    >>> found.add([Finding("without_time", "/p", "{}"), Finding("without_time", "/p", "[]")])
    >>> [(finding.where, times) for finding, times in found.listed()]
    [('/p', 1), ('others', 1)]
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most = limits.findings
        self._counts = Counter[Finding]()
        self._others = Counter[Finding]()

    def add(self, findings: Iterable[Finding] | Mapping[Finding, int]) -> None:
        """Count findings. A mapping has how often each came."""
        for finding, times in Counter(findings).items():
            if finding in self._counts or len(self._counts) < self._most:
                self._counts[finding] += times
            else:
                self._others[Finding(finding.kind, *_OTHERS)] += times

    def listed(self) -> tuple[tuple[Finding, int], ...]:
        """Return each finding with its count, sorted, those counted by kind last."""
        return tuple(
            each
            for counts in (self._counts, self._others)
            for each in sorted(counts.items(), key=str)
        )


_Second = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_800)]


class LostStretch(msgspec.Struct, frozen=True):
    """A stretch ``[start, end)`` (s, Unix UTC) that the source lost, and its reason."""

    start: _Second
    end: _Second
    why: Annotated[str, msgspec.Meta(max_length=1_000)] = "no reason given"


def read_lost(said: msgspec.Raw, where: str, findings: list[Finding]) -> Iterator[LostStretch]:
    """Yield the stretches that a page calls lost. An unreadable one is a finding.

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
    """Return the lost stretches inside some parts, a second lost twice once, for the first."""
    left, found = list(parts), list[LostStretch]()
    for each in lost:
        whole = [(each.start, each.end)]
        found += [LostStretch(*part, each.why) for part in intersection(left, whole)]
        left = difference(left, whole)
    return found
