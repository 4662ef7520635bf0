"""`rail symbols`: what the service lists."""

from __future__ import annotations

from collections import Counter

import polars as pl
import typer

from toolkit.cards import counted
from toolkit.cli.options import asks
from toolkit.cli.show import errors, print_findings
from toolkit.cli.tables import TableOptions, show, tabled
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError
from toolkit.show.sheet import Sheet
from toolkit.workspace import Settings

SYMBOLS = schema_of(also=("symbol", "n_legs", "legs"))
"""The columns of a symbol's row. Its legs are separated by blanks."""

_COLUMNS = ("symbol", "n_legs", "legs")


@tabled(lambda: SYMBOLS, of_now=True)
@asks(text=typer.Argument(help="Part of a symbol's name. Default: all symbols."))
def symbols_command(
    text: str = "", base_url: str | None = None, allow_http: bool = False, *, view: TableOptions
) -> None:
    """Show the symbols that the service lists, each with its legs.

    The key of a price is the symbol, a colon and a leg.

    Example: rail symbols BTC

    Example: rail symbols --where "legs like '%KRAKEN.spot%'" --sort -n_legs
    """
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    with settings.client() as client:
        listing = client.symbols(text)
        profile = client.profile()
    if not listing.legs:
        raise EmptyWindowError(f"the service lists no symbol with {text!r} in its name")
    rows = [
        (str(symbol), len(traded), " ".join(map(str, sorted(traded))))
        for symbol, traded in sorted(listing.legs.items())
    ]
    legs = counted(sum(map(len, listing.legs.values())), "leg")
    heading = f"{counted(len(rows), 'symbol')}, {legs}"
    label = profile.source.label if profile.source else "Source not stated"
    frame = pl.DataFrame(rows, schema=dict(SYMBOLS), orient="row")
    show(view, Sheet(heading, label, frame, _COLUMNS))
    print_findings(Counter(listing.findings).items(), profile)
    if listing.truncated:
        errors.print("the service holds more symbols than it lists at once; name a part of one")
