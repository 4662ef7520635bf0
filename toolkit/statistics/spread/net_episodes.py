"""Episodes in which a spread is beyond its cost or a level, their lengths, and times to close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_types,
    first_reason,
    real_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.fees.fee_table import (
    NOTIONAL,
    FeeModel,
    Style,
    check_asked,
    check_held_style,
)
from toolkit.statistics.fees.net_edge import fee_table, gross_bps, with_costs
from toolkit.statistics.spread.episodes import (
    CLOSES,
    episodes,
    level_words,
    life_columns,
    lives_of,
    stretches,
    time_above,
)
from toolkit.statistics.spread.net_spread import net_summary

_COUNTS = {"n_lives": "begun", "n_ended": "ended"}


@analysis(
    "spread.net_episodes",
    """
        net_episodes net_duration_s net_area_bps_h net_peak_bps life_median_s life_lower_s
        life_upper_s cost_lowest_bps cost_highest_bps truncated""",
    title="Spreads beyond the cost of a round trip,",
    order="-net_area_bps_h",
    about="""
        An episode begins when a spread is ENTER bps beyond the cost then, and ends when it
        is less than LEAVE bps beyond it. An episode cut off by a gap or the end lasted
        longer than seen.""",
    example="--fees fees.toml",
    enter_bps=Parameter("How far beyond the cost an episode begins.", "bps"),
    leave_bps=Parameter("How far beyond the cost it ends. Default: as far as it begins.", "bps"),
)
def net_episodes(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    fees: FeeModel,
    notional: float = NOTIONAL,
    style: Style = "taker",
    enter_bps: float = 0.0,
    leave_bps: float | None = None,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Count the episodes in which a spread pays more than a round trip costs, and their lengths.

    Reads ``spread_bps`` (computed from the prices if missing) of trajectories whose keys name two
    legs. The net of an observation is its gross (abs(spread_bps), for a transfer spread_bps) less
    the cost at its time, `FeeModel.round_trip_bps`. An episode begins with an observation of net >=
    ``enter_bps`` and ends with the first of net < ``leave_bps`` (None: the same), both in bps
    beyond the cost. An observation of unknown cost is in no episode. An episode that runs into a
    gap or the end of the window has the length that was seen, and its life is right-censored
    (Kaplan and Meier). One at the first observation of the window or after a gap is counted, but
    its life is not used.

    One row per trajectory, with the columns of `coverage` before these:

    {columns}

    Raises `InputError`: As `coverage` and `toolkit.statistics.fees.net_edge`. ``enter_bps`` is not
    a number from 0, or ``leave_bps`` is above it.

    A cost of 53 bps, and two episodes beyond it.

    >>> frame = pl.DataFrame({"trajectory": ["BTC_USDT:BINANCE.spot:KRAKEN.spot"] * 6,
    ...     "ts": [1700000000 + 60 * k for k in range(6)],
    ...     "spread_bps": [10.0, 83.0, 63.0, 10.0, -113.0, 10.0]})
    >>> row = net_episodes(frame, fees=FeeModel.example()).row(0, named=True)
    >>> row["net_episodes"], row["net_duration_s"], round(row["net_area_bps_h"], 3)
    (2, 180, 1.667)
    >>> row["net_entry_bps"]  # 83 - 53 and 113 - 53
    90.0
    """
    check_asked(fees, notional, style)
    enter = real_number("enter_bps", enter_bps, "basis points from 0")
    leave = enter if leave_bps is None else real_number("leave_bps", leave_bps, "a number")
    if enter < 0 or leave > enter:
        name, value = ("enter_bps", enter) if enter < 0 else ("leave_bps", leave)
        raise InputError(name, value, "enter_bps from 0, and leave_bps at most enter_bps")
    frame = holding(frame, "spread_bps")
    checked_types(frame, {"trajectory": "String"})
    by = (("fees", fees.hash), ("notional", float(notional)), ("style", style))
    asked = (*by, ("enter_bps", enter), ("leave_bps", leave))
    window = window_of(frame, start, end)
    question = Question("spread.net_episodes/2", *window, "spread_bps", step_s, max_stale_s, asked)
    net = gross_bps(pl.col("value"), style) - pl.col("cost_bps")

    def prepare(rows: pl.LazyFrame, part: pl.DataFrame) -> pl.LazyFrame:
        priced = with_costs(rows, part, fees, notional, style)
        return priced.with_columns(net.alias("net"))

    def fit(rows: pl.DataFrame) -> pl.DataFrame:
        known = pl.col("net")
        enters = (known >= enter).fill_null(value=False)
        leaves = (known < leave).fill_null(value=True)
        signed = rows.with_columns(value=known).lazy()
        found = stretches(signed, known, enters, leaves)
        return lives_of(found, rows).join(_sums(found), on="number", how="left")

    lives = life_columns("life", _COUNTS)
    episodes = Statistic(
        _costs,
        lambda _column: [*_costs_known(), *_results(), *lives, *fee_table(fees)],
        fit,
        prepare,
    )
    return measure(frame, question, episodes)


