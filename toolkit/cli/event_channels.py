"""`rail events channels`: two stores of one service, each fed by another channel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from toolkit.cards import counted, duration
from toolkit.cli.event_logs import event_window, key_column
from toolkit.cli.options import End, Start, StorePath, check_times
from toolkit.cli.tables import Sheet, TableColumn, TableOptions, show
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog
from toolkit.statistics import events as event_statistics
from toolkit.statistics.conditions import Schema
from toolkit.store import (
    Store,
    clock_offset_s,
    event_logs,
    held_stretches,
    read_deliveries,
)
from toolkit.workspace import named_store

_CLOCK_S = 2
"""How far two clocks may seem apart that are read to the second."""

_COLUMNS = (
    TableColumn("came", "n", "count"),
    TableColumn("lost", "n_lost", "count"),
    TableColumn("share", "lost_share", "share"),
    TableColumn("95 % from", "lost_share_lower", "share"),
    TableColumn("to", "lost_share_upper", "share"),
    TableColumn("half within", "latency_median_s", "s"),
    TableColumn("95 % within", "latency_q95_s", "s"),
    TableColumn("first", "n_first", "count"),
    TableColumn("of both", "n_compared", "count"),
    TableColumn("ahead, median", "lead_median_s", "s"),
    TableColumn("early", "n_early", "count"),
    TableColumn("both open", "coverage", "share"),
)


def channel_columns() -> Schema:
    """Return the columns of channels."""
    none = {"family": pl.String, "event_id": pl.String, "event_type": pl.String}
    frame = pl.DataFrame(schema=none | dict.fromkeys(("ts_ms", "arrived_ms"), pl.Int64))
    return dict(event_statistics.channels({"a": frame, "b": frame}, 0, 1).schema)


def channels_command(
    other: Annotated[
        Path, typer.Argument(metavar="OTHER", help="The store that another channel fed.")
    ],
    family: Annotated[
        EventFamily | None, typer.Option("--family", help="Of this family alone.")
    ] = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    *,
    view: TableOptions,
) -> None:
    """Print what each of two channels lost, how late it was, and which was first.

    A store keeps the first arrival of a document by any channel. So feed two stores of one service,
    one by `rail follow` or `rail sync`, the other by `rail webhook`. A document counts where both
    were open: where the log is held, and of webhooks from the first document to the last. Times are
    those of commits, by this machine's clock, in whole seconds. A sync brings a log as late as you
    call it.

    Before: cp rail.duckdb hooks.duckdb

    Example: rail events channels hooks.duckdb
    """
    check_times(start, end)
    stores = {each.path.stem: each for each in (named_store(store), named_store(other))}
    if len(stores) < 2:
        raise InputError("OTHER", str(other), "a store of another name than --store")
    first, second = stores.values()
    if first.source != second.source:
        raise InputError("OTHER", second.source.label, f"a store of {first.source.label}")
    windows = [event_window(each, start, end) for each in stores.values()]
    asked = Interval(min(w.start for w in windows), max(w.end for w in windows))
    families = [family] if family else list(EventFamily)
    came = {
        name: pl.concat([each.arrivals(one, asked) for one in families])
        for name, each in stores.items()
    }
    if all(frame.is_empty() for frame in came.values()):
        raise EmptyWindowError(f"no event of either store in {asked}")
    held = pl.concat([_held(name, each) for name, each in stores.items()])
    found = event_statistics.channels(came, *asked, held=held)
    heading = f"When events came by {' and by '.join(stores)} over {asked}"
    notes = [note for name, each in stores.items() for note in _notes(name, each, came[name])]
    columns = [key_column(["family", "channel"]), *_COLUMNS]
    show(view, Sheet(heading, first.source.label, found, columns, window=asked, notes=notes))


def _held(name: str, store: Store) -> pl.DataFrame:
    """Return when a store's logs are held, of those that the service answered for."""
    with store.reading():
        logs = event_logs(store.catalogue())
        held = held_stretches(store.ledger([EventLog(each) for each in EventFamily]), logs)
    return held.with_columns(pl.lit(name).alias("channel"))


def _notes(name: str, store: Store, came: pl.DataFrame) -> list[str]:
    """Write what is known of a channel beside the table: repeats of webhooks, and its clock."""
    notes, hooked = [], came.filter(brought_by="webhook").height
    if hooked:
        told = counted(read_deliveries(store).drop_nulls("family").height, "delivery", "deliveries")
        brought = counted(hooked, "document")
        notes.append(
            f"{name}: webhooks made {told} of events at any time, a repeated id counted once; "
            f"{brought} of this window came so"
        )
    ahead_s = clock_offset_s(store.catalogue(), store.loads())
    if abs(ahead_s) > _CLOCK_S:
        which = "ahead of" if ahead_s > 0 else "behind"
        notes.append(
            f"{name}: the service's clock was {duration(abs(ahead_s))} {which} this machine's, and "
            "the latencies are that much off"
        )
    return notes
