"""`rail stats` and `rail events`: a subcommand for each analysis, made of its declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import polars as pl
import typer
from typer.core import TyperGroup

from toolkit.analyses import Analysis, Parameter, analyses, find
from toolkit.analyses import Family as AnalysisFamily
from toolkit.analyses.parameters import GROUPS
from toolkit.cli.fees import NO_COSTS, CostOptions
from toolkit.cli.held import (
    FundingKeys,
    JoinOptions,
    MeasuredWindow,
    PriceKeys,
    SpreadKeys,
    name_silent,
)
from toolkit.cli.options import signed
from toolkit.cli.table_options import TableOptions, tabled
from toolkit.cli.tables import show
from toolkit.errors import InputError
from toolkit.market import Family
from toolkit.statistics.core.conditions import Schema
from toolkit.workspace.answers import OF_SETTLEMENTS, Answer, no_rows

_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_KEYS = {Family.SPREAD: SpreadKeys, Family.FUNDING: FundingKeys, Family.PRICE: PriceKeys}
_TYPES = {"flag": bool, "whole": int, "number": float, "text": str, "length": str}


def option_of(parameter: Parameter) -> inspect.Parameter:
    """Return the option of a command that asks for a parameter.

    >>> option_of(Parameter("The level.", "bps", name="toward", kind="number", default=0.0)).default
    0.0
    """
    typed: Any = _TYPES[parameter.kind]
    if parameter.choices and parameter.many:  # typer takes no list of literals
        typed = type(StrEnum).__call__(StrEnum, parameter.name, list(parameter.choices))
    elif parameter.choices:
        typed = Literal[parameter.choices]
    if parameter.many:
        typed = list[typed] | None
    elif parameter.default is None and not parameter.required:
        typed = typed | None
    default: Any = inspect.Parameter.empty
    if not parameter.required:
        default = None if parameter.many else parameter.default
        default = f"{default}s" if type(default) is int and parameter.kind == "length" else default
    words = parameter.help
    if parameter.unit and parameter.kind == "number":
        words = f"{words[:-1]}, in {parameter.unit}."
    named = (parameter.option,) if parameter.option else ()
    annotation = Annotated[typed, typer.Option(*named, help=words)]
    return inspect.Parameter(parameter.name, _BY_NAME, default=default, annotation=annotation)


def read_options(analysis: Analysis, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a statistic takes for what was typed: lengths as seconds, lists without blanks.

    Raises `InputError` for what is no length, and what the statistic refuses.
    """
    read: dict[str, Any] = {}
    for parameter in analysis.parameters:
        value = typed.get(parameter.name)
        if value is not None:
            named = parameter.option or f"--{parameter.name.replace('_', '-')}"
            several = parameter.many and parameter.choices
            value = [str(each) for each in value] if several else value
            read[parameter.name] = parameter.read(value, named)
    return read


def _of_trajectories(analysis: Analysis) -> Callable[..., None]:
    """Make the function of an analysis of spreads, of funding or of prices."""
    family = Family(analysis.family)

    def run(
        trajectories: list[str] | None,
        within: MeasuredWindow,
        view: TableOptions,
        pairs: JoinOptions | None = None,
        net_of: CostOptions | None = None,
        **typed: Any,
    ) -> None:
        joined = {} if pairs is None else {"joined": pairs.joining()}
        options = read_options(analysis, typed)
        if analysis.across is None and "start" in analysis.takes:
            fees = NO_COSTS.arguments if analysis.needs_fees else {}
            analysis.function(no_rows(family), 0, 1, **fees, **options)  # refuses what it must
        held = view.opened(within)
        asked = within.of(held, family, trajectories, **joined)
        costs = None
        in_force = family is Family.FUNDING and asked.polls is not None
        if net_of is not None and not in_force:
            costs = net_of.needed(held) if analysis.needs_fees else net_of.chosen(held)
        elif net_of is not None:
            for option, given in net_of.given.items():
                raise InputError(option, str(given), OF_SETTLEMENTS)
        answer = Answer.of(analysis, asked, costs, **options)
        name_silent(asked, answer.present)
        show(view, answer.sheet)

    groups: dict[str, Any] = {"within": MeasuredWindow}
    if family is Family.SPREAD:
        groups["pairs"] = JoinOptions
    if analysis.net or "fees" in analysis.takes:
        groups["net_of"] = CostOptions
    own = [option_of(each) for each in analysis.parameters if each.is_asked]
    given = [
        inspect.Parameter(name, _BY_NAME, annotation=each)
        for name, each in (groups | {"view": TableOptions}).items()
    ]
    keys = inspect.Parameter("trajectories", _BY_NAME, default=None, annotation=_KEYS[family])
    return signed(run, [keys, *own, *given])


def _events(analysis: Analysis) -> Callable[..., None]:
    from toolkit.cli.event_commands import of_events  # noqa: PLC0415 - others need none of it

    return of_events(analysis)


def _columns_of(analysis: Analysis) -> Schema:
    """Return the columns that a command's table may have, by any group."""
    groups = [
        GROUPS.get(each, each)
        for parameter in analysis.parameters
        if parameter.name == "by"
        for each in parameter.choices
    ]
    listed = find(analysis.of).schema() if analysis.of else {}
    return pl.Schema({**listed, **analysis.schema(*groups)})


def _command(analysis: Analysis, typed: str) -> Callable[..., None]:
    """Make the function of an analysis' subcommand, with its help."""
    run = _events(analysis) if analysis.family == "events" else _of_trajectories(analysis)
    return tabled(lambda: _columns_of(analysis))(with_help(run, analysis, typed))


def with_help(run: Callable[..., None], analysis: Analysis, typed: str) -> Callable[..., None]:
    """Give the function of a subcommand the help that is declared, under the name typed."""
    words = [analysis.sentence, analysis.about]
    words += ["Before: rail fees --example > fees.toml"] if analysis.needs_fees else []
    words.append(f"Example: rail {typed} {analysis.example}".rstrip())
    run.__doc__ = "\n\n".join(filter(None, words))
    return run


def _made(analysis: Analysis, name: str, group: str) -> Any:
    """Make an analysis' subcommand."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(_command(analysis, f"{group} {name}"))
    made = typer.main.get_command(single)
    made.short_help = analysis.sentence
    return made


class _Analyses(TyperGroup):
    """A group that has a subcommand for each analysis, beside those that are written by hand."""

    group = ""
    families: tuple[AnalysisFamily, ...]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a subcommand, made when it is first asked for."""
        for analysis in self._declared:
            if analysis.command == cmd_name and cmd_name not in self.commands:
                self.commands[cmd_name] = _made(analysis, cmd_name, self.group)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all subcommands."""
        named = [each.command for each in self._declared]
        return list(dict.fromkeys([*named, *super().list_commands(ctx)]))

    @property
    def _declared(self) -> list[Analysis]:
        found = [each for of in self.families for each in analyses(of) if each.command]
        return sorted(found, key=lambda each: each.name != "summary")


class Stats(_Analyses):
    """The subcommands of `rail stats`, among them the counts of events."""

    group = "stats"
    families = ("spread", "funding", "price")

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a subcommand."""
        if cmd_name == "events" and cmd_name not in self.commands:
            self.commands[cmd_name] = _made(find("events.summary"), cmd_name, self.group)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all subcommands."""
        return list(dict.fromkeys([*super().list_commands(ctx), "events"]))


class Events(_Analyses):
    """The subcommands of `rail events`."""

    group = "events"
    families = ("events",)
