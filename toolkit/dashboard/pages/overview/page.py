"""The page Overview: counts, matters that need attention, and recent events."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from streamlit import cache_data

from toolkit.cards import counted, duration
from toolkit.charts import activity_chart
from toolkit.dashboard.link import go_to, page_file
from toolkit.dashboard.loads import LOGS, RATES, WATCHLIST, offer
from toolkit.dashboard.open_stream import open_pair, show_failed
from toolkit.dashboard.pages.overview.spreads import OpenNow, open_now, show_spreads
from toolkit.dashboard.parts.answers import high_rate_notes, show_implausible
from toolkit.dashboard.parts.event_reading import log_days, read_documents, read_lately
from toolkit.dashboard.parts.event_tables import (
    Count,
    count_events,
    document_columns,
    logs_that_end,
    newest_events,
    open_events,
)
from toolkit.dashboard.parts.lately import sign_columns
from toolkit.dashboard.parts.rows import RowColumn, opened_key, row_column, show_rows
from toolkit.dashboard.reading import StoreState, read_coverage, read_snapshot
from toolkit.dashboard.shell import PageShell, draw, page, show_metric
from toolkit.dashboard.widgets import Container, st
from toolkit.errors import StoreError, StoreLockedError
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Family
from toolkit.statistics.events.documents import opens
from toolkit.store import Store
from toolkit.store.reading.lookup import soonest_losses
from toolkit.tables import GapStatus, LedgerState
from toolkit.wire.rows.snapshot_rows import activity_of_day, snapshot_items
from toolkit.workspace.snapshot_tables import funding_rates, held_stream, widest_differentials

_SHOWN = 50
_HELP = Markdown(
    "Short the leg with the highest rate, long the one with the lowest. **differential APR**: the "
    "difference of the rates in force, annualised without compounding. **sign**: ● steady, the "
    "difference had this sign in 90 % of the stored part of the last 30 days; ◐ mostly, in 60 %; "
    "○ unsteady, in less. **APR, 7 d**: means of 8 h."
)


def show_funding(shell: PageShell, rates: tuple[int, str] | None) -> None:
    """Show the table."""
    heading = Markdown("**Widest funding differences**")
    if rates is None:
        st.markdown(heading)
        offer(shell.held, Markdown("No funding overview is stored."), RATES)
        return
    at, document = rates
    if words := snapshot_items("funding", document).words:
        st.warning(Markdown("The overview of {}: {}.").format(shell.moment(at), words))
    kept = shell.kept(funding_rates(document))
    apart = pl.col("differential_apr_pct") > 0
    widest = widest_differentials(kept).filter(apart).head(_SHOWN)
    if widest.is_empty():
        st.markdown(heading)
        if not words:
            none = Markdown("The overview of {} has no symbol with two different rates.")
            st.caption(none.format(shell.moment(at)))
        return
    st.markdown(Markdown("{} · rates in force at {}").format(heading, shell.moment(at)), help=_HELP)
    show_rows(
        Markdown("Funding rates, the largest difference first"),
        widest["trajectory"].to_list(),
        _columns(shell, widest),
        "apart",
    )
    show_implausible(high_rate_notes(kept))


def _columns(shell: PageShell, widest: pl.DataFrame) -> list[RowColumn]:
    held = set(shell.held.streams.filter(pl.col("rows") > 0)["stream"])
    found = [held_stream(key, held) or ("", False) for key in widest["trajectory"]]
    legs = [f"{sell} → {buy}" for sell, buy in widest.select("sell", "buy").iter_rows()]
    sign, _, line = sign_columns(shell.held, found, few=_FEW_WORDS)
    return [
        row_column(widest, "symbol"),
        RowColumn("short_long", "text", legs),
        row_column(widest, "differential_apr_pct"),
        sign,
        line,
    ]


_FEW_WORDS = "fewer than two days are stored: open it to load it"
_WEEK_S = 604_800
_HOUR_S = 3_600
_NEWEST_SHOWN = 10
_CHART_PX = 210


def show_events(
    shell: PageShell, window: Interval, events: pl.DataFrame, lifecycles: pl.DataFrame
) -> None:
    """Show the events of a day."""
    heading = Markdown("**Events**")
    if shell.held.logs.is_empty():
        st.markdown(heading)
        offer(shell.held, Markdown("No event log is stored."), LOGS)
        return
    of_day = shell.kept(events.filter(pl.col("ts") >= window.start))
    newest = newest_events(of_day, _NEWEST_SHOWN)
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
            columns = document_columns(newest, lifecycles, shell.timezone)
            ids = newest["event_id"].to_list()
            show_rows(Markdown("The newest events"), ids, columns, "newest")


def counted_words(of_day: pl.DataFrame) -> str:
    """Format how many events opened, and how many older ones changed or closed.

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
    draw(figure.update_layout(height=_CHART_PX), key="activity")
    if before is None:
        st.caption(Markdown("The same hours of the week before are not stored."))


