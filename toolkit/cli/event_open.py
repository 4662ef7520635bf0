"""`rail events open`: which events are open now, asked of the service."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.options import AllowHttp, BaseUrl
from toolkit.cli.show import print_findings
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.market import EventFamily
from toolkit.show.sheet import Name, Sheet
from toolkit.statistics.core.conditions import Schema
from toolkit.workspace import Settings
from toolkit.workspace.events.open_events import open_events

_COLUMNS = ("t_open", "duration_s", "size", "peak", "n", "since", "event")


def open_columns() -> Schema:
    """Return the columns of events that are open."""
    own = ("family", "symbol", "legs", "event", "kind", "t_open", "duration_s", "size", "peak")
    return schema_of(also=(*own, "n", "since", "known_until"))


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
    columns: list[Name] = [("symbol", "legs"), *_COLUMNS]
    heading = f"{found.rows.height:,} {family} events open, of those seen in {found.window}"
    rows = found.rows.select(list(open_columns()))
    show(view, Sheet(heading, label, rows, columns, window=found.window))
    print_findings(found.findings.items(), profile)
