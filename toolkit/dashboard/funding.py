"""The page of funding: the rates in force, and one pair's differential and carry."""

from __future__ import annotations

import polars as pl
import streamlit as st

from toolkit.charts import funding_chart, funding_matrix
from toolkit.commands import rail
from toolkit.dashboard.funding_tables import (
    UNITS,
    carry_rows,
    pair_window,
    rate_table,
    read_pair,
    settlement_table,
    without_family,
)
from toolkit.dashboard.link import PRESETS, read_option
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.page_link import PageLink
from toolkit.dashboard.reading import read_rows, read_snapshot
from toolkit.dashboard.shell import PageShell, draw, opened_row, page, say_empty, show_table
from toolkit.foreign import markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.statistics.definition import turned
from toolkit.statistics.funding import rows_window, summary
from toolkit.store import held_key
from toolkit.wire.snapshots import snapshot_items
from toolkit.workspace.snapshot_tables import funding_rates, widest_differentials

_RATES, _PAIR = "Rates in force", "One pair through time"
_LINK = PageLink("funding", ("trajectory", "unit"))
_SHOWN = 500
_TABLE_PX = 388


def _body(shell: PageShell) -> None:
    held = shell.held
    pairs = held.streams.filter(kind=Family.FUNDING.value)
    keys: list[str] = pairs["stream"].to_list()
    answer = read_snapshot(held.path, "funding", version=held.version)
    rates = None if answer is None else funding_rates(answer[1])
    if answer is None and not keys:
        say_empty(
            f"{markdown(str(held.path))} holds no funding yet. Load the rates in force, or what "
            "pairs of futures legs have settled, then look here again:",
            rail("sync", "snapshot/funding"),
            rail("sync", "--all-funding", "--symbol", "BTC_USDT"),
        )
        return
    if answer and (words := snapshot_items("funding", answer[1]).words):
        st.warning(f"The overview of {shell.moment(answer[0])}: {words}.")
    _follow_link(keys, rates_held=answer is not None)
    view = st.segmented_control(
        "Show", [_RATES, _PAIR], key="funding_view", required=True, label_visibility="collapsed"
    )
    if view == _PAIR:
        _show_pair(shell, pairs, keys, rates)
    else:
        _show_rates(shell, rates, answer[0] if answer else 0, keys)


# -- what is chosen ------------------------------------------------------------------------------


def _follow_link(keys: list[str], *, rates_held: bool) -> None:
    """Fill the widgets from a link that the page did not write itself."""
    state = st.session_state
    params = _LINK.to_follow(ready="funding_view" in state)
    if params is None:
        return
    key, faults = read_pair(params.get("trajectory"), keys)
    state["funding_unit"] = read_option(params, "unit", UNITS, "8h", faults)
    _LINK.keep_faults(faults)
    state["funding_pair"] = key
    state["funding_asked"] = params.get("trajectory")
    state["funding_view"] = _PAIR if "trajectory" in params or not rates_held else _RATES


# -- the rates in force --------------------------------------------------------------------------


