"""Loading and following for a workspace: the window asked for, the watchlist, and the progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from toolkit.cards import some
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, Pace, Progress, Since
from toolkit.loader.progress import streams_counted
from toolkit.market import (
    Stream,
    Trajectory,
    When,
    Window,
    asked_window,
    format_ts,
    named_window,
    parse_ts,
    window_ends,
)
from toolkit.store import Store
from toolkit.workspace.matching import Rules
from toolkit.workspace.progress import Watch, load_progress
from toolkit.workspace.rules import Watchlist, find_watchlist

DEFAULT_WINDOW_S = 7 * 86_400
"""What is loaded where no start is given: so much before the end."""


def default_window(window: Window | None) -> tuple[When, When | None] | None:
    """Return a workspace's own window as a start and an end, or raise `InputError`.

    >>> default_window("7d")
    ('7d', None)
    """
    if window is None:
        return None
    start, end = window_ends(window)
    if end is None and named_window(start, 0) is None:
        raise InputError("window", window, "7d, today, yesterday, 2023-03, or (start, end)")
    low, high = asked_window(start, end, now=lambda: 1, default=lambda: (0, 1))
    if end is not None:
        Interval.checked(low, high)
    return start, end


def asked_for(
    start: When | None, end: When | None, client: Callable[[], Client]
) -> Callable[[], Interval]:
    """Check a load's window, and return what gives it, by the service's clock where one is needed.

    >>> asked_for("2026-11-01", "2026-11-02", lambda: None)()
    Interval(start=1793491200, end=1793577600)
    """

    def now() -> int:
        client().discover()
        return client().served_at()

    def default() -> tuple[int, int]:
        until = now() if end is None else parse_ts(end, parameter="end")
        return until - DEFAULT_WINDOW_S, until

    asked_window(start, end, now=lambda: 1, default=lambda: (0, 1))
    return lambda: Interval.checked(*asked_window(start, end, now=now, default=default))


def watched_load(
    run: Callable[..., LoadResult],
    client: Client,
    wanted: Sequence[Stream],
    window: Interval,
    on_progress: Callable[[Progress], object] | None,
    *,
    shown: bool,
) -> LoadResult:
    """Run a `toolkit.loader.sync` of some streams, with a bar where one is shown and none is given.

    Raises `EmptyWindowError` where trajectories were asked for and no stream has a row afterwards.
    """
    own = on_progress or not shown
    watched = nullcontext(Watch(on_progress)) if own else load_progress(streams_counted(wanted))
    with watched as watch:
        result = run(on_progress=watch.show)
        rows = any(isinstance(stream, Trajectory) for stream in wanted)
        if rows and len(result.silent) == len(set(wanted)):
            raise EmptyWindowError(
                f"nothing in {window} for {some(wanted)}: the service has no row there "
                f"(its clock reads {format_ts(client.served_at())})"
            )
        watch.result = result
    return result


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
