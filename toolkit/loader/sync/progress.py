"""Reports of a load while it runs and when it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.cards import Card, Shown, counted, duration, some
from toolkit.errors import ServiceError
from toolkit.intervals import Interval, total_s
from toolkit.market import Source, Stream
from toolkit.store import Inserted
from toolkit.wire.findings import Finding
from toolkit.wire.quota import Requests


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is: rows and pages received, and the share of the asked time answered for.

    >>> Progress(rows=1000, pages=2, answered_s=600, asked_s=2400, elapsed_s=3.0).eta_s
    9.0
    """

    rows: int
    pages: int
    answered_s: int
    asked_s: int
    elapsed_s: float

    @property
    def fraction(self) -> float:
        """Seconds answered for over seconds asked for, from 0 to 1."""
        return self.answered_s / self.asked_s if self.asked_s else 1.0

    @property
    def eta_s(self) -> float | None:
        """Seconds left at the pace so far; None while nothing is answered."""
        if not self.answered_s:
            return None
        return self.elapsed_s * (self.asked_s - self.answered_s) / self.answered_s

    @property
    def facts(self) -> list[str]:
        """Rows and pages so far, and the pace where it is known, in words."""
        facts = [counted(self.rows, "row"), counted(self.pages, "page")]
        if self.elapsed_s > 0:
            facts.append(f"{self.rows / self.elapsed_s:,.0f} rows/s")
        return facts


_KINDS = {"events": "document", "snapshot": "snapshot"}


def streams_counted(streams: Sequence[Stream]) -> str:
    """Count streams by what they are.

    >>> streams_counted([Stream.parse("BTC_USD:KRAKEN.spot"), Stream.parse("events/splash")])
    '1 trajectory, 1 event log'
    """
    kinds = Counter(stream.kind if stream.kind in _KINDS else "" for stream in streams)
    words = {
        "": ("trajectory", "trajectories"),
        "events": ("event log",),
        "snapshot": ("snapshot",),
    }
    return ", ".join(counted(kinds[kind], *words[kind]) for kind in words if kinds[kind]) or "none"


@dataclass(frozen=True, slots=True)
class LoadResult(Shown):
    """What a load did: of what, from where, how much, and what was odd.

    ``requests`` counts what the client sent, by kind. ``re_asked`` of the ``pages`` were asked for
    again because an earlier answer was provisional. ``asked`` are the streams of the call,
    ``silent`` those without anything in the window after it. ``unrecoverable`` are the stretches
    that the plan no longer reaches and the store does not have. ``refused`` are the streams that
    the service did not give, each with its refusal. ``findings`` are what the service did otherwise
    than assumed, each kind once with how often.
    """

    source: Source
    window: Interval
    asked: tuple[Stream, ...]
    rows: Inserted
    pages: int
    elapsed_s: float
    silent: tuple[Stream, ...] = ()
    unrecoverable: Mapping[Stream, list[Interval]] = field(default_factory=dict)
    findings: tuple[tuple[Finding, int], ...] = ()
    refused: Mapping[Stream, ServiceError] = field(default_factory=dict)
    re_asked: int = 0
    requests: Requests = field(default_factory=Requests)

    @property
    def _rows_counted(self) -> str:
        rows, kinds = self.rows, {_KINDS.get(stream.kind, "row") for stream in self.asked}
        new = counted(rows.new, kinds.pop()) if len(kinds) == 1 else f"{rows.new:,}"
        parts = [f"{new} new", rows.repeats_counted]
        if rows.revised:
            parts.append(f"{rows.revised:,} revised")
        return ", ".join(parts) + rows.unkept_counted

    def __str__(self) -> str:
        refused = f"; {len(self.refused):,} of them refused" if self.refused else ""
        return (
            f"{self._rows_counted}; {counted(self.pages, 'page')}, "
            f"{streams_counted(self.asked)}{refused}, {self.elapsed_s:.1f} s; {self.source.label}"
        )

    @property
    def requests_counted(self) -> str:
        """The requests by kind, and the pages asked for again, in words.

        >>> LoadResult(Source("live", "r"), Interval(0, 60), (), Inserted(), 4, 0.1, re_asked=3,
        ...            requests=Requests(history=4, schemas=1)).requests_counted
        '5 requests: 4 history, 1 schemas; 3 pages asked for again'
        """
        again = f"; {counted(self.re_asked, 'page')} asked for again" if self.re_asked else ""
        return f"{self.requests}{again}"

    @property
    def card(self) -> Card:
        """The facts of a load: what came, of what, in which window, what is lacking or odd.

        >>> pair = Stream.parse("BTC_USD:KRAKEN.spot")
        >>> print(LoadResult(Source("replay", "depeg"), Interval(0, 86400), (pair,),
        ...                  Inserted(new=1440), 2, 0.31, silent=(pair,)).card)
        Load from Replay of recorded data, depeg
          loaded   1,440 rows new, 0 held already
          asked    BTC_USD:KRAKEN.spot
          window   [1970-01-01 00:00 UTC, 1970-01-02 00:00 UTC)
          took     2 pages, 0.3 s
          silent   1 of 1: BTC_USD:KRAKEN.spot
        """
        sent = f"; {self.requests_counted}" if self.requests.total else ""
        facts = [
            ("loaded", self._rows_counted),
            ("asked", some(self.asked)),
            ("window", str(self.window)),
            ("took", f"{counted(self.pages, 'page')}, {self.elapsed_s:.1f} s{sent}"),
        ]
        if self.refused:
            each = [f"{stream}: {error}" for stream, error in self.refused.items()]
            facts.append(("refused", f"{len(each):,} of {len(self.asked):,}: {some(each)}"))
        if self.silent:
            silent = f"{len(self.silent):,} of {len(self.asked):,}: {some(self.silent)}"
            facts.append(("silent", silent))
        if self.unrecoverable:
            gone = [f"{asked} {duration(total_s(s))}" for asked, s in self.unrecoverable.items()]
            facts.append(("beyond the plan's depth", some(gone)))
        if self.findings:
            found = [f"{finding.kind} at {finding.where} ({n}x)" for finding, n in self.findings]
            facts.append(("findings", some(found)))
        return Card(f"Load from {self.source.label}", facts)
