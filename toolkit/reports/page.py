"""Page of a report: one HTML file, of the same bytes for the same recipe and charts."""

from __future__ import annotations

import base64
import gzip
import inspect
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from toolkit.cards import counted
from toolkit.charts import Figure
from toolkit.charts.figure import PLOTLY_SETTINGS
from toolkit.foreign import Html, html, plain
from toolkit.market import Pair, Source, Stream, format_ts
from toolkit.reports.answering import OF_MANY, SCREENS
from toolkit.reports.comparison import changes_of, result_of
from toolkit.reports.recipe import Part, PartResult, Pin, Recipe, class_of
from toolkit.show.values import basis_text
from toolkit.statistics.explanation import documented
from toolkit.workspace.events.event_selection import AROUND

_VERBS = {"price": "prices", "spread": "spread", "funding": "funding", "events": "events"}


def opened(pin: Pin) -> str:
    """Return the line that opens the data of a report at its snapshot.

    >>> opened(Pin("replay", "depeg", "rail.duckdb", 0))
    'rail = tk.open("rail.duckdb").as_of("1970-01-01 00:00 UTC")'
    """
    place = f"archive/manifests/{pin.publication}.json" if pin.publication else pin.store
    then = "" if pin.as_of is None else f".as_of({_text(format_ts(pin.as_of))})"
    return f"rail = tk.open({_text(place)}){then}"


def code_of(part: Part, pin: Pin, fees: str = "") -> str:
    """Return the lines of Python that compute a part.

    ``fees`` is the label of the fee table, "" without one, for a comment.

    >>> part = Part("episodes", 0, 60, stream="A_B:X.spot:Y.spot", options={"enter_bps": 5})
    >>> print(code_of(part, Pin("replay", "depeg", "rail.duckdb", 0)).splitlines()[-1])
    rail.spread("A_B:X.spot:Y.spot", "1970-01-01 00:00 UTC", ...).episodes(enter_bps=5)
    """
    window = ", ".join(_text(format_ts(ts)) for ts in part.window)
    lines, before = ["import toolkit as tk"], list[str]()
    if fees:
        lines.insert(
            0, f"# by the fee table {plain(fees)}: of rail.toml, else tk.open(..., fees=FILE)"
        )
    if part.what in SCREENS:
        screen = SCREENS[part.what]
        function, family = screen.figures.__name__, screen.family.value
        lines.append(f"from toolkit.statistics.screening import {function}")
        streams = f'family="{family}", streams={_text(list(part.streams))}'
        costs = ", fees=rail.fees" if fees else ""
        asked = f"rail.measure({function}, {window}, {streams}{costs})"
    elif part.what == "screen":
        asked = f"rail.screen({', '.join([window, *_options(part)])})"
    elif part.stream:
        series, taken = _series(part.stream, window), _options(part)
        if part.analysis is not None and part.analysis.takes & AROUND:
            before.append(f"log = {series}")
            on = f", on={_text(part.options['on'])}" if "on" in part.options else ""
            series, taken = "log", [f"rail.around(log{on})", *taken]
        asked = f"{series}.{part.what}({', '.join(taken)})"
    else:
        lines.append("from toolkit.reports import Part, answered")
        given = f"streams={_text(tuple(part.streams))}, options={_text(part.options)}"
        asked = f'answered(rail, Part("{part.what}", {part.start}, {part.end}, {given})).chart'
    return "\n".join([*lines, opened(pin), *before, asked])


def _options(part: Part) -> list[str]:
    return [f"{name}={_text(value)}" for name, value in part.options.items()]


def _series(key: str, window: str) -> str:
    if key.startswith("pair/"):
        two = Pair.parse(key)
        fx = "" if two.fx is None else f", fx={_text(str(two.fx))}"
        return f"rail.pair({_text(str(two.buy))}, {_text(str(two.sell))}, {window}{fx})"
    stream = Stream.parse(key)
    verb = _VERBS.get(stream.kind, "series")
    name = key.removeprefix("events/") if verb == "events" else key
    return f"rail.{verb}({_text(name)}, {window})"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))},)"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_text(name)}: {_text(each)}" for name, each in value.items()) + "}"
        )
    return json.dumps(plain(value)) if isinstance(value, str) else repr(value)


_MOST_LINKS = 4
_LONGEST_TITLE, _LONGEST_LINE = 300, 100_000
_UNDRAWN = "{}: the chart needs a browser of 2023 or later with scripts on. Its figures are below."


def page(recipe: Recipe, charts: Sequence[Figure | None]) -> str:
    """Return the whole page of a recipe, with the charts of its parts."""
    windows = list(dict.fromkeys(str(part.window) for part in recipe.parts))
    parts = zip(recipe.parts, recipe.answers, charts, strict=True)
    return (
        _templates()
        .get_template("page.html")
        .render(
            recipe=recipe,
            title=html(recipe.title, _LONGEST_TITLE),
            mark={"simulated": "SIMULATED", "replay": "REPLAY"}.get(recipe.pin.kind),
            source=_label(recipe),
            facts=[*(windows if len(windows) < 3 else []), f"data: {recipe.pin.words}"],
            folded=len(recipe.parts) > _MOST_LINKS,
            changes=recipe.earlier and changes_of(recipe, recipe.earlier),
            parts=[_shown(number, *part, recipe) for number, part in enumerate(parts, 1)],
            opened=opened(recipe.pin),
            plotly=_plotly() if any(chart is not None for chart in charts) else "",
        )
    )


@cache
def _templates() -> Environment:
    """Return the templates, in which `toolkit.foreign` escapes every value."""
    return Environment(
        loader=PackageLoader("toolkit.reports", "."),
        autoescape=True,
        finalize=lambda value: value if hasattr(value, "__html__") else html(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


def _shown(
    number: int, part: Part, answer: PartResult, chart: Figure | None, recipe: Recipe
) -> dict[str, Any]:
    drawing = words = ""
    if chart is not None:
        words, identity = chart.words, f"figure-{number}"
        drawing = chart.drawing_html(carries=False, identity=identity, without_plotly=_UNDRAWN)
    code = code_of(part, recipe.pin, recipe.fees)
    return {
        "name": part.name,
        "drawing": drawing,
        "words": words,
        "result": result_of(part, answer),
        "facts": _basis(part, answer, recipe),
        "data_hash": answer.data_hash,
        "definition": [html(line, _LONGEST_LINE) for line in definition(part, answer.method)],
        "code": Html("\n").join(html(line, _LONGEST_LINE) for line in code.splitlines()),
    }


def _label(recipe: Recipe) -> str:
    return Source(recipe.pin.kind, recipe.pin.id).label


def _basis(part: Part, answer: PartResult, recipe: Recipe) -> list[str]:
    of = "coverage" if part.stream else "mean coverage"
    known = basis_text(answer.n, answer.coverage, of)
    facts = [*filter(None, [known]), str(part.window), _label(recipe)]
    if part.streams:
        rows = f"{answer.rows:,} with rows of " if part.what != "symbol" else ""
        facts.append(rows + counted(len(part.streams), "stream"))
    given = ", ".join(f"{name}={value}" for name, value in part.options.items())
    facts.append(f"parameters: {given or 'default'}")
    return [*facts, f"method {answer.method}"] if answer.method else facts


def definition(part: Part, method: str) -> list[str]:
    """Return the documentation of a part's computation.

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


@cache
def _plotly() -> str:
    """Return plotly.js as gzip in base64, the same bytes each time."""
    script = f"{PLOTLY_SETTINGS}{get_plotlyjs()}".encode()
    return base64.b64encode(gzip.compress(script, 9, mtime=0)).decode()
