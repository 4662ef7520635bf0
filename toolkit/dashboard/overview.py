"""The page that opens first: open spreads, rates far apart, and recent events."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from toolkit.cards import duration
from toolkit.charts import activity_chart
from toolkit.dashboard.event_tables import (
    Count,
    count_events,
    event_table,
    newest_events,
    open_events,
)
from toolkit.dashboard.formatting import NULL, code
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.reading import read_events, read_snapshot
from toolkit.dashboard.shell import PageShell, draw, opened_row, page, say_empty
from toolkit.dashboard.snapshot_tables import funding_rates, open_spreads, widest_differentials
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family
from toolkit.statistics.event_documents import identified
from toolkit.statistics.events import documents_window, event_lifecycles
from toolkit.wire.snapshots import snapshot_items

_DAY_S = 86_400
_SPREADS_SHOWN = 100
_EXTREMES_SHOWN = 10
_EVENTS_SHOWN = 10
_TABLE_PX = 388  # ten rows and their heading

_BUTTON_HELP = {
    "Swapped": "Swapped: held with the legs the other way round, so with the other sign.",
    "Events": "Events: the trajectory is not held, so the button shows the symbol's events; "
    "to load the first of them: {lacking}",
    None: "A row without a button: neither the trajectory nor an event of its symbol in the last "
    "48 h is held; to load the first of them: {lacking}",
}

_LABELS = {
    EventFamily.SPREAD: "Spreads opened, 24 h",
    EventFamily.SPLASH: "Pumps and dumps, 24 h",
    EventFamily.FUNDING: "Funding events, 24 h",
}


def _body(shell: PageShell) -> None:
    held = shell.held
    spreads = read_snapshot(held.path, "spread", version=held.version)
    rates = read_snapshot(held.path, "funding", version=held.version)
    if held.streams.is_empty():
        say_empty(
            f"{code(str(held.path))} holds nothing yet. Load something from the service, "
            "then look here again:",
            "rail sync --all-prices --all-spreads",
            "rail sync events/spread events/splash events/funding",
            "rail sync snapshot/spread snapshot/funding",
        )
        return
    window, events = _day(shell)
    two_days = Interval(window.start - _DAY_S, window.end)
    lifecycles = event_lifecycles(events, *two_days, logs=held.logs)
    opened = open_events(events, lifecycles, EventFamily.SPREAD)
    _show_figures(shell, window, spreads, opened, count_events(events, lifecycles, window))
    left, right = st.columns(2)
    with left:
        _show_open(shell, spreads, opened, events.filter(pl.col("ts") >= two_days.start))
    with right:
        _show_extremes(shell, rates)
    _show_events(shell, window, events)


def _day(shell: PageShell) -> tuple[Interval, pl.DataFrame]:
    """Return the 24 h before the event logs' clock, and the documents for twice as long."""
    held = shell.held
    end = held.logs["served_at"].max() if held.logs.height else held.as_of
    assert isinstance(end, int)  # a store that was never asked has shown its empty state
    read = documents_window(Interval(end - 2 * _DAY_S, end))
    events = identified(read_events(held.path, *read, version=held.version))
    return Interval(end - _DAY_S, end), events


def _show_figures(
    shell: PageShell,
    window: Interval,
    spreads: tuple[int, str] | None,
    opened: pl.DataFrame,
    counts: list[Count],
) -> None:
    with st.grid(4, min_column_width=150):
        n_open = _count_open(spreads, opened)
        st.metric("Spreads open", n_open, help="At the service's clock; listed below.")
        asked = set(shell.held.logs["family"])
        for count in counts:
            known = count.family.value in asked
            st.metric(
                _LABELS[count.family],
                f"{count.events:,}" if known else NULL,
                delta=count.events - count.before if known else None,
                delta_color="off",
                delta_description="vs 24 h before" if known else None,
                help=f"Events that opened in the 24 h to {shell.moment(window.end)}; the log has "
                f"n = {count.documents:,} documents of that time."
                if known
                else f"This log was never asked for: rail sync events/{count.family}",
            )


def _count_open(spreads: tuple[int, str] | None, opened: pl.DataFrame) -> str:
    """Return how many spreads are open, as far as the service's list is understood."""
    if not spreads:
        return f"{opened.height:,}"
    n_open, items = (
        open_spreads(spreads[1])["opened_at"].count(),
        snapshot_items("spread", spreads[1]),
    )
    if items.nothing or (items.odd and not n_open):
        return "not understood"
    return f"{n_open:,} or more" if items.odd else f"{n_open:,}"


def _show_open(
    shell: PageShell, spreads: tuple[int, str] | None, opened: pl.DataFrame, events: pl.DataFrame
) -> None:
    st.subheader("Open spreads", anchor=False)
    if spreads:
        served_at, document = spreads
        if (items := snapshot_items("spread", document)).words:
            st.warning(f"The service's list of {shell.moment(served_at)}: {items.words}.")
        if items.nothing:
            return
        rows = open_spreads(document)
        tracked = rows["opened_at"].null_count()
        rows = rows.drop_nulls("opened_at")
        st.caption(
            f"The service's list of {shell.moment(served_at)}, widest first: {rows.height:,} open; "
            f"{tracked:,} more are tracked without an event that opened them."
        )
    elif "spread" in set(shell.held.logs["family"]):
        rows = _from_log(opened)
        st.caption(
            f"From the event log: {rows.height:,} that opened and have not closed, by the spread "
            "in the newest document of each. `rail sync snapshot/spread` loads the service's own "
            "list."
        )
    else:
        say_empty(
            "Neither the service's list of spreads nor its event log is held.",
            "rail sync snapshot/spread",
        )
        return
    if rows.is_empty():
        if not (spreads and items.odd):
            st.caption("None is open.")
        return
    _open_table(shell, rows.head(_SPREADS_SHOWN), events)


