"""Screens: the figures of many trajectories side by side, filtered by a condition and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import polars as pl

from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.conditions import Schema, column, condition
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    beside,
    column_for,
    first_reason,
    whole_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.kernel import MOMENTS, QUANTILES, ROBUST, Statistic, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.fees.fee_table import NOTIONAL, FeeModel, Style
from toolkit.statistics.funding.carry_marks import Prices
from toolkit.statistics.funding.persistence import persistence
from toolkit.statistics.funding.position import net_summary as net_funding_summary
from toolkit.statistics.funding.position import summary as funding_summary
from toolkit.statistics.funding.rates_in_force import with_apr
from toolkit.statistics.numeric.tails import false_discoveries
from toolkit.statistics.numeric.unit_root import unit_root_test, why_no_test
from toolkit.statistics.quality.flags import FLAGS, with_flags
from toolkit.statistics.quality.plausibility import plausibility
from toolkit.statistics.spread.half_life import HALF_LIFE
from toolkit.statistics.spread.net_spread import net_summary

SPREAD_ORDER = "-spread_last_size_log_bps"
"""The order of a screen of spreads: the widest now is first."""
FUNDING_ORDER = "-funding_apr_pct"
"""The order of a screen of funding: what paid most is first."""
RATE_ORDER = "-funding_apr_last_size_pct"
"""The order of a screen of rates in force: the highest now is first, whatever its sign."""

UNUSUAL_S = 7 * 86_400
"""The window in which the newest observation is compared with the others, where none is asked for.

It is the same for all faces that say how unusual a spread is: seven days (s).
"""
LEAST_COMPARED = 100
"""Of fewer observations no percentile is given."""

_COLUMN = "spread_log_bps"
_RATE = "funding_apr_pct"
_LEVEL = (MOMENTS, ROBUST, QUANTILES, HALF_LIFE)


@described("spread.screen")
def screen(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    where: str | None = None,
    sort: str = SPREAD_ORDER,
    top: int | None = None,
    exclude_flags: bool | Sequence[str] = False,
    fees: FeeModel | None = None,
    notional: float = NOTIONAL,
    style: Style = "taker",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure many spreads, keep those that meet a condition, and rank them by any figure.

    One row per trajectory: the columns of `summary`, which include those of `half_life`, those
    below before ``window_start``, those of `toolkit.statistics.quality.flags`, and with ``fees``
    those of `net_summary`, each with its method and ``params_hash``.

    ``where`` is a condition on these columns, such as "coverage > 0.95 and half_life_s < 3600",
    which a null does not meet. ``sort`` names a column, with a minus sign for the largest first.
    Nulls come last, ties by trajectory. ``top`` keeps the first rows. ``exclude_flags`` leaves out
    trajectories with any flag, or with any of those named. A null flag leaves nothing out.

    {columns}

    Of many spreads some have a small p-value by chance. Those with a q-value up to q are expected
    to be false discoveries in at most the share q (Benjamini and Hochberg 1995), also if spreads
    move alike (Benjamini and Yekutieli 2001). It is taken over all m trajectories measured that
    have the p-value, before ``where``, ``exclude_flags`` and ``top``. The p-value of the edge is
    that of its mean at all times, not of net_edge_bps, which cannot be below 0.

    Raises `InputError`: As `summary` and `net_summary`. ``where`` is not a condition on the
    columns, ``sort`` is not one of them, ``top`` is not a whole number from 1, or ``exclude_flags``
    names no flag.

    >>> frame = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 4 + ["C_D:X.spot:Y.spot"] * 4,
    ...     "ts": [0, 60, 120, 180] * 2,
    ...     "spread_log_bps": [1.0, 2.0, 3.0, 4.0, 9.0, 1.0, 9.0, 1.0]})
    >>> found = screen(frame, where="coverage > 0.95", sort="-last_z")
    >>> found.select("trajectory", "spread_last_log_bps", pl.col("last_z").round(2)).rows()
    [('A_B:X.spot:Y.spot', 4.0, 1.16), ('C_D:X.spot:Y.spot', 1.0, -0.87)]
    """
    asked: dict[str, Any] = {"fees": fees, "notional": notional, "style": style}
    window = window_of(frame, start, end)
    measured = spread_figures(frame, *window, **asked, step_s=step_s, max_stale_s=max_stale_s)
    found = with_q_values(measured)
    return Ranking.of(found.schema, where, sort, top, exclude_flags).applied(found)


