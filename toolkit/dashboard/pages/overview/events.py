"""A section of the front page: the events of a day, by the hour and one by one."""

from __future__ import annotations

import polars as pl

from toolkit.charts import activity_chart
from toolkit.dashboard.loads import LOGS, offer
from toolkit.dashboard.parts.event_reading import read_documents
from toolkit.dashboard.parts.event_tables import document_columns, logs_that_end, newest_events
from toolkit.dashboard.parts.rows import show_rows
from toolkit.dashboard.reading import Held, read_coverage, read_snapshot
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, draw
from toolkit.errors import StoreError, StoreLockedError
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog
from toolkit.statistics.events.documents import opens
from toolkit.tables import LedgerState
from toolkit.wire.rows.snapshot_rows import activity_of_day

_DAY_S, _WEEK_S = 86_400, 604_800
_HOUR_S = 3_600
_SHOWN = 10
_CHART_PX = 210


def show_events(
    shell: PageShell, window: Interval, events: pl.DataFrame, lifecycles: pl.DataFrame
) -> None:
    """Show the events of a day."""
    heading = Markdown("**Events**")
    if shell.held.logs.is_empty():
        st.markdown(heading)
        offer(shell.held, Markdown("No event log is held."), LOGS)
        return
    of_day = shell.kept(events.filter(pl.col("ts") >= window.start))
    newest = newest_events(of_day, _SHOWN)
    words = Markdown("{} · {} in the 24 h to {}").format(
        heading, Markdown.harmless(counted_words(of_day)), shell.moment(window.end)
    )
    if ended := logs_that_end(shell.held.logs, window.end, shell.timezone):
        words = Markdown("{}. {}").format(words, ended)
    st.markdown(words)
    if of_day.is_empty():
        st.caption(Markdown("No event opened, changed or closed in these 24 h."))
        _show_counted(shell)
        return
    with st.grid(2, min_column_width=480):
        with st.container():
            _draw_hours(shell, window, of_day, week_before(shell.held, events, window))
            _show_counted(shell)
        with st.container():
            _list(shell, newest, lifecycles)


def counted_words(of_day: pl.DataFrame) -> str:
    """Say how many events opened, as the chart counts them, and how many older ones changed.

    >>> documents = pl.DataFrame({"family": ["spread"] * 3, "event": ["a", "a", "b"],
    ...     "event_type": ["spread.opened", "spread.closed", "spread.closed"]})
    >>> counted_words(documents)
    '1 opened, 1 older changed or closed'
    """
    opened = of_day.filter(opens())
    older = of_day.join(opened, on=["family", "event"], how="anti", nulls_equal=True)
    n_older = older.select("family", "event").n_unique()
    more = f", {n_older:,} older changed or closed" if n_older else ""
    return f"{opened.height:,} opened{more}"


def _draw_hours(
    shell: PageShell, window: Interval, of_day: pl.DataFrame, before: pl.DataFrame | None
) -> None:
    figure = activity_chart(
        of_day,
        start=window.start,
        end=window.end,
        source=shell.held.source,
        timezone=shell.timezone,
        before=None if before is None else shell.kept(before),
    )
    draw(figure.update_layout(height=_CHART_PX), key="activity", headed=False)
    if before is None:
        st.caption(Markdown("The same hours of the week before are not held."))


def _show_counted(shell: PageShell) -> None:
    held = shell.held
    answer = read_snapshot(held.path, "activity", version=held.version)
    if answer is None:
        return
    at, document = answer
    counted = activity_of_day(document)
    if counted is None:
        st.caption(Markdown("The service's own count of events was not understood."))
        return
    day = Interval(at - _DAY_S, at)  # deliveries may be newer than what a log was asked for
    kept = read_documents(held, day).filter(pl.col("ts") >= day.start)
    ours = dict(kept.group_by("family").len().iter_rows())
    parts = [
        Markdown("{} {:,} ({:,})").format(family, count, ours.get(family.value, 0))
        for family, count in counted.items()
    ]
    words = Markdown("Documents{} in the 24 h to {} as the service counts them (held): {}.")
    whole = Markdown(" of all symbols") if shell.symbols else Markdown("")
    st.caption(words.format(whole, shell.moment(at), Markdown(", ").join(parts)))


def week_before(held: Held, events: pl.DataFrame, window: Interval) -> pl.DataFrame | None:
    """Select the events of the same hours a week earlier, their times moved up to ``window``.

    None unless all the logs that are held were answered for there.
    """
    hours = Interval(window.start // _HOUR_S * _HOUR_S, -(-window.end // _HOUR_S) * _HOUR_S)
    earlier = Interval(hours.start - _WEEK_S, hours.end - _WEEK_S)
    for key in (EventLog(EventFamily(family)).key for family in held.logs["family"]):
        try:
            states = read_coverage(held.path, key, *earlier, version=held.versions[key])["state"]
        except StoreLockedError:
            raise
        except StoreError:  # it was never asked for: its documents were delivered
            return None
        if not states.is_in([LedgerState.HELD.value, LedgerState.EMPTY.value]).all():
            return None
    found = events.filter(pl.col("ts").is_between(*earlier, closed="left"))
    return found.with_columns(pl.col("ts") + _WEEK_S)


def _list(shell: PageShell, newest: pl.DataFrame, lifecycles: pl.DataFrame) -> None:
    columns = document_columns(newest, lifecycles, shell.timezone)
    show_rows(Markdown("The newest events"), newest["event_id"].to_list(), columns, "newest")
