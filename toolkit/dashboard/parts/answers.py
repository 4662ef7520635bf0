"""The answer of an analysis: chart, figures or table, notes and implausible figures.

Columns, their order and the chart are those of the declaration.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from toolkit import charts
from toolkit.analyses import Analysis
from toolkit.columns import column
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows, time_column
from toolkit.dashboard.shell import PageShell, draw, show_metric
from toolkit.dashboard.widgets import side_by_side, st
from toolkit.errors import InputError
from toolkit.foreign import LONGEST, Markdown, markdown
from toolkit.show.values import figures_text, reason_words
from toolkit.statistics.quality.plausibility import HIGH_RATE, high_rate, notes_of
from toolkit.workspace.answers import SeriesAnswer
from toolkit.workspace.events.event_answers import EventAnswer

_MOST_ROWS, _ROWS_HIGH = 500, 12
_LEAST_PX = 130
_MOST_GROUPS = 15
_NARROW = 4
"""Columns of a table that a phone shows."""


def show_answer(
    shell: PageShell,
    answer: SeriesAnswer | EventAnswer,
    part: str,
    *,
    quote: str,
    python: str | None,
) -> None:
    """Show an answer in a part of the page, with files and Python.

    ``quote`` is the currency of prices.
    """
    rows, analysis = answer.sheet.ordered(), answer.analysis
    line = side_by_side()
    with line:
        st.markdown(_heading(shell, answer))
    named = f"{analysis.name}_{answer.asked.window.end}"
    hand_over(line, rows, shell.held.source, named, python, of=part)
    if rows.is_empty() and not answer.notes:
        st.caption(Markdown("No row."))
    if rows.height and analysis.chart:
        _draw_chart(shell, answer, f"{part}_chart_{analysis.name}")
    if rows.height == 1:
        show_figures(shell, answer, quote)
    elif rows.height:
        _show_table(shell, answer, rows, f"{part}_{analysis.name}", quote)
    for note in answer.notes:
        st.caption(line_of(f"{note[0].upper()}{note[1:]}."))


def line_of(text: str) -> Markdown:
    """Return a line of text with commands between backticks.

    >>> line_of("none is held: `rail sync a:* b` loads them")
    'none is held: `rail sync a:* b` loads them'
    """
    made = []
    for place, part in enumerate(map(str.strip, text.split("`"))):
        if place % 2:
            made.append(markdown(part, LONGEST))
        elif part:
            end = _ENDS.get(part[-1], Markdown(""))
            made.append(Markdown("{}{}").format(part.removesuffix(end), end))
    return Markdown(" ").join(made)


_ENDS = {";": Markdown(";"), ":": Markdown(":")}


def _heading(shell: PageShell, answer: SeriesAnswer | EventAnswer) -> Markdown:
    title = answer.heading.partition(" over ")[0].rstrip(",")
    return Markdown("**{}** · {} to {}").format(title, *map(shell.moment, answer.asked.window))


def _draw_chart(shell: PageShell, answer: SeriesAnswer | EventAnswer, key: str) -> None:
    """Draw the chart of these rows, or say why it cannot be drawn."""
    try:
        figure = drawn(shell, answer.analysis, answer.rows, limit=_MOST_GROUPS)
    except InputError as error:
        if not str(error.value).startswith("no "):
            st.caption(Markdown("No chart of these rows: it needs {}.").format(error.allowed))
        return
    draw(figure, key=key)


def drawn(shell: PageShell, analysis: Analysis, rows: pl.DataFrame, **known: Any) -> Any:
    """Return the declared chart of rows, with the ``known`` arguments that it has.

    Raises `InputError` for rows that it cannot draw.
    """
    chart = getattr(charts, analysis.chart)
    known |= {"source": shell.held.source, "timezone": shell.timezone}
    takes = inspect.signature(chart).parameters
    return chart(rows, **{name: each for name, each in known.items() if name in takes})


def _columns(answer: SeriesAnswer | EventAnswer) -> list[str]:
    rows, analysis = answer.rows, answer.analysis
    same = [name for name in analysis.key if name in rows.columns and rows[name].n_unique() < 2]
    cells = answer.sheet.columns
    names = (name for cell in cells for name in ([cell] if isinstance(cell, str) else cell))
    return [*dict.fromkeys(name for name in names if name not in same)]


def show_figures(shell: PageShell, answer: SeriesAnswer | EventAnswer, quote: str = "") -> None:
    """Show the figures of the only row, each null with its reason."""
    row, result = answer.rows.row(0, named=True), answer.analysis.result
    with st.grid(8, min_column_width=_LEAST_PX):
        for name in _columns(answer):
            unit, text = column(name, result).unit, None
            if unit == "UTC" and row[name] is not None:
                text = shell.clock(answer.rows[name])[0]
            of = {"UTC": shell.timezone, "quote": quote}.get(unit, "")
            at_least = f"{name.removesuffix('_s')}_censored"
            beside = column(at_least, result).short if row.get(at_least) else None
            show_metric({"method": result} | row, name, beside, text=text, of=of)


def _show_table(
    shell: PageShell, answer: SeriesAnswer | EventAnswer, rows: pl.DataFrame, key: str, quote: str
) -> None:
    """Show the rows. Columns of nulls are named below, with their reason."""
    result, shown = answer.analysis.result, rows.head(_MOST_ROWS)
    columns: list[RowColumn] = []
    rests = _rests(rows)
    for name in _columns(answer):
        if name in rests:
            continue
        options: dict[str, Any] = {"narrow": len(columns) < _NARROW, "result": result}
        if (unit := column(name, result).unit) == "UTC":
            columns.append(time_column(shown, name, shell.timezone, **options))
        else:
            of = quote if unit == "quote" else ""
            columns.append(row_column(shown, name, of=of, **options))
    label = _heading(shell, answer)
    keys = [str(at) for at in range(shown.height)]
    show_rows(label, keys, columns, key, _ROWS_HIGH, opens=False)
    some = rows.height > _MOST_ROWS
    words = Markdown("First {:,} of {:,} rows") if some else Markdown("{1:,} rows")
    of_all = figures_text(rows.row(0, named=True), rests, result)
    st.caption(Markdown(", ").join(filter(None, [words.format(_MOST_ROWS, rows.height), of_all])))
    for why, names in _unknown(rows, _columns(answer)).items():
        headings = "; ".join(column(name, result).heading for name in names)
        known = Markdown("Not known: {} ({}).") if why else Markdown("Not known: {}.")
        st.caption(known.format(headings, why))


def _unknown(rows: pl.DataFrame, names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        if rows[name].null_count() == rows.height:
            found.setdefault(reason_words(rows.row(0, named=True), name), []).append(name)
    return found


def _rests(rows: pl.DataFrame) -> list[str]:
    """Return the basis of all figures that is the same in each row."""
    names = [name for name in ("n", "coverage") if name in rows.columns]
    return [name for name in names if rows[name].n_unique() == 1]


def show_implausible(notes: Sequence[str]) -> None:
    """Show the lines of `plausibility.notes_of`, if there are any."""
    for note in notes:
        st.warning(Markdown("{}{}.").format(note[0].upper(), note[1:]))


def row_notes(row: Mapping[str, Any]) -> list[str]:
    """Describe the implausible figures of a row, as `notes_of` does for a table."""
    return notes_of(pl.DataFrame({name: [row[name]] for name in ("trajectory", "implausible")}))


def high_rate_notes(rates: pl.DataFrame) -> list[str]:
    """Describe the implausible rates in force, as `notes_of` does.

    ``rates`` is of `toolkit.workspace.snapshot_tables.funding_rates`.
    """
    odd = rates.filter(high_rate())
    key = pl.format("{}:{}", "symbol", "leg").alias("trajectory")
    return notes_of(odd.select(key, pl.lit(HIGH_RATE).alias("implausible")))
