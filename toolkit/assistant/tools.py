"""The tools: what an assistant can ask of a store, each with its arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolkit.assistant import questions
from toolkit.assistant.answers import MOST_ROWS, ToolAnswer
from toolkit.errors import InputError
from toolkit.market import parse_ts
from toolkit.workspace import Workspace


@dataclass(frozen=True, slots=True)
class StoreTool:
    """A tool: its name, what it answers, the JSON schema of each argument, and who answers.

    ``rows`` is how many rows an answer has at most, where a call has no ``limit``.
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
        """Answer a call. ``given`` are the arguments by name.

        Raises `InputError` for an argument that is unknown, absent or of another type, and what
        the workspace raises.
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
        limit = arguments.get("limit", self.rows)
        if "limit" not in self.arguments:
            arguments.pop("limit", None)
        then = rail if as_of is None else rail.as_of(as_of)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what a series warns of, its notes say
            found = self.ask(then, **arguments)
        known_at = None if as_of is None else parse_ts(as_of, parameter="as_of")
        found = replace(found, limit=limit, as_of=known_at)
        return found if columns is None else found.narrowed(columns)


_PYTHON_TYPES = {"string": str, "integer": int, "boolean": bool}


def _check(name: str, value: object, schema: Mapping[str, Any]) -> None:
    fits = type(value) is _PYTHON_TYPES[schema["type"]]  # True is no 1 here
    if fits and isinstance(value, int) and "minimum" in schema:
        fits = schema["minimum"] <= value <= schema["maximum"]
    if not fits:
        raise InputError(name, value, f"{schema['description']} (a JSON {schema['type']})")
    if "enum" in schema and value not in schema["enum"]:
        raise InputError(name, value, schema["enum"])


def _text(about: str, *names: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string", "description": about}
    return found | ({"enum": list(names)} if names else {})


_LIMIT = {
    "type": "integer",
    "description": f"rows of the answer at most, 1 to {MOST_ROWS}",
    "minimum": 1,
    "maximum": MOST_ROWS,
}
_AS_OF = _text("what the store knew at this time, UTC; without it what it knows now")
_STREAM = _text(
    "the key of a stream: SYMBOL:EXCHANGE.market (price), SYMBOL:BUY.market:SELL.market (spread), "
    "funding/SYMBOL:BUY.market:SELL.market, events/spread, events/splash or events/funding; "
    "search_streams finds them"
)
_WINDOW = {
    "start": _text(
        "first second, UTC: 2023-03-01 or 2023-03-01T12:00:00Z; without an end also a whole "
        "window: 7d, 12h, yesterday, 2023-03. Without both it is all that is held"
    ),
    "end": _text("first second after the window, UTC"),
}
_COLUMNS = {"columns": _text("names of columns by commas, of which alone the answer is made")}
_STYLE = _text("how a position is taken, for net figures; taker without it", *questions.STYLES)
_FUNDING_ONLY = {
    "type": "boolean",
    "description": "leave prices out of what a funding position kept: columns are named so",
}
_EVENTS = _text("the event log", "spread", "splash", "funding")

TOOLS = (
    StoreTool(
        "search_streams",
        "Find the streams that the store holds, with rows, coverage and age. Begin here.",
        {
            "text": _text("words that the key contains, such as BTC AURORA; all without it"),
            "kind": _text("one kind of stream", "price", "spread", "funding", "events", "snapshot"),
            **_COLUMNS,
        },
        questions.search_streams,
    ),
    StoreTool(
        "summary",
        "Describe one stream: of a spread level, dispersion, quantiles and half-life; of funding "
        "what it paid, APR, and carry with prices; of a price change and volatility; of an event "
        "log counts. Net of fees where the user has a fee table.",
        {"stream": _STREAM, **_WINDOW, **_COLUMNS},
        questions.summary,
        ("stream",),
    ),
    StoreTool(
        "screen",
        "Rank all spreads or funding pairs of the store. Without a sort the widest spread now, or "
        "the largest APR, is first. Without a start it is of the last 7 days, of funding all that "
        "is held. Rows are long: name columns.",
        {
            "family": _text("what is ranked; spread without it", "spread", "funding"),
            "where": _text("a condition on columns: coverage > 0.95 and half_life_s < 3600"),
            "sort": _text("a column, the largest first with a leading dash: -spread_std_log_bps"),
            "symbol": _text("one symbol alone, such as BTC_USDT"),
            "style": _STYLE,
            "funding_only": _FUNDING_ONLY,
            **_WINDOW,
            **_COLUMNS,
        },
        questions.screen,
        rows=10,
    ),
    StoreTool(
        "carry",
        "Compute what a funding position kept, funding and prices, over all times of entry, by how "
        "long it was held: "
        "quantiles, mean with a band, and with a fee table net figures and hours to break even.",
        {
            "stream": _text("a funding pair: SYMBOL:BUY.market:SELL.market"),
            "horizon": _text("how long it is held, such as 7d; several usual ones without it"),
            "style": _STYLE,
            "funding_only": _FUNDING_ONLY,
            **_WINDOW,
            **_COLUMNS,
        },
        questions.carry,
        ("stream",),
    ),
    StoreTool(
        "survival",
        "Compute how long events last (Kaplan and Meier), those still open included.",
        {
            "family": _EVENTS,
            "by": _text("groups: symbol, legs, exchange, hour or size_from, by commas"),
            "cluster": _text(
                "within what lives may depend on each other: auto (what the data show), none, "
                "path, day, symbol, trajectory or trajectory_day"
            ),
            **_WINDOW,
            **_COLUMNS,
        },
        questions.survival,
        ("family",),
    ),
    StoreTool(
        "study",
        "Compute the mean path of price, spread or funding around the openings of events, from the "
        "first value known after each, with bands.",
        {
            "family": _EVENTS,
            "minutes": {
                "type": "integer",
                "description": "minutes before and after, 1 to 10080; without it 60, of funding "
                "1440",
                "minimum": 1,
                "maximum": 10_080,
            },
            "from_detection": {
                "type": "boolean",
                "description": "start at what was known at the opening (of a spread or of funding "
                "its median before): the move that made the event then counts as what followed",
            },
            **_WINDOW,
            **_COLUMNS,
        },
        questions.study,
        ("family",),
        rows=questions.PARTS + 1,
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
        "Return a stream as a short series to draw: of each part of the window the first, lowest, "
        "highest and last value, of an event log a count. With figure also the chart itself.",
        {
            "stream": _STREAM,
            "figure": {
                "type": "boolean",
                "description": "add the chart as plotly's JSON, about 20 kB for a program to draw",
            },
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
            "query": _text(
                "one SELECT, such as: SELECT trajectory, count(*) FROM spreads GROUP BY 1"
            ),
            "limit": _LIMIT,
        },
        questions.sql,
        ("query",),
    ),
)
"""The tools in the order in which an assistant reads them."""
