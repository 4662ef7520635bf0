"""How many events opened, closed or stayed open in a window, and how long they lasted."""

from __future__ import annotations

import polars as pl

from toolkit.statistics.event_documents import identified
from toolkit.statistics.events import event_lifecycles
from toolkit.statistics.survival import median_life


def event_counts(
    events: pl.DataFrame, start: int, end: int, *, logs: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Count the events that touch ``[start, end)``, by family and kind, with their median life.

    ``events`` and ``logs`` are those of `toolkit.statistics.events.event_lifecycles`. One row per
    family, sorted:

    ==================  =======  =====  ==========================================================
    column              type     unit   meaning
    ==================  =======  =====  ==========================================================
    family              String   none   of the events
    n                   UInt32   count  events that touch the window
    closed              UInt32   count  those that opened and closed
    open                UInt32   count  those that had not closed when the log was known last
    reopened            UInt32   count  those that opened again, with their close lost
    orphans             UInt32   count  those whose opening was not seen
    median_life_s       Float64  s      see `toolkit.statistics.survival.median_life`, which
                                        counts those still open as alive so far
    median_life_reason  String   none   why it is null
    n_unknown           UInt32   count  documents in the window that state neither by type nor by
                                        lifecycle what became of their event. They are in no other
                                        column
    unknown_types       String   none   their event types, null without any
    ==================  =======  =====  ==========================================================

    Raises `InputError` as `toolkit.statistics.events.event_lifecycles`.
    """
    known = events if "event" in events.columns else identified(events)
    found = event_lifecycles(known, start, end, logs=logs).sort("family")
    kinds = {kind: pl.col("kind").eq(kind).sum() for kind in ("closed", "open", "reopened")}
    counts = found.group_by("family", maintain_order=True).agg(
        n=pl.len(),
        **kinds,
        orphans=pl.col("kind").str.starts_with("orphan").sum(),
    )
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
        counts.join(median_life(found, ["family"]), on="family", how="left")
        .join(unknown, on="family", how="full", coalesce=True)
        .with_columns(pl.col("n_unknown").fill_null(0))
        .sort("family")
    )
