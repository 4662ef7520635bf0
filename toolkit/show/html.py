"""Tables and figures as HTML: values, headings, reasons and meanings as `toolkit.columns` has them.

Rows map columns to values of one result, as "spread.summary/5". "" is any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolkit.columns import column
from toolkit.foreign import Html
from toolkit.show.sheet import Notes, cell_text
from toolkit.show.values import UNRELIABLE, doubt_of, heading_of, reason_words, value_text

Row = dict[str, Any]


def figures_html(row: Row, names: Iterable[str], result: str = "") -> Html:
    """Return figures of a row: heading, value or why it is null, and meaning.

    >>> figures_html({"carry_bps": 2.0}, ["carry_bps"])[:58]
    '<dl class="figures"><div><dt>carry</dt><dd>2.00 bps</dd><s'
    """
    return Html('<dl class="figures">{}</dl>').format(
        Html("").join(_figure(row, name, result) for name in names)
    )


def _figure(row: Row, name: str, result: str) -> Html:
    one, why = column(name, result), reason_words(row, name) if row[name] is None else ""
    doubt = f", {UNRELIABLE}" if doubt_of(row, name) else ""
    shown = Html("<dd>{}</dd>").format(value_text(row[name], one, unit=True) + doubt)
    if why:
        shown = Html('<dd class="reason">{}</dd>').format(why)
    return Html("<div><dt>{}</dt>{}<small>{}</small></div>").format(
        one.heading, shown, one.meaning.replace("`", "")
    )


def table_html(rows: Sequence[Row], names: Sequence[str], result: str = "") -> Html:
    """Return rows as a table, with notes on nulls and, folded, the meanings of columns below.

    A column without any value is left out, and a note says why.
    """
    columns = {name: column(name, result) for name in names}
    empty = {name for name in names if all(row[name] is None for row in rows)}
    kept, notes = [one for name, one in columns.items() if name not in empty], Notes()
    texts = {one for one in kept if any(isinstance(row[one.name], str) for row in rows)}
    table = lines_html(
        [("text" if one in texts else "number", heading_of(one, short=True)) for one in kept],
        [[(cell_text(row, one, notes),) for one in kept] for row in rows],
    )
    left_out = {
        columns[name].heading: reason_words(rows[0], name) for name in columns if name in empty
    }
    said = [f"No {heading}: {why}." for heading, why in left_out.items() if why]
    meant = [(one.name, one.meaning.replace("`", "")) for one in kept if one.meaning]
    words = Html("").join(Html("<p><code>{}</code>: {}</p>").format(*each) for each in meant)
    folded = Html("<details><summary>What the columns mean</summary>{}</details>").format(words)
    return Html("{}{}{}").format(
        table, notes_html([*notes.lines, *said]), folded if words else words
    )


def lines_html(
    heads: Sequence[tuple[str, str]], lines: Iterable[Sequence[tuple[str, ...]]]
) -> Html:
    """Return a table. A head has its kind, "text" or "number", a cell its text and one below it.

    On a narrow screen the head precedes each cell. Keys break at colons.

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
    """Return notes, one per line."""
    return Html("").join(Html('<p class="basis">{}</p>').format(note) for note in notes)
