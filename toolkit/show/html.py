"""Tables and figures as HTML: values, headings, reasons and meanings as `toolkit.columns` has them.

Rows are mappings of columns to values, of one result, as "spread.summary/5". "" is of any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.columns import column
from toolkit.foreign import Html
from toolkit.show.half_life import half_life_note
from toolkit.show.values import NULL, cell_text, doubt_of, heading_of, null_text, reason_words

Row = Mapping[str, Any]


def figures_html(row: Row, names: Iterable[str], result: str = "") -> Html:
    """Return figures of a row beside each other: heading, value or why it is null, and meaning.

    >>> figures_html({"carry_bps": 2.0}, ["carry_bps"])[:58]
    '<dl class="figures"><div><dt>carry</dt><dd>2.00 bps</dd><s'
    """
    return Html('<dl class="figures">{}</dl>').format(
        Html("").join(_figure(row, name, result) for name in names)
    )


def _figure(row: Row, name: str, result: str) -> Html:
    one, why = column(name, result), reason_words(row, name) if row[name] is None else ""
    shown = Html('<dd class="reason">{}</dd>').format(why)
    if not why:
        shown = Html("<dd>{}</dd>").format(cell_text(row, name, result, unit=True))
    return Html("<div><dt>{}</dt>{}<small>{}</small></div>").format(
        one.heading, shown, one.meaning.replace("`", "")
    )


def table_html(rows: Sequence[Row], names: Sequence[str], result: str = "") -> Html:
    """Return rows as a table. Below it is why there are nulls, and folded what columns mean.

    A column without any value is left out, and a line below says why.
    """
    empty = [name for name in names if all(row[name] is None for row in rows)]
    kept = [name for name in names if name not in empty]
    texts = {name for name in kept if any(isinstance(row[name], str) for row in rows)}
    table = lines_html(
        [("text" if n in texts else "number", heading_of(column(n, result))) for n in kept],
        ([(cell_text(row, name, result),) for name in kept] for row in rows),
    )
    notes = [*_reasons(rows, kept), *_doubts(rows, kept), *_empty(rows[0], empty, result)]
    return Html("{}{}{}").format(table, notes_html(notes), _meanings(kept, result))


def lines_html(
    heads: Sequence[tuple[str, str]], lines: Iterable[Sequence[tuple[str, ...]]]
) -> Html:
    """Return a table. Each head has its kind, "text" or "number", each cell what stands below it.

    On a narrow screen a column's head is before each cell. A key breaks at a colon.

    >>> lines_html([("text", "of")], [[("A_B:X.spot",)]])[-92:-27]
    '<td class="text" data-head="of"><span>A_B:<wbr>X.spot</span></td>'
    """
    above = Html("").join(Html('<th class="{}" scope="col">{}</th>').format(*h) for h in heads)
    cells = ([_cell(*h, *cell) for h, cell in zip(heads, line, strict=True)] for line in lines)
    return Html(
        '<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(above, Html("").join(Html("<tr>{}</tr>").format(Html("").join(c)) for c in cells))


def _cell(kind: str, head: str, text: str, below: str = "") -> Html:
    parts = Html(":<wbr>").join(text.split(":")) if kind == "text" else text
    small = Html("<small>{}</small>").format(below) if below else Html("")
    cell = Html('<td class="{}" data-head="{}"><span>{}{}</span></td>')
    return cell.format(kind, head, parts, small)


def notes_html(notes: Iterable[str]) -> Html:
    """Return notes, each a line of its own."""
    return Html("").join(Html('<p class="basis">{}</p>').format(note) for note in notes)


def _reasons(rows: Sequence[Row], kept: Sequence[str]) -> list[str]:
    nulls = ((row, name) for row in rows for name in kept if row[name] is None)
    words = {reason_words(*each): None for each in nulls if null_text(*each) == NULL}
    return [f"{NULL}: {'; '.join(filter(None, words))}."] if any(words) else []


def _doubts(rows: Sequence[Row], kept: Sequence[str]) -> list[str]:
    doubts = {half_life_note(row): None for row in rows for n in kept if doubt_of(row, n)}
    return [f"{words[0].upper()}{words[1:]}." for words in doubts]


def _empty(row: Row, names: Sequence[str], result: str) -> list[str]:
    found = {column(name, result).heading: reason_words(row, name) for name in names}
    return [f"No {heading}: {why}." for heading, why in found.items() if why]


def _meanings(kept: Sequence[str], result: str) -> Html:
    meanings = {name: column(name, result).meaning.replace("`", "") for name in kept}
    words = Html("").join(
        Html("<p><code>{}</code>: {}</p>").format(*each) for each in meanings.items() if each[1]
    )
    folded = Html("<details><summary>What the columns mean</summary>{}</details>")
    return folded.format(words) if words else words
