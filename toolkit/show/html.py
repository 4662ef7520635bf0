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
    kinds = {name: "text" if name in texts else "number" for name in kept}
    heads = {name: heading_of(column(name, result)) for name in kept}
    table = lines_html(
        [(kinds[name], head) for name, head in heads.items()],
        ([cell_html(kinds[n], heads[n], cell_text(row, n, result)) for n in kept] for row in rows),
    )
    notes = notes_html([*_doubts(rows, kept), *_left_out(rows[0], empty, result)])
    return Html("{}{}{}").format(table, notes, _meanings(kept, result))


def lines_html(heads: Iterable[tuple[str, str]], lines: Iterable[Sequence[Html]]) -> Html:
    """Return a table of cells that are made. Each head has its kind: "text" or "number"."""
    above = Html('<th class="{}" scope="col">{}</th>')
    return Html(
        '<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(
        Html("").join(above.format(*head) for head in heads),
        Html("").join(Html("<tr>{}</tr>").format(Html("").join(line)) for line in lines),
    )


def cell_html(kind: str, head: str, text: str, below: str = "") -> Html:
    """Return a cell. On a narrow screen its column's head is before it. A key breaks at a colon.

    >>> cell_html("text", "of", "A_B:X.spot")
    '<td class="text" data-head="of"><span>A_B:<wbr>X.spot</span></td>'
    """
    parts = Html(":<wbr>").join(text.split(":")) if kind == "text" else text
    small = Html("<small>{}</small>").format(below) if below else Html("")
    cell = Html('<td class="{}" data-head="{}"><span>{}{}</span></td>')
    return cell.format(kind, head, parts, small)


def notes_html(notes: Iterable[str]) -> Html:
    """Return notes, each a line of its own."""
    return Html("").join(Html('<p class="basis">{}</p>').format(note) for note in notes)


def _doubts(rows: Sequence[Row], kept: Sequence[str]) -> list[str]:
    """Say why values are null, and why half-lives are not believed."""
    nulls = {
        reason_words(row, name): None
        for row in rows
        for name in kept
        if row[name] is None and null_text(row, name) == NULL
    }
    notes = [f"{NULL}: {'; '.join(filter(None, nulls))}."] if any(nulls) else []
    doubts = {half_life_note(row): None for row in rows for n in kept if doubt_of(row, n)}
    return notes + [f"{words[0].upper()}{words[1:]}." for words in doubts]


def _left_out(row: Row, empty: Sequence[str], result: str) -> list[str]:
    reasons = {name: reason_words(row, name) for name in empty}
    return [f"No {column(name, result).heading}: {why}." for name, why in reasons.items() if why]


def _meanings(kept: Sequence[str], result: str) -> Html:
    meanings = {name: column(name, result).meaning.replace("`", "") for name in kept}
    words = Html("").join(
        Html("<p><code>{}</code>: {}</p>").format(*each) for each in meanings.items() if each[1]
    )
    folded = Html("<details><summary>What the columns mean</summary>{}</details>")
    return folded.format(words) if words else words
