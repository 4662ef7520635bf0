"""Coverage of trajectories by bars, and of series recorded from snapshots by polls.

A poll is one request for a snapshot, which has every pair that the service tracks then: a pair
absent from an answer has no gap there. A poll without an answer is missing for every pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from toolkit.columns import described
from toolkit.intervals import Interval
from toolkit.market import Step, When
from toolkit.statistics.core.contract import Frame, Question, checked_types
from toolkit.statistics.core.kernel import measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.quality.plausibility import MANY_ROWS


@described("quality.coverage")
def coverage(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    column: str | None = None,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure how many of the rows expected of each trajectory in ``[start, end)`` are there.

    By default the window is the frame's own: from its first time to its last and one step more.

    An observation is a row of the window, with ``column`` given one with a finite number there.
    ``coverage`` is the share of the bars that begin in the window that have an observation. The
    step is ``step_s`` (which may map trajectories to theirs), else the commonest difference between
    rows. Bars begin where most observations are. An observation in between counts for the bar that
    it falls in, several in one bar count once. With more observations than bars, the coverage is
    null.

    ``observed_share`` is the share of the window's time for which a value is known: until the next
    one, the last until ``end``, at most ``max_stale_s``.

    One row per trajectory of the frame, sorted, also without rows in the window. Rows may come in
    any order. A LazyFrame is collected in chunks. The last columns are ``window_start``,
    ``window_end`` (exclusive), ``method`` and ``params_hash``.

    {columns}

    Raises `InputError`: A column is missing or of another type (``column``: Float64). A key is
    null. Two rows of the window share trajectory and ts. The window is empty, or that of a frame
    without rows. ``step_s`` or ``max_stale_s`` is not a whole number of seconds from 1.

    Minutes 0 to 3 and 8 to 9 of ten, and a value holds for at most 180 s.

    >>> ts = [0, 60, 120, 180, 480, 540]
    >>> frame = pl.DataFrame({"trajectory": ["BTC_USD:KRAKEN.spot"] * 6, "ts": ts})
    >>> row = coverage(frame, 0, 600).row(0, named=True)
    >>> row["coverage"], row["observed_share"], row["longest_gap_s"]
    (0.6, 0.8, 300)
    """
    window = window_of(frame, start, end)
    question = Question("quality.coverage/3", *window, column, step_s, max_stale_s)
    return measure(frame, question)


BY_POLLS = ", polls/2"
"""What the method of a result ends in whose coverage is by polls."""

_APART = 1.5
_NAMING = ("coverage_reason", "implausible", "flags", MANY_ROWS)


@dataclass(frozen=True, slots=True)
class PollCount:
    """The polls of a window: answered, missed (due, not answered), and the longest gap (s)."""

    answered: int
    missed: int
    longest_gap_s: int = 0

    @property
    def coverage(self) -> float | None:
        """Polls answered over polls due, None if none was due."""
        due = self.answered + self.missed
        return self.answered / due if due else None


def with_period(polls: Frame) -> pl.DataFrame:
    """Return polls by ts, each once, with an unknown ``period_s`` as the commonest spacing."""
    checked_types(polls, {"ts": "Int64", "period_s": "number or null"}, parameter="polls")
    known = polls.lazy().select("ts", pl.col("period_s").cast(pl.Int64)).sort("ts").collect()
    known = known.unique("ts", keep="last", maintain_order=True)
    spacings = known["ts"].diff().drop_nulls()
    observed = int(spacings.mode().sort()[0]) if spacings.len() else None
    return known.with_columns(pl.col("period_s").fill_null(pl.lit(observed, pl.Int64)))


def poll_count(polls: Frame, start: When, end: When) -> PollCount:
    """Count the polls answered in ``[start, end)``, and those due but missing.

    ``polls`` are those of the window or beyond it, in any order: ts (s, Unix UTC), and period_s (s
    until the next poll is due, null if not set).

    Between two polls the number missing is that of periods, rounded, less one. Before the first and
    after the last it is each whole period within the window. In a window without a poll one is
    missing for each period of the nearest poll. Without a known period nothing is missing.
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
    """Return a statistic's rows with coverage by polls in place of coverage by bars.

    ``results`` has the columns of `coverage`, of rows that answer these polls, over one window.
    ``n_expected`` becomes the polls due, ``coverage`` the share of them answered (null if none was
    due), ``longest_gap_s`` the longest time of more than 1.5 periods between two answers, and
    ``method`` is marked. ``not_tracked`` (count) is added: the answers without the pair, which
    count as answered. ``more_than_expected`` is removed. Of rows that count no bars, such as
    episodes, only coverage and method change.
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
    column = pl.col(name)
    if results.schema[name] == pl.Boolean:
        return column & False
    if name == "coverage_reason":
        return pl.when(column != MANY_ROWS).then(column)
    others = column.str.split(", ").list.filter(pl.element() != MANY_ROWS)
    return others.list.join(", ")
