"""Series of events and of snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from toolkit.analyses import Analysis, find
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval, clip, total_s
from toolkit.market import EventFamily, EventLog, Family, SnapshotLog, Trajectory, format_ts
from toolkit.series.analyses import EventAnalyses
from toolkit.series.base import Series, checked_options
from toolkit.show.values import share_text
from toolkit.statistics import events as event_statistics
from toolkit.statistics.events.changes import STUDIED
from toolkit.statistics.events.exposure import group_columns, with_losses
from toolkit.wire.rows.snapshot_rows import snapshot_items

if TYPE_CHECKING:
    from toolkit.charts import Figure

_GROUPED = ("by", "same")


@dataclass(frozen=True)
class HeldEvents:
    """Documents of event logs in a window, and before it for openings.

    ``logs`` is `toolkit.store.event_logs` (family, known_until in s), ``held``
    `toolkit.store.held_stretches`. ``family`` is for an analysis of one log.
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

        ``on`` selects the events of its symbol, also those without legs. Raises `EmptyWindowError`
        without an event.
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
        """Return the arguments of an analysis that come from the events."""
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
        """Compute an analysis of the events. ``asked`` has its options and rows."""
        taken = dict(asked) | self.given(analysis, asked, on)
        if not analysis.of:
            found: pl.DataFrame = analysis.function(**_by_columns(taken))
            return found
        first = find(analysis.of)
        rows = first.function(**{name: taken[name] for name in taken if name in first.takes})
        return summed_up(analysis, rows, taken)


def summed_up(analysis: Analysis, rows: pl.DataFrame, asked: Mapping[str, Any]) -> pl.DataFrame:
    """Apply an analysis to the rows of the one that it sums up, with its own options."""
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

    They are symbol, legs, exchange, and the band of the episode's (else event's) largest size.
    """
    place = pl.col("trajectory").str.strip_prefix(f"{Family.FUNDING.value}/")
    symbol, legs = (place.str.splitn(":", 2).struct[n] for n in (0, 1))
    added = rows.with_columns(
        symbol.alias("symbol"),
        legs.str.replace(":(pump|dump)$", "").str.replace(":", " → ", literal=True).alias("legs"),
        pl.coalesce("episode_peak_pct", "event_peak_pct").alias("size"),
    )
    return event_statistics.with_groups(added).drop("hour", "size")


@dataclass(frozen=True, eq=False, repr=False)
class EventSeries(EventAnalyses):
    """The documents of one event log, oldest first.

    ``rows`` begin seven days before the window, to include the openings of its events. ``logs`` has
    the time until which the log is known, ``held`` its `toolkit.store.held_stretches`, ``lost`` the
    store's gaps, if any.
    """

    stream: EventLog
    logs: pl.DataFrame = field(default_factory=pl.DataFrame)
    held: pl.DataFrame = field(default_factory=pl.DataFrame)
    lost: pl.DataFrame | None = None

    def _time(self) -> pl.Expr:
        times = pl.from_epoch("ts_ms", time_unit="ms").cast(pl.Datetime("us"))
        return times.dt.replace_time_zone("UTC")

    @checked_options
    def coverage(self) -> pl.DataFrame:
        """Measure the coverage of the window by the service's answers.

        One row: ``stream``, ``n`` (documents), ``coverage`` (fraction of the window, null if the
        service never answered, and as of an earlier time).
        """
        return pl.DataFrame(
            {"stream": [self.stream.key], "n": [len(self)], "coverage": [self._share()]},
            schema_overrides={"coverage": pl.Float64},
        )

    def _share(self) -> float | None:
        if self.origin.states is None:
            return None
        held = self.origin.states.filter(state="held").select("start_ts", "end_ts").iter_rows()
        return total_s(clip([Interval(*each) for each in held], self.window)) / self.window.length_s

    @checked_options
    def lifecycles(self) -> pl.DataFrame:
        """Pair the documents: one row per event that touches the window.

        See `toolkit.statistics.events.event_lifecycles`. Events in a store also have ``near_lost``
        (String): why rows of their legs are lost at the source from an hour before the event to its
        end, null if none are.
        """
        found = event_statistics.event_lifecycles(self.rows, *self.window, logs=self.logs)
        return found if self.lost is None else with_losses(found, self.lost)

    @checked_options
    def detections(self) -> pl.DataFrame:
        """List the events that opened in the window: when, in which trajectory, which way.

        `toolkit.workspace.Workspace.around` has the rows around them.
        """
        found = event_statistics.detections(self.rows)
        return found.filter(pl.col("ts").is_between(*self.window, closed="left"))

    def answer(self, analysis: Analysis, **asked: Any) -> pl.DataFrame:
        """Compute an analysis. ``fees`` default to the workspace's."""
        if "fees" in asked:
            asked["fees"] = self.origin.fees if asked["fees"] is None else asked["fees"]
        held = HeldEvents(self.window, self.rows, self.logs, self.held, self.stream.family)
        return held.answer(analysis, **asked)

    @checked_options
    def plot(
        self,
        *,
        subject: str = "all symbols",
        timezone: str = "UTC",
        theme: str | None = None,
        limit: int = 60,
    ) -> Figure:
        """Draw each event from opening to close. See `toolkit.charts.event_timeline`."""
        from toolkit.charts import event_timeline  # noqa: PLC0415 - plotly takes half a second

        given = self._known | {"subject": subject, "timezone": timezone, "theme": theme}
        return event_timeline(self.lifecycles(), **given, limit=limit)

    @checked_options
    def plot_activity(
        self, *, subject: str = "all symbols", timezone: str = "UTC", theme: str | None = None
    ) -> Figure:
        """Draw how many events opened when. See `toolkit.charts.activity_chart`."""
        from toolkit.charts import activity_chart  # noqa: PLC0415 - plotly takes half a second

        given = self._known | {"subject": subject, "timezone": timezone, "theme": theme}
        return activity_chart(self.rows, **given)

    @property
    def _known(self) -> dict[str, Any]:
        return {"start": self.window.start, "end": self.window.end, "source": self.source}

    def _found(self) -> list[tuple[str, str]]:
        return [("documents", f"{len(self):,}"), ("answered", share_text(self._share()))]


class SnapshotSeries(Series):
    """The snapshots of one kind, newest first. ``ts`` is the service's clock at the answer."""

    stream: SnapshotLog

    @checked_options
    def items(self) -> pl.DataFrame:
        """Return the items of the newest snapshot of the window: one row each, columns as sent.

        ``ts`` (s) comes first. Nested lists and objects are JSON text. Malformed items are left
        out, and `card` counts them. Raises `EmptyWindowError` without a snapshot.
        """
        if not len(self):
            raise EmptyWindowError(f"no {self.stream} in {self.window}")
        newest = self.df.row(0, named=True)
        found = snapshot_items(self.stream.of.value, newest["document"]).understood
        flat = [{name: _flat(value) for name, value in item.items()} for item in found]
        return pl.DataFrame(flat, infer_schema_length=None).select(
            pl.lit(newest["ts"], pl.Int64).alias("ts"), pl.all()
        )

    def _found(self) -> list[tuple[str, str]]:
        found = [("snapshots", f"{len(self):,}")]
        if len(self):
            newest = self.df.row(0, named=True)
            found.append(("newest", format_ts(newest["ts"])))
            items = snapshot_items(self.stream.of.value, newest["document"])
            found.append(("items", items.words or f"{len(items.understood):,}"))
        return found


def _flat(value: object) -> object:
    nested = isinstance(value, list | dict)
    return msgspec.json.encode(value).decode() if nested else value
