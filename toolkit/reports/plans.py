"""Parts of a report on spreads, funding, events, a symbol or a watchlist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from toolkit.analyses import Family as Analyses
from toolkit.analyses import analyses
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Stream, Trajectory
from toolkit.reports.answering import SCREENS
from toolkit.reports.making import Draft
from toolkit.reports.recipe import Option, Part, family_of
from toolkit.series.base import bound_to
from toolkit.store import Store
from toolkit.workspace.listed import WATCHLIST, read_keys
from toolkit.workspace.rail_toml import Watchlist

DRAWN = 3
"""The number of trajectories drawn of many, the first of the table."""

_SETTLED_S = 8 * 3_600
_SCREEN = {SCREENS[what].family: what for what in SCREENS}


def parts_of(family: Analyses) -> tuple[str, ...]:
    """Return the parts of a report on one series: its chart, and those declared.

    >>> parts_of("spread")
    ('plot', 'summary', 'hour_of_week', 'flags')
    """
    chart = "plot_activity" if family == "events" else "plot"
    said = sorted((each.report, each.name) for each in analyses(family) if each.report)
    return (chart, *(name for _, name in said))


def checked_parts(family: Analyses, names: Sequence[str] | None) -> list[str]:
    """Return the names of analyses to add to a report.

    Raises `InputError` for an unknown one, or one with a required parameter.

    >>> checked_parts("spread", ["tail_index"])
    ['tail_index']
    """
    every = {each.name: any(p.required for p in each.parameters) for each in bound_to(family)}
    for name in names or ():
        if every.get(name, True):
            allowed = [each for each, asks in every.items() if not asks]
            advice = "tk.report takes it with its parameters" if name in every else ""
            raise InputError("--part", name, allowed, advice=advice)
    return list(names or ())


def add_trajectories(
    draft: Draft, family: Family, keys: Sequence[str], window: Interval, parts: Sequence[str] = ()
) -> None:
    """Add spreads or funding pairs: one with all its figures, several ranked in a table.

    Of several the first `DRAWN` have a chart, figures and ``parts``, names of analyses.
    """
    if len(keys) == 1:
        _add(draft, keys, (*parts_of(family_of(keys[0]) or family.value), *parts), window)
        return
    ranked = draft.add(Part(_SCREEN[family], *window, streams=tuple(keys)))
    shown = [str(row["trajectory"]) for row in ranked.answer.shown]
    _add(draft, shown[:DRAWN], ("plot", "summary", *parts), window)


def add_events(
    draft: Draft, families: Iterable[str], window: Interval, parts: Sequence[str] = ()
) -> None:
    """Add event logs: when events opened, their figures, how long they last, how often by legs."""
    whats = (*parts_of("events"), *parts)
    _add(draft, [f"events/{family}" for family in families], whats, window)


def add_symbol(draft: Draft, symbol: str, streams: Sequence[Stream], window: Interval) -> None:
    """Add a symbol: all its legs on one axis of time, its spreads and its funding pairs.

    ``streams`` are those stored of the symbol, and the event logs.
    """
    keys = tuple(stream.key for stream in streams)
    options: dict[str, Option] = {"symbol": symbol}
    draft.add(Part("symbol", *window, streams=keys, options=options))
    for family in _SCREEN:
        pairs = [
            stream.key
            for stream in streams
            if isinstance(stream, Trajectory) and stream.family is family
        ]
        if pairs:
            add_trajectories(draft, family, pairs, window)


def add_watchlist(draft: Draft, streams: Sequence[Stream], window: Interval) -> list[str]:
    """Add a watchlist's spreads and funding pairs, ranked, and its event logs.

    Funding ends at the last 00:00, 08:00 or 16:00 UTC, when all pairs settle. Returns the logs
    without an event.
    """
    settled = window.end - window.end % _SETTLED_S
    windows = {
        Family.SPREAD: window,
        Family.FUNDING: Interval(settled - (window.end - window.start), settled),
    }
    for family, of in windows.items():
        if keys := [stream.key for stream in streams if stream.kind == family]:
            add_trajectories(draft, family, keys, of)
    missing = []
    for log in (stream.key for stream in streams if stream.kind == "events"):
        try:
            _add(draft, [log], ("plot_activity", "summary"), window)
        except EmptyWindowError:
            missing.append(log)
    return missing


def watched_streams(store: Store, watchlist: Watchlist) -> list[Stream]:
    """Return the streams with rows that a watchlist names, sorted by kind and key.

    Rules that need the service (``watchlist``, ``open_now``, ``top_open``, ``widest_funding``,
    ``events_above_pct``) name all streams.
    """
    held = [Stream.parse(key) for key in store.catalogue().filter(pl.col("rows") > 0)["stream"]]
    patterns = [str(each) for each in read_keys(watchlist.streams)]
    asks = (watchlist.open_now, watchlist.top_open, watchlist.widest_funding)
    if WATCHLIST in patterns or any(asks) or watchlist.events_above_pct is not None:
        return held
    return [
        stream
        for stream in held
        if stream.matches(patterns, either_way=True)
        or (isinstance(stream, Trajectory) and watchlist.of_market(stream))
    ]


def _add(draft: Draft, keys: Iterable[str], whats: Iterable[str], window: Interval) -> None:
    for key in keys:
        for what in dict.fromkeys(whats):
            draft.add(Part(what, *window, stream=key))
