"""Coverage of a series recorded from snapshots: polls answered over polls due.

A poll is one question for a snapshot, which shows every pair that the service tracks then. A pair
that an answer lacks is not tracked: that is a fact and no gap. A poll without an answer is missing
for every pair. What is due follows from the polling period.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.statistics.core.contract import Frame, checked_types
from toolkit.statistics.quality.plausibility import MANY_ROWS

BY_POLLS = ", polls/2"
"""What the method of a result ends in whose coverage is by polls."""

_APART = 1.5
_NAMING = ("coverage_reason", "implausible", "flags", MANY_ROWS)


@dataclass(frozen=True, slots=True)
class PollCount:
    """The polls of a window: answered, missed (due and not answered), and the longest absence (s).

    >>> PollCount(answered=3, missed=1, longest_gap_s=120).coverage
    0.75
    """

    answered: int
    missed: int
    longest_gap_s: int = 0

    @property
    def coverage(self) -> float | None:
        """Polls answered over polls due, None where none was due."""
        due = self.answered + self.missed
        return self.answered / due if due else None


def with_period(polls: Frame) -> pl.DataFrame:
    """Return polls by ts, each time once, ``period_s`` filled in where it is not known.

    It is then the commonest spacing, of several as common the shortest. With less than two polls it
    stays null.

    >>> polls = pl.DataFrame({"ts": [60, 0, 30], "period_s": [None, None, 45]},
    ...                      schema={"ts": pl.Int64, "period_s": pl.Int64})
    >>> with_period(polls).rows()
    [(0, 30), (30, 45), (60, 30)]
    """
    checked_types(polls, {"ts": "Int64", "period_s": "number or null"}, parameter="polls")
    known = polls.lazy().select("ts", pl.col("period_s").cast(pl.Int64)).sort("ts").collect()
    known = known.unique("ts", keep="last", maintain_order=True)
    spacings = known["ts"].diff().drop_nulls()
    observed = int(spacings.mode().sort()[0]) if spacings.len() else None
    return known.with_columns(pl.col("period_s").fill_null(pl.lit(observed, pl.Int64)))


def poll_count(polls: Frame, start: When, end: When) -> PollCount:
    """Count the polls answered in ``[start, end)``, and those that were due and are missing.

    ``polls`` are those of the window or beyond it: ts (s, Unix UTC), and period_s (s, how long
    after it the next one was due, null where that was not set). They may be in any order.

    Between two polls as many are missing as periods, to the nearest, less one. Before the first and
    after the last it is each whole period within the window. In a window without a poll one is
    missing for each period of the nearest poll. Where no period is known nothing is missing.

    >>> polls = pl.DataFrame({"ts": [0, 29, 60, 120], "period_s": [30] * 4})
    >>> poll_count(polls, 0, 210)
    PollCount(answered=4, missed=3, longest_gap_s=60)
    """
    window = Interval.checked(start, end)
    known = with_period(polls)
    inside = known.filter(pl.col("ts").is_between(*window, closed="left"))
    if inside.is_empty():
        near = known.sort((pl.col("ts") - window.start).abs()).drop_nulls().head(1)["period_s"]
        return PollCount(0, -(-window.length_s // int(near[0])) if near.len() else 0)
    spacing, period = pl.col("ts").diff(), pl.col("period_s").shift()
    between = inside.select(
        spacing_s=spacing,
        missed=((spacing / period - 0.5).ceil().cast(pl.Int64) - 1).clip(lower_bound=0),
        gap=spacing > _APART * period,
    )
    gaps = between.filter("gap")["spacing_s"]
    first, last = inside.row(0), inside.row(-1)
    before = (first[0] - window.start) // first[1] if first[1] else 0
    after = (window.end - 1 - last[0]) // last[1] if last[1] else 0
    missed = int(between["missed"].sum()) + before + after
    return PollCount(inside.height, missed, int(gaps.sort()[-1]) if gaps.len() else 0)


def by_polls(results: pl.DataFrame, polls: PollCount) -> pl.DataFrame:
    """Return a statistic's rows with their coverage by polls in place of that by bars.

    ``results`` has the columns of `toolkit.statistics.quality.coverage`, of rows that are answers
    to these polls, over one window. ``n_expected`` becomes the polls due, ``coverage`` the polls
    answered over them (null where none was due), ``longest_gap_s`` the longest time between two
    answers of more than 1.5 periods, ``method`` is marked. After ``n_expected`` comes
    ``not_tracked`` (count), the answers that lack the pair. They count as answered. An answer has a
    pair once, so that ``more_than_expected``, which is by bars, is neither a reason nor a name any
    more. Of rows that count no bars, as those of episodes, the coverage and the method change
    alone.

    >>> row = {"trajectory": "a", "n": 3, "n_null": 0, "n_expected": 9, "coverage": 0.1,
    ...        "longest_gap_s": 90, "method": "quality.coverage/3"}
    >>> by_polls(pl.DataFrame([row]), PollCount(6, 2)).row(0)
    ('a', 3, 0, 8, 3, 0.75, 0, 'quality.coverage/3, polls/2')
    """
    tracked = pl.col("n") + pl.col("n_null")
    results = results.with_columns(
        coverage=pl.lit(polls.coverage, pl.Float64), method=pl.col("method") + BY_POLLS
    )
    if "n_expected" not in results.columns:
        return results
    changed = results.with_columns(
        n_expected=pl.lit(polls.answered + polls.missed, pl.Int64),
        not_tracked=polls.answered - tracked,
        longest_gap_s=pl.lit(polls.longest_gap_s, pl.Int64),
    )
    odd = [name for name in _NAMING if name in results.columns]
    changed = changed.with_columns(*(_by_bars_no_more(changed, name) for name in odd))
    names = list(results.columns)
    names.insert(names.index("n_expected") + 1, "not_tracked")
    return changed.select(names)


def _by_bars_no_more(results: pl.DataFrame, name: str) -> pl.Expr:
    """Take away what a column says about more rows than bars."""
    column = pl.col(name)
    if results.schema[name] == pl.Boolean:
        return column & False
    if name == "coverage_reason":
        return pl.when(column != MANY_ROWS).then(column)
    others = column.str.split(", ").list.filter(pl.element() != MANY_ROWS)
    return others.list.join(", ")
