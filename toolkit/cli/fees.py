"""`rail fees`: the fee table, what is missing from it for the store, and an example."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl
import typer

from toolkit.cli.options import CostOptions, asks
from toolkit.cli.output import TableOptions, show, tabled
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError
from toolkit.market import Leg, SnapshotTrajectory, Stream, Trajectory, format_ts
from toolkit.show.sheet import Sheet
from toolkit.statistics.fees.fee_table import EXAMPLE_EXCHANGES, RATES, FeeModel, example_text
from toolkit.store import Store, service_clock, sync_advice
from toolkit.workspace import named_store
from toolkit.workspace.answers import Costs

_FEES = schema_of(
    also=(
        *("leg", "streams", "taker_bps", "maker_bps", "slippage_bps", "gas_quote"),
        *("withdraw_quote", "tier", "valid_from", "valid_to"),
        *("lacks", "fee_model", "fee_model_hash"),
    )
)
_COLUMNS = (
    *("leg", "streams", "taker_bps", "maker_bps", "slippage_bps", "lacks", "gas_quote"),
    *("tier", "valid_from", "valid_to", "withdraw_quote"),
)
_Legs = Sequence[Trajectory | SnapshotTrajectory]


@tabled(lambda: _FEES, of_now=True)
@asks(example="Print a fee table for the store's exchanges, to edit.")
def fees_command(
    example: bool = False, store: Path | None = None, *, asked: CostOptions, view: TableOptions
) -> None:
    """Show the fee table in force by leg, and what it lacks for the streams in the store.

    The table is yours: no fee is built in, and one that it does not state is unknown. It is the
    file of --fees, else the one that rail.toml names by fees = "fees.toml". A leg lacks what the
    style needs now, by the service's clock.

    Before: rail fees --example > fees.toml

    Example: rail fees --fees fees.toml --style maker

    Example: rail fees --example
    """
    held = named_store(store)
    streams = _streams(held)
    if example:
        exchanges = sorted({leg.exchange for stream in streams for leg in stream.legs})
        typer.echo(example_text(exchanges or EXAMPLE_EXCHANGES), nl=False)
        return
    costs = asked.needed(held)
    if not streams:
        advice = sync_advice(held, "--watchlist", does="loads some")
        raise EmptyWindowError(f"{held.name} holds no stream that has legs; {advice}")
    now = service_clock(held)
    rows = pl.DataFrame(_lines(costs, streams, now), schema=dict(_FEES), orient="row")
    lacking = rows["lacks"].ne("").sum()
    heading = f"Fee table {costs.fees.label} at {format_ts(now)}"
    notes = [f"{lacking} of {rows.height} legs lack what style {costs.style} needs"]
    show(view, Sheet(heading, held.source.label, rows, _COLUMNS, notes=notes))


def _streams(store: Store) -> _Legs:
    if not store.path.exists():
        return []
    keys = map(Stream.parse, store.catalogue()["stream"])
    return [each for each in keys if isinstance(each, Trajectory | SnapshotTrajectory)]


def _lines(costs: Costs, streams: _Legs, at: int) -> Iterable[tuple[object, ...]]:
    fees = costs.fees
    for leg in sorted({leg for stream in streams for leg in stream.legs}, key=str):
        mine = [stream for stream in streams if leg in stream.legs]
        fee = fees.in_force(leg, at)
        lacks = fees.lacking_of(leg, *dict.fromkeys(RATES[costs.style]), at=at)
        if costs.style == "transfer" and fee is not None:
            lacks += _withdrawals(fees, leg, mine, at)
        stated = dict(fee.withdraw_quote) if fee else {}
        yield (
            str(leg),
            len(mine),
            *(getattr(fee, name, None) for name in list(_FEES)[2:6]),
            " ".join(f"{asset} {amount:g}" for asset, amount in stated.items()),
            *(getattr(fee, name, None) for name in ("tier", "valid_from", "valid_to")),
            ", ".join(lack.removesuffix(f" of {leg}") for lack in lacks),
            fees.name,
            fees.hash,
        )


def _withdrawals(fees: FeeModel, leg: Leg, streams: _Legs, at: int) -> list[str]:
    bought = [stream for stream in streams if len(stream.legs) == 2 and stream.buy == leg]
    lacks = {lack for each in bought for lack in fees.lacking(each, "transfer", at=at)}
    return sorted(lack for lack in lacks if lack.startswith(("withdraw_quote", "a withdrawal")))
