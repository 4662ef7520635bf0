"""Series of events and of snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval, clip, total_s
from toolkit.market import EventFamily, EventLog, Family, SnapshotLog, Trajectory, format_ts
from toolkit.series.base import Series, checked_options
from toolkit.show.values import share_text
from toolkit.statistics import events as event_statistics
from toolkit.statistics.clusters import AUTO
from toolkit.statistics.contract import Frame
from toolkit.statistics.event_counts import event_counts
from toolkit.statistics.event_losses import with_losses
from toolkit.statistics.event_positions import DELAYS_S
from toolkit.statistics.fees import NOTIONAL, FeeModel, Style
from toolkit.wire.snapshots import snapshot_items

if TYPE_CHECKING:
    from toolkit.charts import Figure


STUDIED = {
    Family.PRICE: "price",
    Family.SPREAD: "spread_log_bps",
    Family.FUNDING: "differential_pct_8h",
}
"""The column of rows that is studied around events."""

_FAMILIES = {
    EventFamily.SPLASH: Family.PRICE,
    EventFamily.SPREAD: Family.SPREAD,
    EventFamily.FUNDING: Family.FUNDING,
}


@dataclass(frozen=True, eq=False, repr=False)
class EventSeries(Series):
    """The documents of one event log, oldest first.

    ``rows`` reach seven days further back than the window, so that the openings of events that
    touch it are among them. ``logs`` states until when the log is known, and ``held`` in which
    stretches of time it is held (`toolkit.store.held_stretches`), before the window too. ``lost``
    are the gaps of its store, None of documents that have none.
    """

    stream: EventLog
    logs: pl.DataFrame = field(default_factory=pl.DataFrame)
    held: pl.DataFrame = field(default_factory=pl.DataFrame)
    lost: pl.DataFrame | None = None

    def _time(self) -> pl.Expr:
        return (
            pl.from_epoch("ts_ms", time_unit="ms")
            .cast(pl.Datetime("us"))
            .dt.replace_time_zone("UTC")
        )

    @checked_options
    def coverage(self) -> pl.DataFrame:
        """Measure how much of the window the service has answered for.

        One row: ``stream``, ``n`` (documents), ``coverage`` (part of the window, fraction, null
        where the service never answered, and as of an earlier time: the ledger is of now).
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

        See `toolkit.statistics.events.event_lifecycles`. Those of a store also have ``near_lost``
        (String): why rows of their legs that were loaded are lost at the source from an hour before
        an event to its end, null where none are.
        """
        found = event_statistics.event_lifecycles(self.rows, *self.window, logs=self.logs)
        return found if self.lost is None else with_losses(found, self.lost)

    @checked_options
    def detections(self) -> pl.DataFrame:
        """List the events that opened in the window: when, in which trajectory, which way.

        See `toolkit.statistics.events.detections`. `toolkit.workspace.Workspace.around` has the
        rows in which to look for what followed.
        """
        return self._opened(placed=True)

    def _opened(self, *, placed: bool) -> pl.DataFrame:
        found = event_statistics.detections(self.rows, placed=placed)
        return found.filter(pl.col("ts").is_between(*self.window, closed="left"))

    @checked_options
    def positions(
        self,
        spreads: Frame,
        *,
        delays_s: Sequence[int] = DELAYS_S,
        limit_s: int | None = None,
        exit_bps: float | None = None,
        exit_delay_s: int = 0,
        fees: FeeModel | None = None,
        notional: float = NOTIONAL,
        style: Style = "taker",
    ) -> pl.DataFrame:
        """Compute what each spread event would have paid, taken so long after it was detected.

        ``spreads`` are the rows that `toolkit.workspace.Workspace.around` returns. The other
        parameters are those of `toolkit.statistics.events.positions`. Without ``fees`` it is the
        workspace's table. `toolkit.statistics.events.payoff` sums up the result:

        ``payoff(log.positions(rail.around(log)))`` with ``log = rail.events("spread")``.
        """
        return event_statistics.positions(
            self.lifecycles(),
            spreads,
            delays_s=delays_s,
            limit_s=limit_s,
            exit_bps=exit_bps,
            exit_delay_s=exit_delay_s,
            held=self._held(),
            fees=self.origin.fees if fees is None else fees,
            notional=notional,
            style=style,
        )

    def _held(self) -> pl.DataFrame | None:
        """Return the stretches in which the log is held, None where that is not known.

        What was answered for last is held until the log is known.
        """
        if self.origin.states is None:
            return None
        held = self.origin.states.filter(state="held").sort("end_ts")
        last = pl.int_range(pl.len()) == pl.len() - 1
        end = pl.when(last).then(pl.lit(self.window.end, pl.Int64)).otherwise("end_ts")
        family = pl.lit(self.stream.family.value).alias("family")
        return held.select(family, "start_ts", end.alias("end_ts"))

    @checked_options
    def summary(self) -> pl.DataFrame:
        """Count the events that touch the window, by kind, with their median life.

        See `toolkit.statistics.event_counts.event_counts`.
        """
        return event_counts(self.rows, *self.window, logs=self.logs, held=self.held)

    @checked_options
    def survival(self, by: Sequence[str] = (), *, cluster: str = AUTO) -> pl.DataFrame:
        """Compute how long the events last, by Kaplan and Meier, to the next gap of the log.

        ``by`` is as in `rates`. Lives of one ``cluster`` may depend on each other: path, day,
        symbol, trajectory, trajectory_day or none, by default what the data show. See
        `toolkit.statistics.events.survival`.
        """
        return event_statistics.survival(self._lives, by, held=self.held, cluster=cluster)

    @checked_options
    def hazard_ratios(
        self, covariates: Sequence[str] = ("size",), *, cluster: str = AUTO
    ) -> pl.DataFrame:
        """Estimate what makes the events end sooner or later, by the regression of Cox.

        ``covariates`` are columns of numbers or text, of those that `rates` takes and ``size``.
        ``cluster`` is as in `survival`. See `toolkit.statistics.events.hazard_ratios`.
        """
        lives = self._lives
        return event_statistics.hazard_ratios(lives, covariates, held=self.held, cluster=cluster)

    @checked_options
    def rates(self, by: Sequence[str] = (), *, cluster: str = AUTO) -> pl.DataFrame:
        """Compute how often events open, over the time in which the log is held.

        ``by`` are columns of `lifecycles`, such as symbol and legs, and of
        `toolkit.statistics.events.with_groups`: hour, exchange, size_from. Bursts lie within a
        ``cluster``: a stretch, a day, or none, by default what the data show. See
        `toolkit.statistics.events.rates`.
        """
        return event_statistics.rates(self._lives, by, held=self.held, cluster=cluster)

    @checked_options
    def league(self, by: Sequence[str] = ("legs",), *, cluster: str = AUTO) -> pl.DataFrame:
        """Rank groups by how often their events open, with the luck of few events taken out.

        ``by`` and ``cluster`` are as in `rates`. See `toolkit.statistics.events.league`.
        """
        return event_statistics.league(self._lives, by, held=self.held, cluster=cluster)

    @checked_options
    def audited(
        self,
        rows: Frame,
        *,
        enter_bps: float | None = None,
        leave_bps: float | None = None,
        slack_s: int | None = None,
        move_s: int | None = None,
    ) -> pl.DataFrame:
        """Match the events with episodes of trajectories, and list what a side lacks.

        ``rows`` are those of trajectories: of some with `toolkit.store.Store.scan`, or
        ``rail.around(events)`` of those with an event. There no trajectory without any event is
        among them, and an episode of such a one is not missed. The rest is as in
        `toolkit.statistics.events.audited`.
        """
        return event_statistics.audited(
            event_statistics.with_direction(self.lifecycles(), self.rows),
            rows,
            *self.window,
            family=self.stream.family,
            held=self.held,
            enter_bps=enter_bps,
            leave_bps=leave_bps,
            slack_s=slack_s,
            move_s=move_s,
        )

    @checked_options
    def audit(
        self,
        rows: Frame,
        *,
        enter_bps: float | None = None,
        leave_bps: float | None = None,
        slack_s: int | None = None,
        move_s: int | None = None,
    ) -> pl.DataFrame:
        """Compute how true the log is to trajectories: precision, recall and delay.

        The parameters are those of `audited`. For groups give what that lists to
        `toolkit.statistics.events.audit`.
        """
        listed = self.audited(
            rows, enter_bps=enter_bps, leave_bps=leave_bps, slack_s=slack_s, move_s=move_s
        )
        return event_statistics.audit(listed)

    @checked_options
    def study(
        self,
        values: Frame,
        *,
        on: Trajectory | str | None = None,
        column: str | None = None,
        before_s: int | None = None,
        after_s: int | None = None,
        every_s: int | None = None,
        less: str = "none",
        quiet_s: int = 0,
        cluster: str = "path",
        from_detection: bool = False,
    ) -> pl.DataFrame:
        """Compute the path of a column around the openings of the events, with 95 % bands.

        Paths start at the first value known after each opening, so that the move that made an event
        is no return after it. With ``from_detection`` it is one, and the columns are named so.

        ``values`` are ``rail.around(events)``. Without a ``column`` it is the price of a splash,
        the log spread of a spread event, the differential of a funding event. Without times it is
        an hour before and after, of differentials a day. With ``on`` it is what that trajectory of
        ``rail.around(events, on=...)`` did around all events of its symbol, also those of a list of
        one's own that name no leg. The other parameters
        are those of `toolkit.statistics.events.study`. Raises `EmptyWindowError` for no event.
        """
        opened, family = self._opened(placed=on is None), _FAMILIES[self.stream.family]
        if on is not None:
            other = Trajectory.parse(on)
            opened = opened.filter(symbol=str(other.symbol)).with_columns(
                trajectory=pl.lit(other.key)
            )
            family = other.family
        if opened.is_empty():
            what = "" if on is None else f" of {Trajectory.parse(on).symbol}"
            raise EmptyWindowError(f"no event of {self.stream}{what} opened in {self.window}")
        settled = family is Family.FUNDING
        span_s = 86_400 if settled else 3_600
        return event_statistics.study(
            opened,
            values,
            column=STUDIED[family] if column is None else column,
            before_s=span_s if before_s is None else before_s,
            after_s=span_s if after_s is None else after_s,
            every_s=every_s,
            less=less,
            quiet_s=quiet_s,
            cluster=cluster,
            from_detection=from_detection,
            known_after_s=0 if settled else None,  # a settlement is known at its time
        )

    @property
    def _lives(self) -> pl.DataFrame:
        return event_statistics.with_groups(self.lifecycles())

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
        from toolkit.charts import activity_chart  # noqa: PLC0415 - plotly takes half a second

        return activity_chart(
            self.rows, **self._known, subject=subject, timezone=timezone, theme=theme
        )

    @property
    def _known(self) -> dict[str, Any]:
        """What the charts ask for and the series knows."""
        return {"start": self.window.start, "end": self.window.end, "source": self.source}

    def _found(self) -> list[tuple[str, str]]:
        return [("documents", f"{len(self):,}"), ("answered", share_text(self._share()))]


class SnapshotSeries(Series):
    """The snapshots of one kind, newest first. ``ts`` is the service's clock at the answer."""

    stream: SnapshotLog

    @checked_options
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
