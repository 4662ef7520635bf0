"""The figures of the stretch shown: level, mean reversion, and payoffs of round trips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.cards import duration
from toolkit.columns import column
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.pages.trajectory.choice import CHOICES
from toolkit.dashboard.pages.trajectory.explorer import Beyond, Explored, asked_of
from toolkit.dashboard.parts.analyses import answered
from toolkit.dashboard.parts.answers import row_notes, show_implausible
from toolkit.dashboard.parts.rows import heading
from toolkit.dashboard.shell import show_metric
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family
from toolkit.show.values import (
    NEEDS_NO_MODEL,
    NULL,
    UNRELIABLE,
    half_life_note,
    reason_words,
    value_text,
)
from toolkit.statistics.core.contract import column_for
from toolkit.statistics.screening import spread_figures
from toolkit.statistics.spread import summary

BPS = Markdown("bps: 10,000 ln(sell price / buy price), above 0 where the sell leg is dearer.")
COLUMNS = {
    Family.SPREAD: "spread_log_bps",
    Family.PRICE: "price",
    Family.FUNDING: "funding_apr_pct",
}
"""The measured column of each family."""
_LEAST_PX = 110


def measure_explored(explored: Explored, rows: pl.DataFrame) -> dict[str, Any]:
    """Measure the rows, for a spread as `rail screen` does."""
    asked, family = explored.selection, explored.trajectory.family
    measured = (
        asked.applied(rows, spread_figures)
        if family is Family.SPREAD
        else asked.applied(rows, summary, column=COLUMNS[family])
    )
    return measured.row(0, named=True)


def show_figures(explored: Explored, row: Mapping[str, Any], beyond: Beyond | None) -> None:
    """Show the row of metrics."""
    spread = explored.trajectory.family is Family.SPREAD
    with st.grid(8 if spread else 4, min_column_width=_LEAST_PX):
        if spread:
            _show_last(row)
        for name in ("mean", "std"):
            figure = column_for(COLUMNS[explored.trajectory.family], name)
            show_metric(row, figure, of=explored.priced_in, sign=BPS if spread else None)
        if spread:
            _show_half_life(row)
            _show_beyond(beyond)
        empty = f"{row['n_null']:,} without a value" if row["n_null"] else None
        show_metric(row, "n", empty, long=True)
        gap = row["longest_gap_s"]
        gap_words = f"{heading('longest_gap_s')} {duration(gap)}" if gap else None
        why = reason_words(row, "coverage") if row["n"] and row["coverage"] is None else None
        show_metric(row, "coverage", why or gap_words, sign=_coverage_help(explored, row))
    show_implausible(row_notes(row))


def _show_last(row: Mapping[str, Any]) -> None:
    name = "last_percentile"
    share, within = row[name], duration(row["window_end"] - row["window_start"])
    text = f"{value_text(share, column(name), unit=True)} of {within}"
    if share is None:
        text = f"{NULL}: {reason_words(row, name)}"
    show_metric(row, "spread_last_log_bps", f"{column(name).short} {text}", sign=BPS)


def show_kept(explored: Explored) -> None:
    """Show what one round trip per episode would have earned, by the chosen fees."""
    st.subheader(Markdown("What would I have kept?"), anchor=False)
    if (net := explored.shell.fees.net()) is None:
        st.caption(Markdown("Choose a fee table in the bar above, where it says Gross."))
        return
    with st.grid(7, min_column_width=_LEAST_PX):
        label = Markdown("Size per leg ({})").format(explored.trajectory.symbol.quote)
        CHOICES.given(size={"label": label}).draw("size")
        _show_round_trips(explored, net, explored.asked.notional)


def _show_round_trips(explored: Explored, net: Net, notional: float) -> None:
    answer = answered(explored.shell, asked_of(explored), find("spread.net_episodes"))
    found = answer.rows.row(0, named=True)
    count, total = found["net_episodes"], found["net_entry_bps"]
    found["net_entry_mean_bps"] = total / count if count else None
    found["net_entry_quote"] = None if total is None else 1e-4 * notional * total
    of_table = _COST.format(markdown(net.fees.name), net.fees.hash, net.style)
    show_metric(found, "cost_lowest_bps", sign=of_table)
    show_metric(found, "cost_highest_bps", sign=of_table)
    show_metric(found, "net_episodes", sign=_ENTERED)
    show_metric(found, "net_entry_mean_bps", sign=_ENTERED)
    show_metric(found, "net_entry_bps")
    show_metric(found, "net_entry_quote", of=explored.trajectory.symbol.quote)


_COST = Markdown("Of a round trip of this size, by the fee table {} ({}), style {}.")
_ENTERED = Markdown(
    "In an episode the spread is beyond the cost of a round trip. One round trip is entered at its "
    "first row in full size, and left at a spread of 0."
)


def _show_half_life(row: Mapping[str, Any]) -> None:
    lower, upper = row["half_life_lower_s"], row["half_life_upper_s"]
    sign, note = _HALF_LIFE, half_life_note(row)
    beside = f"95 %: {duration(lower or 0)} to {duration(upper)}"
    if note:
        beside = note if row["half_life_s"] is None else UNRELIABLE
        sign = Markdown("{} Here: {}.").format(sign, note)
        for words, figure in NEEDS_NO_MODEL.items():
            if row[figure] is not None:
                sign = Markdown("{} {}: {}.").format(sign, words, duration(row[figure]))
    show_metric(row, "half_life_s", beside, sign=sign)


_HALF_LIFE = Markdown(
    "The time in which half of a deviation from the mean is gone. It is reliable only if its 95 % "
    "interval has an upper bound, and null if a mean-reverting process with noise does not fit."
)


def _show_beyond(beyond: Beyond | None) -> None:
    if beyond is None:
        return
    row, words, begun = beyond.row, beyond.level.words, beyond.row["level_begun"]
    seen = None if begun is None else f"{begun:,} {column('level_begun').short}"
    show_metric(row, "level_share", of=words, sign=_LEVEL)
    show_metric(row, "level_per_day", seen, of=words, sign=_DAILY)


_DAILY = Markdown("Episodes with an observed beginning, per day for which a value is known.")
_LEVEL = Markdown(
    "Share of the time observed. With fees, chosen in the bar above: the spread's size is beyond "
    "the cost of a round trip. Without: it is at or above the level under More."
)


def _coverage_help(explored: Explored, row: Mapping[str, Any]) -> Markdown:
    expected = Markdown("the rows expected, one per step")
    if explored.selection.polls is not None:
        expected = Markdown("polls due, without those whose answer has no such pair")
    return Markdown(
        "Rows with a value over {}. Observed share {}: the share of the time for which a value is "
        "known, each for at most three steps."
    ).format(expected, value_text(row["observed_share"], column("observed_share")))
