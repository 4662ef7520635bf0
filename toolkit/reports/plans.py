"""Which parts a report on spreads, funding, events or a symbol has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolkit.intervals import Interval
from toolkit.market import Family, Stream, Trajectory
from toolkit.reports.drafting import Draft
from toolkit.reports.recipe import Option, Part

DRAWN = 3
"""Of many trajectories so many are drawn: the first of the table that ranks them."""

_SCREEN = {Family.SPREAD: "screen_spreads", Family.FUNDING: "screen_funding"}
_OF_ONE = {
    Family.SPREAD: ("plot", "summary", "hour_of_week", "flags"),
    Family.FUNDING: ("plot", "summary", "persistence", "holdings"),
}
_OF_EVENTS = ("plot_activity", "summary", "survival", "league")


def add_trajectories(draft: Draft, family: Family, keys: Sequence[str], window: Interval) -> None:
    """Add spreads or funding pairs: one with all its figures, several ranked in a table.

    Of several the first `DRAWN` of the table are drawn, with their figures.
    """
    if len(keys) == 1:
        _add(draft, keys, _OF_ONE[family], window)
        return
    ranked = draft.add(Part(_SCREEN[family], *window, streams=tuple(keys)))
    shown = [str(row["trajectory"]) for row in ranked.answer.shown]
    _add(draft, shown[:DRAWN], ("plot", "summary"), window)


def add_events(draft: Draft, families: Iterable[str], window: Interval) -> None:
    """Add event logs: when events opened, their figures, how long they last, how often by legs."""
    _add(draft, [f"events/{family}" for family in families], _OF_EVENTS, window)


def add_symbol(draft: Draft, symbol: str, streams: Sequence[Stream], window: Interval) -> None:
    """Add a symbol: all its legs on one axis of time, its spreads and its funding pairs.

    ``streams`` are those held of the symbol, and the event logs.
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


def _add(draft: Draft, keys: Iterable[str], whats: Iterable[str], window: Interval) -> None:
    for key in keys:
        for what in whats:
            draft.add(Part(what, *window, stream=key))
