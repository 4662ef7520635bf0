"""Below a trajectory's figures, one at a time: events, statistics, coverage and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.charts import coverage_chart
from toolkit.charts.time_axis import clock_text
from toolkit.columns import column
from toolkit.dashboard.export import rows_csv
from toolkit.dashboard.link import go_to
from toolkit.dashboard.pages.trajectory.explorer import Explored, asked_of
from toolkit.dashboard.parts.analyses import show_one
from toolkit.dashboard.parts.event_tables import document_columns, logs_that_end, newest_events
from toolkit.dashboard.parts.rows import heading, opened_key, show_rows
from toolkit.dashboard.reading import read_coverage
from toolkit.dashboard.shell import draw, show_table
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown, file_name
from toolkit.market import Family, Pair, format_ts
from toolkit.show.values import NULL, null_text, reason_words, value_text
from toolkit.statistics.events import event_lifecycles
from toolkit.statistics.events.documents import identified
from toolkit.tables import LedgerState

_ROWS_SHOWN = 1000
_EVENTS_SHOWN = 10
_GAPS_SHOWN = 500
_EVENTS, _STATISTICS, _HELD, _ROWS = "Events", "All statistics", "Coverage", "Rows"
_HOURS, _HOUR_OF_WEEK = "Hours of the week", "spread.hour_of_week"


def show_below(
    explored: Explored,
    rows: pl.DataFrame,
    row: Mapping[str, Any] | None,
    events: pl.DataFrame | None,
) -> None:
    """Show the chosen part. ``row`` are the statistics, None without rows."""
    parts: dict[str, Callable[[], None]] = {}
    if events is not None:
        parts[_EVENTS] = partial(_list_events, explored, events)
    if row is not None:
        parts[_STATISTICS] = partial(_list_statistics, explored, row)
    if row is not None and explored.trajectory.family is Family.SPREAD:
        asked = replace(asked_of(explored), page="below")
        parts[_HOURS] = partial(show_one, explored.shell, asked, find(_HOUR_OF_WEEK))
    if not isinstance(explored.trajectory, Pair):  # coverage is that of its legs
        parts[_HELD] = partial(_show_coverage, explored)
    if row is not None:
        parts[_ROWS] = partial(_show_rows, explored, rows)
    if not parts:
        return
    state = st.session_state
    if state.get("below") not in parts:
        state["below"] = next(iter(parts))
    st.segmented_control(
        Markdown("Below the chart"),
        list(parts),
        key="below",
        label_visibility="collapsed",
        required=True,
        persist_state="session",
    )
    if event := opened_key("legs_events"):
        go_to("events", event=event)
    parts[state["below"]]()


def _list_events(explored: Explored, events: pl.DataFrame) -> None:
    view, timezone = explored.asked.view, explored.shell.timezone
    known = identified(events)
    mine = known.filter(pl.col("ts").is_between(*view, closed="left"))
    newest = newest_events(mine, _EVENTS_SHOWN)
    if words := logs_that_end(explored.logged, view.end, timezone):
        st.caption(words)
    if newest.is_empty():
        st.caption(Markdown("No spread event of these legs in the window."))
        return
    total = mine["event"].n_unique()
    st.caption(
        Markdown("Spread events of these legs, newest first: {}.").format(_of(_EVENTS_SHOWN, total))
    )
    lifecycles = event_lifecycles(known, *view, logs=explored.logged)
    columns = [c for c in document_columns(newest, lifecycles, timezone) if c.name != "symbol"]
    show_rows(Markdown("Events"), newest["event_id"].to_list(), columns, "legs_events")


def _list_statistics(explored: Explored, row: Mapping[str, Any]) -> None:
    spread = explored.trajectory.family is Family.SPREAD
    lines = statistics_rows(row, explored.priced_in, half_life=spread)
    pairs = Markdown(", {:,} pairs a step apart").format(row["ar1_pairs"] or 0)
    st.caption(
        Markdown("Of {:,} rows with a value{}.").format(row["n"], pairs if spread else Markdown(""))
    )
    if "service" in (row.get("spread_basis") or ""):
        st.caption(
            Markdown("Computed from: {}. Service: its own spread, without prices.").format(
                row["spread_basis"]
            )
        )
    table = pl.DataFrame(lines)
    if not any(table["reason"]):
        table = table.drop("reason")
    columns = {
        "statistic": st.column_config.TextColumn(width=240),
        "value": st.column_config.TextColumn(width=110, alignment="right"),
        "reason": st.column_config.TextColumn(width=430),
    }
    show_table(table, height="content", width="content", column_config=columns)


def _show_coverage(explored: Explored) -> None:
    coverage = read_coverage(**explored.query)
    draw(coverage_chart(coverage, **explored.chart), key="coverage")
    gaps = gap_table(coverage, explored.shell.timezone)
    if gaps.is_empty():
        st.caption(Markdown("The store covers every second of the window."))
        return
    st.caption(
        Markdown("Stretches that are not stored, longest first: {}.").format(
            _of(_GAPS_SHOWN, gaps.height)
        )
    )
    state = st.column_config.TextColumn(help=_STATES)
    show_table(gaps.head(_GAPS_SHOWN), column_config={heading("state"): state})


_STATES = Markdown(
    "empty: the service has no row there; not yet known: rows may still appear or change; missing: "
    "not loaded; unrecoverable: older than the plan's retention; lost at the source: see Data "
    "health."
)


def _show_rows(explored: Explored, rows: pl.DataFrame) -> None:
    st.caption(
        Markdown("Newest first: {}; the file has all. {}: the service sent no value.").format(
            _of(_ROWS_SHOWN, rows.height), NULL
        )
    )
    show_table(row_table(rows, explored.shell.timezone, _ROWS_SHOWN), placeholder=NULL)
    view, source = explored.asked.view, explored.shell.held.source
    start, end = (format_ts(ts)[:16].replace(" ", "T").replace(":", "") for ts in view)
    named = file_name(f"{source.kind}_{explored.trajectory.key}")
    st.download_button(
        Markdown("Download all rows as CSV"),
        partial(rows_csv, rows, source),
        file_name=f"{named}_{start}_{end}.csv",
        mime="text/csv",
        on_click="ignore",
    )


def _of(limit: int, total: int) -> str:
    return f"{limit:,} of {total:,}" if total > limit else f"{total:,}"


def statistics_rows(row: Mapping[str, Any], quote: str, *, half_life: bool) -> list[dict[str, str]]:
    """Build one line per statistic of a row of `toolkit.statistics.spread.summary`.

    A line has the heading, the value with its unit (prices in ``quote``), and the reason of a null.
    ``half_life`` includes those of the half-life.
    """
    names = list(row)
    end = "implausible" if half_life else "quantiles_reason"
    figures = names[names.index("coverage_reason") + 1 : names.index(end)]
    lines = []
    for name in figures:
        if name.endswith("_reason"):
            continue
        one, value = column(name, "spread.summary"), row[name]
        text = value_text(value, one, unit=True)
        lines.append(
            {
                "statistic": one.heading,
                "value": null_text(row, name)
                if value is None
                else f"{text} {quote}"
                if one.unit == "quote"
                else text,
                "reason": reason_words(row, name) if value is None else "",
            }
        )
    return lines


def gap_table(coverage: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """List the stretches that are not stored, longest first: from, to, length and state."""
    gaps = coverage.filter(pl.col("state") != LedgerState.HELD).sort(
        pl.col("end_ts") - pl.col("start_ts"), descending=True, maintain_order=True
    )
    lengths = (gaps["end_ts"] - gaps["start_ts"]).to_list()
    return pl.DataFrame(
        {
            heading("start_ts", timezone): clock_text(gaps["start_ts"], timezone),
            heading("end_ts", timezone): clock_text(gaps["end_ts"], timezone),
            heading("length"): [value_text(length, column("length")) for length in lengths],
            heading("state"): gaps["state"],
        }
    )


def row_table(rows: pl.DataFrame, timezone: str, limit: int) -> pl.DataFrame:
    """Build the table of the newest rows, newest first, in the zone's clock."""
    newest = rows.tail(limit).reverse()
    clock = pl.Series(heading("time", timezone), clock_text(newest["ts"], timezone))
    own = newest.drop("trajectory", "ts")
    return own.rename({name: heading(name) for name in own.columns}).insert_column(0, clock)