def _from_log(events: pl.DataFrame) -> pl.DataFrame:
    """Convert open events to rows like those of `open_spreads`, with a null opened_at."""
    return (
        events.with_columns(
            buy=pl.format("{}.{}", "buy_exchange", "buy_market"),
            sell=pl.format("{}.{}", "sell_exchange", "sell_market"),
            spread_pct="magnitude_pct",
            opened_at=pl.lit(None, pl.Int64),
        )
        .with_columns(key=pl.format("{}:{}:{}", "symbol", "buy", "sell"))
        .sort("spread_pct", "key", descending=[True, False], nulls_last=True)
    )


def _open_table(shell: PageShell, rows: pl.DataFrame, events: pl.DataFrame) -> None:
    spreads = shell.held.streams.filter(kind=Family.SPREAD.value)["stream"]
    buttons = _buttons(rows, set(spreads), set(events["symbol"]))
    as_of = shell.held.as_of
    table = pl.DataFrame(
        {
            "": pl.Series(buttons, dtype=pl.String),
            "symbol": rows["symbol"],
            "spread (%)": rows["spread_pct"],
            "buy → sell": rows.select(pl.format("{} → {}", "buy", "sell")).to_series(),
            "open for": [
                None if ts is None or as_of is None else duration(max(0, as_of - ts))
                for ts in rows["opened_at"]
            ],
        }
    )
    number = st.column_config.NumberColumn(format="%.3f")
    chosen = opened_row(table, "open", height=_TABLE_PX, **{"spread (%)": number})
    for word, text in _BUTTON_HELP.items():
        if word in buttons:
            lacking = code(f"rail sync {rows['key'][buttons.index(word)]}")
            st.caption(text.format(lacking=lacking))
    if chosen is None:
        return
    row = rows.row(chosen, named=True)
    if buttons[chosen] == "Events":
        go_to("events", symbol=row["symbol"])
    go_to("trajectory", trajectory=row["key"] if buttons[chosen] == "Open" else _swapped(row))


def _buttons(rows: pl.DataFrame, held: set[str], with_events: set[str]) -> list[str | None]:
    """Return the label of each row's button, None where the store holds nothing of it."""
    return [
        "Open"
        if row["key"] in held
        else "Swapped"
        if _swapped(row) in held
        else "Events"
        if row["symbol"] in with_events
        else None
        for row in rows.iter_rows(named=True)
    ]


def _swapped(row: dict[str, Any]) -> str:
    return f"{row['symbol']}:{row['sell']}:{row['buy']}"


def _show_extremes(shell: PageShell, rates: tuple[int, str] | None) -> None:
    st.subheader("Funding apart", anchor=False)
    if rates is None:
        say_empty("No funding overview is held.", "rail sync snapshot/funding")
        return
    if words := snapshot_items("funding", rates[1]).words:
        st.warning(f"The overview of {shell.moment(rates[0])}: {words}.")
    found = funding_rates(rates[1])
    widest = widest_differentials(found)
    if widest.is_empty():
        if words:
            return
        st.caption(
            f"The overview of {shell.moment(rates[0])} names no symbol with rates on two legs."
        )
        return
    top, low = found.row(0, named=True), found.row(-1, named=True)
    st.caption(
        f"Rates in force at {shell.moment(rates[0])}, n = {found.height:,} legs; percent a year, "
        f"simple. Highest: {top['symbol']} {top['leg']} {top['apr_pct']:+,.1f}; lowest: "
        f"{low['symbol']} {low['leg']} {low['apr_pct']:+,.1f}. Positive: longs pay shorts."
    )
    shown = widest.head(_EXTREMES_SHOWN)
    table = shown.select(
        pl.lit("Open").alias(""),
        "symbol",
        pl.col("differential_apr_pct").alias("% a year"),
        pl.col("differential_pct_8h").alias("% per 8 h"),
        pl.format("{} → {}", "buy", "sell").alias("lowest → highest"),
    )
    year, hours = (st.column_config.NumberColumn(format=f"%.{digits}f") for digits in (1, 4))
    chosen = opened_row(table, "apart", height=_TABLE_PX, **{"% a year": year, "% per 8 h": hours})
    if chosen is not None:
        go_to("funding", trajectory=shown["key"][chosen])


def _show_events(shell: PageShell, window: Interval, events: pl.DataFrame) -> None:
    st.subheader("Events", anchor=False)
    if shell.held.logs.is_empty():
        say_empty("No event log is held.", "rail sync events/spread events/splash events/funding")
        return
    of_day = events.filter(pl.col("ts") >= window.start)
    figure = activity_chart(
        of_day,
        start=window.start,
        end=window.end,
        source=shell.held.source,
        timezone=shell.timezone,
    )
    draw(figure, key="activity")
    newest = newest_events(of_day, _EVENTS_SHOWN)
    if newest.is_empty():
        return
    total = of_day.select("family", "event").n_unique()
    st.caption(f"The newest {newest.height:,} of {total:,} events of the 24 h, newest first.")
    chosen = opened_row(event_table(newest, shell.timezone), "newest", height="content")
    if chosen is not None:
        go_to("events", event=newest["event_id"][chosen])


if __name__ == "__main__":
    page("Overview", _body)