def _show_rates(
    shell: PageShell, rates: pl.DataFrame | None, served_at: int, keys: list[str]
) -> None:
    word = st.segmented_control(
        "Unit",
        list(UNITS),
        key="funding_unit",
        format_func=UNITS.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    _LINK.write({"unit": str(word)})
    if rates is None:
        say_empty("No funding overview is held.", rail("sync", "snapshot/funding"))
        return
    unit = UNITS[str(word)]
    figure = funding_matrix(
        rates, unit=unit, ts=served_at, source=shell.held.source, timezone=shell.timezone
    )
    draw(figure, key="matrix")
    if rates.is_empty():
        return
    left, right = st.columns(2)
    with left:
        st.subheader("Rates by leg", anchor=False)
        table = rate_table(rates, unit, shell.timezone)
        st.caption(
            f"n = {table.height:,} legs at {shell.moment(served_at)}, the highest first. "
            "Positive: longs pay shorts."
        )
        number = st.column_config.NumberColumn(format="%+.4f")
        show_table(
            table.head(_SHOWN),
            height=_TABLE_PX,
            column_config={unit: number, "as given (%)": number},
        )
    with right:
        _show_widest(rates, keys)


def _show_widest(rates: pl.DataFrame, keys: list[str]) -> None:
    st.subheader("Widest apart", anchor=False)
    widest = widest_differentials(rates).head(_SHOWN)
    if widest.is_empty():
        st.caption("No symbol has rates on two legs.")
        return
    st.caption(
        "Of each symbol the lowest and the highest rate: what long the first and short the second "
        "receives while both are in force, before fees."
    )
    held = [held_key(key, keys) is not None for key in widest["key"]]
    buttons = ["Open" if known else None for known in held]
    table = widest.select(
        pl.Series("", buttons, dtype=pl.String),
        "symbol",
        pl.col("differential_pct_8h").alias("% per 8 h"),
        pl.col("differential_apr_pct").alias("% a year"),
        pl.col("buy").alias("lowest on"),
        pl.col("sell").alias("highest on"),
    )
    numbers = {
        "% per 8 h": st.column_config.NumberColumn(format="%.4f"),
        "% a year": st.column_config.NumberColumn(format="%.1f"),
    }
    chosen = opened_row(table, "widest", height=_TABLE_PX, **numbers)
    if chosen is not None and held[chosen]:
        go_to("funding", trajectory=widest["key"][chosen])
    if False in held:
        st.caption("A row without a button is not held as a pair; for the first of them:")
        load = rail("sync", widest["key"][held.index(False)])
        st.code(load, language="bash")


# -- one pair ------------------------------------------------------------------------------------


def _show_pair(
    shell: PageShell, pairs: pl.DataFrame, keys: list[str], rates: pl.DataFrame | None
) -> None:
    if not keys:
        widest = None if rates is None else widest_differentials(rates)
        known = widest is not None and not widest.is_empty()
        what = widest["key"][0] if known and widest is not None else "--all-funding"
        say_empty("No pair's funding is held.", rail("sync", what))
        return
    which, length = st.columns(2, vertical_alignment="bottom")
    with which:
        key = _choose_pair(keys)
    preset = length.pills(
        "Window, up to the newest settlement",
        list(PRESETS),
        key="funding_window",
        default="30 days",
        required=True,
    )
    held = None if key is None else held_key(key, keys)
    if key is None or held is None:
        _LINK.write({"trajectory": st.session_state["funding_asked"]})
        return
    st.session_state["funding_asked"] = key
    _LINK.write({"trajectory": key})
    window = pair_window(pairs, held, str(preset))
    rows = read_rows(
        shell.held.path,
        held,
        Family.FUNDING,
        *rows_window(window),
        version=shell.held.version,
    )
    if held != key:
        rows = turned(rows, key)
    figure = funding_chart(
        rows,
        trajectory=Trajectory.parse(key, Family.FUNDING),
        start=window.start,
        end=window.end,
        source=shell.held.source,
        timezone=shell.timezone,
    )
    draw(figure, key="pair")
    if not rows.is_empty():
        _show_figures(shell, rows, window)


def _choose_pair(keys: list[str]) -> str | None:
    """Show the pairs to choose from: those held, and the one asked for the other way round."""
    state = st.session_state
    if state.get("funding_pair") is None:
        state["funding_pair"] = read_pair(state["funding_asked"], keys)[0]
    now = state["funding_pair"]
    return st.selectbox(
        "Pair: symbol, leg bought, leg sold",
        keys if now is None or now in keys else [now, *keys],
        index=None if now is None else 0,
        key="funding_pair",
        format_func=without_family,
        placeholder="Choose a pair",
        help="Type to filter.",
    )


def _show_figures(shell: PageShell, rows: pl.DataFrame, window: Interval) -> None:
    """Show what the pair received, and the settlements behind it."""
    lines = carry_rows(summary(rows, *window).row(0, named=True))
    with st.grid(4, min_column_width=150):
        for line in lines[:4]:
            with st.container():
                st.metric(line["figure"], line["value"])
                st.caption(line["reason"] or line["rests on"])
    st.caption(
        "In bps of the notional of one leg, from settled rates alone: long the leg bought, short "
        "the leg sold, opened at the window's start and closed at its end. A settlement pays its "
        "whole rate to who holds the position then; prices, fees and slippage are not in it."
    )
    for line in lines[4:]:
        if line["value"] != "0":
            st.caption(f"{line['figure']}: {line['value']}")
    settlements = settlement_table(rows, window, shell.timezone)
    some = f"{_SHOWN:,} of " if settlements.height > _SHOWN else ""
    st.subheader("Settlements", anchor=False)
    st.caption(f"{some}{settlements.height:,}, newest first.")
    show_table(settlements.head(_SHOWN), placeholder="")


if __name__ == "__main__":
    page("Funding", _body)
