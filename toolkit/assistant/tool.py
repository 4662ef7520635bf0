"""A tool: its name, what it answers, its arguments with their JSON schemas, and a call of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from toolkit.assistant.answers import MOST_ROWS, ToolAnswer
from toolkit.errors import InputError
from toolkit.market import parse_ts
from toolkit.statistics.fees.fee_table import Style
from toolkit.workspace import Workspace


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
        return {**self.arguments, "limit": LIMIT, "as_of": _AS_OF}

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
        return found.narrowed(columns or "")


_PYTHON_TYPES = {"string": (str,), "integer": (int,), "boolean": (bool,), "number": (int, float)}


def _check(name: str, value: object, schema: Mapping[str, Any]) -> None:
    fits = type(value) in _PYTHON_TYPES[schema["type"]]  # True does not count as 1 here
    if fits and isinstance(value, int) and "minimum" in schema:
        fits = schema["minimum"] <= value <= schema["maximum"]
    if not fits:
        raise InputError(name, value, f"{schema['description']} (a JSON {schema['type']})")
    if "enum" in schema and value not in schema["enum"]:
        raise InputError(name, value, schema["enum"])


def text(about: str, *names: str) -> dict[str, Any]:
    """Return the schema of a text, of one of some names where there are any."""
    found: dict[str, Any] = {"type": "string", "description": about}
    return found | ({"enum": list(names)} if names else {})


LIMIT = {
    "type": "integer",
    "description": f"rows of the answer at most, 1 to {MOST_ROWS}",
    "minimum": 1,
    "maximum": MOST_ROWS,
}
_AS_OF = text("what the store knew at this time, UTC; without it what it knows now")
STREAM = text("the key of a stream: search_streams finds them")
WINDOW = {
    "start": text(
        "first second, UTC: 2023-03-01T12:00:00Z; or a whole window: 7d, yesterday, 2023-03; all "
        "that is held without it"
    ),
    "end": text("first second after the window, UTC"),
}
COLUMNS = {"columns": text("names of columns by commas, of which alone the answer is made")}
ALL_COLUMNS = {
    "columns": text("names of columns by commas; all for every one; without it the main ones")
}
STYLE = text("how a position is taken, for net figures; taker without it", *get_args(Style))
