"""What changed since the report before: which figures, by how much, n and coverage beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolkit.cards import counted, signed
from toolkit.foreign import Html
from toolkit.reports.recipe import Answer, Earlier, Part, Recipe, Value
from toolkit.reports.results import cell, column_words, page_of, with_unit

_NOT_FIGURES = ("_reason", "method", "params_hash", "_basis", "window_start", "window_end")
_NOT_COMPARED = frozenset(("n", "n_expected", "n_null", "coverage", "t_first", "t_last"))
_MOST = 60


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of one row of a part, before and now. ``basis`` is n and coverage of both."""

    subject: str
    figure: str
    label: str
    before: str
    now: str
    by: str
    basis: str


def changes_html(recipe: Recipe, earlier: Earlier) -> Html:
    """Return the section of changes: a table of figures that differ, and what came or went."""
    changes, same, notes = compared(recipe, earlier)
    head = Html(
        '<section id="changes"><h2>Changed since the report before</h2>'
        '<p class="basis">Before: {}. Now: {}. {} changed, {} did not.</p>'
    ).format(earlier.pin.words, recipe.pin.words, counted(len(changes), "figure"), f"{same:,}")
    rows = Html("").join(_row(each) for each in changes[:_MOST])
    table = Html(
        '<div class="wide"><table><thead><tr><th class="text">of</th><th class="text">figure</th>'
        "<th>before</th><th>now</th><th>change</th><th>n, coverage</th></tr></thead>"
        "<tbody>{}</tbody></table></div>"
    ).format(rows)
    more = [f"{len(changes) - _MOST} more changes are not listed."] if len(changes) > _MOST else []
    below = Html("").join(Html('<p class="basis">{}</p>').format(note) for note in (*notes, *more))
    return Html("{}{}{}</section>\n").format(head, table if changes else Html(""), below)


def _row(change: Change) -> Html:
    way = {"+": "up", "-": "down"}.get(change.by[:1], "")
    return Html(
        '<tr><td class="text">{}</td><td class="text">{}</td><td class="number">{}</td>'
        '<td class="number">{}</td><td class="number"><span class="{}">{}</span></td>'
        "<td>{}</td></tr>"
    ).format(change.subject, change.label, change.before, change.now, way, change.by, change.basis)


def compared(recipe: Recipe, earlier: Earlier) -> tuple[list[Change], int, list[str]]:
    """Return what changed, how many figures did not, and in words what only one of them has.

    Parts are the same where they ask for the same of the same, whatever the window. Rows are the
    same where their texts are: trajectory, family, legs.
    """
    before = {
        _key(part): answer for part, answer in zip(earlier.parts, earlier.answers, strict=True)
    }
    changes: list[Change] = []
    same, notes = 0, []
    for part, answer in zip(recipe.parts, recipe.answers, strict=True):
        old = before.pop(_key(part), None)
        if old is None:
            notes.append(f"New: {part.what} {part.stream}".rstrip() + ".")
            continue
        rows, old_rows = _rows(answer), _rows(old)
        for name in rows.keys() & old_rows.keys():
            found = list(_changes(name or part.stream, answer, rows[name], old_rows[name]))
            changes += [each for each in found if each is not None]
            same += sum(each is None for each in found)
        notes += _came_and_went(rows, old_rows)
    notes += [f"No longer there: {key[0]} {key[1]}".rstrip() + "." for key in before]
    return sorted(changes, key=lambda each: (each.subject, each.figure)), same, notes


def _key(part: Part) -> tuple[str, str, str]:
    return part.what, part.stream, json.dumps(part.options, sort_keys=True)


def _rows(answer: Answer) -> dict[str, Mapping[str, Value]]:
    """Return the rows by their texts. Rows that share these are not compared."""
    found: dict[str, Mapping[str, Value]] = {}
    twice = set()
    for row in answer.shown:
        texts = [
            str(value)
            for name, value in row.items()
            if isinstance(value, str) and not name.endswith((*_NOT_FIGURES, "flags", "model"))
        ]
        name = " ".join(texts)
        if name in found:
            twice.add(name)
        found[name] = row
    return {name: row for name, row in found.items() if name not in twice}


def _came_and_went(rows: Mapping[str, object], old: Mapping[str, object]) -> Iterator[str]:
    for words, names in (("New", rows.keys() - old.keys()), ("Gone", old.keys() - rows.keys())):
        if names:
            yield f"{words} among the rows shown: {', '.join(sorted(names))}."


def _changes(
    subject: str, answer: Answer, row: Mapping[str, Value], old: Mapping[str, Value]
) -> Iterator[Change | None]:
    """Yield each figure of a row that changed, None for one that did not."""
    page = page_of(answer.method)
    basis = f"{_basis(old)} → {_basis(row)}"
    for name, now in row.items():
        if name in _NOT_COMPARED or name.endswith(_NOT_FIGURES) or name not in old:
            continue
        before = old[name]
        meaning = with_unit(name, page)
        if page.columns and meaning.type in ("", "given", "String"):
            continue
        if isinstance(now, str) or isinstance(before, str):
            continue
        if now == before:
            yield None
            continue
        was, is_now = (
            "null" if each is None else cell(name, each, meaning) for each in (before, now)
        )
        by = _difference(before, now)
        yield Change(subject, name, column_words(name), was, is_now, by, basis)


def _basis(row: Mapping[str, Value]) -> str:
    n, coverage = row.get("n"), row.get("coverage")
    parts = [f"{n:,}"] if isinstance(n, int) else []
    parts += [f"{100 * coverage:.1f} %"] if isinstance(coverage, float) else []
    return ", ".join(parts) or "–"


def _difference(before: Value, now: Value) -> str:
    """Return a change with its sign, in the figure's own unit, with four digits.

    >>> _difference(2.0, 2.5), _difference(None, 1.0)
    ('+0.5', '')
    """
    if isinstance(before, str | bool | None) or isinstance(now, str | bool | None):
        return ""
    change = now - before
    if not math.isfinite(change) or change == 0:
        return ""
    digits = max(0, 3 - math.floor(math.log10(abs(change))))
    text = signed(change, min(digits, 8))
    return text.rstrip("0").rstrip(".") if "." in text else text
