"""`rail events`: how long events last, how often they open, how large they are, what followed."""

from __future__ import annotations

import polars as pl
import typer

from toolkit.analyses import find
from toolkit.cards import counted, duration
from toolkit.cli.analyses import Events, with_help
from toolkit.cli.event_commands import OneFamily
from toolkit.cli.event_open import open_columns, open_command
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions, tabled
from toolkit.cli.tables import show
from toolkit.errors import EmptyWindowError
from toolkit.market import EventFamily, EventLog
from toolkit.show.sheet import Sheet
from toolkit.store import (
    ARCHIVE,
    Store,
    clock_offset_s,
    event_logs,
    held_stretches,
    read_deliveries,
)
from toolkit.workspace.events.event_selection import event_window

CHANNELS = find("events.channels")
_CLOCK_S = 2
"""How far two clocks may seem apart that are read to the second."""


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
        found = CHANNELS.function(came, *asked, held=opened)
    else:
        found = pl.DataFrame(schema=CHANNELS.schema())
        others = "rail follow and rail webhook bring events by other channels"
        notes.append(f"all events came by {names[0]}, with nothing to compare; {others}")
    title = CHANNELS.title_for({"channels": " and by ".join(names)})
    columns = CHANNELS.columns_in(found.columns)
    sheet = Sheet(
        f"{title} over {asked}",
        held.source.label,
        found,
        columns,
        window=asked,
        notes=notes,
        result=CHANNELS.result,
    )
    show(view, sheet)


def _opened(store: Store) -> pl.DataFrame:
    """Return when the channels of a store were open."""
    ledger = store.ledger([EventLog(each) for each in EventFamily])
    archived = held_stretches(ledger, event_logs(store.catalogue()))
    others = store.channels_open()
    return pl.concat(
        [archived.with_columns(channel=pl.lit(ARCHIVE)).select(others.columns), others]
    )


def _notes(store: Store) -> list[str]:
    """Write what is known of the channels beside the table: repeats of webhooks, and the clock."""
    notes, told = [], read_deliveries(store).drop_nulls("family").height
    if told:
        made = counted(told, "delivery", "deliveries")
        notes.append(f"webhooks made {made} of events at any time, a repeated id counted once")
    ahead_s = clock_offset_s(store.catalogue(), store.loads())
    if abs(ahead_s) > _CLOCK_S:
        which = "ahead of" if ahead_s > 0 else "behind"
        notes.append(
            f"the service's clock was {duration(abs(ahead_s))} {which} this machine's, and the "
            "latencies are that much off"
        )
    return notes


app = typer.Typer(cls=Events, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Print how long events last, how often they open, how large they are, and what followed."""


of_channels = with_help(channels_command, CHANNELS, "events channels")
app.command("channels")(tabled(CHANNELS.schema, of_now=True)(of_channels))
app.command("open")(tabled(open_columns, of_now=True)(open_command))
