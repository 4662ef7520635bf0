"""The page that opens first: open spreads, rates far apart, and recent events."""

from __future__ import annotations

import polars as pl
import streamlit as st

from toolkit.cards import signed
from toolkit.charts import activity_chart
from toolkit.commands import rail
from toolkit.dashboard.event_tables import (
    Count,
    count_events,
    event_table,
    logs_that_end,
    newest_events,
    open_events,
)
from toolkit.dashboard.formatting import NULL, command_words
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.open_now import OpenNow, open_now
from toolkit.dashboard.reading import read_events, read_snapshot
from toolkit.dashboard.shell import PageShell, draw, opened_row, page, say_empty
from toolkit.errors import InputError
from toolkit.foreign import markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.statistics.event_documents import identified
from toolkit.statistics.events import documents_window, event_lifecycles
from toolkit.store import swapped
from toolkit.wire.snapshots import snapshot_items
from toolkit.workspace.snapshot_tables import funding_rates, widest_differentials

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
            f"{markdown(str(held.path))} holds nothing yet. Load something from the service, "
            "then look here again:",
            rail("sync", "--all-prices", "--all-spreads"),
            rail("sync", "events/spread", "events/splash", "events/funding"),
            rail("sync", "snapshot/spread", "snapshot/funding"),
        )
        return
    days = _days(held.logs)
    events, lifecycles = _read_logs(shell, days)
    opened = open_events(events, lifecycles, EventFamily.SPREAD)
    known = days.get(EventFamily.SPREAD)
    newest = open_now(spreads, opened, known and known.end)
    _show_figures(shell, newest, days, count_events(events, lifecycles, days))
    end = max((day.end for day in days.values()), default=0)
    window = Interval(end - _DAY_S, end)
    left, right = st.columns(2)
    with left:
        _show_open(shell, newest, events.filter(pl.col("ts") >= window.start - _DAY_S))
    with right:
        _show_extremes(shell, rates)
    _show_events(shell, window, events, lifecycles)


def _days(logs: pl.DataFrame) -> dict[str, Interval]:
    """Return of each event log the 24 h before the end of its own answers."""
    known = logs.select("family", "known_until").drop_nulls()
    return {family: Interval(end - _DAY_S, end) for family, end in known.iter_rows()}


