"""The figures of what is zoomed into: its level, how it returns, and what it would have paid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from toolkit.cards import duration
from toolkit.charts.lines import share_text
from toolkit.dashboard.explorer import Explored
from toolkit.dashboard.explorer_beyond import Beyond
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.formatting import NULL, level_text, reason_words
from toolkit.dashboard.implausible import row_notes, show_implausible
from toolkit.dashboard.screen import st
from toolkit.dashboard.trajectory_choice import MOST_NOTIONAL
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family
from toolkit.show.half_life import NEEDS_NO_MODEL, NOT_BELIEVED, half_life_note
from toolkit.statistics.contract import column_for
from toolkit.statistics.polls import by_polls, poll_count
from toolkit.statistics.screening import spread_figures
from toolkit.statistics.spread import net_episodes, summary
from toolkit.statistics.spread_notes import spread_notes

BPS = Markdown("bps: 10,000 ln(sell price / buy price), above 0 where the sell leg is dearer.")
COLUMNS = {
    Family.SPREAD: "spread_log_bps",
    Family.PRICE: "price",
    Family.FUNDING: "funding_apr_pct",
}
"""What is measured of each family."""
_LEAST_PX = 110


def unit_of(explored: Explored) -> str:
    """Return the unit of what is measured."""
    quote = explored.trajectory.symbol.quote
    return {Family.SPREAD: "bps", Family.PRICE: quote, Family.FUNDING: "% a year"}[
        explored.trajectory.family
    ]


def measure_explored(explored: Explored, rows: pl.DataFrame) -> dict[str, Any]:
    """Measure the rows, of a spread as `rail screen` does.

    Of what is kept from snapshots the coverage is by polls.
    """
    polls = explored.polls()
    view = explored.asked.view
    column = COLUMNS[explored.trajectory.family]
    measured = (
        spread_figures(rows, *view, step_s=explored.steps)
        if explored.trajectory.family is Family.SPREAD
        else summary(rows, *view, column=column, step_s=explored.steps)
    )
    if polls is not None:
        measured = by_polls(measured, poll_count(polls, *view))
    return measured.row(0, named=True)


def show_figures(explored: Explored, row: Mapping[str, Any], beyond: Beyond | None) -> None:
    """Show the row of metrics."""
    spread = explored.trajectory.family is Family.SPREAD
    unit, column = unit_of(explored), COLUMNS[explored.trajectory.family]
    with st.grid(8 if spread else 4, min_column_width=_LEAST_PX):
        if spread:
            _show_last(row, unit)
        for label, name in (("Mean", "mean"), ("Deviation", "std")):
            value = row[column_for(column, name)]
            _metric(
                f"{label} ({unit})",
                level_text(value, unit),
                sign=BPS if spread else None,
            )
        if spread:
            _show_half_life(row)
            _show_beyond(beyond)
        _metric("Rows", f"{row['n']:,}", _empty_words(row))
        _metric(
            "Coverage",
            NULL if row["coverage"] is None else share_text(row["coverage"]),
            _beside_coverage(row),
            sign=_coverage_help(explored, row),
        )
    show_implausible(row_notes(row))


def _show_last(row: Mapping[str, Any], unit: str) -> None:
    """Show the newest observation, and how unusual it is in what is shown."""
    share = row["last_percentile"]
    within = duration(row["window_end"] - row["window_start"])
    why = reason_words(row, "last_percentile") if share is None else None
    beside = f"percentile –: {why}" if why else f"percentile {share:.0f} of {within}"
    last = row[column_for(COLUMNS[Family.SPREAD], "last")]
    _metric(f"Last ({unit})", level_text(last, unit), beside, sign=BPS)


def show_notes(explored: Explored, row: Mapping[str, Any]) -> None:
    """Say what is unusual about a spread, as the page of spreads does."""
    if explored.trajectory.family is Family.SPREAD and (notes := spread_notes(row)):
        st.caption(Markdown("; ").join(notes))


def show_kept(explored: Explored, rows: pl.DataFrame) -> None:
    """Show what one round trip an episode would have kept, by the fees of the bar."""
    st.subheader(Markdown("What would I have kept?"), anchor=False)
    if (net := explored.shell.fees.net()) is None:
        st.caption(Markdown("Choose a fee table in the bar above, where it says Gross."))
        return
    with st.grid(6, min_column_width=_LEAST_PX):
        notional = st.number_input(
            Markdown("Size per leg ({})").format(explored.trajectory.symbol.quote),
            min_value=1.0,
            max_value=MOST_NOTIONAL,
            step=1000.0,
            format="%g",
            key="notional",
            persist_state="session",
        )
        _show_round_trips(explored, rows, net, notional)


def _show_round_trips(explored: Explored, rows: pl.DataFrame, net: Net, notional: float) -> None:
    asked: dict[str, Any] = {"fees": net.fees, "style": net.style, "notional": notional}
    found = net_episodes(rows, *explored.asked.view, **asked).row(0, named=True)
    count, total = found["net_episodes"], found["net_entry_bps"]
    why = None if count is not None else reason_words(found, "net_episodes")
    mean = total / count if count else None
    money = 1e-4 * notional
    quote = explored.trajectory.symbol.quote
    of_table = _COST.format(markdown(net.fees.name), net.fees.hash, net.style)
    _metric("Cost (bps)", _cost_text(found), sign=of_table)
    _metric("Episodes", NULL if count is None else f"{count:,}", why, sign=_ENTERED)
    _metric("Net mean (bps)", _signed(mean, 1), sign=_ENTERED)
    _metric("Net sum (bps)", _signed(total, 1))
    _metric(f"Net sum ({quote})", _signed(None if total is None else money * total, 2))


_COST = Markdown("Of a round trip of this size, by the fee table {} ({}), style {}.")
_ENTERED = Markdown(
    "An episode is from where the spread is beyond the cost of a round trip to where it is not. "
    "One round trip is taken in each, at its first row and in full size, and left at a spread of 0."
)


def _signed(value: float | None, digits: int) -> str:
    return NULL if value is None else f"{value:+,.{digits}f}"


def _cost_text(found: Mapping[str, Any]) -> str:
    low, high = found["cost_lowest_bps"], found["cost_highest_bps"]
    if low is None:
        return NULL
    return f"{low:,.1f}" if low == high else f"{low:,.1f} to {high:,.1f}"


def _show_half_life(row: Mapping[str, Any]) -> None:
    """Show the half-life with its interval, or why it is not believed."""
    value, lower, upper = (row[f"half_life_{name}s"] for name in ("", "lower_", "upper_"))
    sign, note = _HALF_LIFE, half_life_note(row)
    beside = f"95 %: {duration(lower or 0)} to {duration(upper)}"
    if note:
        beside = note if value is None else NOT_BELIEVED
        sign = Markdown("{} Here: {}.").format(sign, note)
        for words, figure in NEEDS_NO_MODEL.items():
            if row[figure] is not None:
                sign = Markdown("{} {}: {}.").format(sign, words, duration(row[figure]))
    _metric("Half-life", NULL if value is None else duration(value), beside, sign=sign)


_HALF_LIFE = Markdown(
    "The time in which half of a distance from the mean is gone. It is believed where its 95 % "
    "interval has an upper bound. It has none where one speed beneath noise does not fit."
)


def _show_beyond(beyond: Beyond | None) -> None:
    """Show how much of the time is beyond the fees or else the level, and how often."""
    if beyond is None:
        return
    words, share, daily = beyond.level.words, beyond.share, beyond.daily
    _metric(f"Time {words}", NULL if share is None else share_text(share), beyond.why, sign=_LEVEL)
    seen = None if beyond.begun is None else f"{beyond.begun:,} begun"
    _metric(
        f"Episodes a day, {words}",
        NULL if daily is None else f"{daily:,.2f}",
        beyond.why_daily if daily is None else seen,
        sign=Markdown("Those whose beginning was seen, of the days for which a value is known."),
    )


_LEVEL = Markdown(
    "Of the time observed. With fees, chosen in the bar above, it is the time in which the size of "
    "the spread is beyond the cost of a round trip, else that from a level on, which More sets."
)


def _empty_words(row: Mapping[str, Any]) -> str | None:
    return f"{row['n_null']:,} without a value" if row["n_null"] else None


def _beside_coverage(row: Mapping[str, Any]) -> str | None:
    if row["n"] and row["coverage"] is None:
        return reason_words(row, "coverage")
    return f"longest gap {duration(row['longest_gap_s'])}" if row["longest_gap_s"] else None


def _coverage_help(explored: Explored, row: Mapping[str, Any]) -> Markdown:
    expected = Markdown("the rows expected, one a step")
    if explored.polls() is not None:
        expected = Markdown("the polls due, less those whose answer lacks it")
    observed = row["observed_share"]
    return Markdown(
        "Rows with a value over {}. Observed share {}: of the time for which a value is known, "
        "each for three steps at most."
    ).format(expected, NULL if observed is None else share_text(observed))


def _metric(
    label: str, value: str, beside: str | None = None, *, sign: Markdown | None = None
) -> None:
    st.metric(
        Markdown.harmless(label),
        Markdown.harmless(value),
        delta=Markdown.harmless(beside) if beside else None,
        delta_color="off",
        delta_arrow="off",
        help=sign,
    )
