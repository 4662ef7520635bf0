"""Series of prices, spreads and funding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import polars as pl

from toolkit.cards import duration
from toolkit.charts import Figure, funding_chart, price_chart, spread_chart
from toolkit.errors import InputError
from toolkit.market import Trajectory, parse_length
from toolkit.series.base import Series, checked_options
from toolkit.series.logs import EventSeries
from toolkit.statistics import fees as fee_statistics
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics import prices as price_statistics
from toolkit.statistics import quality
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.differentials import service_differential


class TrajectorySeries(Series):
    """A series of bars or of settlements."""

    stream: Trajectory

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory of the rows."""
        return self.stream

    def coverage(self) -> pl.DataFrame:
        """Measure how much of the window is covered, see `toolkit.statistics.quality.coverage`."""
        return quality.coverage(self.rows, *self.window, step_s=self.origin.step_s)

    def _found(self) -> list[tuple[str, str]]:
        found = [("rows", f"{len(self):,}")]
        share = self._share()
        if share is not None:
            found.append(("coverage", f"{share:.1%}"))
        if self.origin.step_s:
            found.append(("step", duration(self.origin.step_s)))
        return found

    def _share(self) -> float | None:
        if self.rows.is_empty():
            return None
        share: float | None = self.coverage()["coverage"].item()
        return share

    @property
    def _known(self) -> dict[str, Any]:
        """What the charts ask for and the series knows."""
        low, high = self.window
        return {"source": self.source, "trajectory": self.stream, "start": low, "end": high}


