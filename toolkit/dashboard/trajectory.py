"""The page of one trajectory: its prices or spread, their statistics, and what is missing."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from toolkit.cards import duration
from toolkit.charts import coverage_chart, price_chart, spread_chart
from toolkit.charts.lines import share_text
from toolkit.charts.marks import events_of
from toolkit.commands import rail
from toolkit.dashboard.event_tables import event_table, logs_that_end, newest_events
from toolkit.dashboard.formatting import NULL, statistics_rows
from toolkit.dashboard.link import PRESETS, Choice, held_window, preset_window, read_link
from toolkit.dashboard.navigation import go_to, page_file
from toolkit.dashboard.page_link import PageLink
from toolkit.dashboard.reading import read_coverage, read_events, read_rows
from toolkit.dashboard.shell import PageShell, draw, opened_row, page, say_empty, show_table
from toolkit.dashboard.tables import gap_table, row_table, rows_csv
from toolkit.foreign import file_name, markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory, format_ts
from toolkit.statistics.event_documents import identified
from toolkit.statistics.events import documents_window, event_lifecycles
from toolkit.statistics.spread import summary

_LINK = PageLink("trajectory", ("trajectory", "start", "end"))
_ROWS_SHOWN = 1000
_EVENTS_SHOWN = 10
_GAPS_SHOWN = 500
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the calendar widget has no zones; it shows UTC


@dataclass(frozen=True, slots=True)
class _Selection:
    """What the page shows: a trajectory's window from a source, in a clock."""

    shell: PageShell
    trajectory: Trajectory
    window: Interval
    step_s: int | None

    @property
    def source(self) -> Source:
        return self.shell.held.source

    @property
    def timezone(self) -> str:
        return self.shell.timezone

    @property
    def query(self) -> dict[str, Any]:
        return {
            "path": self.shell.held.path,
            "key": self.trajectory.key,
            "family": self.trajectory.family,
            "start": self.window.start,
            "end": self.window.end,
            "version": self.shell.held.version,
        }

    @property
    def chart(self) -> dict[str, Any]:
        return {
            "trajectory": self.trajectory,
            "start": self.window.start,
            "end": self.window.end,
            "source": self.source,
            "timezone": self.timezone,
        }


def _body(shell: PageShell) -> None:
    catalogue = shell.held.streams.filter(pl.col("kind").is_in([Family.PRICE, Family.SPREAD]))
    if catalogue.is_empty():
        say_empty(
            f"{markdown(str(shell.held.path))} holds no price and no spread yet. Load some, then "
            "look here again:",
            rail(
                "sync",
                "BTC_USD:COINBASE.spot:KRAKEN.spot",
                "--start",
                "2023-03-01",
                "--end",
                "2023-03-22",
            ),
        )
        return
    choice = _choose(catalogue)
    row = catalogue.row(by_predicate=pl.col("stream") == choice.trajectory, named=True)
    selection = _Selection(
        shell,
        Trajectory.parse(choice.trajectory, Family(row["kind"])),
        choice.window,
        row["step_s"],
    )
    rows = read_rows(**selection.query)
    if selection.trajectory.family is Family.SPREAD:
        _draw_spread(rows, selection)
    else:
        draw(price_chart(rows, step_s=selection.step_s, **selection.chart), key="chart")
    if not rows.is_empty():
        _show_statistics(rows, selection)
    _show_coverage(selection)
    if not rows.is_empty():
        _show_rows(rows, selection)


# -- what is chosen ------------------------------------------------------------------------------


def _choose(catalogue: pl.DataFrame) -> Choice:
    """Draw the widgets, filled from the link, and keep the link in step with them."""
    _follow_link(catalogue)
    which, length = st.columns(2, vertical_alignment="bottom")
    key = which.selectbox(
        "Trajectory", catalogue["stream"].to_list(), key="trajectory", help="Type to filter."
    )
    held = held_window(catalogue, key)
    _mark_preset(held)
    length.pills(
        "Window, up to the newest row",
        list(PRESETS),
        key="preset",
        on_change=_take_preset,
        args=(held,),
    )
    since, until = st.columns(2, vertical_alignment="bottom")
    _calendar(since, "From (UTC)", "start")
    _calendar(until, "To, excluded (UTC)", "end")
    choice = Choice(key, _chosen_window(held))
    _LINK.write(choice.params)
    return choice


