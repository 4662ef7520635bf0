"""Declarations of analyses, each beside the function that computes it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin

from toolkit.analyses.parameters import GIVEN, GROUPS, SHARED, Kind, Parameter
from toolkit.columns import column, described, schema_of

if TYPE_CHECKING:
    import polars as pl
from functools import cache
from importlib import import_module

from toolkit.columns import computed_in
from toolkit.errors import InputError

Family = Literal["price", "spread", "funding", "rates", "events"]
"""The kind of series that an analysis is of. Rates are those of funding in force."""

_NOUNS = {"price": "Prices", "spread": "Spreads", "funding": "Funding"}
_NOUNS |= {"rates": "Rates in force", "events": "Events"}
_Function = TypeVar("_Function", bound=Callable[..., Any])
DECLARED: dict[str, Analysis] = {}
"""Each analysis whose module is imported, by its result."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """A question about series: its function, the columns shown, and its options.

    ``result`` names the columns in ``columns.csv``. ``key`` identify a row, and ``shown`` are the
    answer, the most important first. ``figures`` list a single row in full, by default ``shown``.
    ``order`` is the column to sort by, with a leading dash the largest first. ``title`` heads a
    table: text, or a function of the parameters. ``about`` follows the first sentence of the
    function's docstring in `--help`. ``command`` is its name in `rail stats` or `rail events`, ""
    for none, ``example`` its arguments in an example. ``net`` is the result beside it with a fee
    table. ``chart`` is the function of `toolkit.charts` that draws it. ``across`` prepares the rows
    of an analysis that compares series, some series at a time. ``prices`` are needed over the whole
    window or at its ends. ``also`` are columns for some questions only. ``of`` is the result whose
    rows the function takes, with the parameters of its function. ``report`` is its place among the
    parts of a report on one series, 0 for parts on demand. ``unusual`` are counts shown only above
    0.
    """

    result: str
    function: Callable[..., Any]
    family: Family
    shown: tuple[str, ...]
    key: tuple[str, ...]
    figures: tuple[str, ...] = ()
    order: str = ""
    title: str | Callable[..., str] = ""
    about: str = ""
    command: str = ""
    example: str = ""
    net: str = ""
    chart: str = ""
    across: Callable[..., Any] | None = None
    prices: Literal["over", "ends"] = "over"
    also: tuple[str, ...] = ()
    of: str = ""
    report: int = 0
    unusual: tuple[str, ...] = ()
    own: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the function, which a series' method has too."""
        return self.function.__name__

    @property
    def path(self) -> str:
        """Where Python has the function: in the module of its subject, if that lists it."""
        module, _, name = self.result.partition(".")
        subject = f"toolkit.statistics.{module}"
        if hasattr(sys.modules.get(subject), name):
            return f"{subject}.{name}"
        return f"{self.function.__module__}.{self.name}"

    @property
    def sentence(self) -> str:
        """The first sentence of the function's docstring."""
        text = inspect.getdoc(self.function) or f"Compute {self.name.replace('_', ' ')}."
        return " ".join(text.partition("\n\n")[0].split()).replace("``", "")

    @property
    def costs(self) -> bool:
        """Whether a fee table changes the answer, or adds a result beside it."""
        return bool(self.net) or "fees" in self.takes

    @property
    def is_curve(self) -> bool:
        """Whether its rows are points of a line, which its chart has all of."""
        return bool(self.chart) and not self.order

    @property
    def heading(self) -> str:
        """What heads it where series, window and options are said elsewhere."""
        if isinstance(self.title, str) and self.title and "{" not in self.title:
            return self.title.rstrip(",")
        return self.name.replace("_", " ").capitalize()

    def title_for(self, options: Mapping[str, Any]) -> str:
        """Return what heads a table of the answer, for some options."""
        if callable(self.title):
            defaults = {each.name: each.default for each in self.parameters}
            return self.title(**(defaults | dict(options)))
        if self.title:
            return self.title.format_map(options)
        return f"{_NOUNS[self.family]}, {self.name.replace('_', ' ')},"

    def across_with(self, options: Mapping[str, Any]) -> Callable[..., Any] | None:
        """Return what prepares rows to compare series, None where each is by itself."""
        asked = (each.across for each in self.parameters if options.get(each.name))
        return next(filter(None, asked), self.across)

    def answer_in(self, names: Collection[str]) -> list[str]:
        """Return the columns of the answer that a result has, those net of costs after two."""
        shown = [*self.shown[:2], *self._of_net("shown"), *self.shown[2:]]
        return [name for name in shown if name in names]

    def columns_in(self, names: Collection[str]) -> list[str | tuple[str, ...]]:
        """Return the columns of a table of a result: what tells rows apart, and the answer."""
        shown = self.answer_in(names)
        key = [name for name in self.key if name in names and name not in shown]
        words = tuple(name for name in key if column(name, self.result).type == "String")
        coverage = ["coverage"] if "coverage" in names and "coverage" not in shown else []
        cell = words[:1] if len(words) < 2 else (words,)  # words share a cell
        return [*cell, *(name for name in key if name not in words), *shown, *coverage]

    def figures_in(self, names: Collection[str]) -> list[str]:
        """Return the columns by which a single row of a result is listed in full."""
        figures = self.figures or ("n", "coverage", "step_s", *self.shown)
        every = dict.fromkeys((*figures, *self._of_net("figures"), *self._of_net("shown")))
        return [name for name in every if name in names]

    def _of_net(self, which: Literal["shown", "figures"]) -> tuple[str, ...]:
        if not self.net:
            return ()
        found: tuple[str, ...] = getattr(DECLARED[self.net], which)
        return found

    def schema(self, *groups: str) -> pl.Schema:
        """Return the columns that an answer may have, with those of some groups."""
        results, also = [self.result], [*self.also, *groups]
        if self.net:
            results.append(self.net)
            also += [*DECLARED[self.net].also, "net_method", "net_params_hash"]
        if self.family == "spread":
            also += ["spread_basis", "not_tracked"]
        return schema_of(*results, also=also)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a user may choose, in the order of the function's signature."""
        return tuple(
            self._parameter(name, each)
            for name, each in self.signature.items()
            if name not in GIVEN or name in self.own
        )

    @property
    def needs_fees(self) -> bool:
        """Whether it is net of fees, so that it has no answer without a fee table."""
        given = self.signature.get("fees")
        return given is not None and given.default is given.empty

    @property
    def of_figures(self) -> bool:
        """Whether it adds to the rows of another analysis."""
        return "figures" in self.signature

    @cached_property
    def takes(self) -> frozenset[str]:
        """The names of all that the function takes."""
        return frozenset(self.signature)

    @cached_property
    def signature(self) -> Mapping[str, inspect.Parameter]:
        """The function's parameters by name, with those of the analysis whose rows it takes."""
        return self.written(eval_str=True)

    def written(self, *, eval_str: bool = False) -> dict[str, inspect.Parameter]:
        """Return the same with annotations as text."""
        own = dict(inspect.signature(self.function, eval_str=eval_str).parameters)
        if not self.of:
            return own
        del own[next(iter(own))]
        return DECLARED[self.of].written(eval_str=eval_str) | own

    def _parameter(self, name: str, given: inspect.Parameter) -> Parameter:
        before = DECLARED[self.of].own if self.of else {}
        declared = self.own.get(name) or before.get(name) or SHARED.get(name)
        if declared is None:
            raise TypeError(f"{self.result}: the parameter {name} is not declared")
        kind, choices, many = _kind_of(given.annotation, name)
        required = given.default is given.empty
        return replace(
            declared,
            name=name,
            kind=kind,
            many=many,
            choices=declared.choices or choices,
            required=required,
            default=None if required else given.default,
        )

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its name."""
        return next(each for each in self.parameters if each.name == name)


def _kind_of(annotation: Any, name: str) -> tuple[Kind, tuple[str, ...], bool]:
    """Return the kind of value of an annotation, its choices, and whether it takes several."""
    leaves, many = _leaves(annotation)
    choices = tuple(each for each in leaves if isinstance(each, str))
    if choices:
        return "text", choices, many
    if str in leaves:
        return ("length" if int in leaves else "text"), (), many
    if bool in leaves or float in leaves:
        return ("flag" if bool in leaves else "number"), (), many
    if int in leaves:
        return ("length" if name.endswith("_s") else "whole"), (), many
    return "python", (), many


def _leaves(annotation: Any) -> tuple[list[Any], bool]:
    """Return the types and literal values that an annotation is made of, and if it is several."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return list(parts), False
    if origin not in (Union, UnionType, Sequence, list, tuple):
        return [annotation], False
    found = [_leaves(each) for each in parts]
    many = origin not in (Union, UnionType) or any(several for _, several in found)
    return [leaf for leaves, _ in found for leaf in leaves], many


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(given.split() if isinstance(given, str) else given)


