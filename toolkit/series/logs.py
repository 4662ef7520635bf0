"""Series of events and of snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl

from toolkit.charts import Figure, activity_chart, event_timeline
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval, clip, total_s
from toolkit.market import EventLog, SnapshotLog, format_ts
from toolkit.series.base import Series, checked_options
from toolkit.statistics import events as event_statistics
from toolkit.statistics.event_counts import event_counts
from toolkit.wire.snapshots import snapshot_items


@dataclass(frozen=True, eq=False, repr=False)
class EventSeries(Series):
    """The documents of one event log, oldest first.

    ``rows`` reach seven days further back than the window, so that the openings of events that
    touch it are among them. ``logs`` states until when the log is known.
    """

    stream: EventLog
    logs: pl.DataFrame = field(default_factory=pl.DataFrame)

    def _time(self) -> pl.Expr:
        return (
            pl.from_epoch("ts_ms", time_unit="ms")
            .cast(pl.Datetime("us"))
            .dt.replace_time_zone("UTC")
        )

    def coverage(self) -> pl.DataFrame:
        """Measure how much of the window the service has answered for.

        One row: ``stream``, ``n`` (documents), ``coverage`` (part of the window, fraction, null
        where the service never answered).
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

    def lifecycles(self) -> pl.DataFrame:
        """Pair the documents: one row per event that touches the window.

        See `toolkit.statistics.events.event_lifecycles`.
        """
        return event_statistics.event_lifecycles(self.rows, *self.window, logs=self.logs)

    def summary(self) -> pl.DataFrame:
        """Count the events that touch the window, by kind, with their median life.

        See `toolkit.statistics.event_counts.event_counts`.
        """
        return event_counts(self.rows, *self.window, logs=self.logs)

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
        return event_timeline(
            self.lifecycles(),
            **self._known,
            subject=subject,
            timezone=timezone,
            theme=theme,
            limit=limit,
        )

    @checked_options
    def plot_activity(
        self, *, subject: str = "all symbols", timezone: str = "UTC", theme: str | None = None
    ) -> Figure:
        """Draw how many events opened when. See `toolkit.charts.activity_chart`."""
        return activity_chart(
            self.rows, **self._known, subject=subject, timezone=timezone, theme=theme
        )

    @property
    def _known(self) -> dict[str, Any]:
        """What the charts ask for and the series knows."""
        return {"start": self.window.start, "end": self.window.end, "source": self.source}

    def _found(self) -> list[tuple[str, str]]:
        share = self._share()
        return [
            ("documents", f"{len(self):,}"),
            ("answered", "–" if share is None else f"{share:.1%}"),
        ]


class SnapshotSeries(Series):
    """The snapshots of one kind, newest first. ``ts`` is the service's clock at the answer."""

    stream: SnapshotLog

    def items(self) -> pl.DataFrame:
        """Return the items of the newest snapshot of the window: one row each, columns as sent.

        ``ts`` (s) comes first. Lists and objects inside an item are JSON text. Items that are not
        understood are left out, and `card` counts them. Raises `EmptyWindowError` without a
        snapshot in the window.
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