def _calendar(column: DeltaGenerator, label: str, key: str) -> None:
    column.datetime_input(
        label,
        key=key,
        min_value=_EPOCH,
        max_value=dt.datetime(2100, 1, 1),  # noqa: DTZ001 - as _EPOCH
        step=60,
        format="YYYY-MM-DD",
    )


def _follow_link(catalogue: pl.DataFrame) -> None:
    """Fill the widgets from a link that the page did not write itself."""
    state = st.session_state
    params = _LINK.to_follow(ready=state.get("trajectory") in catalogue["stream"])
    if params is None:
        return
    choice, faults = read_link(params, catalogue)
    _LINK.keep_faults(faults)
    state["trajectory"] = choice.trajectory
    _take_window(choice.window)


def _take_window(window: Interval) -> None:
    for name, ts in zip(("start", "end"), window, strict=True):
        st.session_state[name] = _EPOCH + dt.timedelta(seconds=ts)


def _take_preset(held: Interval) -> None:
    preset = st.session_state["preset"]
    if preset is not None:
        _take_window(preset_window(held, preset))


def _mark_preset(held: Interval) -> None:
    """Mark the preset that the window is, none where it is no preset."""
    state = st.session_state
    window = _state_window()
    same = [preset for preset in PRESETS if preset_window(held, preset) == window]
    if state.get("preset") not in same:
        state["preset"] = same[-1] if same else None


def _state_window() -> tuple[int, int]:
    start, end = (
        int((st.session_state[name] - _EPOCH).total_seconds()) for name in ("start", "end")
    )
    return start, end


def _chosen_window(held: Interval) -> Interval:
    start, end = _state_window()
    if start < end:
        return Interval(start, end)
    st.warning(
        f"The window from {format_ts(start)} to {format_ts(end)} is empty: its start must lie "
        f"before its end. The page shows all that is held instead."
    )
    return held


# -- what is shown -------------------------------------------------------------------------------


def _draw_spread(rows: pl.DataFrame, selection: _Selection) -> None:
    """Draw the spread's chart, with the threshold and the events that the reader asks for."""
    threshold, marks = st.columns(2, vertical_alignment="bottom")
    bps = threshold.number_input(
        "Mark a threshold on either side (log bps)",
        min_value=0.0,
        value=None,
        step=5.0,
        format="%g",
        key="threshold",
        placeholder="none",
        persist_state="session",
    )
    held = selection.shell.held
    logged = "spread" in set(held.logs["family"])
    wanted = marks.toggle(
        "Shade the spread events of these legs",
        value=True,
        key="marks",
        disabled=not logged,
        persist_state="session",
        help=None if logged else f"The log is not held: {rail('sync', 'events/spread')}",
    )
    events = None
    if logged and wanted:
        found = read_events(held.path, *documents_window(selection.window), version=held.version)
        events = events_of(found, selection.trajectory)
    chart = spread_chart(
        rows,
        step_s=selection.step_s,
        thresholds_bps=(bps, -bps) if bps else (),
        events=events,
        logs=held.logs,
        **selection.chart,
    )
    draw(chart, key="chart")
    st.page_link(page_file("spreads"), label="← All spreads")
    if events is not None:
        _list_events(events, selection)


def _list_events(events: pl.DataFrame, selection: _Selection) -> None:
    """List the events of the two legs, newest first, each with a button to its page."""
    inside = pl.col("ts").is_between(*selection.window, closed="left")
    known = identified(events)
    mine = known.filter(inside)
    newest = newest_events(mine, _EVENTS_SHOWN)
    logs = selection.shell.held.logs.filter(family="spread")
    if words := logs_that_end(logs, selection.window.end, selection.timezone):
        st.caption(words)
    if newest.is_empty():
        st.caption("No spread event of these legs in the window.")
        return
    total = mine["event"].n_unique()
    st.caption(f"Spread events of these legs, newest first: {_of(_EVENTS_SHOWN, total)}.")
    lifecycles = event_lifecycles(known, *selection.window, logs=logs)
    table = event_table(newest, lifecycles, selection.timezone).drop("symbol")
    if (clicked := opened_row(table, "legs_events")) is not None:
        go_to("events", event=newest["event_id"][clicked])


