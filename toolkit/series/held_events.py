"""Lives, openings and documents of a window, as analyses of events take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from toolkit.analyses import Analysis, find
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.statistics import events as event_statistics
from toolkit.statistics.events.changes import STUDIED
from toolkit.statistics.events.groups import group_columns

_GROUPED = ("by", "same")


@dataclass(frozen=True)
class HeldEvents:
    """The documents of event logs in a window and before it, where its events opened.

    ``logs`` is `toolkit.store.event_logs` (family, known_until in s), ``held`` is
    `toolkit.store.held_stretches`. ``family`` is that of an analysis of one log.
    """

    window: Interval
    documents: pl.DataFrame
    logs: pl.DataFrame
    held: pl.DataFrame
    family: EventFamily | None = None

    @cached_property
    def lives(self) -> pl.DataFrame:
        """The lifecycles that touch the window, with the columns of `with_groups`."""
        found = event_statistics.event_lifecycles(self.documents, *self.window, logs=self.logs)
        return event_statistics.with_groups(found)

    def openings(self, on: Trajectory | str | None = None) -> pl.DataFrame:
        """Return the events that opened in the window, each with its trajectory.

        With ``on`` they are the events of its symbol, also those without legs. Raises
        `EmptyWindowError` without an event.
        """
        found = event_statistics.detections(self.documents, placed=on is None)
        found = found.filter(pl.col("ts").is_between(*self.window, closed="left"))
        what = ""
        if on is not None:
            other = Trajectory.parse(on)
            key = pl.lit(other.key)
            found = found.filter(symbol=str(other.symbol)).with_columns(trajectory=key)
            what = f" of {other.symbol}"
        if found.is_empty():
            raise EmptyWindowError(f"no event{what} opened in {self.window}")
        return found

    def given(
        self, analysis: Analysis, asked: Mapping[str, Any], on: Trajectory | str | None = None
    ) -> dict[str, Any]:
        """Return what an analysis takes of the events, beside what it is asked."""
        known: dict[str, Any] = {"frame": self.documents, "logs": self.logs, "held": self.held}
        known |= {"start": self.window.start, "end": self.window.end, "family": self.family}
        if "lives" in analysis.takes:
            known["lives"] = self.lives
            if "family" in analysis.takes:
                known["lives"] = event_statistics.with_direction(self.lives, self.documents)
        if "events" in analysis.takes:
            known["events"] = self.openings(on)
            columns = asked["values"].lazy().collect_schema().names()
            if STUDIED[Family.FUNDING] in columns:
                known["known_after_s"] = 0  # a settlement is known at its time
        return {name: each for name, each in known.items() if name in analysis.takes}

    def answer(
        self, analysis: Analysis, *, on: Trajectory | str | None = None, **asked: Any
    ) -> pl.DataFrame:
        """Compute an analysis of the events. ``asked`` has its options, and the rows it takes."""
        taken = dict(asked) | self.given(analysis, asked, on)
        if not analysis.of:
            found: pl.DataFrame = analysis.function(**_by_columns(taken))
            return found
        first = find(analysis.of)
        rows = first.function(**{name: taken[name] for name in taken if name in first.takes})
        return summed_up(analysis, rows, taken)


def summed_up(analysis: Analysis, rows: pl.DataFrame, asked: Mapping[str, Any]) -> pl.DataFrame:
    """Apply an analysis to the rows of the one that it is of, with its own options."""
    own = [each.name for each in analysis.parameters if each.name not in find(analysis.of).takes]
    if asked.get("by") and "symbol" not in rows.columns:
        rows = with_places(rows)
    options = {name: asked[name] for name in own if name in asked}
    found: pl.DataFrame = analysis.function(rows, **_by_columns(options))
    return found


def _by_columns(options: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: group_columns(options[name]) for name in _GROUPED if name in options}
    return {**options, **named}


def with_places(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of groups to rows of `toolkit.statistics.events.audited`.

    They are symbol, legs, exchange, and the band of the largest size of episode or else event.
    """
    place = pl.col("trajectory").str.strip_prefix(f"{Family.FUNDING.value}/")
    symbol, legs = (place.str.splitn(":", 2).struct[n] for n in (0, 1))
    added = rows.with_columns(
        symbol.alias("symbol"),
        legs.str.replace(":(pump|dump)$", "").str.replace(":", " → ", literal=True).alias("legs"),
        pl.coalesce("episode_peak_pct", "event_peak_pct").alias("size"),
    )
    return event_statistics.with_groups(added).drop("hour", "size")
