"""The page of one trajectory: its prices or spread, their statistics, and what is missing."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from toolkit.charts import coverage_chart, price_chart, spread_chart
from toolkit.dashboard.link import PRESETS, Choice, held_window, preset_window, read_link
from toolkit.dashboard.reading import read_catalogue, read_coverage, read_rows, store_path
from toolkit.dashboard.tables import gap_table, row_table, rows_csv
from toolkit.dashboard.words import (
    NULL,
    age_text,
    code,
    duration_text,
    source_text,
    statistics_rows,
)
from toolkit.errors import RailError
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory, format_ts
from toolkit.statistics.spread import summary

__all__ = ["show"]

_ROWS_SHOWN = 1000
_GAPS_SHOWN = 500
# No more buttons than fit beside a title on a phone; drag to zoom, double-click to return.
_PLOTLY = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the calendar widget has no zones; it shows UTC


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the page shows: a trajectory's window from a source, in a clock."""

    path: Path
    source: Source
    trajectory: Trajectory
    window: Interval
    timezone: str
    step_s: int | None
    asked_at: int

    @property
    def quote(self) -> str:
        return self.trajectory.symbol.quote

    @property
    def query(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "key": self.trajectory.key,
            "family": self.trajectory.family,
            "start": self.window.start,
            "end": self.window.end,
            "asked_at": self.asked_at,
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


def show() -> None:
    """The whole page, or one sentence that says why there is none and what to do."""
    path = store_path()
    try:
        source, catalogue = read_catalogue(path)
        _say_source(source)
        if catalogue.is_empty():
            st.info(
                f"{code(str(path))} holds no trajectory yet. Load one with `rail sync`, e.g. "
                "`rail sync BTC_USD:COINBASE.spot:KRAKEN.spot --start 2023-03-01 --end 2023-03-22`."
            )
            return
        _show_trajectory(path, source, catalogue)
    except RailError as error:
        st.error(f"{error}.")


def _show_trajectory(path: Path, source: Source, catalogue: pl.DataFrame) -> None:
    choice, timezone = _choose(catalogue)
    row = catalogue.row(by_predicate=pl.col("trajectory") == choice.trajectory, named=True)
    age = age_text(
        row["last_ts"], row["served_at"], row["asked_at"], row["delay_s"], int(time.time())
    )
    st.caption(f"{age} As of {format_ts(row['served_at'])} (the service's clock).")
    shown = _Shown(
        path,
        source,
        Trajectory.parse(choice.trajectory, Family(row["family"])),
        choice.window,
        timezone,
        row["step_s"],
        row["asked_at"],
    )
    rows = read_rows(**shown.query)
    draw = spread_chart if shown.trajectory.family is Family.SPREAD else price_chart
    _draw(draw(rows, step_s=shown.step_s, **shown.chart), key="chart")
    if not rows.is_empty():
        _show_statistics(rows, shown)
    _show_coverage(shown)
    if not rows.is_empty():
        _show_rows(rows, shown)


def _say_source(source: Source) -> None:
    say = st.warning if source.is_simulated else st.info if source.kind == "replay" else st.caption
    say(source_text(source))


# -- what is chosen ------------------------------------------------------------------------------


def _choose(catalogue: pl.DataFrame) -> tuple[Choice, str]:
    """The widgets, filled from the link; and the link, kept to what the widgets say."""
    _follow_link(catalogue)
    which, length = st.columns(2, vertical_alignment="bottom")
    key = which.selectbox(
        "Trajectory", catalogue["trajectory"].to_list(), key="trajectory", help="Type to filter."
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
    since, until, clock = st.columns(3, vertical_alignment="bottom")
    _calendar(since, "From (UTC)", "start")
    _calendar(until, "To, excluded (UTC)", "end")
    timezone = _choose_clock(clock)
    choice = Choice(key, _chosen_window(held))
    _write_link(choice)
    for fault in st.session_state["faults"]:
        st.warning(fault)
    return choice, timezone


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
    """Take over what the link says, unless the page wrote it itself."""
    state = st.session_state
    params = {name: st.query_params[name] for name in Choice.NAMES if name in st.query_params}
    ours = state.get("trajectory") in catalogue["trajectory"] and params == state.get("written")
    if ours:
        return
    choice, state["faults"] = read_link(params, catalogue)
    state["trajectory"] = choice.trajectory
    state["read"] = choice
    _take_window(choice.window)


def _write_link(choice: Choice) -> None:
    state = st.session_state
    if choice != state["read"]:
        state["faults"], state["read"] = [], choice
    if state.get("written") != choice.params:
        st.query_params.from_dict(choice.params)
        state["written"] = choice.params


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


def _choose_clock(column: DeltaGenerator) -> str:
    """UTC, or the browser's zone where that is another."""
    zones = list(dict.fromkeys(["UTC", st.context.timezone or "UTC"]))
    if len(zones) == 1:
        return zones[0]
    chosen = column.segmented_control(
        "Clock of charts and tables", zones, default="UTC", required=True, key="clock"
    )
    return str(chosen)


def _draw(figure: Any, key: str) -> None:
    """The figure in Streamlit's template, whose colours the browser fills in for its theme."""
    st.plotly_chart(figure.update_layout(template="streamlit"), config=_PLOTLY, key=key)


# -- what is shown -------------------------------------------------------------------------------


def _show_statistics(rows: pl.DataFrame, shown: _Shown) -> None:
    spread = shown.trajectory.family is Family.SPREAD
    if spread:
        st.subheader("Statistics of the spread")
        st.caption(
            "log bps: 10,000 ln(sell price / buy price), positive where the sell leg is dearer."
        )
    else:
        st.subheader("Statistics of the price")
    column, unit = ("spread_log_bps", "log bps") if spread else ("price", shown.quote)
    row = summary(rows, *shown.window, column=column).row(0, named=True)
    lines = statistics_rows(row, column, unit, half_life=spread)
    facts = [
        ("Observations", f"{row['n']:,}", f"without a value: {row['n_null']:,}"),
        ("Coverage", lines[0]["coverage"], f"longest gap {duration_text(row['longest_gap_s'])}"),
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
    st.dataframe(table, hide_index=True, height="content")


def _show_coverage(shown: _Shown) -> None:
    st.subheader("Coverage")
    coverage = read_coverage(**shown.query)
    _draw(coverage_chart(coverage, **shown.chart), key="coverage")
    gaps = gap_table(coverage, shown.timezone)
    if gaps.is_empty():
        st.caption("Every second of the window is held.")
        return
    st.caption(
        f"Stretches that are not held, longest first: {_of(_GAPS_SHOWN, gaps.height)}. "
        "empty: the service answered that it has no row there; not yet known: rows may still "
        "appear or change; missing: not loaded; unrecoverable: older than the plan reaches."
    )
    st.dataframe(gaps.head(_GAPS_SHOWN), hide_index=True)


def _show_rows(rows: pl.DataFrame, shown: _Shown) -> None:
    st.subheader("Rows")
    st.caption(
        f"Newest first: {_of(_ROWS_SHOWN, rows.height)}; the file has all. "
        f"{NULL}: the service sent no value."
    )
    table = row_table(rows, shown.timezone, _ROWS_SHOWN)
    st.dataframe(table, hide_index=True, placeholder=NULL)
    start, end = (format_ts(ts)[:16].replace(" ", "T").replace(":", "") for ts in shown.window)
    key = shown.trajectory.key.replace(":", "_")
    st.download_button(
        "Download all rows as CSV",
        partial(rows_csv, rows, shown.source),
        file_name=f"{shown.source.kind}_{key}_{start}_{end}.csv",
        mime="text/csv",
        on_click="ignore",
    )


def _of(limit: int, total: int) -> str:
    return f"{limit:,} of {total:,}" if total > limit else f"{total:,}"


if __name__ == "__main__":
    show()