def _show_statistics(rows: pl.DataFrame, selection: _Selection) -> None:
    spread = selection.trajectory.family is Family.SPREAD
    if spread:
        st.subheader("Statistics of the spread")
        st.caption(
            "log bps: 10,000 ln(sell price / buy price), positive where the sell leg is dearer."
        )
    else:
        st.subheader("Statistics of the price")
    st.caption(
        "Coverage: rows with a value over the rows expected, one per step. Observed share: the "
        "share of the window's time for which a value is known, each for three steps at most."
    )
    column, unit = (
        ("spread_log_bps", "log bps") if spread else ("price", selection.trajectory.symbol.quote)
    )
    row = summary(rows, *selection.window, column=column).row(0, named=True)
    if "service" in (row.get("spread_basis") or ""):
        st.caption(
            f"Computed from: {row['spread_basis']}. Service: its own spread, without prices."
        )
    lines = statistics_rows(row, column, unit, half_life=spread)
    facts = [
        ("Observations", f"{row['n']:,}", f"without a value: {row['n_null']:,}"),
        ("Coverage", lines[0]["coverage"], _beside_coverage(row)),
    ]
    facts += [
        (
            line["statistic"],
            line["value"],
            line["reason"] or f"n = {line['n']}, coverage {line['coverage']}",
        )
        for line in lines
        if line["statistic"] in ("Median", "Standard deviation", "Half-life")
    ]
    for place, (label, value, beside) in zip(st.columns(len(facts)), facts, strict=True):
        place.metric(label, value)
        place.caption(beside)
    table = pl.DataFrame(lines)
    if not any(table["reason"]):
        table = table.drop("reason")
    show_table(table, height="content")


def _show_coverage(selection: _Selection) -> None:
    st.subheader("What is held")
    coverage = read_coverage(**selection.query)
    draw(coverage_chart(coverage, **selection.chart), key="coverage")
    gaps = gap_table(coverage, selection.timezone)
    if gaps.is_empty():
        st.caption("Every second of the window is held.")
        return
    st.caption(
        f"Stretches that are not held, longest first: {_of(_GAPS_SHOWN, gaps.height)}. "
        "empty: the service answered that it has no row there; not yet known: rows may still "
        "appear or change; missing: not loaded; unrecoverable: older than the plan reaches."
    )
    show_table(gaps.head(_GAPS_SHOWN))


def _show_rows(rows: pl.DataFrame, selection: _Selection) -> None:
    st.subheader("Rows")
    st.caption(
        f"Newest first: {_of(_ROWS_SHOWN, rows.height)}; the file has all. "
        f"{NULL}: the service sent no value."
    )
    table = row_table(rows, selection.timezone, _ROWS_SHOWN)
    show_table(table, placeholder=NULL)
    start, end = (format_ts(ts)[:16].replace(" ", "T").replace(":", "") for ts in selection.window)
    named = file_name(f"{selection.source.kind}_{selection.trajectory.key}")
    st.download_button(
        "Download all rows as CSV",
        partial(rows_csv, rows, selection.source),
        file_name=f"{named}_{start}_{end}.csv",
        mime="text/csv",
        on_click="ignore",
    )


def _beside_coverage(row: dict[str, Any]) -> str:
    share = NULL if row["observed_share"] is None else share_text(row["observed_share"])
    return f"observed share {share}, longest gap {duration(row['longest_gap_s'])}"


def _of(limit: int, total: int) -> str:
    return f"{limit:,} of {total:,}" if total > limit else f"{total:,}"


if __name__ == "__main__":
    page("Trajectory", _body)
