"""Methods of series made from the declarations of analyses, one for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from toolkit.analyses import Analysis, Family, analyses
from toolkit.market import parse_length
from toolkit.series.base import Series, checked_options
from toolkit.show.result import Result
from toolkit.statistics.fees.fee_table import NOTIONAL

COSTS = {"fees": None, "notional": NOTIONAL, "style": "taker"}
"""What net figures are computed by, each with its default."""
_EITHER, _BY_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_TYPES = {"fees": "FeeModel | None", "notional": "float", "style": "Style"}
BOUND: dict[type[Series], Family] = {}
"""The classes that have methods by declarations, each with its family."""
_FRAMES = ("values", "rows", "spreads", "other")
_ON = "Trajectory | str | None"


def bind(series: type[Series], family: Family) -> None:
    """Give a class of series a method for each analysis of a family that is of one series."""
    BOUND[series] = family
    for analysis in bound_to(family):
        setattr(series, analysis.name, _method(series, analysis))


def bound_to(family: Family) -> list[Analysis]:
    """Return the analyses of a family that are methods of its series: those of one series alone."""
    elsewhere = {"figures", "arrivals"}
    own = (each for each in analyses(family) if each.across is None)
    return [each for each in own if not each.takes & elsewhere]


def signature_of(analysis: Analysis) -> inspect.Signature:
    """Return the signature of an analysis' method, annotations as text, required ones first."""
    own = analysis.written()
    taken = [inspect.Parameter("self", _EITHER), *_frames(own)]
    optional: list[inspect.Parameter] = []
    for each in analysis.parameters:
        given = own[each.name]
        default = given.empty if each.required else each.default
        first = each.required or given.kind is _EITHER
        made = given.replace(default=default, kind=_EITHER if first else _BY_NAME)
        (taken if first else optional).append(made)
    if "events" in analysis.takes:
        optional.append(inspect.Parameter("on", _BY_NAME, default=None, annotation=_ON))
    if "prices" in analysis.takes:
        prices = "Series | pl.DataFrame | None"
        optional.append(inspect.Parameter("prices", _BY_NAME, default=None, annotation=prices))
    if analysis.net or "fees" in analysis.takes:
        costs = [
            inspect.Parameter(name, _BY_NAME, default=default, annotation=_TYPES[name])
            for name, default in COSTS.items()
        ]
        if analysis.needs_fees:
            taken.append(costs.pop(0).replace(kind=_EITHER))
        optional += costs
    taken.sort(key=lambda each: each.default is not each.empty)
    return inspect.Signature([*taken, *optional], return_annotation="Result")


def _frames(own: Mapping[str, inspect.Parameter]) -> Iterator[inspect.Parameter]:
    for place, (name, each) in enumerate(own.items()):
        if place and name in _FRAMES:
            yield each.replace(kind=_EITHER, annotation="Frame")


def _method(series: type[Series], analysis: Analysis) -> Callable[..., Result]:
    signature = signature_of(analysis)

    def method(self: Any, *given: Any, **options: Any) -> Result:
        bound = signature.bind(self, *given, **options)
        bound.apply_defaults()
        asked = dict(bound.arguments)
        del asked["self"]
        for each in analysis.parameters:
            value = asked[each.name]
            if each.kind == "length" and each.name.endswith("_s") and isinstance(value, str):
                asked[each.name] = parse_length(value, parameter=each.name)
        found: pl.DataFrame = self.answer(analysis, **asked)
        return Result.of(found, analysis.columns_in(found.columns))

    method.__name__ = analysis.name
    method.__qualname__ = f"{series.__name__}.{analysis.name}"
    method.__module__ = series.__module__
    method.__doc__ = docstring_of(analysis)
    method.__dict__["__signature__"] = signature
    return checked_options(method)


def docstring_of(analysis: Analysis) -> str:
    """Return the docstring of an analysis' method: its sentence, parameters, and where the rest is.

    >>> from toolkit.analyses import find
    >>> print(docstring_of(find("spread.half_life")).splitlines()[0])
    Estimate the time in which a deviation from the mean halves, from the autocorrelation.
    """
    lines = [analysis.sentence, "", f"Formula, columns, errors and an example: `{analysis.path}`."]
    lines += ["", *(f"``{each.name}``: {each.help}" for each in analysis.parameters)]
    if analysis.net or "fees" in analysis.takes:
        lines.append("``fees``: A fee table. Default: that of the workspace.")
    if "events" in analysis.takes:
        on = "Around the events of its symbol, in place of each event's own"
        lines.append(f"``on``: The trajectory of the values. {on}.")
    return "\n".join(lines).rstrip()
