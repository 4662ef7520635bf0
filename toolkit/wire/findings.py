"""Deviations of a service as values, and the findings of a load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolkit.wire.limits import LIMITS, Limits

_OTHERS = "others", "further findings of this kind, which are only counted"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the service does otherwise than assumed. It is recorded, counted and shown."""

    kind: str
    where: str
    says: str


class Findings:
    """The findings of a load, each with how often it came, bounded in number.

    So many as the limits allow are listed each by itself. Of the others the kinds are counted.

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
        """Count findings in. A mapping has how often each came."""
        for finding, times in Counter(findings).items():
            if finding in self._counts or len(self._counts) < self._most:
                self._counts[finding] += times
            else:
                self._others[Finding(finding.kind, *_OTHERS)] += times

    def listed(self) -> tuple[tuple[Finding, int], ...]:
        """Return each finding with how often it came, sorted, those only counted at the end."""
        return tuple(
            each
            for counts in (self._counts, self._others)
            for each in sorted(counts.items(), key=str)
        )
