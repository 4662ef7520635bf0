"""Which rows of an audit count: those at times of which the log is known to say all."""

from __future__ import annotations

import polars as pl

from toolkit.intervals import Interval
from toolkit.statistics.event_matching import WHY

_FIRST, _LAST = -(2**62), 2**62


def judged(
    rows: pl.DataFrame,
    lives: pl.DataFrame,
    held: pl.DataFrame | None,
    window: Interval,
    slack_s: int,
) -> pl.DataFrame:
    """Tell which rows of an audit count, by what is known of the log when their episodes began.

    ``rows`` have the columns of `toolkit.statistics.event_audit.audited`, of which audit_reason,
    judged and episode_judged are completed. ``lives`` are all events of their family, with their
    trajectory, and ``held`` the stretches of that family (None: the log is held at all times).
    """
    starts, ends = pl.Series([_FIRST], dtype=pl.Int64), pl.Series([_LAST], dtype=pl.Int64)
    if held is not None:
        stretches = held.sort("start_ts")
        starts = pl.concat([starts, stretches["start_ts"]])
        ends = pl.concat([pl.Series([_FIRST]), stretches["end_ts"].cum_max()])
    place = starts.search_sorted(rows["episode_start"].fill_null(_FIRST), side="right") - 1
    late = pl.col("episode_start") >= pl.lit(lives["known_until"].max(), pl.Int64)
    unknown = {
        "log_ended": late.fill_null(value=False),
        "log_gap": pl.lit(rows["episode_start"] >= ends.gather(place)).fill_null(value=False),
        "still_open": pl.lit(_still_open(rows, _begun(lives, starts, window), slack_s)),
    }
    reason = pl.col("audit_reason")
    why = [
        pl.when((reason == "missed") & case).then(pl.lit(name, WHY))
        for name, case in unknown.items()
    ]
    return rows.with_columns(
        pl.coalesce(*why, reason).alias("audit_reason"),
        pl.col("episode_judged") & ~pl.any_horizontal(unknown.values()),
    ).with_columns(judged=reason.is_null() | reason.is_in(["below", "missed"]))


def _begun(lives: pl.DataFrame, starts: pl.Series, window: Interval) -> pl.DataFrame:
    """Return when each event came into sight, and until when it may have been open.

    One whose opening was not seen is there from where the log was held again before its close. Of
    several such, one alone can have been open then: the first to close. One that opened in the
    window and closed is open for the episodes that it matches alone.
    """
    again = starts.gather(
        starts.search_sorted(lives["t_close"].fill_null(_FIRST), side="right") - 1
    )
    opened, closed = pl.col("t_open"), pl.col("t_close")
    seen = opened >= window.start
    return lives.select(
        "trajectory",
        pl.coalesce(opened, pl.Series(again)).alias("begun"),
        pl.when(closed.is_null())
        .then(_LAST)
        .when(seen)
        .then(_FIRST)
        .otherwise(closed)
        .alias("until"),
    ).sort(["begun", "until"], descending=[False, True])


def _still_open(rows: pl.DataFrame, begun: pl.DataFrame, slack_s: int) -> pl.Series:
    """Return whether the last event that began before an episode, not of it, may be open then."""
    asked = rows.select("trajectory", at=pl.col("episode_start") - slack_s)
    still_open = (pl.col("at") <= pl.col("until")).fill_null(value=False)
    return (
        asked.with_row_index()
        .sort("at")
        .join_asof(
            begun,
            left_on="at",
            right_on="begun",
            by="trajectory",
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .select("index", still_open.alias("still_open"))
        .sort("index")["still_open"]
    )