class _BarTrajectorySeries(TrajectorySeries):
    @property
    def _bar_s(self) -> int | None:
        return self.origin.step_s

    @property
    def _column(self) -> str | None:
        """The column whose values count as observed."""
        return None

    def coverage(self) -> pl.DataFrame:
        """Measure how much of the window is covered, see `toolkit.statistics.quality.coverage`."""
        return quality.coverage(
            self.rows, *self.window, column=self._column, step_s=self.origin.step_s
        )

    def resample(self, every: str | int) -> Self:
        """Return the series with one row per bar of ``every`` (``5m``, ``1h``, 900), its last row.

        Bars begin at midnight UTC and at multiples of ``every`` from it. A bar's ``ts`` is its
        start, as before. ``volume`` is the sum over the bar, every other column the bar's last row,
        which is the bar's close where its last minute is held. ``n`` counts the rows of the bar.
        A bar without a row stays a gap. Bars that the window cuts are left out, so that the window
        of the result may be shorter.

        Raises `InputError` for a length that does not divide a day or that is no multiple of the
        rows' spacing.
        """
        every_s = parse_length(every, parameter="every")
        step_s = self.origin.step_s or 1
        if 86_400 % every_s or every_s % step_s or every_s <= step_s:
            raise InputError(
                "every",
                every,
                f"a length that divides a day and is a multiple of {duration(step_s)}",
            )
        low, high = (
            -(-self.window.start // every_s) * every_s,
            self.window.end // every_s * every_s,
        )
        window = type(self.window).checked(low, high)
        inside = self.rows.filter(pl.col("ts").is_between(low, high, closed="left"))
        sums = [pl.col("volume").sum()] if "volume" in inside.columns else []
        kept = [c for c in inside.columns if c not in ("trajectory", "ts", "volume", "n")]
        count = pl.col("n").sum() if "n" in inside.columns else pl.len()
        bars = (
            inside.sort("ts")
            .group_by("trajectory", ts=pl.col("ts") // every_s * every_s, maintain_order=True)
            .agg(pl.col(kept).last(), *sums, n=count.cast(pl.Int64))
        )
        note = f"last row of each {duration(every_s)}"
        origin = replace(self.origin, step_s=every_s, notes=(*self.origin.notes, note))
        return replace(self, window=window, origin=origin, rows=bars)


class PriceSeries(_BarTrajectorySeries):
    """Prices of one symbol on one leg. A bar's price is its close, and its ``ts`` its start."""

    @property
    def _column(self) -> str | None:
        return "price"

    def summary(self) -> pl.DataFrame:
        """Compute first, last, lowest and highest price, change and volatility.

        See `toolkit.statistics.prices.summary`.
        """
        return price_statistics.summary(self.rows, *self.window, step_s=self.origin.step_s)

    @checked_options
    def plot(
        self, *, timezone: str = "UTC", theme: str | None = None, points: int = 2000
    ) -> Figure:
        """Draw the price. The parameters are those of `toolkit.charts.price_chart`."""
        return price_chart(
            self.rows,
            **self._known,
            step_s=self.origin.step_s,
            timezone=timezone,
            theme=theme,
            points=points,
        )


class SpreadSeries(_BarTrajectorySeries):
    """The spread between two legs: positive where long the buy leg, short the sell leg earns it.

    Beside the store's columns the rows have ``spread_log_bps`` and ``spread_bps``, see
    `toolkit.statistics.spread.with_spread`. A bar's prices are its close, and its ``ts`` its start.
    """

    @property
    def _column(self) -> str | None:
        return "spread_log_bps"

    def summary(self) -> pl.DataFrame:
        """Compute level, dispersion, tails, half-life: see `toolkit.statistics.spread.summary`."""
        return spread_statistics.summary(self.rows, *self.window, step_s=self.origin.step_s)

    def half_life(self) -> pl.DataFrame:
        """Estimate how fast a deviation halves. See `toolkit.statistics.spread.half_life`."""
        return spread_statistics.half_life(self.rows, *self.window, step_s=self.origin.step_s)

    def quantiles(self) -> pl.DataFrame:
        """Compute the quantiles of the log spread (bps), with n and coverage, as `summary` does."""
        return self.summary().select(
            "trajectory", "n", "coverage", pl.col("^spread_q\\d\\d_log_bps$"), "quantiles_reason"
        )

    @checked_options
    def episodes(
        self,
        enter_bps: float,
        *,
        leave_bps: float | None = None,
        merge_gap_s: int = 0,
        min_duration_s: int = 0,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Find the stretches in which the spread is ``enter_bps`` or more from zero.

        The parameters are those of `toolkit.statistics.spread.episodes`.
        """
        return spread_statistics.episodes(
            self.rows,
            *self.window,
            enter_bps=enter_bps,
            leave_bps=leave_bps,
            merge_gap_s=merge_gap_s,
            min_duration_s=min_duration_s,
            column=column,
            step_s=self.origin.step_s,
            max_stale_s=max_stale_s,
        )

    @checked_options
    def time_above(
        self,
        threshold_bps: float,
        *,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Measure how much of the time the spread is ``threshold_bps`` or more from zero.

        The parameters are those of `toolkit.statistics.spread.time_above`.
        """
        return spread_statistics.time_above(
            self.rows,
            *self.window,
            threshold_bps=threshold_bps,
            column=column,
            step_s=self.origin.step_s,
            max_stale_s=max_stale_s,
        )

    @checked_options
    def net_edge(
        self,
        fees: fee_statistics.FeeModel,
        *,
        notional: float,
        style: fee_statistics.Style = "taker",
        exit_bps: float = 0.0,
    ) -> pl.DataFrame:
        """Compute what each row leaves after fees. See `toolkit.statistics.fees.net_edge`."""
        return fee_statistics.net_edge(
            self.df, fees, notional=notional, style=style, exit_bps=exit_bps
        )

    @checked_options
    def plot(
        self,
        *,
        events: EventSeries | pl.DataFrame | None = None,
        logs: pl.DataFrame | None = None,
        thresholds_bps: Sequence[float] = (),
        timezone: str = "UTC",
        theme: str | None = None,
        points: int = 2000,
    ) -> Figure:
        """Draw both legs and the spread. The parameters are those of `toolkit.charts.spread_chart`.

        ``events`` are shaded: those of `Workspace.events`, which bring their ``logs``, or a frame
        of event documents.
        """
        if isinstance(events, EventSeries):
            logs = events.logs if logs is None else logs
            events = events.rows
        return spread_chart(
            self.rows,
            **self._known,
            step_s=self.origin.step_s,
            thresholds_bps=thresholds_bps,
            events=events,
            logs=logs,
            timezone=timezone,
            theme=theme,
            points=points,
        )


class FundingSeries(TrajectorySeries):
    """Funding of a pair: positive where long the buy leg, short the sell leg receives it.

    A position is opened at the window's start and closed at its end, so that a settlement at the
    start is not received and one at the end is: `df` has the settlements of ``(start, end]``.
    """

    def _inside(self) -> pl.Expr:
        return pl.col("ts").is_between(*self.window, closed="right")

    def coverage(self) -> pl.DataFrame:
        """Measure how much of the window the settlements of both legs cover, as `summary` does."""
        columns = ("n", "n_missed", "buy_coverage", "sell_coverage", "coverage", "carry_reason")
        return self.summary().select("trajectory", *columns)

    @checked_options
    def summary(self, *, min_coverage: float = funding_statistics.MIN_COVERAGE) -> pl.DataFrame:
        """Sum what the position received. See `toolkit.statistics.funding.summary`."""
        return funding_statistics.summary(self.rows, *self.window, min_coverage=min_coverage)

    @checked_options
    def carry(self, *, min_coverage: float = funding_statistics.MIN_COVERAGE) -> pl.DataFrame:
        """Sum what was received after each settlement. See `toolkit.statistics.funding.carry`."""
        return funding_statistics.carry(self.rows, *self.window, min_coverage=min_coverage)

    def intervals(self) -> pl.DataFrame:
        """List the settlements of the window with their intervals.

        See `toolkit.statistics.funding.intervals`.
        """
        return funding_statistics.intervals(self.rows).filter(self._inside())

    def service_differential(self) -> pl.DataFrame:
        """Average the differential that the service sends itself, in force over the window.

        See `toolkit.statistics.differentials.service_differential`.
        """
        return service_differential(self.rows, *self.window)

    @checked_options
    def plot(
        self, *, timezone: str = "UTC", theme: str | None = None, points: int = 2000
    ) -> Figure:
        """Draw differential and carry. The parameters are those of `funding_chart`."""
        return funding_chart(
            self.rows, **self._known, timezone=timezone, theme=theme, points=points
        )
