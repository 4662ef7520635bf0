"""A result as HTML: the figures of one row beside each other, or many rows as a table."""

from __future__ import annotations

from toolkit.foreign import Html
from toolkit.reports.recipe import Part, PartResult
from toolkit.show.html import figures_html, notes_html, table_html
from toolkit.show.values import BASIS, figures_of

_FIRST = {
    "spread.summary": (
        *("spread_mean_log_bps", "spread_std_log_bps", "spread_median_log_bps"),
        *("spread_q05_log_bps", "spread_q95_log_bps", "spread_q99_log_bps"),
        *("half_life_s", "half_life_lower_s", "half_life_upper_s", "acf_half_lag_s"),
        *("half_life_without_spikes_s", "observed_share", "longest_gap_s", "implausible"),
        *("net_share", "net_mean_bps", "cost_mean_bps"),
    ),
    "funding.summary": (
        *("funding_bps", "funding_apr_pct", "basis_bps", "carry_bps", "net_carry_bps"),
        *("funding_only_net_carry_bps", "buy_funding_bps", "sell_funding_bps"),
        *("implausible", "n_missed", "n_changed", "prices_lack"),
    ),
    "funding.persistence": (
        *("positive_share", "negative_share", "flips", "longest_run_s", "same_sign_share"),
        *("acf_8h", "carry_to_noise"),
    ),
    "quality.flags": (
        *("flags", "stale_buy", "stale_sell", "repeated_buy", "repeated_sell", "levels_apart"),
        *("power_of_ten", "level_break", "sentinel_price", "more_than_expected"),
        *("service_differs", "clock_shift", "stale_sd_log_bps"),
        *("rows_of_both", "observed_share", "longest_gap_s"),
    ),
}
"""Of results of many figures those that come first. The others are folded."""

_COLUMNS = {
    "spread.screen": (
        *("trajectory", "spread_last_log_bps", "last_z", "spread_median_log_bps"),
        *("spread_std_log_bps", "half_life_s", "half_life_upper_s", "acf_half_lag_s"),
        *("reversion_q_value", "net_mean_bps", "edge_q_value", "n", "coverage", "flags"),
    ),
    "funding.summary": (
        *("trajectory", "funding_apr_pct", "funding_bps", "basis_bps", "carry_bps"),
        *("net_carry_bps", "funding_only_net_carry_bps", "positive_share"),
        *("flips", "n", "coverage", "implausible"),
    ),
    "funding.holdings": (
        *("horizon_s", "funding_median_bps", "basis_mean_bps", "gross_median_bps"),
        *("gross_q05_bps", "gross_q95_bps", "net_median_bps", "funding_only_net_median_bps"),
        *("net_positive_share", "breakeven_median_h", "n", "coverage"),
    ),
    "events.league": (
        *("legs", "rate_per_day", "rate_lower_per_day", "rate_upper_per_day", "n", "coverage"),
        "between_median_s",
    ),
    "spread.hour_of_week": (),
}
"""Of tables of many columns those that are shown, none where the chart has them all."""

_MOST_COLUMNS = 8
_MOST_FIGURES = 12


def result_html(part: Part, answer: PartResult) -> Html:
    """Return the result of a part, nothing for a chart that has none."""
    if not answer.shown:
        return Html("") if answer.chart_hash else Html('<p class="faint">No row.</p>')
    if answer.rows == 1 and not part.streams:
        return _one(answer)
    columns = shown_columns(answer)
    if not columns:
        return Html("")
    shown, more = len(answer.shown), []
    if answer.rows > shown:
        more = [f"The first {shown} of {answer.rows:,} rows. The hash is of all."]
    table = table_html(answer.shown, columns, answer.method)
    return Html("{}{}").format(table, notes_html(more))


def shown_columns(answer: PartResult) -> list[str]:
    """Return the columns of a table that are in sight: those chosen, else the first with figures.

    >>> rows = [{"trajectory": "a", "n": 3, "x_bps": 1.0, "x_reason": None}]
    >>> shown_columns(PartResult(3, 1.0, "", "", "", 1, "", rows))
    ['trajectory', 'n', 'x_bps']
    """
    names = list(answer.shown[0])
    chosen = _COLUMNS.get(answer.method.partition("/")[0])
    if chosen is not None:
        return [name for name in chosen if name in names]
    filled = {name for row in answer.shown for name, value in row.items() if value is not None}
    kept = filled & {*BASIS, *figures_of(names, "")}
    return [name for name in names if name in kept][:_MOST_COLUMNS]


def shown_figures(answer: PartResult) -> list[str]:
    """Return the figures of a result of one row that are in sight: those chosen, else the first."""
    figures = figures_of(answer.shown[0], answer.method)
    chosen = _FIRST.get(answer.method.partition("/")[0], ())
    return [name for name in chosen if name in figures] or figures[:_MOST_FIGURES]


def _one(answer: PartResult) -> Html:
    """Return the figures of one row: some in sight, the others folded."""
    row, seen = answer.shown[0], shown_figures(answer)
    others = [name for name in figures_of(row, answer.method) if name not in seen]
    more = Html("<details><summary>{} more figures</summary>{}</details>").format(
        len(others), figures_html(row, others, answer.method)
    )
    shown = figures_html(row, seen, answer.method)
    return Html("{}{}").format(shown, more) if others else shown