@analysis(
    "spread.net_time_to_close",
    """
        close_median_s close_lower_s close_upper_s entries closed cost_lowest_bps cost_highest_bps
        truncated""",
    title="How long spreads beyond their cost take to close,",
    order="close_median_s",
    about="""
        An entry is a spread, on either side of a level, whose distance is ENTER bps above
        the cost then. Its close is the first one within EXIT bps of the level, before
        costs. If a gap or the end comes first, it lasted longer than seen.""",
    example="--exit-bps 5 --fees fees.toml",
    enter_bps=Parameter("How far beyond the cost an entry is.", "bps"),
)
def net_time_to_close(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    fees: FeeModel,
    exit_bps: float,
    toward: float = 0.0,
    notional: float = NOTIONAL,
    style: Style = "taker",
    enter_bps: float = 0.0,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure the time from when a spread is beyond a round trip's cost to when it is near again.

    Reads the rows as `net_episodes`. The distance of an observation is abs(spread_bps - toward). An
    entry is the first observation with a distance above ``exit_bps`` that is at least ``enter_bps``
    more than the cost then. It closes at the first distance of at most ``exit_bps``, before costs:
    the position has then earned the cost, less ``exit_bps``. At unknown cost there is no entry.
    Gaps, the window's end and entries that were not seen count as in `time_to_close`.

    One row per trajectory, with the columns of `time_to_close`. Before ``truncated`` come the
    columns of `net_episodes` from ``net_n`` to ``cost_reason``, and after the times ``fee_model``
    and ``fee_model_hash``. The reason of a time is unknown_fee if no cost is known.

    Raises `InputError`: As `net_episodes`. ``exit_bps`` is not a number from 0, ``toward`` not a
    number, or ``style`` is one that opens no position.

    A cost of 53 bps, and an entry that closes after two minutes.

    >>> frame = pl.DataFrame({"trajectory": ["BTC_USDT:BINANCE.spot:KRAKEN.spot"] * 5,
    ...     "ts": [1700000000 + 60 * k for k in range(5)],
    ...     "spread_bps": [10.0, 60.0, 40.0, 4.0, 30.0]})
    >>> found = net_time_to_close(frame, fees=FeeModel.example(), exit_bps=5)
    >>> found.select("entries", "closed", "close_median_s").row(0)
    (1, 1, 120.0)
    """
    check_asked(fees, notional, style)
    check_held_style(style)
    enter = real_number("enter_bps", enter_bps, "basis points from 0", least=0)
    leave = real_number("exit_bps", exit_bps, "basis points from 0", least=0)
    level = real_number("toward", toward, "a level in basis points")
    frame = holding(frame, "spread_bps")
    checked_types(frame, {"trajectory": "String"})
    by = (("fees", fees.hash), ("notional", float(notional)), ("style", style))
    asked = (*by, ("enter_bps", enter), ("exit_bps", leave), ("toward", level))
    method, window = "spread.net_time_to_close/1", window_of(frame, start, end)
    question = Question(method, *window, "spread_bps", step_s, max_stale_s, asked)
    size = gross_bps(pl.col("value"), style, level)
    beyond = (size - pl.col("cost_bps") >= enter) & (size > leave)

    def fit(rows: pl.DataFrame) -> pl.DataFrame:
        return lives_of(
            stretches(rows.lazy(), size, beyond.fill_null(value=False), size <= leave), rows
        )

    closing = Statistic(
        _costs,
        lambda _column: [*_costs_known(), *_closed(), *fee_table(fees)],
        fit,
        lambda rows, part: with_costs(rows, part, fees, notional, style),
    )
    return measure(frame, question, closing)


def _closed() -> list[pl.Expr]:
    """Build the columns of times to close, with the reason unknown_fee if no cost is known."""
    unknown = (pl.col("n") > 0) & (pl.col("net_n").fill_null(0) == 0)
    fee = pl.when(unknown).then(pl.lit(Reason.UNKNOWN_FEE.value))
    return [
        fee.otherwise(column).alias(name) if name.endswith("_reason") else column
        for column in life_columns("close", CLOSES)
        for name in [column.meta.output_name()]
    ]


def _costs(_column: str) -> list[pl.Expr]:
    cost = pl.col("cost_bps")
    return [
        cost.count().cast(pl.Int64).alias("net_n"),
        cost.min().alias("cost_lowest_bps"),
        cost.max().alias("cost_highest_bps"),
    ]


def _sums(found: pl.DataFrame) -> pl.DataFrame:
    return found.group_by("number", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("net_episodes"),
        pl.col("duration_s").sum().alias("net_duration_s"),
        pl.col("area_bps_h").sum().alias("net_area_bps_h"),
        pl.col("first_bps").sum().alias("net_entry_bps"),
        pl.col("peak_bps").max().alias("net_peak_bps"),
    )


def _costs_known() -> list[pl.Expr]:
    known = pl.col("net_n").fill_null(0)
    return [
        known.alias("net_n"),
        pl.col("cost_lowest_bps", "cost_highest_bps"),
        first_reason(_unknown(known)).alias("cost_reason"),
    ]


def _unknown(known: pl.Expr) -> dict[Reason, pl.Expr]:
    return {Reason.EMPTY: pl.col("n") == 0, Reason.UNKNOWN_FEE: known == 0}


def _results() -> list[pl.Expr]:
    known = pl.col("net_n").fill_null(0)
    sums = ("net_episodes", "net_duration_s", "net_area_bps_h", "net_entry_bps")
    none = {**_unknown(known), Reason.TOO_FEW: pl.col("net_peak_bps").is_null()}
    return [
        *(pl.when(known > 0).then(pl.col(name).fill_null(0)).alias(name) for name in sums),
        pl.col("net_peak_bps"),
        first_reason(none).alias("net_episodes_reason"),
    ]


LEVEL_BPS = 20.0
"""The level where none is chosen (bps of the log spread)."""

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Level:
    """From where on time and episodes of a spread count.

    Without ``fees`` it is ``bps`` of the log spread, with ``absolute`` of its size. With ``fees``
    the size of the spread is beyond the cost of a round trip of ``notional`` in a ``style``.
    """

    bps: float = LEVEL_BPS
    absolute: bool = False
    fees: FeeModel | None = None
    style: Style = "taker"
    notional: float = NOTIONAL

    @property
    def words(self) -> str:
        """What counts, for a heading."""
        if self.fees is None:
            return level_words(self.bps, absolute=self.absolute)
        return "spread > cost" if self.style == "transfer" else "|spread| > cost"

    @property
    def sides(self) -> tuple[int, ...]:
        """The sides of zero on which the level lies: 1, or 1 and -1."""
        either = self.absolute if self.fees is None else self.style != "transfer"
        return (1, -1) if either else (1,)

    @described("level.measure")
    def measure(
        self, rows: pl.DataFrame, start: int, end: int, *, step_s: Step = None
    ) -> pl.DataFrame:
        """Measure how much of the time spreads are beyond the level, and how often they get there.

        ``rows``, ``start`` and ``end`` (s) are as in `toolkit.statistics.spread`. One row per
        trajectory, sorted:

        {columns}

        >>> rows = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 4, "ts": [0, 60, 120, 180],
        ...     "spread_log_bps": [0.0, 30.0, -30.0, 0.0]})
        >>> Level().measure(rows, 0, 240).select("level_share", "level_begun").row(0)
        (0.25, 1)
        >>> Level(absolute=True).measure(rows, 0, 240).select("level_share", "level_begun").row(0)
        (0.5, 1)
        """
        measured = self._of_bps if self.fees is None else self._of_costs
        found = measured(rows, start, end, step_s)
        days = pl.col("observed_share") * ((end - start) / _DAY_S)
        daily = pl.when(days > 0).then(pl.col("level_begun") / days)
        unknown = pl.coalesce("level_reason", pl.lit(Reason.TOO_FEW.value))
        return found.select(
            "trajectory",
            "level_share",
            "level_reason",
            "level_begun",
            level_per_day=daily,
            per_day_reason=pl.when(daily.is_null()).then(unknown),
        )

    def _of_bps(self, rows: pl.DataFrame, start: int, end: int, step_s: Step) -> pl.DataFrame:
        asked: dict[str, Any] = {"absolute": self.absolute, "step_s": step_s}
        shares = time_above(rows, start, end, threshold_bps=self.bps, **asked)
        found = episodes(rows, start, end, enter_bps=self.bps, **asked)
        seen = found.filter(~pl.col("censored_left")).group_by("trajectory").len("level_begun")
        name = "time_abs_above" if self.absolute else "time_above"
        return shares.join(seen, on="trajectory", how="left", maintain_order="left").with_columns(
            pl.col("level_begun").fill_null(0).cast(pl.Int64),
            level_share=f"{name}_share",
            level_reason=f"{name}_reason",
        )

    def _of_costs(self, rows: pl.DataFrame, start: int, end: int, step_s: Step) -> pl.DataFrame:
        asked: dict[str, Any] = {"fees": self.fees, "notional": self.notional, "style": self.style}
        shares = net_summary(rows, start, end, step_s=step_s, **asked)
        begun = net_episodes(rows, start, end, step_s=step_s, **asked).select(
            "trajectory", level_begun=pl.when(pl.col("net_episodes").is_not_null()).then("begun")
        )
        return shares.join(begun, on="trajectory", how="left", maintain_order="left").with_columns(
            level_share="net_share", level_reason="net_share_reason"
        )

    def stretches(
        self, rows: pl.DataFrame, start: int, end: int, *, step_s: Step = None
    ) -> tuple[float, pl.DataFrame] | None:
        """Return the level and the episodes beyond it, None for a cost unknown or not constant."""
        if self.fees is None:
            asked: dict[str, Any] = {"enter_bps": self.bps, "absolute": self.absolute}
            return self.bps, episodes(rows, start, end, step_s=step_s, **asked)
        priced: dict[str, Any] = {"fees": self.fees, "notional": self.notional, "style": self.style}
        costs = net_summary(rows, start, end, step_s=step_s, **priced).row(0, named=True)
        cost = costs["cost_bps"]
        if costs["cost_changes"] or not cost:
            return None
        asked = {"enter_bps": cost, "column": "spread_bps", "absolute": len(self.sides) > 1}
        return cost, episodes(rows, start, end, step_s=step_s, **asked)
