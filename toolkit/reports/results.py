"""A result as HTML: the figures of one row beside each other, or many rows as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from toolkit.columns import Column, column
from toolkit.foreign import Html
from toolkit.reports.recipe import Part, PartResult, Value
from toolkit.show.half_life import NOT_BELIEVED, half_life_doubt, half_life_note
from toolkit.show.values import heading_of, reason_words, value_text

_BASIS = frozenset(
    ("trajectory", "stream", "n", "coverage", "window_start", "window_end", "method", "params_hash")
)
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
    return _table(answer, columns) if columns else Html("")


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
    left_out = ("_reason", "method", "params_hash", "window_start", "window_end", "_basis")
    kept = [name for name in names if not name.endswith(left_out)]
    with_values = [name for name in kept if any(row[name] is not None for row in answer.shown)]
    return with_values[:_MOST_COLUMNS]


def shown_figures(answer: PartResult) -> list[str]:
    """Return the figures of a result of one row that are in sight: those chosen, else the first."""
    chosen, figures = _FIRST.get(answer.method.partition("/")[0], ()), _figures(answer)
    return [name for name in chosen if name in figures] or figures[:_MOST_FIGURES]


def _figures(answer: PartResult) -> list[str]:
    return [
        name
        for name in answer.shown[0]
        if name not in _BASIS
        and not name.endswith(("_reason", "method", "params_hash", "_basis"))
        and (not answer.method or column(name, answer.method).type)
    ]


def _one(answer: PartResult) -> Html:
    """Return the figures of one row: some in sight, the others folded."""
    row, seen = answer.shown[0], shown_figures(answer)
    others = [name for name in _figures(answer) if name not in seen]
    more = Html("")
    if others:
        more = Html("<details><summary>{} more figures</summary>{}</details>").format(
            len(others), _list(others, row, answer.method)
        )
    return Html("{}{}").format(_list(seen, row, answer.method), more)


def _list(names: Iterable[str], row: Mapping[str, Value], method: str) -> Html:
    return Html('<dl class="figures">{}</dl>').format(
        Html("").join(_figure(name, row, method) for name in names)
    )


def _figure(name: str, row: Mapping[str, Value], method: str) -> Html:
    meaning, value = column(name, method), row[name]
    if value is None:
        shown = Html('<dd class="reason">{}</dd>').format(reason_words(row, name) or "none")
    else:
        shown = Html("<dd>{}{}</dd>").format(
            value_text(value, meaning, unit=True), doubt_words(name, row)
        )
    words = Html("<div><dt>{}</dt>{}<small>{}</small></div>")
    return words.format(meaning.heading, shown, plain_words(meaning.meaning))


def doubt_words(name: str, row: Mapping[str, Value]) -> str:
    """Return what stands behind a half-life that is not believed, "" behind other figures.

    >>> doubt_words("half_life_s", {"half_life_s": 60.0, "half_life_upper_s": None,
    ...                             "half_life_upper_reason": "no_reversion"})
    ', not believed'
    """
    return f", {NOT_BELIEVED}" if name == "half_life_s" and half_life_doubt(row) else ""


def plain_words(text: str) -> str:
    """Return a meaning without the marks of its docstring."""
    return text.replace("`", "")


def _table(answer: PartResult, columns: list[str]) -> Html:
    """Return the first rows as a table, with what its columns mean folded below it."""
    rows = answer.shown
    empty = {name: reason_words(rows[0], name) for name in columns if _all_null(name, rows)}
    kept = {name: column(name, answer.method) for name in columns if name not in empty}
    kinds = {name: "text" if _has_text(name, rows) else "number" for name in kept}
    heads = Html("").join(
        Html('<th class="{}" scope="col">{}</th>').format(kinds[name], heading_of(meaning))
        for name, meaning in kept.items()
    )
    body = Html("").join(_row(row, kept, kinds) for row in rows)
    reasons = {reason_words(row, name): None for row in rows for name in kept if row[name] is None}
    doubts = {half_life_note(row): None for row in rows if doubt_words("half_life_s", row)}
    notes = [f"–: {'; '.join(filter(None, reasons))}."] if any(reasons) else []
    notes += [f"{words[0].upper()}{words[1:]}." for words in doubts if "half_life_s" in kept]
    notes += [
        f"No {column(name, answer.method).heading}: {why}." for name, why in empty.items() if why
    ]
    if answer.rows > len(rows):
        notes.append(f"The first {len(rows)} of {answer.rows:,} rows. The hash is of all.")
    below = Html("").join(Html('<p class="basis">{}</p>').format(note) for note in notes)
    table = Html(
        '<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>{}{}'
    )
    return table.format(heads, body, below, _meanings(kept))


def _row(row: Mapping[str, Value], kept: Mapping[str, Column], kinds: Mapping[str, str]) -> Html:
    cells = [
        table_cell(
            kinds[name],
            heading_of(meaning),
            value_text(row[name], meaning) + doubt_words(name, row),
        )
        for name, meaning in kept.items()
    ]
    return Html("<tr>{}</tr>").format(Html("").join(cells))


def table_cell(kind: str, head: str, text: str, below: str = "") -> Html:
    """Return a cell. On a narrow screen its column's head is before it. A key breaks at a colon.

    >>> table_cell("text", "of", "A_B:X.spot")
    '<td class="text" data-head="of"><span>A_B:<wbr>X.spot</span></td>'
    """
    parts = Html(":<wbr>").join(text.split(":")) if kind == "text" else text
    small = Html("<small>{}</small>").format(below) if below else Html("")
    cell = Html('<td class="{}" data-head="{}"><span>{}{}</span></td>')
    return cell.format(kind, head, parts, small)


def _meanings(kept: Mapping[str, Column]) -> Html:
    words = [
        Html("<p><code>{}</code>: {}</p>").format(name, plain_words(meaning.meaning))
        for name, meaning in kept.items()
        if meaning.meaning
    ]
    if not words:
        return Html("")
    folded = Html("<details><summary>What the columns mean</summary>{}</details>")
    return folded.format(Html("").join(words))


def _all_null(name: str, rows: Sequence[Mapping[str, Value]]) -> bool:
    return all(row[name] is None for row in rows)


def _has_text(name: str, rows: Sequence[Mapping[str, Value]]) -> bool:
    return any(isinstance(row[name], str) for row in rows)