def _read_logs(shell: PageShell, days: dict[str, Interval]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the documents of each log for twice as long as its day, and pair them."""
    held, documents, lifecycles = shell.held, [], []
    for family in EventFamily:
        day = days.get(family, Interval(0, _DAY_S))
        two_days = Interval(day.start - _DAY_S, day.end)
        read = read_events(held.path, *documents_window(two_days), version=held.version)
        documents.append(identified(read.filter(family=family.value)))
        logs = held.logs.filter(family=family.value)
        lifecycles.append(event_lifecycles(documents[-1], *two_days, logs=logs))
    return pl.concat(documents), pl.concat(lifecycles)


def _show_figures(
    shell: PageShell, newest: OpenNow | None, days: dict[str, Interval], counts: list[Count]
) -> None:
    with st.grid(4, min_column_width=150):
        st.metric(
            "Spreads open",
            newest.count if newest else NULL,
            delta=f"at {shell.moment(newest.at)}" if newest else None,
            delta_color="off",
            delta_arrow="off",
            help="By the newest answer that is held, the service's list or its event log; listed "
            "below."
            if newest
            else f"Never asked for: {rail('sync', 'snapshot/spread')}",
        )
        counted = {count.family: count for count in counts}
        for family in EventFamily:
            count = counted.get(family)
            st.metric(
                _LABELS[family],
                f"{count.events:,}" if count else NULL,
                delta=count.events - count.before if count else None,
                delta_color="off",
                delta_description="vs 24 h before" if count else None,
                help=f"Events that opened in the 24 h to {shell.moment(days[family].end)}; the log "
                f"has n = {count.documents:,} documents of that time."
                if count
                else f"This log was never asked for: {rail('sync', f'events/{family}')}",
            )


def _show_open(shell: PageShell, newest: OpenNow | None, events: pl.DataFrame) -> None:
    st.subheader("Open spreads", anchor=False)
    if newest is None:
        say_empty(
            "Neither the service's list of spreads nor its event log is held.",
            rail("sync", "snapshot/spread"),
        )
        return
    rows, items = newest.rows, newest.items
    if items:
        if items.words:
            st.warning(f"The service's list of {shell.moment(newest.at)}: {items.words}.")
        if items.nothing:
            return
        st.caption(
            f"The service's list of {shell.moment(newest.at)}, widest first: {rows.height:,} open; "
            f"{newest.tracked:,} more are tracked without an event that opened them."
        )
    else:
        st.caption(
            f"From the event log, known until {shell.moment(newest.at)}: {rows.height:,} that "
            "opened and have not closed, by the spread in the newest document of each. "
            f"{command_words('sync', 'snapshot/spread')} loads the service's own list."
        )
    if rows.is_empty():
        if not (items and items.odd):
            st.caption("None is open.")
        return
    _open_table(shell, newest, events)


def _open_table(shell: PageShell, newest: OpenNow, events: pl.DataFrame) -> None:
    rows = newest.rows.head(_SPREADS_SHOWN)
    spreads = shell.held.streams.filter(kind=Family.SPREAD.value)["stream"]
    buttons = _buttons(rows, set(spreads), set(events["symbol"]))
    table = pl.DataFrame(
        {
            "": pl.Series(buttons, dtype=pl.String),
            "symbol": rows["symbol"],
            "spread (%)": rows["spread_pct"],
            "buy → sell": rows.select(pl.format("{} → {}", "buy", "sell")).to_series(),
            "open for": pl.Series(newest.ages[: rows.height], dtype=pl.String),
        }
    )
    number = st.column_config.NumberColumn(format="%.3f")
    chosen = opened_row(table, "open", height=_TABLE_PX, **{"spread (%)": number})
    for word, text in _BUTTON_HELP.items():
        if word in buttons:
            first = rows["key"][buttons.index(word)]
            known = _can_load(first)
            lacking = command_words("sync", first) if known else "none can be"
            st.caption(text.format(lacking=lacking))
    if chosen is None:
        return
    row = rows.row(chosen, named=True)
    if buttons[chosen] == "Events":
        go_to("events", symbol=row["symbol"])
    go_to("trajectory", trajectory=row["key"] if buttons[chosen] == "Open" else swapped(row["key"]))


def _can_load(key: str) -> bool:
    """Check that a key of foreign names is one, so that no command takes it for an option."""
    try:
        Trajectory.parse(key)
    except InputError:
        return False
    return True


def _buttons(rows: pl.DataFrame, held: set[str], with_events: set[str]) -> list[str | None]:
    """Return the label of each row's button, None where the store holds nothing of it."""
    return [
        "Open"
        if row["key"] in held
        else "Swapped"
        if swapped(row["key"]) in held
        else "Events"
        if row["symbol"] in with_events
        else None
        for row in rows.iter_rows(named=True)
    ]


def _show_extremes(shell: PageShell, rates: tuple[int, str] | None) -> None:
    st.subheader("Funding apart", anchor=False)
    if rates is None:
        say_empty("No funding overview is held.", rail("sync", "snapshot/funding"))
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
    ends = [markdown(f"{rate['symbol']} {rate['leg']}", 140) for rate in (top, low)]
    st.caption(
        f"Rates in force at {shell.moment(rates[0])}, n = {found.height:,} legs; percent a year, "
        f"simple. Highest: {ends[0]} {signed(top['apr_pct'], 1)}; lowest: {ends[1]} "
        f"{signed(low['apr_pct'], 1)}. Positive: longs pay shorts."
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


def _show_events(
    shell: PageShell, window: Interval, events: pl.DataFrame, lifecycles: pl.DataFrame
) -> None:
    st.subheader("Events", anchor=False)
    if shell.held.logs.is_empty():
        say_empty(
            "No event log is held.",
            rail("sync", "events/spread", "events/splash", "events/funding"),
        )
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
    if words := logs_that_end(shell.held.logs, window.end, shell.timezone):
        st.caption(words)
    newest = newest_events(of_day, _EVENTS_SHOWN)
    if newest.is_empty():
        return
    total = of_day.select("family", "event").n_unique()
    st.caption(f"The newest {newest.height:,} of {total:,} events of the 24 h, newest first.")
    chosen = opened_row(event_table(newest, lifecycles, shell.timezone), "newest", height="content")
    if chosen is not None:
        go_to("events", event=newest["event_id"][chosen])


if __name__ == "__main__":
    page("Overview", _body)
