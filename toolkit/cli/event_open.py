"""`rail events open`: which events are open now, asked of the service."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from toolkit.cli.event_logs import NO_LIVES, key_column
from toolkit.cli.options import AllowHttp, BaseUrl
from toolkit.cli.show import print_findings
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import Sheet, TableColumn, show
from toolkit.market import EventFamily
from toolkit.statistics.conditions import Schema
from toolkit.workspace import Settings
from toolkit.workspace.open_events import open_events

_COLUMNS = (
    TableColumn("opened", "t_open", "time"),
    TableColumn("open for", "duration_s", "s"),
    TableColumn("at the opening %", "size", "%"),
    TableColumn("largest %", "peak", "%"),
    TableColumn("documents", "n", "count"),
    TableColumn("first seen", "since", "time"),
    TableColumn("event", "event", "text"),
)


def open_columns() -> Schema:
    """Return the columns of events that are open."""
    kept = NO_LIVES.select("family", "symbol", "legs", "event", "kind", "t_open", "duration_s")
    return {
        **kept.schema,
        **dict.fromkeys(("size", "peak"), pl.Float64()),
        **dict.fromkeys(("n", "since", "known_until"), pl.Int64()),
    }


def open_command(
    family: Annotated[EventFamily, typer.Argument(help="spread, splash or funding.")],
    back: Annotated[
        str, typer.Option("--back", help="How far back to look: 10m, 2h, 7d, at most 30d.")
    ] = "7d",
    base_url: BaseUrl = None,
    allow_http: AllowHttp = False,
    *,
    view: TableOptions,
) -> None:
    """Show which events are open now, asked of the service by its filter. Nothing is stored.

    An event that opened before --back is shown where it was updated since, without its opening.
    Times are UTC, by the service's clock. What the plan delays is not open yet. What the store
    holds of open events is in `rail events survival`.

    Example: rail events open funding --back 3d
    """
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    with settings.client() as client:
        found = open_events(client, family, back)
        profile = client.profile()
    label = profile.source.label if profile.source else "Source not stated"
    columns = [key_column(["symbol", "legs"]), *_COLUMNS]
    heading = f"{found.rows.height:,} {family} events open, of those seen in {found.window}"
    rows = found.rows.select(list(open_columns()))
    show(view, Sheet(heading, label, rows, columns, window=found.window))
    print_findings(found.findings.items(), profile)
