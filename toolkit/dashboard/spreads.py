"""The page of all spreads: each trajectory with its statistics, filters, and the way to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from toolkit.commands import rail
from toolkit.dashboard.link import PRESETS, Choice, read_choice, read_number, read_option
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.page_link import PageLink
from toolkit.dashboard.reading import measure_above, measure_spreads, read_asked
from toolkit.dashboard.shell import PageShell, opened_row, page, say_empty
from toolkit.dashboard.spread_table import (
    Filters,
    filtered,
    shown_lines,
    spread_lines,
    spread_names,
)
from toolkit.foreign import markdown
from toolkit.intervals import Interval
from toolkit.market import Family

_ROWS_SHOWN = 500
_ABOVE_BPS = 20.0
_MOST_BPS = 10_000.0
_DEFAULT_WINDOW = "7 days"
_KINDS = {"symbol": "symbol", "exchange": "exchanges", "type": "type"}
_LINK = PageLink("spreads", (*_KINDS, "min", "above", "window"))


def _body(shell: PageShell) -> None:
    held = shell.held
    spreads = held.streams.filter(kind=Family.SPREAD.value)
    if spreads["last_ts"].drop_nulls().is_empty():
        answer = "asked, and the service has none there" if spreads.height else "none was asked for"
        say_empty(
            f"{markdown(str(held.path))} holds no spread: {answer}. Load some, then look here "
            "again:",
            rail("sync", "--all-spreads", "--symbol", "BTC_USDT"),
        )
        return
    filters, above_bps, preset = _choose(spread_names(spreads["stream"]))
    window = _window(spreads, preset)
    summary, last = measure_spreads(held.path, *window, version=held.version)
    above = measure_above(held.path, *window, above_bps, version=held.version)
    asked = read_asked(held.path, tuple(spreads["stream"]), *window, version=held.version)
    now = held.now()
    lines = spread_lines(spreads, summary, last, above, asked=asked, now=now)
    own = summary["spread_basis"].str.contains("service").sum()
    if own:
        st.caption(
            f"Of {own:,} of the spreads the service's own figure is used: no prices of legs."
        )
    _show(shell, lines, filtered(lines, filters), window, above_bps)
    st.caption(
        f"Age: from the end of the newest row to {shell.moment(now)}, the service's clock now."
    )


def _window(spreads: pl.DataFrame, preset: str) -> Interval:
    """Return the preset's window up to the end of the newest row, never before the first."""
    ends = spreads.select(end=pl.col("last_ts") + pl.col("step_s").fill_null(60)).drop_nulls()
    end, first = int(ends["end"].sort()[-1]), int(spreads["first_ts"].drop_nulls().sort()[0])
    length_s = PRESETS[preset]
    return Interval(first if length_s is None else max(first, end - length_s), end)


def _show(
    shell: PageShell, lines: pl.DataFrame, kept: pl.DataFrame, window: Interval, above_bps: float
) -> None:
    shown = kept.head(_ROWS_SHOWN)
    limited = f", the first {_ROWS_SHOWN:,} shown" if kept.height > _ROWS_SHOWN else ""
    st.caption(
        f"{kept.height:,} of {lines.height:,} spreads{limited}, the largest last spread first, on "
        f"either side of zero. Window {shell.moment(window.start)} to {shell.moment(window.end)}. "
        "Log bps: 10,000 ln(sell price / buy price), positive where the sell leg is dearer."
    )
    if kept.is_empty():
        st.info("No spread passes the filters; take one of them back.")
        return
    table = shown_lines(shown, above_bps)
    number = st.column_config.NumberColumn
    formats: dict[str, Any] = {
        name: number(format="%.2f")
        for name in table.columns
        if name in ("last (log bps)", "mean", "std. dev.", "half-life (min)")
    }
    formats |= {name: number(format="%.2f") for name in table.columns if name.startswith("≥")}
    formats |= {"n": number(format="localized"), "coverage (%)": number(format="%.2f")}
    if table["why a number is missing"].null_count() == table.height:
        table = table.drop("why a number is missing")
    chosen = opened_row(table, "spreads", height=min(36 * (table.height + 1), 640), **formats)
    if chosen is not None:
        # The whole link, as the page would write it: one step back leads here again.
        go_to("trajectory", **Choice(shown["trajectory"][chosen], window).params)


# -- what is chosen ------------------------------------------------------------------------------


def _choose(names: pl.DataFrame) -> tuple[Filters, float, str]:
    """Draw the widgets, filled from the link, and keep the link in step with them."""
    allowed = {
        kind: names[column].explode().unique().sort().to_list() for kind, column in _KINDS.items()
    }
    _follow_link(allowed)
    with st.grid(3, min_column_width=220):
        for kind, label in (("symbol", "Symbol"), ("exchange", "Exchange"), ("type", "Markets")):
            st.multiselect(
                label, allowed[kind], key=kind, placeholder="all", persist_state="session"
            )
        st.number_input(
            "Last spread at least (log bps, either side)",
            0.0,
            _MOST_BPS,
            step=5.0,
            format="%g",
            key="min",
            persist_state="session",
        )
        st.number_input(
            "Count the time at or beyond (log bps)",
            0.1,
            _MOST_BPS,
            step=5.0,
            format="%g",
            key="above",
            persist_state="session",
        )
        st.segmented_control(
            "Window", list(PRESETS), key="window", required=True, persist_state="session"
        )
    _LINK.write(_widget_params())
    state = st.session_state
    chosen = Filters(
        tuple(state["symbol"]), tuple(state["exchange"]), tuple(state["type"]), state["min"]
    )
    return chosen, state["above"], state["window"]


def _follow_link(allowed: Mapping[str, list[str]]) -> None:
    """Fill the widgets from a link that the page did not write itself."""
    state = st.session_state
    params = _LINK.to_follow(ready="above" in state)
    if params is None:
        return
    faults: list[str] = []
    for kind, values in allowed.items():
        state[kind] = read_choice(params, kind, values, faults)
    state["min"] = read_number(params, "min", 0.0, (0.0, _MOST_BPS), faults)
    state["above"] = read_number(params, "above", _ABOVE_BPS, (0.1, _MOST_BPS), faults)
    state["window"] = read_option(params, "window", PRESETS, _DEFAULT_WINDOW, faults)
    _LINK.keep_faults(faults)


def _widget_params() -> dict[str, str]:
    """Return the values of the widgets that are not the default, as parameters of a link."""
    state = st.session_state
    params = {kind: ",".join(state[kind]) for kind in _KINDS if state[kind]}
    for name, default in (("min", 0.0), ("above", _ABOVE_BPS)):
        if state[name] != default:
            params[name] = f"{state[name]:g}"
    if state["window"] != _DEFAULT_WINDOW:
        params["window"] = state["window"]
    return params


if __name__ == "__main__":
    page("Spreads", _body)
