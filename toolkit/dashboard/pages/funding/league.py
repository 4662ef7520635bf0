"""The league of the page Funding: the carry, or funding alone, of each stored pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.cards import counted
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.loads import FUNDING, Load, offer
from toolkit.dashboard.pages.funding.choice import FundingChoice
from toolkit.dashboard.pages.funding.measured import LENGTHS_D, measure_carried
from toolkit.dashboard.pages.funding.tables import money_text, why_null
from toolkit.dashboard.parts.answers import show_implausible
from toolkit.dashboard.parts.lately import sign_columns
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import Container, st
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory, swapped
from toolkit.reasons import Reason
from toolkit.show.values import figures_text
from toolkit.statistics.funding import net_summary
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY
from toolkit.statistics.quality.plausibility import notes_of

_ROWS: dict[str, Any] = (
    dict.fromkeys(("trajectory", "stream", "symbol", "buy", "sell"), pl.String)
    | {"is_turned": pl.Boolean, "lacks_prices": pl.Boolean}
    | {"fall_bps": pl.Float64, "window_end": pl.Int64}
    | {f"kept_{days}d": pl.Float64 for days in LENGTHS_D}
    | {f"words_{days}d": pl.String for days in LENGTHS_D}
)
_ROWS_HIGH = 20
_SHOWN = 500
_BY = ("kept_7d", "kept_1d")
_HELP = Markdown(
    "In bps of one leg's notional, up to where both legs have settled. Net figures subtract one "
    "round trip. Each pair has the orientation that received funding over the longest known time, "
    "which is hindsight. **sign**: ● steady, the difference had this sign in 90 % of the stored "
    "part of the last 30 days; ◐ mostly, in 60 %; ○ unsteady, in less. **funding drawdown**: the "
    "largest drawdown of cumulative funding in that time, without prices and fees. Pairs without a "
    "settlement in the last 30 days are left out."
)
_WITH_PRICES = Markdown(
    "Carry: settled funding plus basis, from the prices of both legs at the opening and the close."
)
_WITHOUT = Markdown("Settled funding alone, without the basis.")
_MOST_LOADED = 50


def show_league(shell: PageShell, bar: Container, asked: FundingChoice, net: Net | None) -> None:
    """Show the table, with its rows as files in the bar."""
    only = asked.funding_only
    words = "Funding of the stored pairs (bps)" if only else "Carry of the stored pairs (bps)"
    heading = Markdown("**{}**").format(words)
    carried = measure_carried(shell.held, funding_only=only)
    rows = shell.kept(league_rows(carried, net, asked.notional))
    pairs = shell.kept(_pairs(shell)).height
    if rows.is_empty() and not pairs:
        st.markdown(heading)
        offer(shell.held, Markdown("No pair's funding is stored."), FUNDING, part="league")
        return
    taken = Markdown("gross of fees") if net is None else Markdown("net, {}").format(net.style)
    about = Markdown("{} {}").format(_WITHOUT if only else _WITH_PRICES, _HELP)
    some = Markdown(", {:,} shown").format(_SHOWN) if rows.height > _SHOWN else Markdown("")
    st.markdown(
        Markdown("{} · settled, {}, {:,} of {:,} pairs{}").format(
            heading, taken, rows.height, pairs, some
        ),
        help=about if net is None else Markdown("{} {}").format(about, net.words),
    )
    basis = "gross" if net is None else f"net, {net.style}"
    file = rows.select(~pl.selectors.starts_with("words_")).with_columns(basis=pl.lit(basis))
    first = FUNDING_ONLY if only else ""
    file = file.rename({f"kept_{days}d": f"{first}kept_{days}d_bps" for days in LENGTHS_D})
    hand_over(bar, file, shell.held.source, f"funding_kept_{shell.held.as_of or 0}", None)
    _offer_prices(shell, rows)
    rows = rows.head(_SHOWN)
    show_rows(
        Markdown("{} of pairs (bps), the most over 7 days first").format(
            "Funding" if only else "Carry"
        ),
        rows["trajectory"].to_list(),
        [*_named(rows), *_kept(rows), *_steady(shell, rows, asked.unit)],
        "league",
        _ROWS_HIGH,
    )
    shown = carried.filter(pl.col("trajectory").is_in(rows["stream"].implode()))
    shown = shown.sort("days", "trajectory")  # of each pair the longest time is judged
    show_implausible(notes_of(shown.unique("trajectory", keep="last", maintain_order=True)))


def _offer_prices(shell: PageShell, rows: pl.DataFrame) -> None:
    lack = rows.filter("lacks_prices")["stream"].head(_MOST_LOADED).to_list()
    if not lack:
        return
    end = int(rows["window_end"].to_numpy().max())
    window = Interval(end - LENGTHS_D[-1] * 86_400, end)
    keys = dict.fromkeys(key for pair in lack for key in shell.held.price_keys(pair, window))
    words = Markdown("Load {} days of prices of {}").format(
        LENGTHS_D[-1], counted(len(lack), "pair")
    )
    some = rows.filter("lacks_prices").height
    offer(
        shell.held,
        Markdown(
            "The carry of {} is not known for the whole time, as their prices are not stored."
        ).format(counted(some, "pair")),
        Load.of(words, *keys, since=f"{LENGTHS_D[-1]}d"),
        part="prices",
    )


def _pairs(shell: PageShell) -> pl.DataFrame:
    """List trajectory and symbol of the pairs with settlements, one orientation each."""
    of_two = pl.col("stream").str.count_matches(":") == 2
    held = shell.held.streams.filter(pl.col("rows") > 0, of_two, kind=Family.FUNDING.value)
    keys = held["stream"]
    once = sorted({min(key, swapped(key)) for key in keys})
    symbols = [str(Trajectory.parse(key).symbol) for key in once]
    return pl.DataFrame(
        {"trajectory": once, "symbol": symbols},
        schema=dict.fromkeys(("trajectory", "symbol"), pl.String),
    )


def league_rows(carried: pl.DataFrame, net: Net | None, notional: float) -> pl.DataFrame:
    """Build one row per pair, in the orientation that received funding, best over 7 days first.

    ``carried`` is of `measure_carried`. Columns: trajectory (in that orientation), stream (as
    stored), is_turned, symbol, buy and sell (legs), fall_bps, window_end (s UTC), lacks_prices, and
    for 1, 7 and 30 days kept_1d (carry, or funding only, in bps, net with fees) and words_1d (its
    basis, or why it is null). A pair stored in both orientations is one row.
    """
    turned = _turned(carried)
    only = "carry_bps" not in carried.columns
    if net is not None:
        turned = net_summary(turned, net.fees, notional=net.notional, style=net.style)
    rows = []
    for (key,), lengths in turned.partition_by(
        "trajectory", as_dict=True, maintain_order=True
    ).items():
        pair = Trajectory.parse(str(key), Family.FUNDING)
        row: dict[str, Any] = {"trajectory": key, "symbol": str(pair.symbol)}
        row |= dict(zip(("buy", "sell"), map(str, pair.legs), strict=True))
        for each in lengths.iter_rows(named=True):
            row |= {name: each[name] for name in ("stream", "is_turned", "fall_bps", "window_end")}
            row[f"kept_{each['days']}d"] = each[_column(net, only=only)]
            row[f"words_{each['days']}d"] = _words(each, net, notional, pair.symbol.quote)
        reasons = [] if only else lengths["carry_reason"].to_list()
        row["lacks_prices"] = Reason.MISSING_PRICE.value in reasons
        rows.append(row)
    return pl.DataFrame(rows, schema=_ROWS, orient="row").sort(
        *_BY, "trajectory", descending=[True] * len(_BY) + [False], nulls_last=True
    )


def _column(net: Net | None, *, only: bool) -> str:
    if net is None:
        return "funding_bps" if only else "carry_bps"
    return f"{FUNDING_ONLY if only else ''}net_carry_bps"


def _turned(carried: pl.DataFrame) -> pl.DataFrame:
    """Orient each pair so that it received funding over the longest known time.

    One without known or positive funding stays as stored. Of both orientations the one with a
    figure stays, else the first by name.
    """
    longest = pl.col("funding_bps").sort_by("days").drop_nulls().last().over("trajectory")
    once = [min(key, swapped(key)) for key in carried["trajectory"]]
    with_turns = carried.with_columns(
        pl.Series("pair", once, pl.String),
        is_turned=(longest < 0).fill_null(value=False),
        known=longest.is_not_null(),
    )
    keys = [
        swapped(key) if is_turned else key
        for key, is_turned in with_turns.select("trajectory", "is_turned").iter_rows()
    ]
    sign = pl.when("is_turned").then(-1.0).otherwise(1.0)
    turning = [
        name
        for name in ("funding_bps", "funding_apr_pct", "basis_bps", "carry_bps")
        if name in carried.columns
    ]
    return (
        with_turns.with_columns(
            pl.Series("trajectory", keys, pl.String),
            pl.col("trajectory").alias("stream"),
            *((pl.col(name) * sign + 0.0).alias(name) for name in turning),
            fall_bps=pl.when("is_turned").then("largest_rise_bps").otherwise("largest_fall_bps"),
        )
        .sort("pair", "known", "stream", "days", descending=[False, True, False, False])
        .unique(["pair", "days"], keep="first", maintain_order=True)
        .drop("pair", "known")
    )


def _words(row: Mapping[str, Any], net: Net | None, notional: float, quote: str) -> str:
    only = "carry_bps" not in row
    name = _column(net, only=only)
    names = ["coverage", "funding_bps", *([] if only else ["basis_bps"])]
    names += [] if net is None else ["cost_bps"]
    rests = figures_text(row, [each for each in names if row[each] is not None])
    if row[name] is None:
        return f"{why_null(row, name)}, {rests}"
    return f"{notional:,.0f} {quote} kept {money_text(row[name], notional)}, {rests}"


def _named(rows: pl.DataFrame) -> list[RowColumn]:
    legs = [
        f"{sell.removesuffix('.futures')} → {buy.removesuffix('.futures')}"
        for buy, sell in rows.select("buy", "sell").iter_rows()
    ]
    return [row_column(rows, "symbol"), RowColumn("short_long", "text", legs)]


def _kept(rows: pl.DataFrame) -> list[RowColumn]:
    """Build the columns of the carry. A phone has only the one sorted by."""
    by = next((name for name in _BY if rows[name].count()), _BY[0])
    return [
        row_column(rows, name, titles=rows[f"words_{days}d"].to_list(), narrow=name == by)
        for days in LENGTHS_D
        for name in [f"kept_{days}d"]
    ]


def _steady(shell: PageShell, rows: pl.DataFrame, unit: str) -> list[RowColumn]:
    found = rows.select("stream", "is_turned").rows()
    sign, flips, line = sign_columns(shell.held, found, unit, few="too little is stored")
    known = [share is not None for share in sign.values]
    falls = [fall if each else None for fall, each in zip(rows["fall_bps"], known, strict=True)]
    return [
        sign,
        replace(flips, narrow=False),
        RowColumn("fall_bps", "number", falls, narrow=False),
        replace(line, narrow=False),
    ]
