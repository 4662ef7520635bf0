"""Streams of a follow: those that its rules name, and for a while those they named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from toolkit.cards import counted, duration, some
from toolkit.market import SnapshotKind, SnapshotLog, Stream, format_ts


class Wanted(Protocol):
    """What names the streams to follow, anew whenever it is called."""

    @property
    def snapshots(self) -> Sequence[SnapshotLog]:
        """The snapshots that a call needs."""

    def __call__(self, documents: Mapping[SnapshotKind, str], /) -> Mapping[Stream, str]:
        """Return the streams that are meant now, each with the rule that names it."""

    def lately(self, now: int, /) -> Mapping[Stream, tuple[str, int]]:
        """Return the streams meant lately by what the store holds: the rule, and when last (s)."""


class Named:
    """Streams that are named once and for all.

    >>> Named([Stream.parse("events/splash")])({})
    {EventLog(family=<EventFamily.SPLASH: 'splash'>): 'named'}
    """

    snapshots: tuple[SnapshotLog, ...] = ()

    def __init__(self, streams: Iterable[Stream]) -> None:
        self._streams = dict.fromkeys(streams, "named")

    def __call__(self, _documents: Mapping[SnapshotKind, str]) -> dict[Stream, str]:
        """Return the streams."""
        return dict(self._streams)

    def lately(self, _now: int) -> dict[Stream, tuple[str, int]]:
        """Return nothing: they are always meant."""
        return {}


class Followed:
    """The streams followed now, each with its rule. A change is one sentence.

    A stream that no rule names any more is followed for ``keep_s`` longer (s). Times are those of
    the service's clock.

    >>> followed = Followed(keep_s=3_600)
    >>> a, b = (Stream.parse(f"BTC_USD:{leg}.spot") for leg in "AB")
    >>> followed.renew({a: "open_now"}, 0), followed.renew({b: "open_now"}, 60)
    ([], ['1 stream more is followed: BTC_USD:B.spot', '1 stream is named by no rule any more, ...
    >>> followed.renew({b: "open_now"}, 3_660)
    ['1 stream is followed no more, after 1 h without a rule (what is held stays): BTC_USD:A.spot']
    """

    def __init__(self, keep_s: float) -> None:
        self.rules: dict[Stream, str] = {}
        self._keep_s = round(keep_s)
        self._left: dict[Stream, int] = {}

    def remember(self, lately: Mapping[Stream, tuple[str, int]]) -> list[str]:
        """Follow what was named before this follow began, for what is left of its time.

        Returns what there is of it, in a sentence.
        """
        rules = dict(self.rules)
        for stream, (rule, last_at) in lately.items():
            if stream not in rules:
                rules[stream] = f"{rule}, lately"
                self._left[stream] = last_at
        more = [stream for stream in rules if stream not in self.rules]
        self.rules = rules
        kept = duration(self._keep_s)
        return [f"named within the last {kept}, and followed on: {some(more)}"] if more else []

    def renew(self, found: Mapping[Stream, str], now: int) -> list[str]:
        """Follow what the rules name now. Returns what changed, nothing the first time."""
        before, left = self.rules, dict(self._left)
        gone = [s for s in before if s not in found and s not in left]
        left = {s: at for s, at in left.items() if s not in found} | dict.fromkeys(gone, now)
        over = [s for s, at in left.items() if now - at >= self._keep_s]
        self._left = {s: at for s, at in left.items() if s not in over}
        self.rules = dict(found) | {s: before[s] for s in self._left}  # read by other threads
        came = [s for s in found if s not in before] if before else []
        until = format_ts(now + self._keep_s)
        kept = f"after {duration(self._keep_s)} without a rule (what is held stays)"
        return [
            f"{counted(len(streams), 'stream')} {words}: {some(streams)}"
            for streams, words in (
                (came, "more is followed" if len(came) == 1 else "more are followed"),
                (gone, f"{_are(gone)} named by no rule any more, followed until {until}"),
                (over, f"{_are(over)} followed no more, {kept}"),
            )
            if streams
        ]


def _are(streams: Sequence[Stream]) -> str:
    return "is" if len(streams) == 1 else "are"