def analysis(
    result: str,
    shown: str | Sequence[str],
    *,
    family: Family | None = None,
    key: Sequence[str] = (),
    figures: str | Sequence[str] = (),
    order: str = "",
    title: str | Callable[..., str] = "",
    about: str = "",
    command: str | None = None,
    example: str = "",
    net: str = "",
    chart: str = "",
    across: Callable[..., Any] | None = None,
    prices: Literal["over", "ends"] = "over",
    also: Sequence[str] = (),
    of: str = "",
    report: int = 0,
    unusual: Sequence[str] = (),
    **own: Parameter,
) -> Callable[[_Function], _Function]:
    """Declare the analysis that a function computes, and put its columns into the docstring.

    ``shown`` and ``figures`` are names, also as one text. ``own`` are the function's own parameters
    (`toolkit.analyses.parameters`). The rest is as in `Analysis`.
    """
    kind: Any = family or result.partition(".")[0]
    usual = ("family", *GROUPS.values()) if kind == "events" else ("trajectory",)

    def declared(function: _Function) -> _Function:
        DECLARED[result] = Analysis(
            result,
            function,
            kind,
            _names(shown),
            tuple(key) or usual,
            figures=_names(figures),
            order=order,
            title=title,
            about=inspect.cleandoc(about),
            command=function.__name__.replace("_", "-") if command is None else command,
            example=example,
            net=net,
            chart=chart,
            across=across,
            prices=prices,
            also=tuple(also),
            of=of,
            report=report,
            unusual=tuple(unusual),
            own=own,
        )
        return described(result)(function)

    return declared


def find(result: str) -> Analysis:
    """Return the analysis of a result, by its name or its method: "spread.summary/5".

    Only the module that computes it is imported. Raises `InputError` for no analysis.
    """
    name = result.partition("/")[0]
    if name not in computed_in():
        raise InputError("analysis", result, list(computed_in()))
    import_module(f"toolkit.statistics.{computed_in()[name]}")
    return DECLARED[name]


@cache
def analyses(family: Family | None = None) -> tuple[Analysis, ...]:
    """Return all analyses, or those of a family, in the order of their declaration."""
    every = map(find, computed_in())
    return tuple(each for each in every if family in (None, each.family))


def declared_for(family: Family, name: str) -> Analysis | None:
    """Return the analysis of a family that a method of series is named after, None without one.

    >>> declared_for("spread", "stationarity").result
    'spread.stationarity'
    """
    return next((each for each in analyses(family) if each.name == name), None)


def analysis_of(function: Callable[..., Any]) -> Analysis | None:
    """Return the analysis that a function computes, None for one that is not declared."""
    return next((each for each in DECLARED.values() if each.function is function), None)
