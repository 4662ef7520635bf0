"""The tools: questions that an assistant can ask of a store."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, cast, get_args

from toolkit.analyses import Analysis, Family, Parameter, analyses
from toolkit.assistant import questions
from toolkit.assistant.answers import MOST_ROWS, ToolAnswer
from toolkit.assistant.questions import of_selection, of_series
from toolkit.cards import some
from toolkit.errors import InputError
from toolkit.market import Family as Kind
from toolkit.market import parse_ts
from toolkit.series import Series
from toolkit.series.base import BOUND, bound_to
from toolkit.statistics.fees.fee_table import NOTIONAL, Style
from toolkit.workspace import Workspace
from toolkit.workspace.answers import Costs, SeriesAnswer
from toolkit.workspace.events.event_selection import AROUND
from toolkit.workspace.selection import Passes, Selection


@dataclass(frozen=True, slots=True)
class StoreTool:
    """A tool: its name, description, the JSON schema of each argument, and its function.

    ``rows`` is the default ``limit`` of an answer.
    """

    name: str
    about: str
    arguments: Mapping[str, dict[str, Any]]
    ask: Callable[..., ToolAnswer]
    required: tuple[str, ...] = ()
    rows: int = 20

    @property
    def known(self) -> dict[str, dict[str, Any]]:
        """The JSON schema of every argument."""
        return {**self.arguments, "limit": _LIMIT, "as_of": _AS_OF}

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of a call's arguments."""
        return {
            "type": "object",
            "properties": self.known,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def answer(self, rail: Workspace, given: Mapping[str, Any]) -> ToolAnswer:
        """Answer a call with these arguments.

        Raises `InputError` for an argument that is unknown, absent or of another type, and the
        errors of the workspace.
        """
        for name, value in given.items():
            if name not in self.known:
                raise InputError("argument", name, list(self.known))
            _check(name, value, self.known[name])
        for name in self.required:
            if name not in given:
                raise InputError(name, None, self.known[name]["description"])
        arguments = dict(given)
        as_of, columns = arguments.pop("as_of", None), arguments.pop("columns", None)
        take = arguments.get if "limit" in self.arguments else arguments.pop
        limit = take("limit", self.rows)
        then = rail if as_of is None else rail.as_of(as_of)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what a series warns of, its notes say
            found = self.ask(then, **arguments)
        known_at = None if as_of is None else parse_ts(as_of, parameter="as_of")
        return replace(found, limit=limit, as_of=known_at).narrowed(columns or "")


_PYTHON_TYPES = {"string": (str,), "integer": (int,), "boolean": (bool,), "number": (int, float)}


def _check(name: str, value: object, schema: Mapping[str, Any]) -> None:
    fits = type(value) in _PYTHON_TYPES[schema["type"]]  # True does not count as 1 here
    if fits and isinstance(value, int) and "minimum" in schema:
        fits = schema["minimum"] <= value <= schema["maximum"]
    if not fits:
        raise InputError(name, value, f"{schema['description']} (a JSON {schema['type']})")
    if "enum" in schema and value not in schema["enum"]:
        raise InputError(name, value, schema["enum"])


def _of(kind: str, about: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "description": about, **more}


def _text(about: str, *names: str) -> dict[str, Any]:
    return _of("string", about, **({"enum": list(names)} if names else {}))


_LIMIT = _of("integer", f"the most rows to return, 1 to {MOST_ROWS}", minimum=1, maximum=MOST_ROWS)
_AS_OF = _text("answer from what the store knew at this time, UTC; default: now")
_STREAM = _text("the key of a stream, as search_streams finds it")
_WINDOW = {
    "start": _text(
        "first second, UTC: 2023-03-01T12:00:00Z; or a whole window: 7d, yesterday, 2023-03; "
        "default: all that is held"
    ),
    "end": _text("first second after the window, UTC"),
}
_COLUMNS = {"columns": _text("names of the only columns to return, by commas")}
_ALL_COLUMNS = {"columns": _text("names of columns by commas, or all; default: the main ones")}
_STYLE = _text("how a position is taken, for net figures; default: taker", *get_args(Style))
_TYPES = {"flag": "boolean", "whole": "integer", "number": "number"}
_NOUNS = {
    "price": "a price",
    "spread": "a spread",
    "funding": "a funding pair",
    "rates": "a funding rate in force",
    "events": "an event log",
}
_OF_A_COMMAND = re.compile(r"Without keys|--|`rail")
_CURVE_ROWS = 60
_OTHER = "other"  # the rows of a second series
_COSTS = {
    "style": _STYLE,
    "notional": _of(
        "number", f"the size of a position in quote, for net figures; default: {NOTIONAL:g}"
    ),
}


def _declared_tools() -> tuple[StoreTool, ...]:
    """Return a tool per name of an analysis. The stream decides among several families."""
    named: dict[str, list[Analysis]] = {}
    across = [each for each in analyses() if each.across is not None]
    for each in analyses():
        if each in bound_to(each.family):
            named.setdefault(each.name, []).append(each)
    return (*(_tool(name, of) for name, of in named.items()), *map(_tool_across, across))


def _tool(name: str, of: Sequence[Analysis]) -> StoreTool:
    arguments: dict[str, Any] = {"stream": _STREAM}
    if any(_OTHER in each.takes for each in of):
        arguments[_OTHER] = _text("the key of the series to compare with")
    if any("events" in each.takes for each in of):
        arguments["on"] = _text("the key of a trajectory to follow instead of the events' own")
    arguments |= _arguments(of)
    first = set.intersection(*({p.name for p in each.parameters if p.required} for each in of))
    required = ("stream", *(each for each in arguments if each in {*first, _OTHER}))
    ask = partial(_of_one, name, tuple(each.family for each in of))
    rows = _CURVE_ROWS if any(each.is_curve for each in of) else 20
    return StoreTool(name, _about(of), arguments, ask, required, rows)


def _tool_across(analysis: Analysis) -> StoreTool:
    keys = _text(
        f"keys of {analysis.family} or patterns such as BTC_USDT:*, by commas; default: all"
    )
    arguments = {"streams": keys, **_arguments([analysis])}
    required = tuple(each.name for each in analysis.parameters if each.required)
    ask = partial(_of_many, analysis)
    return StoreTool(analysis.name, _about([analysis]), arguments, ask, required)


def _about(of: Sequence[Analysis]) -> str:
    if len(of) > 1:
        return _unmarked(" ".join(f"Of {_NOUNS[each.family]}: {each.sentence}" for each in of))
    lines = re.split(r"(?<=\.)\s+", of[0].about.partition("\n\n")[0])
    of_all = takewhile(lambda line: not _OF_A_COMMAND.search(line), lines)
    return _unmarked(" ".join([of[0].sentence, *(" ".join(each.split()) for each in of_all)]))


def _unmarked(words: str) -> str:
    return words.replace("`", "").strip()


def _arguments(of: Sequence[Analysis]) -> dict[str, Any]:
    asked: dict[str, list[tuple[Analysis, Parameter]]] = {}
    for each in of:
        for parameter in each.parameters:
            if parameter.is_asked:
                asked.setdefault(parameter.name, []).append((each, parameter))
    found = {}
    for name, given in asked.items():
        words = [*dict.fromkeys(parameter.help for _, parameter in given)]
        if len(given) < len(of):
            words.append(f"Of {some([_NOUNS[each.family] for each, _ in given])} alone.")
        words += _units(given[0][1])
        found[name] = _schema(given[0][1]) | {"description": _unmarked(" ".join(words))}
    costs = any(each.costs for each in of)
    return {**found, **(_COSTS if costs else {}), **_WINDOW, **_ALL_COLUMNS}


def _units(parameter: Parameter) -> list[str]:
    if parameter.many:
        some_of = f": {', '.join(parameter.choices)}" if parameter.choices else ""
        return [f"Several by commas{some_of}."]
    if parameter.kind == "length":
        return ["A length: 90s, 5m, 12h, 7d."]
    return [f"In {parameter.unit}."] if parameter.unit else []


def _schema(parameter: Parameter) -> dict[str, Any]:
    if parameter.many:
        return {"type": "string"}
    found: dict[str, Any] = {"type": _TYPES.get(parameter.kind, "string")}
    if parameter.choices:
        found["enum"] = list(parameter.choices)
    if parameter.default is not None:
        seconds = parameter.kind == "length" and type(parameter.default) is int
        found["default"] = f"{parameter.default}s" if seconds else parameter.default
    return found


def _read(analysis: Analysis, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: analysis.parameter(name).read(_several(analysis.parameter(name), value))
        for name, value in given.items()
    }


def _several(parameter: Parameter, value: Any) -> Any:
    if not parameter.many:
        return value
    parts = [each.strip() for each in value.split(",") if each.strip()]
    if parameter.kind not in ("whole", "number"):
        return parts
    try:
        return [(int if parameter.kind == "whole" else float)(each) for each in parts]
    except ValueError:
        raise InputError(parameter.name, value, "numbers by commas") from None


def _of_one(
    name: str,
    families: Sequence[Family],
    rail: Workspace,
    *,
    stream: str,
    start: str | None = None,
    end: str | None = None,
    other: str | None = None,
    **given: Any,
) -> ToolAnswer:
    if len(families) == 1 and families[0] in ("funding", "events") and "/" not in stream:
        stream = f"{families[0]}/{stream}"
    series = rail.series(stream, start, end)
    analysis, method = _declared(series, name), cast("Any", getattr(series, name, None))
    if not hasattr(method, "options"):
        allowed = some([_NOUNS[each] for each in families])
        raise InputError("stream", stream, f"{allowed}; sql reads all that is held")
    for each in given:
        if each not in method.options:
            raise InputError(f"argument of {stream}", each, method.options or "none")
    options = {each: given.pop(each) for each in (*_COSTS, "on") if each in given}
    options |= {} if analysis is None else _read(analysis, given)
    rows: dict[str, Any] = {}
    for frame in AROUND & {*method.options}:
        on = {"on": options["on"]} if "on" in options else {}
        rows[frame] = rail.around(cast("Any", series), **on)
    if other is not None:
        rows[_OTHER] = rail.series(other, start, end).rows
    return of_series(rail, series, method(**rows, **options), analysis, options)


def _declared(series: Series, name: str) -> Analysis | None:
    families = [of for each, of in BOUND.items() if isinstance(series, each)]
    return next((a for a in analyses() if a.name == name and a.family in families), None)


def _of_many(
    analysis: Analysis,
    rail: Workspace,
    *,
    streams: str = "",
    start: str | None = None,
    end: str | None = None,
    style: Any = "taker",
    notional: float = NOTIONAL,
    **given: Any,
) -> ToolAnswer:
    keys = [each.strip() for each in streams.split(",") if each.strip()]
    passes = Passes.of(rail.store, as_of=rail.known_at)
    asked = Selection.of(passes, Kind(analysis.family), keys or None, start, end)
    costs = None if rail.fees is None else Costs(rail.fees, notional, style).check()
    if analysis.needs_fees and costs is None:
        advice = "`rail fees --example` prints one, and `rail mcp --fees FILE` takes it"
        raise InputError("fees", None, "a fee table", advice=advice)
    return of_selection(rail, SeriesAnswer.of(analysis, asked, costs, **_read(analysis, given)))


_FUNDING_ONLY = _of("boolean", "leave prices out of a funding position; the columns say so")
_OWN = (
    StoreTool(
        "search_streams",
        "Find the streams that the store holds, with rows, coverage and age. Begin here. Keys are "
        "SYMBOL:EXCHANGE.market (price), SYMBOL:BUY.market:SELL.market (spread), "
        "funding/SYMBOL:BUY.market:SELL.market, events/spread, events/splash and events/funding.",
        {
            "text": _text("words that the key contains, such as BTC AURORA; default: all streams"),
            "kind": _text("one kind of stream", "price", "spread", "funding", "events", "snapshot"),
            **_COLUMNS,
        },
        questions.search_streams,
    ),
    StoreTool(
        "screen",
        "Rank all spreads or funding pairs of the store. By default the widest spread now, or the "
        "largest APR, is first, and the window is the last 7 days, for funding all that is held. "
        "Rows are long: name columns.",
        {
            "family": _text("what to rank; default: spread", "spread", "funding"),
            "where": _text("a condition on columns: coverage > 0.95 and half_life_s < 3600"),
            "sort": _text("a column; with a leading dash the largest first: -spread_std_log_bps"),
            "symbol": _text("only this symbol, such as BTC_USDT"),
            "style": _STYLE,
            "funding_only": _FUNDING_ONLY,
            **_WINDOW,
            **_COLUMNS,
        },
        questions.screen,
        rows=10,
    ),
    StoreTool(
        "coverage",
        "List what is missing of a stream: each stretch that is not held, the longest first, and "
        "why. Notes have the sums, and the command that loads what is missing.",
        {"stream": _STREAM, **_WINDOW},
        questions.coverage,
        ("stream",),
    ),
    StoreTool(
        "chart",
        "Return a stream as a short series to draw: first, lowest, highest and last value of each "
        "part of the window, of an event log a count. With figure also the chart itself.",
        {
            "stream": _STREAM,
            "figure": _of("boolean", "add the chart as plotly's JSON, about 20 kB for a program"),
            **_WINDOW,
        },
        questions.chart,
        ("stream",),
        rows=questions.PARTS + 1,
    ),
    StoreTool(
        "sql",
        f"Run one SELECT of at most {questions.SQL_S:g} s over the views of the store: prices, "
        "spreads, funding_rates, event_documents and others (a wrong name is answered with the "
        "list). It writes nothing and reads no file.",
        {
            "query": _text("one SELECT: SELECT trajectory, count(*) FROM spreads GROUP BY 1"),
            "limit": _LIMIT,
        },
        questions.sql,
        ("query",),
    ),
)

_NAMES = {tool.name for tool in _OWN}

TOOLS = (*_OWN, *(tool for tool in _declared_tools() if tool.name not in _NAMES))
"""The tools in the order in which an assistant reads them."""
