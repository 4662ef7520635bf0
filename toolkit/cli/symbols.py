"""`rail symbols`: what the service lists."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.options import AllowHttp, BaseUrl
from toolkit.cli.show import console, errors, plain_table
from toolkit.errors import EmptyWindowError
from toolkit.workspace import Settings


def symbols_command(
    text: Annotated[str, typer.Argument(help="Part of a symbol's name; nothing lists all.")] = "",
    base_url: BaseUrl = None,
    allow_http: AllowHttp = False,
) -> None:
    """Show the symbols that the service lists, each with the legs it trades on.

    A symbol, a colon and a leg together are a price trajectory's key.

    Example: rail symbols BTC
    """
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    with settings.client() as client:
        listing = client.symbols(text)
        source = client.profile().source
    if not listing.legs:
        raise EmptyWindowError(f"the service lists no symbol with {text!r} in its name")
    legs = sum(map(len, listing.legs.values()))
    told = source.label if source else "Source not stated"
    console.print(f"{len(listing.legs)} symbols, {legs} legs · {told}")
    table = plain_table("symbol", "legs")
    table.columns[1].justify, table.columns[1].no_wrap = "left", False
    for symbol, traded in sorted(listing.legs.items()):
        table.add_row(str(symbol), "  ".join(map(str, sorted(traded))))
    console.print(table)
    for finding in listing.findings:
        errors.print(f"finding: {finding.kind}: {finding.says}")
    if listing.truncated:
        errors.print("the service holds more symbols than it lists at once; name a part of one")
