"""The Python that makes a part of a report again, as text for a reader."""

from __future__ import annotations

import json
from typing import Any

from toolkit.foreign import plain
from toolkit.market import Pair, Stream, format_ts
from toolkit.reports.many import SCREENS
from toolkit.reports.recipe import Part, Pin
from toolkit.workspace.events.event_rows import AROUND

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
    """Return the lines that give the result and the chart of a part.

    ``fees`` is the label of the fee table, "" without one. Where its file is, a report does not
    say, so a line names the table that is in force where the code is to give the same.

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
    """Write a value as Python reads it, in double quotes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))},)"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_text(name)}: {_text(each)}" for name, each in value.items()) + "}"
        )
    return json.dumps(plain(value)) if isinstance(value, str) else repr(value)
