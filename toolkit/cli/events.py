"""`rail events channels` and `rail events open`, which need more than a declaration."""

from __future__ import annotations

import polars as pl
import typer

from toolkit.analyses import find
from toolkit.cards import counted, duration
from toolkit.cli.options import OneFamily, StoredWindow, asks, with_help
from toolkit.cli.output import TableOptions, show, tabled
from toolkit.cli.show import print_findings
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError
from toolkit.market import EventFamily, EventLog
from toolkit.show.sheet import Name, Sheet
from toolkit.store import (
    ARCHIVE,
    Store,
    clock_offset_s,
    event_logs,
    held_stretches,
    read_deliveries,
)
from toolkit.workspace import Settings
from toolkit.workspace.events.event_selection import event_window, open_events

_CHANNELS = find("events.channels")
_SHOWN = ("t_open", "duration_s", "size", "peak", "n", "since", "event")
_OPEN = schema_of(
    also=("family", "symbol", "legs", "event", "kind", *_SHOWN[:4], "n", "since", "known_until")
)
_CLOCK_S = 2  # clocks that are read to the second may seem so far apart


def channels_command(family: OneFamily = None, *, within: StoredWindow, view: TableOptions) -> None:
    """Compare the channels of a store's event documents."""
    held, wanted = view.opened(within), [family] if family else list(EventFamily)
    asked = event_window(held, within.start, within.end, names=("--start", "--end"))
    with held.reading():
        came = pl.concat(held.arrivals(one, asked) for one in wanted)
        opened = _opened(held)
    names = came["channel"].unique().sort().to_list()
    if not names:
        raise EmptyWindowError(f"no event in {asked}")
    notes = _notes(held)
    if len(names) > 1:
        found = _CHANNELS.function(came, *asked, held=opened)
    else:
        found = pl.DataFrame(schema=_CHANNELS.schema())
        others = "rail follow and rail webhook bring events by other channels"
        notes.append(f"all events came by {names[0]}, with nothing to compare; {others}")
    title = f"{_CHANNELS.title_for({'channels': ' and by '.join(names)})} over {asked}"
    columns, result = _CHANNELS.columns_in(found.columns), _CHANNELS.result
    label = held.source.label
    show(view, Sheet(title, label, found, columns, window=asked, notes=notes, result=result))


def _opened(store: Store) -> pl.DataFrame:
    ledger = store.ledger([EventLog(each) for each in EventFamily])
    archived = held_stretches(ledger, event_logs(store.catalogue()))
    others = store.channels_open()
    return pl.concat(
        [archived.with_columns(channel=pl.lit(ARCHIVE)).select(others.columns), others]
    )


def _notes(store: Store) -> list[str]:
    notes, delivered = [], read_deliveries(store).drop_nulls("family").height
    if delivered:
        made = counted(delivered, "delivery", "deliveries")
        notes.append(f"webhooks made {made} of events at any time, a repeated id counted once")
    ahead_s = clock_offset_s(store.catalogue(), store.loads())
    if abs(ahead_s) > _CLOCK_S:
        which = "ahead of" if ahead_s > 0 else "behind"
        notes.append(
            f"the service's clock was {duration(abs(ahead_s))} {which} this machine's, and the "
            "latencies are that much off"
        )
    return notes


@asks(
    family=typer.Argument(help="spread, splash or funding."),
    back="How far back to look: 10m, 2h, 7d, at most 30d.",
)
def open_command(
    family: EventFamily,
    back: str = "7d",
    base_url: str | None = None,
    allow_http: bool = False,
    *,
    view: TableOptions,
) -> None:
    """Show the events that are open now, by the service's filter. Nothing is stored.

    An event that opened before --back is shown without its opening, if it was updated since. Times
    are UTC, by the service's clock. Events that the plan delays do not show as open yet.
    `rail events survival` counts the open events in the store.

    Example: rail events open funding --back 3d
    """
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    with settings.client() as client:
        found = open_events(client, family, back)
        profile = client.profile()
    label = profile.source.label if profile.source else "Source not stated"
    columns: list[Name] = [("symbol", "legs"), *_SHOWN]
    heading = f"{found.rows.height:,} {family} events open, of those seen in {found.window}"
    rows = found.rows.select(list(_OPEN))
    show(view, Sheet(heading, label, rows, columns, window=found.window))
    print_findings(found.findings.items(), profile)


by_hand = typer.Typer(rich_markup_mode=None)
_of_channels = with_help(channels_command, _CHANNELS, "events channels")
by_hand.command("channels", short_help=_CHANNELS.sentence)(
    tabled(_CHANNELS.schema, of_now=True)(_of_channels)
)
by_hand.command("open", short_help=(open_command.__doc__ or "").partition("\n")[0])(
    tabled(lambda: _OPEN, of_now=True)(open_command)
)
