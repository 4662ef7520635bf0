"""One pair of the page Funding: its chart, carry, holdings, steadiness and settlements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.cards import duration
from toolkit.charts import funding_chart, funding_heatmap
from toolkit.columns import column
from toolkit.dashboard.export import hand_over, literal
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.link import PRESETS, held_window
from toolkit.dashboard.loads import FUNDING, Load, LoadPart, offer
from toolkit.dashboard.pages.funding.choice import FundingChoice
from toolkit.dashboard.pages.funding.measured import settled_until
from toolkit.dashboard.pages.funding.tables import (
    COUNTED,
    money_text,
    pair_figures,
    settlement_table,
    settlements,
    why_null,
)
from toolkit.dashboard.parts.analyses import Asked, answered, show_analyses
from toolkit.dashboard.parts.answers import row_notes, show_figures, show_implausible
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows, time_column
from toolkit.dashboard.reading import WAIT_S, read_leg_prices, read_rows
from toolkit.dashboard.shell import PageShell, draw
from toolkit.dashboard.widgets import component, side_by_side, st
from toolkit.foreign import Markdown, plain
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory, format_ts
from toolkit.reasons import Reason
from toolkit.show.values import heading_of, reason_words, value_text
from toolkit.statistics.core.definition import turned
from toolkit.statistics.funding import heatmap, intervals, legs
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY, PairPrices
from toolkit.store import Store, held_key
from toolkit.workspace.selection import Passes, Selection

_ENOUGH = 24
"""The least entries (a day's) for a sentence on when the fees were earned back."""
_HORIZONS = ("8h", "1d", "2d", "3d", "5d", "7d", "14d", "30d")
_SHARE = "breakeven_share"
_NARROW = ("horizon_s", "gross_median_bps", "net_median_bps", "net_positive_share", _SHARE)
_COLUMNS = (
    *_NARROW,
    *("gross_q05_bps", "gross_q95_bps"),
    *("gross_mean_bps", "gross_mean_lower_bps", "gross_mean_upper_bps"),
    *("funding_median_bps", "basis_mean_bps", "drawdown_median_bps", "n", "coverage"),
)
_HELP = Markdown(
    "Entered at each full hour of the window and closed after the holding time. The 95 % intervals "
    "of means allow for overlapping holdings; a dash says why there is none. Holding times longer "
    "than the window are left out."
)


def show_holdings(shell: PageShell, asked: Asked, *, funding_only: bool) -> bool:
    """Show the distribution of the carry over all hours of entry.

    Return whether too many entries lack a price.
    """
    of = "Funding by holding time" if funding_only else "Carry by holding time"
    st.markdown(Markdown("**{}** · bps of one leg's notional").format(of), help=_HELP)
    options = {"horizons": _HORIZONS, "funding_only": funding_only}
    found = answered(shell, asked, find("funding.holdings"), options).rows
    known = found.filter(pl.col("n") > 0)
    if known.is_empty():
        st.caption(Markdown("The window is too short, or too little of it is covered."))
        return False
    enough = known.filter(pl.col("n") >= _ENOUGH)
    if asked.net is not None and enough.height:
        share = f"{FUNDING_ONLY}{_SHARE}" if funding_only else _SHARE
        earned = enough.drop_nulls(share)
        st.markdown(breakeven_words((earned if earned.height else enough).row(-1, named=True)))
    keys = list(map(str, known["horizon_s"]))
    show_rows(Markdown("{}").format(of), keys, holding_columns(known), "holdings", opens=False)
    return not funding_only and known["prices_lack"].count() > 0


def holding_columns(found: pl.DataFrame) -> list[RowColumn]:
    """Build the columns of `toolkit.statistics.funding.holdings`."""
    columns: dict[str, RowColumn] = {}
    for name in _COLUMNS:
        either = (name, name.replace("gross_", "funding_"), f"{FUNDING_ONLY}{name}")
        for each in [each for each in either if each in found.columns][:1]:
            columns[each] = row_column(
                found,
                each,
                kind="bar" if name == _SHARE else None,
                result="funding.holdings",
                narrow=name in _NARROW,
            )
    return list(columns.values())


def breakeven_words(row: Mapping[str, Any]) -> Markdown:
    """Describe after how long positions of one holding time earned the fees back.

    >>> row = {"horizon_s": 604800, "n": 73, "breakeven_share": 0.8, "breakeven_q25_h": 24.0,
    ...        "breakeven_median_h": 60.0, "breakeven_q75_h": None}
    >>> breakeven_words(row)
    'Of 73 entries held 7 d, 80.00 % earned the fees back:
     a quarter within 24.0 h, half within 60.0 h'
    """
    only = "" if _SHARE in row else FUNDING_ONLY
    if row[f"{only}{_SHARE}"] is None:
        unknown = Markdown("The time to earn back the fees is unknown: {}.")
        return unknown.format(reason_words(row, f"{only}breakeven_median_h"))
    shares = (("a quarter", "q25"), ("half", "median"), ("three quarters", "q75"))
    names = [(words, f"{only}breakeven_{name}_h") for words, name in shares]
    parts = [
        f"{words} within {value_text(row[name], column(name), unit=True)}"
        for words, name in names
        if row[name]
    ]
    by = Markdown(": {}").format(", ".join(parts)) if parts else Markdown("")
    return Markdown("Of {:,} entries held {}, {} earned the fees back{}{}").format(
        row["n"] - row.get("n_unpriced", 0),
        value_text(row["horizon_s"], column("horizon_s")),
        value_text(row[f"{only}{_SHARE}"], column(_SHARE)),
        Markdown(" by funding only") if only else Markdown(""),
        by,
    )


_HOUR_S = 3_600
_COUNTDOWN = component("countdown")


_HELD = {"buy": "long", "sell": "short"}


def due_in(
    pair: str, rows: pl.DataFrame, rates: pl.DataFrame | None, now: int
) -> list[dict[str, str | int]]:
    """Return side and name of each leg, and the seconds from ``now`` to its next settlement.

    The time is the overview's, else an interval after the leg's newest settlement. A past time is
    moved on by an interval.
    """
    known = Trajectory.parse(pair, Family.FUNDING)
    settled = intervals(rows).sort("ts").drop_nulls("interval_hours")
    due: list[dict[str, str | int]] = []
    for side, leg in known.sides.items():
        found = settled.filter(leg=side).select("ts", "interval_hours").tail(1).rows()
        at, hours = found[0] if found else (None, None)
        at = None if at is None else at + round(_HOUR_S * hours)
        if rates is not None:
            listed = rates.filter(symbol=str(known.symbol), leg=str(leg))
            listed = listed.drop_nulls("next_funding_time")
            for row in listed.head(1).iter_rows(named=True):
                at, hours = row["next_funding_time"], row["interval_hours"]
        if at is None or not hours or hours <= 0:
            continue
        every_s = max(1, round(_HOUR_S * hours))
        if now - at > 2 * every_s:
            continue
        left = at - now if at > now else every_s - (now - at) % every_s
        due.append({"leg": plain(f"{_HELD[side]} {leg}"), "in_s": left, "every_s": every_s})
    return due


_LEAST_PX = 130
_MAP_PX = 200
_FEW_DAYS = 60
"""Windows up to this long are drawn in buckets of 8 h, longer ones in days."""


def show_steadiness(
    shell: PageShell, asked: Asked, rows: pl.DataFrame, window: Interval, unit: str
) -> None:
    """Show the persistence of the sign, and a heat map of the pair and its legs."""
    st.markdown(Markdown("**How steady it is**"))
    show_figures(shell, answered(shell, asked, find("funding.persistence")))
    bucket = "8h" if window.end - window.start <= _FEW_DAYS * 86_400 else "1d"
    columns = list(rows.columns)
    of_legs = legs(rows.filter(pl.col("trajectory").str.count_matches(":") == 2))
    every = pl.concat([rows, of_legs], how="diagonal_relaxed").select(columns)
    found = heatmap(every, *window, bucket=bucket)
    if not found.is_empty():
        figure = funding_heatmap(
            found, source=shell.held.source, unit=unit, timezone=shell.timezone
        )
        figure.update_traces(showscale=True)
        figure.update_layout(height=_MAP_PX)
        draw(figure, key="steadiness")


_SHOWN = 500
_SETTLED = ("leg", "rate", "interval_hours", "funding_apr_pct", "remark")
_CHART_PX = 460
_DAY_S = 86_400
_CARRY_HELP = Markdown(
    "In bps of one leg's notional: long the leg bought, short the leg sold, over the whole window. "
    "A settlement pays its whole rate to the position open at that time. "
)
_WITH_PRICES = Markdown("It includes the basis, by the prices of both legs at those times.")
_WITHOUT = Markdown("Funding only, without the basis.")


def show_pair(
    shell: PageShell,
    pairs: pl.DataFrame,
    asked: FundingChoice,
    net: Net | None,
    rates: pl.DataFrame | None,
) -> None:
    """Show the chosen pair.

    ``pairs`` are the stored streams, ``rates`` those in force, or None.
    """
    if pairs.is_empty():
        offer(shell.held, Markdown("No pair's funding is stored."), FUNDING, part="pair")
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
        if due := due_in(asked.pair, rows, rates, shell.held.now()):
            _COUNTDOWN(data={"due": due}, key="countdown")
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
    return read_leg_prices(held.path, pair, *window, versions=versions, _held=held.prices)


def _offer_prices(shell: PageShell, pair: str, window: Interval) -> None:
    """Offer to load the prices of the legs, which the carry needs.

    Gaps in prices that span the window cannot be filled by a load.
    """
    if shell.held.prices.reach_over(pair, window):
        st.caption(Markdown("Prices are missing for part of the time: Data health shows the gaps."))
        return
    keys = shell.held.price_keys(pair, window)
    part = LoadPart(keys, window.start - 3_600, window.end)
    offer(
        shell.held,
        Markdown("The prices of both legs are not stored for the whole window."),
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
    lines = pair_figures(row, unit)
    with st.grid(8 if len(lines) > 4 else 4, min_column_width=_LEAST_PX):
        for name, value, below in (map(Markdown.harmless, line) for line in lines):
            st.metric(name, value, delta=below, delta_color="off", delta_arrow="off")
    show_implausible(row_notes(row))
    odd = [column(name, "funding.summary") for name in COUNTED if row[name]]
    if odd:
        counted = (f"{heading_of(each)}: {value_text(row[each.name], each)}" for each in odd)
        st.caption(Markdown("; ").join(counted))


def money_words(
    row: Mapping[str, Any], notional: float, quote: str, stretch: tuple[str, str]
) -> Markdown:
    """Describe what a position of a size would have earned in a stretch: length and end.

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
    """Move the window back to where both legs have settled, keeping its length."""
    ends = settled_until(rows)["end"].drop_nulls()
    back = window.end - int(ends[0]) if ends.len() else 0
    return Interval(window.start - back, window.end - back) if 0 < back < _DAY_S else window


def _series_python(pair: str, window: Interval) -> str:
    start, end = (literal(format_ts(ts)) for ts in window)
    return f"rail.funding({literal(pair)}, {start}, {end})"


def _show_settlements(shell: PageShell, pair: str, window: Interval, settled: pl.DataFrame) -> None:
    some = f"{_SHOWN:,} of " if settled.height > _SHOWN else ""
    line = side_by_side()
    with line:
        st.markdown(Markdown("**Settlements** · {}{:,}, newest first").format(some, settled.height))
    python = (
        f"import toolkit as tk\n\nwith tk.open({literal(shell.held.place)}) as rail:\n"
        f"    pair = {_series_python(pair, window)}\n"
        "settled = pair.intervals()\n"
    )
    hand_over(line, settled, shell.held.source, f"{pair}_{window.end}", python)
    shown = settlement_table(settled).head(_SHOWN)
    columns = [
        time_column(shown, "ts", shell.timezone),
        *(row_column(shown, name, result="funding.intervals") for name in _SETTLED),
    ]
    keys = [str(at) for at in range(shown.height)]
    show_rows(Markdown("Settlements"), keys, columns, "settlements", most=12, opens=False)
