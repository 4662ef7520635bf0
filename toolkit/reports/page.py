"""The page of a report: one HTML file that shows the same on any machine, without a network.

It is made from the recipe and the charts alone, so the same recipe gives the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import inspect
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from plotly.offline import get_plotlyjs

from toolkit.cards import counted
from toolkit.charts import Figure
from toolkit.charts.figure import PLOTLY_SETTINGS
from toolkit.foreign import Html, html
from toolkit.market import Source
from toolkit.reports.code import code_of, opened
from toolkit.reports.comparison import changes_html
from toolkit.reports.many import OF_MANY
from toolkit.reports.recipe import Part, PartResult, Recipe, class_of
from toolkit.reports.results import result_html
from toolkit.show.values import basis_text
from toolkit.statistics.explanation import documented

_MOST_LINKS = 4
_UNDRAWN = "{}: the chart needs a browser of 2023 or later with scripts on. Its figures are below."
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


def page(recipe: Recipe, charts: Sequence[Figure | None]) -> str:
    """Return the whole page of a recipe, with the charts of its parts."""
    sections = [
        _section(number, part, answer, chart, recipe)
        for number, (part, answer, chart) in enumerate(
            zip(recipe.parts, recipe.answers, charts, strict=True), 1
        )
    ]
    scripts = f'<script type="application/json" id="recipe">{recipe.block}</script>\n'
    if any(chart is not None for chart in charts):
        scripts += f'<script type="text/plain" id="plotly">{_plotly()}</script>\n'
        scripts += f"<script>{_file('page.js')}</script>\n"
    title = html(recipe.title, 300)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{_file('page.css')}</style>\n</head>\n<body>\n"
        f"{_head(recipe)}\n<main>\n{_changes(recipe)}{''.join(sections)}</main>\n"
        f"{_foot(recipe)}\n{scripts}</body>\n</html>\n"
    )


def _head(recipe: Recipe) -> Html:
    """Return title, source, snapshot and the list of what follows."""
    source = Source(recipe.pin.kind, recipe.pin.id)
    marks = {"simulated": Html('<span class="mark">SIMULATED</span> ')}
    marks["replay"] = Html('<span class="mark">REPLAY</span> ')
    links = Html("").join(
        Html('<a href="#part-{}">{}</a>').format(number, part.name)
        for number, part in enumerate(recipe.parts, 1)
    )
    windows = list(dict.fromkeys(str(part.window) for part in recipe.parts))
    if len(recipe.parts) > _MOST_LINKS:
        links = Html("<details><summary>Contents</summary>{}</details>").format(links)
    fees = Html("")
    if recipe.fees:
        fees = Html("<p>Net figures by the fee table {}.</p>").format(recipe.fees)
    return Html(
        "<header><h1>{}</h1><p>{}{}</p>"
        "<p>{}</p><p>Times are UTC, windows without their end.</p>{}<nav>{}</nav></header>"
    ).format(
        html(recipe.title, 300),
        marks.get(recipe.pin.kind, Html("")),
        source.label,
        Html(" · ").join([*(windows if len(windows) < 3 else []), f"data: {recipe.pin.words}"]),
        fees,
        links,
    )


def _changes(recipe: Recipe) -> Html:
    return Html("") if recipe.earlier is None else changes_html(recipe, recipe.earlier)


def _section(
    number: int, part: Part, answer: PartResult, chart: Figure | None, recipe: Recipe
) -> str:
    """Return one part: heading, chart, result, what it rests on, definition and code."""
    drawing = ""
    if chart is not None:
        drawing = chart.drawing_html(
            carries=False, identity=f"figure-{number}", without_plotly=_UNDRAWN
        )
    words = Html("") if chart is None else Html('<p class="unseen">{}</p>').format(chart.words)
    head = Html('<section id="part-{}"><h2>{}</h2>').format(number, part.name)
    below = Html(
        '{}{}<p class="basis">{}</p><details><summary>Definition and code</summary>{}<pre>{}</pre>'
        "</details></section>\n"
    ).format(
        words,
        result_html(part, answer),
        _basis(part, answer, recipe),
        Html("").join(
            Html("<p>{}</p>").format(html(line, 100_000))
            for line in definition(part, answer.method)
        ),
        _lines(code_of(part, recipe.pin, recipe.fees)),
    )
    return f"{head}{drawing}{below}"


def _basis(part: Part, answer: PartResult, recipe: Recipe) -> Html:
    """Say what a part rests on: n, coverage, window, source, parameters and hashes."""
    of = "coverage" if part.stream else "mean coverage"
    known = basis_text(answer.n, answer.coverage, of)
    facts = [*filter(None, [known]), str(part.window), Source(recipe.pin.kind, recipe.pin.id).label]
    if part.streams:
        rows = f"{answer.rows:,} with rows of " if part.what != "symbol" else ""
        facts.append(rows + counted(len(part.streams), "stream"))
    given = ", ".join(f"{name}={value}" for name, value in part.options.items())
    facts.append(f"parameters: {given or 'default'}")
    if answer.method:
        facts.append(f"method {answer.method}")
    hashed = Html("rows SHA-256 <code>{}</code>").format(answer.data_hash)
    return Html(" · ").join([*facts, hashed])


def definition(part: Part, method: str) -> list[str]:
    """Return what a part computes, in the words of its documentation.

    >>> definition(Part("summary", 0, 60, stream="A_B:X.spot:Y.spot"), "spread.summary/5")[1][:30]
    'Compute the level, dispersion,'
    """
    series = class_of(part.stream) if part.stream else None
    asked = OF_MANY[part.what] if series is None else getattr(series, part.what)
    prose = documented(method).prose if method else _paragraphs(asked)
    of = [] if series is None else _paragraphs(series)[:1]
    points = [point for each in prose[:3] for point in re.split(r"\n(?=- )", each)]
    return [" ".join(each.split()).replace("`", "") for each in (*of, *points)]


def _paragraphs(documented_by: object) -> list[str]:
    return (inspect.getdoc(documented_by) or "").split("\n\n")


def _lines(text: str) -> Html:
    return Html("\n").join(html(line, 100_000) for line in text.splitlines())


def _foot(recipe: Recipe) -> Html:
    return Html(
        "<footer><p>Opened as <code>{}</code></p><p><code>rail report --verify FILE</code> "
        "computes this page again from its snapshot and compares.</p>"
        "<p>Machine Rail Toolkit {}</p></footer>"
    ).format(opened(recipe.pin), recipe.toolkit)


@cache
def _plotly() -> str:
    """Return plotly.js as gzip in base64, the same bytes each time."""
    script = f"{PLOTLY_SETTINGS}{get_plotlyjs()}".encode()
    return base64.b64encode(gzip.compress(script, 9, mtime=0)).decode()


@cache
def _file(name: str) -> str:
    return files("toolkit.reports").joinpath(name).read_text(encoding="utf-8")
