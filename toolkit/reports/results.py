"""The result of a part on the page: the figures of one row, or many rows as a table."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.analyses import Analysis, find
from toolkit.columns import computed_in
from toolkit.foreign import Html
from toolkit.reports.recipe import Part, PartResult
from toolkit.show.html import figures_html, table_html
from toolkit.show.values import BASIS, figures_of

_SCREENED = {
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
}
"""The columns of a screen that are shown."""

_MOST_COLUMNS = 8
_MOST_FIGURES = 12


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result on a page. ``rows`` is None without a row, ``others`` are folded figures."""

    rows: Html | None
    others: Html | None = None
    n_others: int = 0
    notes: tuple[str, ...] = ()


def result_of(part: Part, answer: PartResult) -> ShownResult:
    """Return what a page shows of a part's result: the figures of one row, or a table."""
    if not answer.shown:
        return ShownResult(None)
    if answer.rows == 1 and not part.streams:
        row, seen = answer.shown[0], shown_figures(answer)
        others = [name for name in figures_of(row, answer.method) if name not in seen]
        folded = figures_html(row, others, answer.method) if others else None
        return ShownResult(figures_html(row, seen, answer.method), folded, len(others))
    columns, shown = shown_columns(answer), len(answer.shown)
    if not columns:
        return ShownResult(Html(""))
    more = f"The first {shown} of {answer.rows:,} rows. The hash is of all."
    table = table_html(answer.shown, columns, answer.method)
    return ShownResult(table, notes=(more,) if answer.rows > shown else ())


def shown_columns(answer: PartResult) -> list[str]:
    """Return the columns shown of a table: the declared ones, else the first with figures.

    >>> rows = [{"trajectory": "a", "n": 3, "x_bps": 1.0, "x_reason": None}]
    >>> shown_columns(PartResult(3, 1.0, "", "", "", 1, "", rows))
    ['trajectory', 'n', 'x_bps']
    """
    names = list(answer.shown[0])
    result = answer.method.partition("/")[0]
    if result in _SCREENED:
        return [name for name in _SCREENED[result] if name in names]
    analysis = _analysis(answer)
    if analysis is not None:
        if analysis.is_curve and answer.rows > len(answer.shown):
            return []  # the chart has all of it
        key = [name for name in analysis.key if name in names]
        answered = analysis.answer_in(names)[:_MOST_COLUMNS]
        return list(dict.fromkeys([*key, *answered, *(each for each in BASIS if each in names)]))
    filled = {name for row in answer.shown for name, value in row.items() if value is not None}
    kept = filled & {*BASIS, *figures_of(names, "")}
    return [name for name in names if name in kept][:_MOST_COLUMNS]


def shown_figures(answer: PartResult) -> list[str]:
    """Return the figures shown of one row: declared or implausible ones, else the first."""
    row, analysis = answer.shown[0], _analysis(answer)
    figures = figures_of(row, answer.method)
    if analysis is None:
        return figures[:_MOST_FIGURES]
    odd = ["implausible"] if row.get("implausible") else []
    return [name for name in [*analysis.answer_in(row), *odd] if name in figures]


def _analysis(answer: PartResult) -> Analysis | None:
    return find(answer.method) if answer.method.partition("/")[0] in computed_in() else None