def with_q_values(found: pl.DataFrame) -> pl.DataFrame:
    """Add the q-values of `screen` to figures of all its trajectories."""
    for name, after in (("reversion", "reversion_p_value"), ("edge", "edge_reason")):
        if after not in found.columns:
            continue
        chance, at = pl.col(f"{name}_p_value"), found.columns.index(after) + 1
        added = [
            false_discoveries(chance).alias(f"{name}_q_value"),
            chance.count().cast(pl.Int64).alias(f"{name}_tests"),
        ]
        if name == "edge":
            added.append(pl.col("edge_reason").alias("edge_q_reason"))
        found = found.select(*found.columns[:at], *added, *found.columns[at:])
    return found


def spread_figures(
    frame: Frame,
    start: When,
    end: When,
    *,
    fees: FeeModel | None = None,
    notional: float = NOTIONAL,
    style: Style = "taker",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure spreads as `screen` does, sorted by trajectory, without the q-values."""
    frame = holding(frame, _COLUMN)
    window = window_of(frame, start, end)
    question = Question("spread.screen/2", *window, _COLUMN, step_s, max_stale_s)
    odd, root = plausibility(_COLUMN), unit_root_test(_reversion)
    found = with_flags(frame, question, *_LEVEL, odd, _latest(window.end), root)
    if fees is None:
        return found
    asked: dict[str, Any] = {"fees": fees, "notional": notional, "style": style}
    net = net_summary(frame, *window, **asked, step_s=step_s, max_stale_s=max_stale_s)
    share, mean = pl.col("net_share"), pl.col("net_mean_bps")
    edge = pl.when(share == 0).then(0.0).otherwise(share * mean)
    return beside(found, net, "net").with_columns(
        edge.alias("net_edge_bps"), pl.col("net_share_reason").alias("net_edge_reason")
    )


def funding_figures(
    frame: Frame,
    start: When,
    end: When,
    *,
    fees: FeeModel | None = None,
    notional: float = NOTIONAL,
    style: Style = "taker",
    prices: Prices | None = None,
    funding_only: bool = False,
) -> pl.DataFrame:
    """Measure funding: what it and prices brought, its persistence, and what costs leave.

    One row per trajectory: the columns of `toolkit.statistics.funding.summary`, with ``fees`` those
    of `net_summary`, then those of `persistence`, with ``persistence_method`` and
    ``persistence_params_hash``. ``prices`` and ``funding_only`` are those of `summary`.
    """
    found = funding_summary(frame, start, end, prices=prices, funding_only=funding_only)
    if fees is not None:
        found = net_funding_summary(found, fees, notional=notional, style=style)
    return beside(found, persistence(frame, start, end), "persistence")


def rate_figures(
    frame: Frame, start: When, end: When, *, step_s: Step = None, max_stale_s: int | None = None
) -> pl.DataFrame:
    """Measure rates in force, in percent a year, as `screen` measures spreads.

    ``frame`` has the rows of one leg's rate: trajectory, ts, rate (fraction per its interval,
    positive if longs pay shorts) and interval_hours (h). The columns are those of
    `toolkit.statistics.spread.summary` of ``funding_apr_pct``, and those that `screen` adds for the
    newest observation. There are no flags and no net figures.
    """
    window = window_of(frame, start, end)
    question = Question("screening.rate_figures/2", *window, _RATE, step_s, max_stale_s)
    return measure(with_apr(frame), question, *_LEVEL, plausibility(_RATE), _latest(window.end))


def percentile_of(n_below: pl.Expr, n_equal: pl.Expr, n: pl.Expr) -> pl.Expr:
    """Build the percent of values below one and half of those equal, null below 100 of them."""
    return pl.when(n >= LEAST_COMPARED).then(100 * (n_below + n_equal / 2) / n)


def _reversion(_column: str) -> list[pl.Expr]:
    reason = why_no_test()
    tested = reason.is_null()
    return [
        pl.col("adf_n").fill_null(0),
        pl.when(tested).then("adf_t").alias("adf_t"),
        pl.when(tested).then("adf_chance").alias("reversion_p_value"),
        reason.alias("reversion_reason"),
    ]


def _latest(end: int) -> Statistic:
    """Make the statistic of the newest observation, to go with `MOMENTS`."""

    def finish(value: str) -> list[pl.Expr]:
        last, empty = pl.col("last_value"), {Reason.EMPTY: pl.col("n") == 0}
        mean, std = (pl.col(column_for(value, name)) for name in ("mean", "std"))
        few = {Reason.TOO_FEW: std.is_null(), Reason.DEGENERATE: std == 0}
        percentile = percentile_of(*map(pl.col, ("n_below", "n_equal", "n")))
        few_compared = {Reason.TOO_FEW: pl.col("n") < LEAST_COMPARED}
        return [
            last.alias(column_for(value, "last")),
            last.abs().alias(column_for(value, "last_size")),
            (end - pl.col("t_last")).alias("last_age_s"),
            first_reason(empty).alias("last_reason"),
            pl.when(std > 0).then((last - mean) / std).alias("last_z"),
            first_reason(empty | few).alias("last_z_reason"),
            percentile.alias("last_percentile"),
            first_reason(empty | few_compared).alias("last_percentile_reason"),
        ]

    def aggregate(_column: str) -> list[pl.Expr]:
        values, last = pl.col("value"), pl.col("value").last()
        return [
            last.alias("last_value"),
            (values < last).sum().cast(pl.Int64).alias("n_below"),
            (values == last).sum().cast(pl.Int64).alias("n_equal"),
        ]

    return Statistic(aggregate, finish)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The checked choice and order of the rows of a screen."""

    sort: str
    keep: pl.Expr | None = None
    top: int | None = None
    without: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        columns: Schema,
        where: str | None,
        sort: str,
        top: int | None,
        exclude_flags: bool | str | Sequence[str],
    ) -> Self:
        """Check the choice against these columns. Raises `InputError` as `screen`."""
        for name, given in (("where", where), ("sort", sort)):
            if not isinstance(given, str) and not (name == "where" and given is None):
                raise InputError(name, given, "a text")
        column(sort.removeprefix("-"), columns, parameter="sort")
        return cls(
            sort,
            None if where is None else condition(where, columns),
            None if top is None else whole_number("top", top, 1),
            excluded(exclude_flags, columns),
        )

    def applied(self, found: pl.DataFrame) -> pl.DataFrame:
        """Return the chosen rows in their order."""
        kept = found if self.keep is None else found.filter(self.keep)
        kept = without_flags(kept, self.without)
        name, falling = self.sort.removeprefix("-"), self.sort.startswith("-")
        kept = kept.sort(name, "trajectory", descending=[falling, False], nulls_last=True)
        return kept if self.top is None else kept.head(self.top)


def excluded(given: bool | str | Sequence[str], columns: Schema) -> tuple[str, ...]:
    """Return the flags whose trajectories are left out: none, all, or those named."""
    if given is False:
        return ()
    if not set(FLAGS) <= set(columns):
        raise InputError("exclude_flags", given, "False: only spreads have flags")
    if given is True:
        return FLAGS
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple | set):
        raise InputError("exclude_flags", given, "True, False, or names of flags")
    for name in names:
        if name not in FLAGS:
            raise InputError("exclude_flags", name, list(FLAGS))
    return tuple(names)


def without_flags(found: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Leave out the rows in which any of some flags is true."""
    if not names:
        return found
    return found.filter(~pl.any_horizontal(pl.col(name).fill_null(False) for name in names))
