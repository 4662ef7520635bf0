"""`rail stats`: statistics of what the store holds."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.analyses import Stats
from toolkit.cli.fees import CostOptions
from toolkit.cli.funding_sheets import (
    Entered,
    carry_columns,
    carry_sheet,
    dispersion_columns,
    dispersion_sheet,
)
from toolkit.cli.held import MeasuredWindow
from toolkit.cli.measured import (
    rate_sheet,
)
from toolkit.cli.options import FundingOnly
from toolkit.cli.received import funding_columns, funding_sheet
from toolkit.cli.table_options import TableOptions, tabled
from toolkit.cli.tables import show
from toolkit.errors import InputError
from toolkit.market import Family
from toolkit.statistics.carry import HORIZONS
from toolkit.statistics.funding import MIN_COVERAGE

app = typer.Typer(cls=Stats, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Print statistics of the data in the store."""


_FundingKeys = Annotated[
    list[str] | None,
    typer.Argument(
        help="Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*. Kept from "
        "snapshots: snapshot-funding/SYMBOL:EXCHANGE.market, all: 'snapshot-funding/*'."
    ),
]


_MinCoverage = Annotated[
    float,
    typer.Option(
        "--min-coverage",
        help="The least part of the window, 0 to 1, that both legs must cover for a figure.",
    ),
]


@app.command("funding")
@tabled(funding_columns)
def funding_command(
    trajectories: _FundingKeys = None,
    min_coverage: _MinCoverage = MIN_COVERAGE,
    *,
    within: MeasuredWindow,
    funding_only: FundingOnly = False,
    net_of: CostOptions,
    view: TableOptions,
) -> None:
    """Print funding and carry of funding trajectories in the store, settlement by settlement.

    Positive: long the buy leg and short the sell leg received it. Carry is what settlements paid
    and what prices brought, by the spread of the legs or both their prices as held. Only the time
    that both legs cover counts. A settlement at the start of the window is not received, one at its
    end is. Without a window it takes all settlements held, and none ends after the last sync.
    The largest APR is first. One trajectory alone is shown with every figure. Where the service
    sends no rates of the legs, the mean of its own differential in force follows.

    A rate kept from snapshots is one in force, which pays nothing until it settles. Of such keys
    the level in percent a year is printed, and coverage is by polls.

    With a fee table the carry net of one round trip follows, and the days in which funding alone
    breaks even. --funding-only leaves prices out.

    Example: rail stats funding BTC_USDT:AURORA.futures:EQUINOX.futures
    """
    held = view.opened(within)
    costs = net_of.chosen(held)
    asked = within.of(held, Family.FUNDING, trajectories)
    if asked.polls is None:
        sheet = funding_sheet(asked, min_coverage, costs, funding_only=funding_only)
        show(view, sheet)
        return
    if funding_only:
        raise InputError("--funding-only", funding_only, "for settlements, not for rates in force")
    if net_of.fees is not None:
        raise InputError("--fees", str(net_of.fees), "for settlements, not for rates in force")
    if min_coverage != MIN_COVERAGE:
        raise InputError("--min-coverage", min_coverage, "for settlements, not for rates in force")
    show(view, rate_sheet(asked))


_Pairs = Annotated[
    list[str] | None,
    typer.Argument(help="Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*."),
]


_Horizons = Annotated[
    list[str] | None,
    typer.Option("--horizon", help="How long a position is held: 8h, 7d. May be repeated."),
]
_Every = Annotated[str, typer.Option("--every", help="How far apart positions are entered.")]
_Compound = Annotated[
    bool,
    typer.Option("--compound", help="Put what is received into the position at each settlement."),
]


@app.command("carry")
@tabled(carry_columns)
def carry_command(
    trajectories: _Pairs = None,
    horizons: _Horizons = None,
    every: _Every = "1h",
    compound: _Compound = False,
    legs: Annotated[
        bool, typer.Option("--legs", help="Of each leg of the pairs alone, held short.")
    ] = False,
    *,
    within: MeasuredWindow,
    funding_only: FundingOnly = False,
    net_of: CostOptions,
    view: TableOptions,
) -> None:
    """Print what funding positions kept, over all times at which to enter them.

    It is what settlements paid and what prices brought, by the spread of the legs or both their
    prices as held. Positive: long the buy leg and short the sell leg received it. With --legs short
    that leg alone, of which there is funding only. A settlement at the entry is not received, one
    at the exit is. An entry counts where all legs cover its whole horizon. The range of the mean
    holds it at 95 %, with overlapping holdings not taken for independent ones, and is absent where
    funding remembers more than the window. With a fee table net figures and the hours to break even
    follow. --funding-only leaves prices out.

    Before: rail fees --example > fees.toml

    Example: rail stats carry BTC_USDT:* --horizon 1d --fees fees.toml
    """
    held = view.opened(within)
    costs = net_of.chosen(held)
    asked = within.of(held, Family.FUNDING, trajectories)
    if asked.polls is not None:
        raise InputError("trajectories", asked.kind, "keys of settlements, not of rates in force")
    entered = Entered(horizons or list(HORIZONS), every, compound, funding_only)
    show(view, carry_sheet(asked, entered, costs, legs=legs))


@app.command("dispersion")
@tabled(dispersion_columns)
def dispersion_command(
    trajectories: _Pairs = None,
    bucket: Annotated[
        str, typer.Option("--bucket", help="The time that is averaged over: 1h, 8h, 1d.")
    ] = "8h",
    min_coverage: Annotated[
        float,
        typer.Option(
            "--min-coverage",
            help="The least part of the buckets, 0 to 1, that a venue must have to be compared.",
        ),
    ] = MIN_COVERAGE,
    *,
    within: MeasuredWindow,
    view: TableOptions,
) -> None:
    """Print how far the funding rates of a symbol's venues are apart, a row per symbol.

    The range is the highest less the lowest mean rate of a bucket, in percent a year. It grows with
    the number of venues, so that the same ones are compared all the time: those that have nearly
    all buckets. The widest is first.

    Example: rail stats dispersion
    """
    held = view.opened(within)
    asked = within.of(held, Family.FUNDING, trajectories)
    show(view, dispersion_sheet(asked, bucket, min_coverage))
