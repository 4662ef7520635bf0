"""Series of prices, spreads, funding, and rates in force."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, overload

import polars as pl

from toolkit.analyses import Analysis, find
from toolkit.cards import duration
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import (
    Family,
    Pair,
    SnapshotTrajectory,
    Source,
    Trajectory,
    format_ts,
    parse_length,
)
from toolkit.series.analyses import FundingAnalyses, PriceAnalyses, RateAnalyses, SpreadAnalyses
from toolkit.series.base import COSTS, Origin, Series, checked_options
from toolkit.series.logs import EventSeries
from toolkit.show.result import Result
from toolkit.show.values import share_text
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics import quality
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.core.contract import beside, checked_types
from toolkit.statistics.funding.carry_marks import PairPrices, marks_of
from toolkit.statistics.quality.coverage import PollCount, by_polls, poll_count
from toolkit.statistics.spread.lead_lag import hayashi_yoshida
from toolkit.tables import LedgerState

if TYPE_CHECKING:
    from toolkit.charts import Figure


class TrajectorySeries(Series):
    """A series of bars, of settlements, or of rows from snapshots.

    Rows from snapshots have coverage by polls.
    """

    stream: Trajectory | SnapshotTrajectory | Pair
    _column: ClassVar[str | None] = None
    """The column by which a row counts as observed."""

    @property
    def trajectory(self) -> Trajectory | SnapshotTrajectory | Pair:
        """The trajectory of the rows."""
        return self.stream

    @property
    def polls(self) -> PollCount | None:
        """The polls of the window, None for rows that are not from snapshots."""
        polls = self.origin.polls
        return None if polls is None else poll_count(polls, *self.window)

    @checked_options
    def coverage(self) -> pl.DataFrame:
        """Measure the coverage of the window, see `toolkit.statistics.quality.coverage`."""
        return self._measured(quality.coverage, column=self._column)

    def answer(self, analysis: Analysis, **asked: Any) -> pl.DataFrame:
        """Compute an analysis of the rows, with net figures if it has some.

        ``asked`` are its parameters, and ``fees`` (default: the workspace's), ``notional`` and
        ``style``. Coverage of rows from snapshots is by polls.
        """
        costs = {name: asked.pop(name) for name in COSTS if name in asked}
        if costs:
            fees = self.origin.fees if costs["fees"] is None else costs["fees"]
            if fees is None and analysis.needs_fees:
                advice = 'or fees = "fees.toml" in rail.toml, or tk.open(fees=...)'
                allowed = "a fee table, e.g. FeeModel.example()"
                raise InputError("fees", None, allowed, advice=advice)
            costs["fees"] = fees
        if "fees" in analysis.takes:
            asked |= costs
        found = self._measured(analysis.function, **asked)
        if not analysis.net or costs["fees"] is None:
            return found
        net = find(analysis.net)
        if net.of_figures:
            beyond: pl.DataFrame = net.function(found, **costs)
            return beyond
        return beside(found, self._measured(net.function, **costs), "net")

    def _measured(self, statistic: Callable[..., pl.DataFrame], **options: Any) -> pl.DataFrame:
        """Apply a statistic with the known step, and with coverage by polls for snapshots."""
        taken = inspect.signature(statistic).parameters
        if "start" not in taken:
            return statistic(self.df, **options)
        if "step_s" in taken and taken["step_s"].default is None:
            known = {} if self.origin.step_s is None else {self.stream.key: self.origin.step_s}
            options["step_s"] = known
        found = statistic(self.rows, *self.window, **options)
        covered = {"coverage", "method"} <= set(found.columns)
        return by_polls(found, self.polls) if covered and self.polls is not None else found

    def _quantiles(self, names: str) -> pl.DataFrame:
        figures: pl.DataFrame = cast("Any", self).summary()
        return figures.select("trajectory", "n", "coverage", pl.col(names), "quantiles_reason")

    @checked_options
    def plot_coverage(self, *, timezone: str = "UTC", theme: str | None = None) -> Figure:
        """Draw the stored stretches of the window, and why the others are missing.

        `gaps` has the same as rows, and its errors.
        """
        return self._drawn("coverage_chart", self._states, timezone=timezone, theme=theme)

    def _drawn(self, chart: str, rows: pl.DataFrame, **options: Any) -> Figure:
        from toolkit import charts  # noqa: PLC0415 - plotly takes half a second

        drawn: Figure = getattr(charts, chart)(rows, **self._known, **options)
        return drawn

    def _found(self) -> list[tuple[str, str]]:
        found = [("rows", f"{len(self):,}")]
        polls = self.polls
        if polls is not None:
            absent = polls.answered - len(self)
            found.append(("kept from snapshots", f"{polls.answered:,} polls answered"))
            found.append(("not tracked", f"{absent:,}, missed {polls.missed:,}"))
        share = self._share()
        if share is not None:
            found.append(("coverage", share_text(share)))
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
        low, high = self.window
        return {"source": self.source, "trajectory": self.stream, "start": low, "end": high}


class BarTrajectorySeries(TrajectorySeries):
    """A series of bars, or of rows from snapshots."""

    @property
    def _bar_s(self) -> int | None:
        return self.origin.step_s if self.origin.polls is None else 0

    def resample(self, every: str | int) -> Self:
        """Return the series with the last row of each bar of ``every`` (``5m``, ``1h``, 900 s).

        Bars begin at midnight UTC and at multiples of ``every``, and ``ts`` is a bar's start.
        ``volume`` is summed, and ``n`` counts the rows. A bar without a row stays a gap. Bars that
        the window cuts are left out, so the window of the result may be shorter.

        Raises `InputError` for a length that does not divide a day or is not a multiple of the
        rows' spacing, and for rows from snapshots.
        """
        if self.origin.polls is not None:
            raise InputError("stream", self.stream.key, "bars: snapshots are of moments")
        every_s, step_s = parse_length(every, parameter="every"), self.origin.step_s or 1
        if 86_400 % every_s or every_s % step_s or every_s <= step_s:
            multiple = f"a multiple of {duration(step_s)}, but longer"
            raise InputError("every", every, f"a length that divides a day and is {multiple}")
        low = -(-self.window.start // every_s) * every_s
        high = self.window.end // every_s * every_s
        window = Interval.checked(low, high)
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


class SpreadSeries(BarTrajectorySeries, SpreadAnalyses):
    """The spread between two legs: positive where long the buy leg, short the sell leg earns it.

    The rows also have ``spread_log_bps`` and ``spread_bps``, see
    `toolkit.statistics.spread.with_spread`. A bar's prices are its close, and its ``ts`` its start.
    """

    _column = "spread_log_bps"

    @checked_options
    def quantiles(self) -> pl.DataFrame:
        """Compute the quantiles of the log spread (bps), with n and coverage, as `summary` does."""
        return self._quantiles("^spread_q\\d\\d_log_bps$")

    @checked_options
    def plot(
        self,
        *,
        events: EventSeries | pl.DataFrame | None = None,
        logs: pl.DataFrame | None = None,
        thresholds_bps: Sequence[float] = (),
        episodes: pl.DataFrame | None = None,
        legs: str = "above",
        distribution: bool = False,
        timezone: str = "UTC",
        theme: str | None = None,
        points: int = 2000,
    ) -> Figure:
        """Draw both legs and the spread. The parameters are those of `toolkit.charts.spread_chart`.

        ``events`` are shaded: a series of events, or a frame of documents with its ``logs``.
        """
        if isinstance(events, EventSeries):
            logs = events.logs if logs is None else logs
            events = events.rows
        return self._drawn(
            "spread_chart",
            self.rows,
            step_s=self.origin.step_s,
            polls=self.origin.polls,
            thresholds_bps=thresholds_bps,
            episodes=episodes,
            events=events,
            logs=logs,
            legs=legs,
            distribution=distribution,
            timezone=timezone,
            theme=theme,
            points=points,
        )


class FundingSeries(TrajectorySeries, FundingAnalyses):
    """Funding of a pair: positive where long the buy leg, short the sell leg receives it.

    Funding of one leg is received by a short position in it, without prices. A position opens at
    the window's start and closes at its end, so `df` has the settlements of ``(start, end]``.
    """

    def _inside(self) -> pl.Expr:
        return pl.col("ts").is_between(*self.window, closed="right")

    def answer(self, analysis: Analysis, **asked: Any) -> pl.DataFrame:
        """Compute an analysis of the settlements, with the prices of the legs if there are any.

        ``prices`` is the spread series of the same legs, or a frame, by default those in the store:
        see `toolkit.series.held_prices`. ``funding_only`` leaves them out. A single leg has none.
        """
        if "funding_only" in asked:
            only = asked["funding_only"] or bool(asked.get("legs"))
            ends = analysis.prices == "ends"
            asked["prices"] = self._leg_prices(asked["prices"], funding_only=only, ends=ends)
            asked["funding_only"] = asked["funding_only"] or self._alone
        return super().answer(analysis, **asked)

    def _measured(self, statistic: Callable[..., pl.DataFrame], **options: Any) -> pl.DataFrame:
        if "start" not in inspect.signature(statistic).parameters:
            return statistic(self.rows, **options).filter(self._inside())
        return statistic(self.rows, *self.window, **options)

    def _leg_prices(
        self, prices: Series | pl.DataFrame | None, *, funding_only: bool, ends: bool = False
    ) -> PairPrices | pl.DataFrame | None:
        """Return the prices given, else those held, for ``ends`` only at the window's ends."""
        if self._alone:
            return None
        if isinstance(prices, Series):
            return _of_series(prices)
        held = self.origin.held_prices
        if prices is not None or funding_only or held is None:
            return prices
        return (held.at_ends if ends else held.over)([self.stream.key], self.window)

    @property
    def _alone(self) -> bool:
        return self.stream.key.count(":") == 1

    @checked_options
    def coverage(self) -> pl.DataFrame:
        """Measure the coverage of the window by settlements of both legs, as `summary` does."""
        columns = ("n", "n_missed", "buy_coverage", "sell_coverage", "coverage", "funding_reason")
        found = funding_statistics.summary(self.rows, *self.window, funding_only=True)
        return found.select("trajectory", *columns)

    @checked_options
    def plot(
        self,
        *,
        unit: str = "% per 8 h",
        cost_bps: float | None = None,
        timezone: str = "UTC",
        theme: str | None = None,
        points: int = 2000,
        prices: Series | pl.DataFrame | None = None,
        funding_only: bool = False,
    ) -> Figure:
        """Draw differential, funding and carry. The parameters are those of `funding_chart`.

        ``prices`` and ``funding_only`` are as in `holdings`.
        """
        given = {"timezone": timezone, "theme": theme, "points": points}
        held = self._leg_prices(prices, funding_only=funding_only)
        only = funding_only or self._alone
        own = {"unit": unit, "cost_bps": cost_bps, "prices": held, "funding_only": only}
        return self._drawn("funding_chart", self.rows, **own, **given)


def _of_series(prices: Series) -> PairPrices:
    if "spread_log_bps" not in prices.rows.columns:
        raise InputError("prices", prices.stream.key, "the spread of the legs, or their pair")
    legs: Any = prices.stream
    key = ":".join(map(str, (legs.symbol, *legs.legs)))
    return PairPrices({key: marks_of(prices.rows, prices.origin.step_s or 1)})


class PriceSeries(BarTrajectorySeries, PriceAnalyses):
    """Prices of one symbol on one leg. A bar's price is its close, and its ``ts`` its start."""

    _column = "price"

    @checked_options
    def plot(
        self, *, timezone: str = "UTC", theme: str | None = None, points: int = 2000
    ) -> Figure:
        """Draw the price. The parameters are those of `toolkit.charts.price_chart`."""
        given = {"timezone": timezone, "theme": theme, "points": points}
        return self._drawn("price_chart", self.rows, step_s=self.origin.step_s, **given)

    @checked_options
    def hayashi_yoshida(
        self, other: Series | pl.DataFrame, *, lags_s: Sequence[int] | None = None
    ) -> pl.DataFrame:
        """Correlate the returns with those of another price at other times.

        ``other`` is the sell leg: a series of prices, or a frame with ``ts`` and ``price``. At a
        positive lag this price leads. See `toolkit.statistics.spread.lead_lag`.
        """
        sell = other.df if isinstance(other, Series) else other
        checked_types(sell, {"ts": "Int64", "price": "Float64"}, parameter="other")
        legs = [
            each.select("ts", pl.col("price").alias(f"{side}_price"))
            for side, each in (("buy", self.df), ("sell", sell))
        ]
        both = legs[0].join(legs[1], on="ts", how="full", coalesce=True)
        rows = both.with_columns(trajectory=pl.lit(self.stream.key))
        found = hayashi_yoshida(rows, *self.window, lags_s=lags_s)
        return Result.of(found, ["lag_s", "correlation", "covariance", "buy_n", "sell_n"])


class RateSeries(TrajectorySeries, RateAnalyses):
    """The funding rate of one leg in force, from snapshots. Positive: longs pay shorts.

    The rows also have ``rate_pct_8h`` and ``funding_apr_pct``. A rate in force pays nothing until
    it settles.
    """

    _column = "funding_apr_pct"

    @checked_options
    def quantiles(self) -> pl.DataFrame:
        """Compute the quantiles of ``funding_apr_pct``, with n and coverage, as `summary` does."""
        return self._quantiles("^funding_apr_q\\d\\d_pct$")

    @checked_options
    def plot(
        self, *, timezone: str = "UTC", theme: str | None = None, points: int = 2000
    ) -> Figure:
        """Draw the rate. The parameters are those of `toolkit.charts.rate_chart`."""
        given = {"timezone": timezone, "theme": theme, "points": points}
        known = {"step_s": self.origin.step_s, "polls": self.origin.polls}
        return self._drawn("rate_chart", self.rows, **known, **given)


_WORST = (
    *(LedgerState.UNRECOVERABLE, LedgerState.LOST, LedgerState.MISSING),
    *(LedgerState.UNKNOWN, LedgerState.EMPTY, LedgerState.HELD),
)
"""States of the ledger, the worst first. A pair has that of its worst leg."""


@overload
def pair_series(buy: FundingSeries, sell: FundingSeries) -> FundingSeries: ...


@overload
def pair_series(
    buy: PriceSeries,
    sell: PriceSeries,
    fx: PriceSeries | None = None,
    *,
    multiplier: float | None = None,
    max_stale_s: int | None = None,
) -> SpreadSeries: ...


def pair_series(
    buy: PriceSeries | FundingSeries,
    sell: PriceSeries | FundingSeries,
    fx: PriceSeries | None = None,
    *,
    multiplier: float | None = None,
    max_stale_s: int | None = None,
) -> SpreadSeries | FundingSeries:
    """Join two price series to a series of their spread, see `toolkit.statistics.spread.pair`.

    The funding of two single legs is joined likewise: long the first leg, short the second, with
    the settlements of either, to the minute.

    The window is the common one. Nothing is read before it, so a rare price may be null at first.
    Notes have conversions, the greatest age of a price, and several sources. Gaps are those of all
    legs.

    Raises `EmptyWindowError` if the windows do not overlap or a series has no row, and `InputError`
    as the statistic does, for legs as of two times, and for funding of two symbols or of anything
    but single legs.
    """
    if isinstance(buy, FundingSeries) or isinstance(sell, FundingSeries):
        return _pair_of_funding(buy, sell)
    legs = {"buy": buy, "sell": sell} | ({} if fx is None else {"fx": fx})
    window = _common(legs)
    frames = {name: leg.df.select("trajectory", "ts", "price") for name, leg in legs.items()}
    for name, frame in frames.items():
        if window.start >= window.end or frame.is_empty():
            raise EmptyWindowError(
                f"the {name} leg {legs[name].stream} has no price in the window of the pair"
            )
    steps = tuple(step for leg in legs.values() if (step := leg.origin.step_s) is not None)
    steps_s = steps if len(steps) == len(legs) else None
    rows = spread_statistics.pair(
        *frames.values(), multiplier=multiplier, max_stale_s=max_stale_s, steps_s=steps_s
    )
    two = Pair.of(*(leg.stream.key for leg in legs.values()))
    notes = joined_notes(two, multiplier, max_stale_s)
    origin = _origin(legs, window, None if steps_s is None else max(steps_s[:2]), notes)
    return SpreadSeries(two, window, origin, rows)


def _common(legs: Mapping[str, Series]) -> Interval:
    times = {leg.origin.as_of for leg in legs.values()}
    if len(times) > 1:
        shown = ", ".join("now" if at is None else format_ts(at) for at in times)
        raise InputError("as_of", shown, "legs as known at one time")
    windows = [leg.window for leg in legs.values()]
    return Interval(max(each.start for each in windows), min(each.end for each in windows))


def _pair_of_funding(buy: Series, sell: Series) -> FundingSeries:
    legs = {"buy": buy, "sell": sell}
    for leg in legs.values():
        if not isinstance(leg, FundingSeries) or leg.stream.key.count(":") != 1:
            allowed = "the funding of one leg, funding/SYMBOL:EXCHANGE.market, as both"
            raise InputError("pair", leg.stream.key, allowed)
    bought, sold = (Trajectory.parse(leg.stream.key) for leg in legs.values())
    if bought.symbol != sold.symbol:
        raise InputError("pair", f"{bought.symbol} and {sold.symbol}", "funding of one symbol")
    two = Trajectory(Family.FUNDING, bought.symbol, (*bought.legs, *sold.legs))
    window = _common(legs)
    if window.start >= window.end:
        raise EmptyWindowError(f"{bought} and {sold} have no time in common")
    minute = ((pl.col("ts") + 30) // 60 * 60).alias("ts")
    names = ("rate", "interval_hours")
    sides = [
        leg.rows.select(minute, *(pl.col(f"sell_{n}").alias(f"{side}_{n}") for n in names))
        for side, leg in legs.items()
    ]
    rows = sides[0].join(sides[1], on="ts", how="full", coalesce=True).sort("ts")
    nothing = pl.lit(None, pl.Float64).alias("differential_pct_8h")
    rows = rows.select(pl.lit(two.key).alias("trajectory"), pl.all(), nothing)
    steps = [leg.origin.step_s for leg in legs.values() if leg.origin.step_s is not None]
    origin = _origin(
        legs, window, min(steps, default=None), ["joined from the funding of two legs"]
    )
    first = buy.origin
    origin = replace(origin, fees=first.fees, held_prices=first.held_prices)
    return FundingSeries(two, window, origin, rows)


def _origin(
    legs: Mapping[str, Series], window: Interval, step_s: int | None, joined: list[str]
) -> Origin:
    origins = [leg.origin for leg in legs.values()]
    sources = {origin.source for origin in origins}
    source, notes = origins[0].source, list(joined)
    if len(sources) > 1:
        source = Source("several", ", ".join(sorted(source.id for source in sources)))
        notes += [f"{name} leg: {leg.source.label}" for name, leg in legs.items()]
    delays = [origin.delay_s for origin in origins if origin.delay_s is not None]
    return Origin(
        source,
        origins[0].path,
        origins[0].as_of,
        step_s,
        max(delays) if len(delays) == len(legs) else None,
        _states(origins, window),
        notes=(*notes, *dict.fromkeys(note for origin in origins for note in origin.notes)),
    )


def _states(origins: Sequence[Origin], window: Interval) -> pl.DataFrame | None:
    known = [origin.states for origin in origins if origin.states is not None]
    if len(known) < len(origins):
        return None
    found: list[tuple[int, int, str]] = []
    taken: list[Interval] = []
    for state in _WORST:
        stretches = pl.concat(known).filter(state=state.value).select("start_ts", "end_ts")
        own = difference(clip(stretches.iter_rows(), window), taken)
        found += [(*stretch, state.value) for stretch in own]
        taken = union([*taken, *own])
    return pl.DataFrame(found, schema=known[0].schema, orient="row").sort("start_ts")


def joined_notes(
    two: Pair, multiplier: float | None = None, max_stale_s: int | None = None
) -> list[str]:
    """Describe how the prices of a pair are joined. The first note is on their age."""
    age = "until its next bar is due" if max_stale_s is None else f"for {max_stale_s} s"
    notes = [f"joined from two prices, each used from its bar's end {age}"]
    if two.fx is not None:
        how = "divided" if two.fx_divides else "multiplied"
        notes.append(f"the buy price is {how} by {two.fx}")
    for name, count in zip(("buy", "sell"), two.coins(multiplier), strict=True):
        if count != 1:
            notes.append(f"the {name} price is divided by {count:g}, the coins in one contract")
    return notes
