"""The page that opens first: open spreads, rates far apart, and recent events."""

from __future__ import annotations

from toolkit.dashboard.loads import WATCHLIST, offer
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.opening import open_pair, show_failed
from toolkit.dashboard.pages.overview.attention import show_attention
from toolkit.dashboard.pages.overview.events import show_events
from toolkit.dashboard.pages.overview.funding import show_funding
from toolkit.dashboard.pages.overview.open_now import OpenNow, open_now
from toolkit.dashboard.pages.overview.spreads import show_spreads
from toolkit.dashboard.parts.event_reading import log_days, read_lately
from toolkit.dashboard.parts.event_tables import Count, count_events, open_events
from toolkit.dashboard.parts.rows import opened_key
from toolkit.dashboard.reading import read_snapshot
from toolkit.dashboard.screen import Screen, st
from toolkit.dashboard.shell import PageShell, page, show_metric
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily

_DAY_S = 86_400
_TABLE_LEAST_PX = 460
_OPEN = "spreads_open"


def _body(shell: PageShell) -> None:
    held = shell.held
    if held.streams.is_empty():
        offer(held, Markdown("{} holds nothing yet.").format(markdown(held.place)), WATCHLIST)
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


def _open_row(shell: PageShell, place: Screen) -> None:
    event = opened_key("newest")
    if event is not None:
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
                "By the newest answer that is held, the service's list or its event log, of {}."
            ).format(shell.moment(newest.at))
        show_metric({_OPEN: None}, _OPEN, text=newest.count if newest else None, sign=asked)
        counted = {count.family: count for count in counts}
        for family in EventFamily:
            count, name = counted.get(family), f"{family}_opened"
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
