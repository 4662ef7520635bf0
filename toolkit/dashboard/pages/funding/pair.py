"""One pair's funding through time: what its position received, kept and would have kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.cards import duration
from toolkit.charts import funding_chart
from toolkit.columns import column
from toolkit.dashboard.export import hand_over, literal
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.link import PRESETS, held_window
from toolkit.dashboard.loads import FUNDING, Load, LoadPart, offer
from toolkit.dashboard.pages.funding.choice import FundingChoice
from toolkit.dashboard.pages.funding.countdown import show_countdown
from toolkit.dashboard.pages.funding.holdings import show_holdings
from toolkit.dashboard.pages.funding.measured import settled_until
from toolkit.dashboard.pages.funding.steadiness import show_metrics, show_steadiness
from toolkit.dashboard.pages.funding.tables import (
    COUNTED,
    money_text,
    pair_figures,
    settlement_table,
    settlements,
    why_null,
)
from toolkit.dashboard.parts.analyses import Asked, answered, show_analyses
from toolkit.dashboard.parts.implausible import row_notes, show_implausible
from toolkit.dashboard.parts.rows import row_column, show_rows, time_column
from toolkit.dashboard.reading import WAIT_S, read_leg_prices, read_rows
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, draw
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory, format_ts
from toolkit.reasons import Reason
from toolkit.show.values import heading_of, value_text
from toolkit.statistics.core.definition import turned
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY, PairPrices
from toolkit.store import Store, held_key
from toolkit.workspace.selection import Passes, Selection

_SHOWN = 500
_SETTLED = ("leg", "rate", "interval_hours", "funding_apr_pct", "remark")
_CHART_PX = 460
_DAY_S = 86_400
_CARRY_HELP = Markdown(
    "In bps of the notional of one leg: long the leg bought, short the leg sold, opened at the "
    "window's start and closed at its end. A settlement pays its whole rate to who holds the "
    "position then. "
)
_WITH_PRICES = Markdown("What the prices of both legs brought is in it, as known then.")
_WITHOUT = Markdown("Funding only: prices are not in it.")


def show_pair(
    shell: PageShell,
    pairs: pl.DataFrame,
    asked: FundingChoice,
    net: Net | None,
    rates: pl.DataFrame | None,
) -> None:
    """Show the pair that is chosen.

    ``pairs`` are the funding streams that are held, ``rates`` those in force, None without them.
    """
    if pairs.is_empty():
        offer(shell.held, Markdown("No pair's funding is held."), FUNDING, part="pair")
        return
    held = None if asked.pair is None else held_key(asked.pair, pairs["stream"].to_list())
    if asked.pair is None or held is None:
        return
    window = held_window(pairs, held).last(PRESETS[asked.preset])
    rows = read_rows(shell.held.path, held, *window, version=shell.held.versions[held])
    if held != asked.pair:
        rows = turned(rows, asked.pair)
    window = _settled_window(rows, window)
    if rows.is_empty():
        _draw_pair(shell, rows, window, asked)
        return
    question = _question(shell, asked.pair, held, window, net)
    prices = None if asked.funding_only else _prices(shell, asked.pair, window)
    with st.container(horizontal=True, vertical_alignment="center", key="kept_line"):
        row = _show_kept(shell, question, window, asked)
        show_countdown(shell, asked.pair, rows, rates)
    _show_figures(row, asked.unit)
    _draw_pair(shell, rows, window, asked, cost_bps=row.get("cost_bps"), prices=prices)
    lacks = show_holdings(shell, question, funding_only=asked.funding_only)
    if lacks or row.get("carry_reason") == Reason.MISSING_PRICE:
        _offer_prices(shell, asked.pair, window)
    show_steadiness(shell, question, rows, window, asked.unit)
    _show_settlements(shell, asked.pair, window, settlements(rows, window))
    show_analyses(shell, question)


def _question(shell: PageShell, pair: str, stream: str, window: Interval, net: Net | None) -> Asked:
    held = shell.held
    keys = (stream, *held.price_keys(pair, window))
    passes = Passes.of(Store(held.path, wait_s=WAIT_S))
    return Asked(
        "funding",
        "funding",
        lambda: Selection.of(passes, Family.FUNDING, [pair], *window),
        (pair, window, *(held.versions.get(key, ()) for key in keys)),
        _series_python(pair, window),
        net,
        shown=("summary", "holdings", "persistence", "intervals", "heatmap", "carry"),
    )


def _prices(shell: PageShell, pair: str, window: Interval) -> PairPrices:
    held = shell.held
    versions = tuple(held.versions.get(key, ()) for key in held.price_keys(pair, window))
    return read_leg_prices(held.path, pair, *window, versions=versions)


def _offer_prices(shell: PageShell, pair: str, window: Interval) -> None:
    """Offer the prices of the legs, without which what the pair kept is not known.

    Prices that are held from before the window's begin to its end have holes that no load fills.
    """
    if shell.held.prices.reach_over(pair, window):
        words = "Prices lack for some of the time in between: Data health shows the holes."
        st.caption(Markdown("{}").format(words))
        return
    keys = shell.held.price_keys(pair, window)
    part = LoadPart(keys, window.start - 3_600, window.end)
    offer(
        shell.held,
        Markdown("The prices of both legs are not held for all of the window."),
        Load(Markdown("Load their prices"), (part,)),
        part="pair_prices",
    )


def _draw_pair(
    shell: PageShell,
    rows: pl.DataFrame,
    window: Interval,
    asked: FundingChoice,
    *,
    cost_bps: float | None = None,
    prices: PairPrices | None = None,
) -> None:
    figure = funding_chart(
        rows,
        trajectory=Trajectory.parse(str(asked.pair), Family.FUNDING),
        start=window.start,
        end=window.end,
        unit=asked.unit,
        cost_bps=cost_bps,
        prices=prices,
        funding_only=asked.funding_only,
        source=shell.held.source,
        timezone=shell.timezone,
    )
    figure.update_layout(height=_CHART_PX)
    draw(figure, key="pair", headed=rows.is_empty())


def _show_kept(
    shell: PageShell, question: Asked, window: Interval, asked: FundingChoice
) -> dict[str, Any]:
    net, options = question.net, {"funding_only": asked.funding_only}
    found = answered(shell, question, find("funding.summary"), options)
    row = found.rows.row(0, named=True)
    quote = Trajectory.parse(str(asked.pair), Family.FUNDING).symbol.quote
    stretch = (duration(window.length_s), shell.moment(window.end))
    about = Markdown("{}{}").format(_CARRY_HELP, _WITHOUT if asked.funding_only else _WITH_PRICES)
    st.markdown(
        money_words(row, asked.notional, quote, stretch),
        help=about if net is None else Markdown("{} {}").format(about, net.words),
    )
    return row


def _show_figures(row: Mapping[str, Any], unit: str) -> None:
    show_metrics(pair_figures(row, unit))
    show_implausible(row_notes(row))
    odd = [column(name, "funding.summary") for name in COUNTED if row[name]]
    if odd:
        counted = (f"{heading_of(each)}: {value_text(row[each.name], each)}" for each in odd)
        st.caption(Markdown("; ").join(counted))


def money_words(
    row: Mapping[str, Any], notional: float, quote: str, stretch: tuple[str, str]
) -> Markdown:
    """Put into words what a position of a size would have kept in a stretch: length and end.

    ``row`` is of `toolkit.statistics.funding.summary`, or of `net_summary` for a net figure.

    >>> row = {"funding_bps": 30.0, "basis_bps": -10.0, "carry_bps": 20.0, "carry_reason": None,
    ...        "cost_bps": 5.0, "net_carry_bps": 15.0}
    >>> money_words(row, 10_000.0, "USDT", ("7 d", "Friday"))
    '**10,000 USDT would have kept 15.00 USDT** in the 7 d to Friday, net of 5.00 for fees:
     funding 30.00, prices -10.00'
    >>> row = {"funding_bps": -20.0, "funding_reason": None}
    >>> money_words(row, 500.0, "USDT", ("1 d", "Friday"))
    '**500 USDT would have lost 1.00 USDT** in the 1 d to Friday, funding only, before fees'
    """
    only = "carry_bps" not in row
    gross = "funding_bps" if only else "carry_bps"
    first = FUNDING_ONLY if only else ""
    name = f"{first}net_carry_bps" if "cost_bps" in row else gross
    size = Markdown("{:,.0f} {}").format(notional, quote)

    def in_money(bps: str) -> str:
        return "not known" if row[bps] is None else money_text(row[bps], notional)

    if row[name] is None:
        why = why_null(row, name)
        unknown = Markdown("What {} would have kept in the {} to {} is not known: {}; funding {}")
        return unknown.format(size, *stretch, why, in_money("funding_bps"))
    fees = Markdown("before fees")
    if name != gross:
        fees = Markdown("net of {} for fees").format(in_money("cost_bps"))
    verb = Markdown("lost") if row[name] < 0 else Markdown("kept")
    kept = Markdown("**{} would have {} {} {}** in the {} to {}").format(
        size, verb, money_text(abs(row[name]), notional), quote, *stretch
    )
    if only:
        return Markdown("{}, funding only, {}").format(kept, fees)
    parts = in_money("funding_bps"), in_money("basis_bps")
    return Markdown("{}, {}: funding {}, prices {}").format(kept, fees, *parts)


def _settled_window(rows: pl.DataFrame, window: Interval) -> Interval:
    """Move the window back to where both legs have settled, as long as it was."""
    ends = settled_until(rows)["end"].drop_nulls()
    back = window.end - int(ends[0]) if ends.len() else 0
    return Interval(window.start - back, window.end - back) if 0 < back < _DAY_S else window


def _settlements_python(shell: PageShell, pair: str, window: Interval) -> str:
    return (
        f"import toolkit as tk\n\nwith tk.open({literal(shell.held.place)}) as rail:\n"
        f"    pair = {_series_python(pair, window)}\n"
        "settled = pair.intervals()\n"
    )


def _series_python(pair: str, window: Interval) -> str:
    start, end = (literal(format_ts(ts)) for ts in window)
    return f"rail.funding({literal(pair)}, {start}, {end})"


def _show_settlements(shell: PageShell, pair: str, window: Interval, settled: pl.DataFrame) -> None:
    some = f"{_SHOWN:,} of " if settled.height > _SHOWN else ""
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    with line:
        st.markdown(Markdown("**Settlements** · {}{:,}, newest first").format(some, settled.height))
    python = _settlements_python(shell, pair, window)
    hand_over(line, settled, shell.held.source, f"{pair}_{window.end}", python)
    shown = settlement_table(settled).head(_SHOWN)
    columns = [
        time_column(shown, "ts", shell.timezone),
        *(row_column(shown, name, result="funding.intervals") for name in _SETTLED),
    ]
    keys = [str(at) for at in range(shown.height)]
    show_rows(Markdown("Settlements"), keys, columns, "settlements", most=12, opens=False)
