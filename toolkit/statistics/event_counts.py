"""How many events opened, closed or stayed open in a window, and how long they lasted."""

from __future__ import annotations

import polars as pl

from toolkit.analyses import analysis
from toolkit.statistics.event_documents import identified
from toolkit.statistics.event_survival import survival
from toolkit.statistics.events import event_lifecycles

_COUNTED = (
    *("family", "n", "closed", "open", "reopened", "orphans", "cut", "coverage"),
    *("n_lives", "n_ended", "median_life_s", "median_life_reason"),
)


@analysis(
    "events.summary",
    ("n", "closed", "open", "reopened", "orphans", "median_life_s", "cut"),
    title="Events",
    about="""
        The median life counts an event that is still open as alive so far (Kaplan-Meier). Where
        half were not seen to end, there is none. How often they open is in `rail events rates`,
        their lives by group in `rail events survival`.""",
    report=1,
)
def summary(
    frame: pl.DataFrame,
    start: int,
    end: int,
    *,
    logs: pl.DataFrame | None = None,
    held: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Count the events that touch a window, by family and kind, with their median life.

    ``frame`` has the documents and ``logs`` until when they are known, as
    `toolkit.statistics.events.event_lifecycles` takes both. ``held`` and
    what counts as a life are those of `toolkit.statistics.events.survival`: nothing is known of an
    event beyond a gap of its log. One row per family, sorted:

    {columns}

    Raises
    ------
    InputError
        As `toolkit.statistics.events.event_lifecycles`.

    Examples
    --------
    >>> legs = ("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")
    >>> log = pl.DataFrame(
    ...     {"family": ["spread"] * 3, "event_id": ["a", "a", "b"], "lifecycle": None, "arrival": 0,
    ...      "event_type": ["spread.opened", "spread.closed", "spread.opened"], "ts": [10, 40, 20],
    ...      "ts_ms": [10_000, 40_000, 20_000], **dict.fromkeys(legs, "X")},
    ...     schema_overrides={"lifecycle": pl.String, "arrival": pl.Int64})
    >>> row = summary(log, 0, 100).row(0, named=True)
    >>> row["n"], row["closed"], row["open"], row["median_life_s"]
    (2, 1, 1, 30.0)
    """
    known = frame if "event" in frame.columns else identified(frame)
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
