"""Results of parts as a page shows them, and their changes since an earlier report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from toolkit.analyses import Analysis, find
from toolkit.columns import Column, column, computed_in
from toolkit.foreign import Html
from toolkit.reports.recipe import Earlier, Part, PartResult, Recipe, Value
from toolkit.show.html import figures_html, lines_html, table_html
from toolkit.show.values import BASIS, basis_text, figures_of, reason_words, value_text

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
"""The columns shown of a screen."""

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
    """Return the figures of a part's single row, or a table of its rows."""
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
    """Return the columns shown of a table: declared ones, else the first with figures.

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


_NOT_COMPARED = frozenset(("n", "coverage"))  # they are beside what rests on them
_NAMES = frozenset(("horizon_s",))  # numbers that tell rows apart
_HEADS = [("text", "figure"), *(("number", head) for head in ("before", "now", "change"))]


class Changed(NamedTuple):
    """The changes of a part: name, basis of both, table and notes."""

    name: str
    basis: str
    table: Html | None
    notes: list[str]


class Comparison(NamedTuple):
    """The changed parts, and notes on unchanged, new and missing ones."""

    parts: list[Changed]
    notes: list[str]


def changes_of(recipe: Recipe, earlier: Earlier) -> Comparison:
    """Compare the parts that both reports have, over any window."""
    pairs = zip(earlier.parts, earlier.answers, strict=True)
    before = {_key(part): (part, answer) for part, answer in pairs if answer.shown}
    changed, same, new = [], [], []
    for part, answer in zip(recipe.parts, recipe.answers, strict=True):
        if not answer.shown:
            continue
        old = before.pop(_key(part), None)
        if old is None:
            new.append(part.name)
            continue
        differs = _one(old[1], answer) if _is_one(part, answer) else _many(old[1], answer)
        if any(differs):
            changed.append(Changed(part.name, _basis(part, answer, *old), *differs))
        else:
            same.append(part.name)
    gone = [part.name for part, _ in before.values()]
    lists = (("Without a change", same), ("New in this report", new), ("Not in it any more", gone))
    return Comparison(changed, [f"{words}: {'; '.join(names)}." for words, names in lists if names])


def _key(part: Part) -> tuple[str, str, str]:
    return part.what, part.stream, json.dumps(part.options, sort_keys=True)


def _is_one(part: Part, answer: PartResult) -> bool:
    return answer.rows == 1 and not part.streams


def _basis(part: Part, now: PartResult, was: Part, before: PartResult) -> str:
    then, here = (basis_text(each.n or 0, each.coverage) for each in (before, now))
    return f"Before {was.window}, {then}. Now {part.window}, {here}."


def _one(before: PartResult, now: PartResult) -> tuple[Html | None, list[str]]:
    row, old = now.shown[0], before.shown[0]
    lines = []
    for name in shown_figures(now):
        was, value, one = old.get(name), row[name], column(name, now.method)
        if name not in _NOT_COMPARED and was != value:
            why = reason_words(row, name) if value is None else ""
            shown = [value_text(each, one, unit=True) for each in (was, value)]
            texts = (one.heading, *shown, why or change_words(was, value, one))
            lines.append([(text,) for text in texts])
    return lines_html(_HEADS, lines) if lines else None, []


def _many(before: PartResult, now: PartResult) -> tuple[Html | None, list[str]]:
    """Return the rows that differ, matched by their texts, each figure with its change."""
    columns = shown_columns(now)
    rows, old_rows = _rows(now), _rows(before)
    kept = [
        name
        for name in columns
        if not any(isinstance(row[name], str) for row in now.shown)
        and name not in _NOT_COMPARED | _NAMES
    ]
    meanings = {name: column(name, now.method) for name in kept}
    lines = []
    for key, row in rows.items():
        old = old_rows.get(key, row)
        if any(row[name] != old.get(name) for name in kept):
            values = [(old.get(name), row[name], meanings[name]) for name in kept]
            cells = [(value_text(v[1], v[2], unit=True), change_words(*v)) for v in values]
            lines.append([(" ".join(key),), *cells])
    sides = (("New", rows.keys() - old_rows.keys()), ("Gone", old_rows.keys() - rows.keys()))
    notes = [
        f"{words} among the rows shown: {', '.join(sorted(' '.join(key) for key in keys))}."
        for words, keys in sides
        if keys
    ]
    heads = [("text", "of"), *(("number", meanings[name].heading) for name in kept)]
    return lines_html(heads, lines) if lines else None, notes


def _rows(answer: PartResult) -> dict[tuple[str, ...], Mapping[str, Value]]:
    names = [
        name
        for name in shown_columns(answer)
        if name in _NAMES or (name != "flags" and isinstance(answer.shown[0][name], str))
    ]
    return {
        tuple(value_text(row[name], column(name)) for name in names): row for row in answer.shown
    }


def change_words(before: Value, now: Value, meaning: Column) -> str:
    """Return a change with its sign and unit, that of a share in percentage points.

    >>> bps = column("carry_bps")
    >>> change_words(2.0, 2.5, bps), change_words(None, 1.0, bps)
    ('+0.50 bps', '')
    """
    if isinstance(before, str | bool | None) or isinstance(now, str | bool | None):
        return ""
    if now == before or meaning.unit == "UTC":
        return ""
    size = value_text(abs(now - before), meaning, unit=True)
    points = f"{size.removesuffix(' %')} points" if size.endswith(" %") else size
    return f"{'+' if now > before else '-'}{points}"
