"""`rail events channels`: the ways by which a store's event documents came."""

from __future__ import annotations

import polars as pl

from toolkit.cards import counted, duration
from toolkit.cli.event_logs import OneFamily, event_store, families
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError
from toolkit.market import EventFamily, EventLog
from toolkit.show.sheet import Name, Sheet
from toolkit.statistics import events as event_statistics
from toolkit.statistics.conditions import Schema
from toolkit.store import (
    ARCHIVE,
    Store,
    clock_offset_s,
    event_logs,
    held_stretches,
    read_deliveries,
)

_CLOCK_S = 2
"""How far two clocks may seem apart that are read to the second."""

_COLUMNS = (
    "n",
    "n_doubled",
    "n_lost",
    "lost_share",
    "lost_share_lower",
    "lost_share_upper",
    "latency_median_s",
    "latency_q95_s",
    "n_first",
    "n_compared",
    "lead_median_s",
    "n_early",
    "coverage",
)


def channel_columns() -> Schema:
    """Return the columns of channels."""
    return schema_of("events.channels")


def channels_command(
    family: OneFamily = None,
    *,
    within: StoredWindow,
    view: TableOptions,
) -> None:
    """Print what the archive, sockets and webhooks each lost or doubled, and how late they were.

    A store notes by which channels each event document came. So feed it by several: by `rail sync`
    or `rail follow`, which asks the archive too, and by `rail webhook`. A document counts where
    both channels were open: where the log of the archive is held, and of others from the first
    document of a run to its last. Latencies are by this machine's clock. A sync brings a log as
    late as you call it.

    Example: rail events channels
    """
    held, asked = event_store(view, within)
    with held.reading():
        came = pl.concat(held.arrivals(one, asked) for one in families(family))
        opened = _opened(held)
    names = came["channel"].unique().sort().to_list()
    if not names:
        raise EmptyWindowError(f"no event in {asked}")
    notes = _notes(held)
    if len(names) > 1:
        found = event_statistics.channels(came, *asked, held=opened)
    else:
        found = pl.DataFrame(schema=channel_columns())
        others = "rail follow and rail webhook bring events by other channels"
        notes.append(f"all events came by {names[0]}, with nothing to compare; {others}")
    heading = f"When events came by {' and by '.join(names)} over {asked}"
    columns: list[Name] = [("family", "channel", "other"), *_COLUMNS]
    sheet = Sheet(heading, held.source.label, found, columns, window=asked, notes=notes)
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
