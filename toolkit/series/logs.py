"""Series of events and of snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from toolkit.analyses import Analysis
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval, clip, total_s
from toolkit.market import EventLog, SnapshotLog, format_ts
from toolkit.series.analyses import EventAnalyses
from toolkit.series.base import Series, checked_options
from toolkit.series.held_events import HeldEvents
from toolkit.show.values import share_text
from toolkit.statistics import events as event_statistics
from toolkit.statistics.events.exposure import with_losses
from toolkit.wire.rows.snapshot_rows import snapshot_items

if TYPE_CHECKING:
    from toolkit.charts import Figure


@dataclass(frozen=True, eq=False, repr=False)
class EventSeries(EventAnalyses):
    """The documents of one event log, oldest first.

    ``rows`` begin seven days before the window, to include the openings of events that touch it.
    ``logs`` has the time until which the log is known, ``held`` the stretches that are held, before
    the window too (`toolkit.store.held_stretches`), and ``lost`` the gaps of the store, or None.
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
        """Measure how much of the window the service has answered for.

        One row: ``stream``, ``n`` (documents), ``coverage`` (fraction of the window, null where the
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
        (String): why rows of their legs are lost at the source between an hour before an event and
        its end, null where none are.
        """
        found = event_statistics.event_lifecycles(self.rows, *self.window, logs=self.logs)
        return found if self.lost is None else with_losses(found, self.lost)

    @checked_options
    def detections(self) -> pl.DataFrame:
        """List the events that opened in the window: when, in which trajectory, which way.

        See `toolkit.statistics.events.detections`. `toolkit.workspace.Workspace.around` has the
        rows around them.
        """
        found = event_statistics.detections(self.rows)
        return found.filter(pl.col("ts").is_between(*self.window, closed="left"))

    def answer(self, analysis: Analysis, **asked: Any) -> pl.DataFrame:
        """Compute an analysis of the events. ``asked`` has its parameters and rows.

        ``fees`` are by default the workspace's.
        """
        if "fees" in asked:
            asked["fees"] = self.origin.fees if asked["fees"] is None else asked["fees"]
        return self._events.answer(analysis, **asked)

    @property
    def _events(self) -> HeldEvents:
        return HeldEvents(self.window, self.rows, self.logs, self.held, self.stream.family)

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

        ``ts`` (s) comes first. Lists and objects inside an item are JSON text. Malformed items are
        left out, and `card` counts them. Raises `EmptyWindowError` without a snapshot.
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
