"""`rail screen`: all pairs in the store, ranked by any figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import typer

from toolkit.analyses import find
from toolkit.cards import counted, duration
from toolkit.cli.options import CostOptions, MeasuredWindow, asks
from toolkit.cli.output import TableOptions, show, tabled
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Pair, format_ts
from toolkit.series.held_prices import HeldPrices
from toolkit.series.trajectories import joined_notes
from toolkit.show.sheet import Sheet
from toolkit.statistics.core.conditions import Schema
from toolkit.statistics.quality.flags import FLAGS
from toolkit.statistics.quality.plausibility import notes_of
from toolkit.statistics.screening import without_flags
from toolkit.workspace.answers import Costs
from toolkit.workspace.screening import Screened, Screening
from toolkit.workspace.selection import Passes

_NET = ("net_edge_bps", "edge_q_value", "cost_bps", "net_share", "net_mean_bps")
_Names = list[str] | None


def _columns() -> Schema:
    found: Schema = {}
    for kind in reversed(Screened):
        if kind is Screened.FUNDING:
            found = {**found, **Screening(kind, funding_only=True).columns}
        found = {**found, **Screening(kind).columns}
    return found


@tabled(_columns)
@asks(
    family=typer.Argument(help="What to rank; rows from snapshots are families of their own."),
    symbols="--symbol: Only this symbol. May be repeated.",
    exchanges="--exchange: Only pairs with both legs on these exchanges. May be repeated.",
    types="--type: Only pairs of these markets: spot/futures. May be repeated.",
    exclude_symbols="--exclude-symbol: Leave out this symbol. May be repeated.",
    pairs="--pair: Two prices in the store, pair/BUY/SELL or pair/BUY/SELL/FX. May be repeated.",
    exclude_flags="--exclude-flag: Leave out pairs with this flag, or with any flag: 'any'. May be "
    f"repeated. Flags: {', '.join(FLAGS)}.",
)
def screen_command(
    family: Screened = Screened.SPREAD,
    symbols: _Names = None,
    exchanges: _Names = None,
    types: _Names = None,
    exclude_symbols: _Names = None,
    pairs: _Names = None,
    exclude_flags: _Names = None,
    *,
    funding_only: bool = False,
    within: MeasuredWindow,
    net_of: CostOptions,
    view: TableOptions,
) -> None:
    """Rank all spreads in the store, or all funding pairs, by any figure, in one pass.

    A spread has its newest level, its z-score and percentile in the window, the figures of
    `rail stats spread`, and flags of suspect prices. The spread that is widest now comes first.
    With a fee table net figures follow: the net edge is the mean, over all of the time, of the
    spread beyond the cost. The window is by default the last 7 days in the store, for funding all
    of it.

    A q-value is a p-value adjusted for the whole screen: of the pairs up to 0.05, at most 5 % are
    expected to be there by chance. It counts all pairs measured, whatever --where and --top show.
    One tests whether the spread returns to a level, one whether its mean net of the cost is above
    0.

    --pair ranks the spreads of any two prices in the store instead of the stored spreads.

    A funding pair has the figures of `rail stats funding` and `rail stats persistence`.

    snapshot-spread and snapshot-funding rank the pairs and rates in snapshots, with coverage by
    polls: an answer without a pair is not a gap. Rates in force have no net figures.

    Example: rail screen --top 5

    Example: rail screen --where "half_life_s < 3600 and coverage > 0.95"

    Example: rail screen --exclude-flag any --sort -spread_std_log_bps
    """
    held = view.opened(within)
    if funding_only and family is not Screened.FUNDING:
        raise InputError("--funding-only", funding_only, "for settlements: rail screen funding")
    asked = Screening(
        family,
        symbols,
        exchanges,
        types=types,
        exclude_symbols=exclude_symbols,
        pairs=pairs,
        funding_only=funding_only,
    )
    for option, given in net_of.given.items():
        if not asked.has_costs:
            raise InputError(option, str(given), "for settlements, not for rates in force")
    costs = net_of.chosen(held) if asked.has_costs else None
    if costs is not None:
        asked = replace(asked, **costs.arguments)
    asked.check_costs(view.sort, view.where, ("--sort", "--where"))
    without = _flags(family, exclude_flags)
    passes = Passes.of(held, within.cluster, plain_text=within.plain_text)
    found = asked.rows(passes, within.start, within.end, names=("--start", "--end"))
    kept = without_flags(found, without)
    notes = joined_notes(Pair.parse(pairs[0]))[:1] if pairs else []
    notes += notes_of(kept)
    if left_out := found.height - kept.height:
        notes.append(f"--exclude-flag leaves out {left_out:,}")
    shown = list(family.shown)
    if "carry_bps" in found.columns:
        shown[3:3] = ("basis_bps", "carry_bps")
        window = Interval(found["window_start"][0], found["window_end"][0])
        lacking = HeldPrices(held).lacking(found, window)
        notes += [f"{words}; funding alone needs none" for words in lacking]
    sheet = Sheet(
        _heading(found, family), held.source.label, kept, shown, order=family.order, notes=notes
    )
    show(view, sheet if costs is None else _with_net(sheet, costs, family))


def _flags(family: Screened, named: _Names) -> tuple[str, ...]:
    if not named:
        return ()
    if family not in (Screened.SPREAD, Screened.SNAPSHOT_SPREAD):
        raise InputError("--exclude-flag", named[0], "with spreads, which alone have flags")
    for name in named:
        if name not in (*FLAGS, "any"):
            raise InputError("--exclude-flag", name, ["any", *FLAGS])
    return FLAGS if "any" in named else tuple(named)


def _heading(found: pl.DataFrame, family: Screened) -> str:
    window = Interval(found["window_start"][0], found["window_end"][0])
    start, end, length = *map(format_ts, window), duration(window.length_s)
    if family is Screened.FUNDING:
        of = "received, and carry with prices," if "carry_bps" in found.columns else "only"
        return f"Funding {of} over ({start}, {end}], {length}"
    rates = family is Screened.SNAPSHOT_FUNDING
    of = "Funding rate in force, percent a year," if rates else "Spreads 1e4 ln(sell / buy)"
    heading = f"{of} over [{start}, {end}), {length}"
    if not family.kept:
        return heading
    first = found.row(0, named=True)
    answered = first["n"] + first["n_null"] + first["not_tracked"]
    polls = f"{counted(answered, 'poll')} answered, {first['n_expected'] - answered:,} missed"
    return f"{heading}, kept from snapshots: {polls}"


def _with_net(sheet: Sheet, costs: Costs, family: Screened) -> Sheet:
    net: Sequence[str] = _NET
    if family is Screened.FUNDING:
        net = find("funding.net_summary").answer_in(sheet.rows.columns)
    columns = [*sheet.columns[:3], *net, *sheet.columns[3:]]
    return replace(sheet, columns=columns, notes=[*sheet.notes, *costs.notes(sheet.rows)])