def _show_counted(shell: PageShell) -> None:
    held = shell.held
    answer = read_snapshot(held.path, "activity", version=held.version)
    if answer is None:
        return
    at, document = answer
    counts = activity_of_day(document)
    if counts is None:
        st.caption(Markdown("The service's own count of events was not understood."))
        return
    day = Interval(at - _DAY_S, at)  # deliveries may be newer than what a log was asked for
    kept = read_documents(held, day).filter(pl.col("ts") >= day.start)
    ours = dict(kept.group_by("family").len().iter_rows())
    parts = [
        Markdown("{} {:,} ({:,})").format(family, count, ours.get(family.value, 0))
        for family, count in counts.items()
    ]
    words = Markdown("Documents{} in the 24 h to {} by the service's count (in the store): {}.")
    whole = Markdown(" of all symbols") if shell.symbols else Markdown("")
    st.caption(words.format(whole, shell.moment(at), Markdown(", ").join(parts)))


def week_before(held: StoreState, events: pl.DataFrame, window: Interval) -> pl.DataFrame | None:
    """Select the events of the same hours a week earlier, their times moved into ``window``.

    None unless all stored logs were answered for those hours.
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


_LATE_S = 300
_KEEP_S = 300
_LEAST_QUOTA = 0.1


def show_attention(held: StoreState) -> None:
    """Show the matters that need attention, if any."""
    lines = [*behind_words(held.streams), *lost_words(held), *quota_words(held.loads)]
    if not lines:
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.markdown(Markdown(":orange[**⚠**] {}").format(Markdown(" · ").join(lines)))
        st.page_link(page_file("health"), label=Markdown("Data health"))


def behind_words(streams: pl.DataFrame) -> list[Markdown]:
    """Count the streams that end long before the newest of their kind.

    The limit is five minutes above the plan's delay, at least two steps.
    """
    rows = streams.filter(pl.col("kind").is_in(list(Family))).drop_nulls("last_ts")
    late_s = pl.max_horizontal(
        _LATE_S + pl.col("delay_s").fill_null(0), 2 * pl.col("step_s").fill_null(0)
    )
    behind = rows.with_columns(
        behind_s=pl.col("last_ts").max().over("kind") - pl.col("last_ts")
    ).filter(pl.col("behind_s") > late_s)
    if behind.is_empty():
        return []
    worst = behind.sort("behind_s", "stream", descending=[True, False]).row(0, named=True)
    return [
        Markdown("{:,} of {:,} streams {} behind the others, {} by {}").format(
            behind.height,
            rows.height,
            "is" if behind.height == 1 else "are",
            markdown(worst["stream"]),
            duration(worst["behind_s"]),
        )
    ]


def lost_words(held: StoreState) -> list[Markdown]:
    """Count the streams that lose data from the service's archive within a day, and open gaps."""
    leaving, soonest_s, open_gaps = _gaps(held.path, (held.as_of or 0) // _KEEP_S)
    words = []
    if leaving:
        lost = Markdown("gaps of {} leave the archive within a day, the first in {}")
        words.append(lost.format(counted(leaving, "stream"), duration(soonest_s)))
    if open_gaps:
        unfilled = Markdown("{} of live capture not filled yet")
        words.append(unfilled.format(counted(open_gaps, "gap")))
    return words


@cache_data(ttl=_KEEP_S, max_entries=4, show_spinner=False)
def _gaps(path: Path, moment: int) -> tuple[int, int, int]:
    """Count the streams that lose data within a day, how soon (s), and the gaps of capture.

    ``moment`` changes every five minutes.
    """
    del moment
    store = Store(path, wait_s=3.0)
    with store.reading():
        ledger = store.ledger()
        lost = store.gaps().filter(status=GapStatus.OPEN.value).height
    soonest = soonest_losses(ledger, _DAY_S).values()
    return len(soonest), min(soonest, default=0), lost


def quota_words(loads: pl.DataFrame) -> list[Markdown]:
    """Name the quota if less than a tenth of it is left.

    >>> quota_words(pl.DataFrame({"quota_left": [5], "quota": [600]}))
    ['5 of 600 requests left of the quota']
    >>> quota_words(pl.DataFrame({"quota_left": [500], "quota": [600]}))
    []
    """
    named = loads.drop_nulls(["quota_left", "quota"]).head(1)
    return [
        Markdown("{:,} of {:,} requests left of the quota").format(left, quota)
        for left, quota in named.select("quota_left", "quota").iter_rows()
        if left < _LEAST_QUOTA * quota
    ]


_DAY_S = 86_400
_TABLE_LEAST_PX = 460
_OPEN = "spreads_open"


def _body(shell: PageShell) -> None:
    held = shell.held
    if held.streams.is_empty():
        offer(held, Markdown("{} is empty.").format(markdown(held.place)), WATCHLIST)
        return
    with st.container(gap="xsmall"):
        _show_market(shell)


def _show_market(shell: PageShell) -> None:
    held = shell.held
    _open_row(shell, st.container())
    days = log_days(held)
    events, lifecycles = read_lately(held)
    known = days.get(EventFamily.SPREAD)
    spreads = read_snapshot(held.path, "spread", version=held.version)
    opened = open_events(events, lifecycles, EventFamily.SPREAD)
    newest = open_now(spreads, opened, known and known.end)
    newest = newest and newest.kept(shell.kept)
    counts = count_events(shell.kept(events), shell.kept(lifecycles), days)
    _show_figures(shell, newest, days, counts)
    show_attention(held)
    with st.grid(2, min_column_width=_TABLE_LEAST_PX):
        with st.container():
            show_spreads(shell, newest)
        with st.container():
            show_funding(shell, read_snapshot(held.path, "funding", version=held.version))
    end = max((day.end for day in days.values()), default=0)
    show_events(shell, Interval(end - _DAY_S, end), events, lifecycles)


def _open_row(shell: PageShell, place: Container) -> None:
    if (event := opened_key("newest")) is not None:
        go_to("events", event=event)
    pair = opened_key("open") or opened_key("suspect") or opened_key("apart")
    if pair is None:
        show_failed(place)
    else:
        open_pair(shell, pair, place)


def _show_figures(
    shell: PageShell, newest: OpenNow | None, days: dict[str, Interval], counts: list[Count]
) -> None:
    with st.container(horizontal=True, gap="medium", key="counts"):
        asked = Markdown("The service's list was not requested yet.")
        if newest:
            asked = Markdown(
                "By the newest stored answer, the service's list or its event log, of {}."
            ).format(shell.moment(newest.at))
        show_metric({_OPEN: None}, _OPEN, text=newest.count if newest else None, sign=asked)
        by_family = {count.family: count for count in counts}
        for family in EventFamily:
            count, name = by_family.get(family), f"{family}_opened"
            if count is None:
                show_metric({name: None}, name, sign=Markdown("This log was not requested yet."))
                continue
            of = Markdown(
                "Events that opened in the 24 h to {}, beside those of the 24 h before; the "
                "log has n = {:,} documents of that time."
            ).format(shell.moment(days[family].end), count.documents)
            show_metric({name: count.events}, name, count.events - count.before, sign=of)


if __name__ == "__main__":
    page(Markdown("Overview"), _body)
