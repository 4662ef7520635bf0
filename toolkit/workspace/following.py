"""Following a watchlist: its rules and pace handed to the loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from toolkit.client import Client
from toolkit.loader import Pace, Since
from toolkit.market import Stream, When, asked_window
from toolkit.store import Store
from toolkit.workspace.matching import Rules
from toolkit.workspace.rules import Watchlist, find_watchlist


def since_of(watchlist: Watchlist, given: When | None, now: Callable[[], int]) -> Since:
    """Return from when on is followed: a moment or the name of a window, else as the watchlist has.

    ``now`` gives the present (s).

    >>> since_of(Watchlist(), "1h", lambda: 3_660)
    Since(ts=60, back_s=None)
    """
    if given is None:
        return Since(back_s=watchlist.back_s)
    names = ("since", "end")
    return Since(asked_window(given, None, now=now, default=lambda: (0, 1), names=names)[0])


def pace_of(watchlist: Watchlist) -> Pace:
    """Return how often a follow of a watchlist does what.

    >>> pace_of(Watchlist(poll_s=20)).poll_s
    20.0
    """
    names = ("sweep_s", "poll_s", "rules_s", "keep_s")
    return Pace(**{name: getattr(watchlist, name) for name in names})


def wanted_watchlist(
    store: Store,
    streams: Stream | str | Iterable[Stream | str] | None = None,
    watchlist: Watchlist | str | Path | None = None,
) -> Watchlist:
    """Return the watchlist of some streams, the one given, or the one that is found.

    >>> wanted_watchlist(Store("rail.duckdb"), "events/splash").streams
    ('events/splash',)
    """
    if streams is not None:
        several = [streams] if isinstance(streams, Stream | str) else list(streams)
        return Watchlist.of([s.key if isinstance(s, Stream) else s for s in several])
    if isinstance(watchlist, Watchlist):
        return watchlist
    return find_watchlist(store.path, watchlist)


def named_streams(client: Client, store: Store, watchlist: Watchlist) -> dict[Stream, str]:
    """Return the streams that a watchlist means now, each with its rules. Nothing is stored."""
    client.discover()
    rules = Rules(watchlist, client, store)
    return rules({log.of: client.snapshot(log.of).decode() for log in rules.snapshots})
