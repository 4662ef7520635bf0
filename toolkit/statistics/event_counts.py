"""How many events opened, closed or stayed open in a window, and how long they lasted."""

from __future__ import annotations

import polars as pl

from toolkit.statistics.event_documents import identified
from toolkit.statistics.event_survival import survival
from toolkit.statistics.events import event_lifecycles

_COUNTED = (
    *("family", "n", "closed", "open", "reopened", "orphans", "cut", "coverage"),
    *("n_lives", "n_ended", "median_life_s", "median_life_reason"),
)


def event_counts(
    events: pl.DataFrame,
    start: int,
    end: int,
    *,
    logs: pl.DataFrame | None = None,
    held: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Count the events that touch ``[start, end)``, by family and kind, with their median life.

    ``events`` and ``logs`` are those of `toolkit.statistics.events.event_lifecycles`. ``held`` and
    what counts as a life are those of `toolkit.statistics.events.survival`: nothing is known of an
    event beyond a gap of its log. One row per family, sorted:

    ==================  =======  =====  ==========================================================
    column              type     unit   meaning
    ==================  =======  =====  ==========================================================
    family              String   none   of the events
    n                   Int64    count  events that touch the window
    closed              Int64    count  those that opened and closed
    open                Int64    count  those that had not closed when the log was known last
    reopened            Int64    count  those that opened again, with their close lost
    orphans             Int64    count  those whose opening was not seen
    cut                 Int64    count  those that a gap of the log ended or left out
    coverage            Float64  none   part of the window in which the log is held, fraction
    n_lives             Int64    count  events that were watched
    n_ended             Int64    count  those whose close was seen
    median_life_s       Float64  s      time by which half are over, by Kaplan and Meier
    median_life_reason  String   none   why it is null
    n_unknown           UInt32   count  documents in the window that state neither by type nor by
                                        lifecycle what became of their event. They are in no other
                                        column
    unknown_types       String   none   their event types, null without any
    ==================  =======  =====  ==========================================================

    Raises `InputError` as `toolkit.statistics.events.event_lifecycles`.
    """
    known = events if "event" in events.columns else identified(events)
    found = survival(event_lifecycles(known, start, end, logs=logs), held=held)
    inside = pl.col("ts").is_between(start, end, closed="left")
    unknown = (
        known.filter(pl.col("role").is_null() & inside)
        .group_by("family")
        .agg(
            n_unknown=pl.len(),
            unknown_types=pl.col("event_type").fill_null("none").unique().sort().str.join(", "),
        )
    )
    return (
        found.select(_COUNTED)
        .join(unknown, on="family", how="full", coalesce=True)
        .with_columns(pl.col("n_unknown").fill_null(0))
        .sort("family")
    )
