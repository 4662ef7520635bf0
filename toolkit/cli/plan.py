"""`rail sync --plan`: what a load would ask for, and what the archive is about to drop."""

from __future__ import annotations

from toolkit.cards import duration
from toolkit.cli.tables import Sheet, TableColumn, TableOptions, show
from toolkit.intervals import total_s
from toolkit.loader import PlannedLoad

COLUMNS = (
    TableColumn("stream", "stream", "text"),
    TableColumn(
        "requests",
        "requests",
        "count",
        lambda row: "refused" if row["refused"] else f"{row['bound']} {row['requests']:,}",
    ),
    TableColumn("rows", "rows", "count"),
    TableColumn("missing", "missing_s", "s"),
    TableColumn("leaves in 24 h", "leaves_rows", "count"),
    TableColumn("first leaves", "leaves_at", "time"),
    TableColumn("from", "start_ts", "time"),
    TableColumn("to", "end_ts", "time"),
    TableColumn("parts", "stretches", "count"),
)
"""What a reader sees of `toolkit.loader.PlannedLoad.df`."""


def show_plan(planned: PlannedLoad, view: TableOptions) -> None:
    """Write a plan as it was asked for, with what it costs in all below the table."""
    gone = [
        f"{asked}: {duration(total_s(parts))} lie beyond the plan's depth and are not held"
        for asked, parts in planned.unrecoverable.items()
    ]
    refused = [f"refused: {asked} ({error})" for asked, error in planned.refused.items()]
    total = f"{planned.bound} {planned.requests:,} requests, {planned.schemas:,} or more of schemas"
    notes = [
        f"{total}; {planned.quota_words}",
        f"leaves the archive within 24 h: {planned.leaving_words}",
        *gone,
        *refused,
    ]
    heading = f"Plan of {planned.window}"
    show(view, Sheet(heading, planned.source.label, planned.df, COLUMNS, notes=notes))
