"""How many events opened, closed or stayed open in a window, and how long they lasted."""

from __future__ import annotations

import polars as pl

from toolkit.columns import described
from toolkit.statistics.event_documents import identified
from toolkit.statistics.event_survival import survival
from toolkit.statistics.events import event_lifecycles

_COUNTED = (
    *("family", "n", "closed", "open", "reopened", "orphans", "cut", "coverage"),
    *("n_lives", "n_ended", "median_life_s", "median_life_reason"),
)


@described("event_counts.event_counts")
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

    {columns}

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
