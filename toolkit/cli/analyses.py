"""`rail stats` and `rail events`: a subcommand for each declared analysis.

The help of a subcommand imports the module of its statistic, but nothing of a workspace.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import polars as pl
import typer
from typer.core import TyperGroup

from toolkit.analyses import Analysis, Parameter, analyses, find
from toolkit.analyses.parameters import GROUPS
from toolkit.cards import some
from toolkit.cli.options import (
    CostOptions,
    JoinOptions,
    MeasuredWindow,
    OneFamily,
    StoredWindow,
    signed,
    with_help,
)
from toolkit.cli.output import TableOptions, show, tabled
from toolkit.cli.show import errors
from toolkit.columns import computed_in
from toolkit.errors import InputError
from toolkit.market import EventFamily, Family
from toolkit.statistics.core.conditions import Schema

_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_OF_PAIRS = "Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*. From snapshots: "
_KEYS = {
    Family.SPREAD: f"{_OF_PAIRS}snapshot-spread/SYMBOL:BUY.market:SELL.market, all: "
    "'snapshot-spread/*'. Any two prices in the store: "
    "pair/SYMBOL:EXCHANGE.market/SYMBOL:EXCHANGE.market.",
    Family.FUNDING: f"{_OF_PAIRS}snapshot-funding/SYMBOL:EXCHANGE.market, all: "
    "'snapshot-funding/*'.",
    Family.PRICE: "Keys SYMBOL:EXCHANGE.market, or patterns such as BTC_USDT:*.",
}
_TYPES = {"flag": bool, "whole": int, "number": float, "text": str, "length": str}
_BY_HAND = ("channels", "open")
_On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="KEY",
        help="Follow this trajectory around the events of its symbol. Default: the trajectory of "
        "each event.",
    ),
]
_Listed = Annotated[bool, typer.Option("--list", help="List the rows behind the summary.")]


def option_of(parameter: Parameter) -> inspect.Parameter:
    """Return a parameter of an analysis as an option of a command.

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
    """Return the arguments of a statistic for the options typed, lengths in seconds.

    Raises `InputError` for an invalid length.
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
    family = Family(analysis.family)

    def run(
        trajectories: list[str] | None,
        within: MeasuredWindow,
        view: TableOptions,
        pairs: JoinOptions | None = None,
        net_of: CostOptions | None = None,
        **typed: Any,
    ) -> None:
        from toolkit.workspace.answers import NO_COSTS, OF_SETTLEMENTS, SeriesAnswer, no_rows  # noqa: PLC0415 - a help needs none of it

        joining = None if pairs is None else pairs.joining()
        options = read_options(analysis, typed)
        chosen = any(value != analysis.parameter(name).default for name, value in options.items())
        if chosen and analysis.across is None and "start" in analysis.takes:
            fees = NO_COSTS.arguments if analysis.needs_fees else {}
            analysis.function(no_rows(family), 0, 1, **fees, **options)  # refuses what it must
        held = view.opened(within)
        asked = within.of(held, family, trajectories, joining)
        costs = None
        in_force = family is Family.FUNDING and asked.polls is not None
        if net_of is not None and not in_force:
            costs = net_of.needed(held) if analysis.needs_fees else net_of.chosen(held)
        elif net_of is not None:
            for option, given in net_of.given.items():
                raise InputError(option, str(given), OF_SETTLEMENTS)
        answer = SeriesAnswer.of(analysis, asked, costs, **options)
        if silent := asked.silent(answer.present):
            errors.print(f"nothing in {asked.stretch} of {some(silent)}")
        show(view, answer.sheet)

    groups: dict[str, Any] = {"within": MeasuredWindow}
    if family is Family.SPREAD:
        groups["pairs"] = JoinOptions
    if analysis.costs:
        groups["net_of"] = CostOptions
    keys = Annotated[list[str] | None, typer.Argument(help=_KEYS[family])]
    first = inspect.Parameter("trajectories", _BY_NAME, default=None, annotation=keys)
    return signed(run, [first, *_own(analysis), *_grouped(groups | {"view": TableOptions})])


def _own(analysis: Analysis) -> list[inspect.Parameter]:
    return [option_of(each) for each in analysis.parameters if each.is_asked]


def _grouped(groups: Mapping[str, Any]) -> list[inspect.Parameter]:
    return [inspect.Parameter(n, _BY_NAME, annotation=each) for n, each in groups.items()]


def _of_events(analysis: Analysis) -> Callable[..., None]:
    def run(
        window: StoredWindow,
        view: TableOptions,
        family: EventFamily | None = EventFamily.SPREAD,
        on: str | None = None,
        listed: bool = False,
        net_of: CostOptions | None = None,
        **typed: Any,
    ) -> None:
        from toolkit.statistics.fees.fee_table import check_held_style  # noqa: PLC0415 - as above
        from toolkit.workspace.events.event_answers import EventAnswer  # noqa: PLC0415 - as above
        from toolkit.workspace.events.event_selection import EventSelection  # noqa: PLC0415 - as above

        options = read_options(analysis, typed)
        held = view.opened(window)
        costs = None if net_of is None else net_of.chosen(held)
        if costs is not None:
            check_held_style(costs.style)
        times, names = (window.start, window.end), ("--start", "--end")
        asked = EventSelection.of(held, family, *times, on=on, names=names)
        answer = EventAnswer.of(analysis, asked, costs, **options)
        show(view, answer.listed if listed else answer.sheet)

    given = [*_families(analysis), *_own(analysis)]
    groups: dict[str, Any] = {"window": StoredWindow}
    if "events" in analysis.takes:
        given.append(inspect.Parameter("on", _BY_NAME, default=None, annotation=_On))
    if analysis.of:
        given.append(inspect.Parameter("listed", _BY_NAME, default=False, annotation=_Listed))
    if "fees" in analysis.takes:
        groups["net_of"] = CostOptions
    return signed(run, [*given, *_grouped(groups | {"view": TableOptions})])


def _families(analysis: Analysis) -> list[inspect.Parameter]:
    if "spreads" in analysis.takes:
        return []
    annotation: Any = OneFamily
    default = None
    if {"events", "family"} & analysis.takes:
        annotation = Annotated[EventFamily, typer.Argument(help="The log.")]
        of_prices = any(each.default == "price" for each in analysis.parameters)
        default = EventFamily.SPLASH if of_prices else EventFamily.SPREAD
    return [inspect.Parameter("family", _BY_NAME, default=default, annotation=annotation)]


def _columns_of(analysis: Analysis) -> Schema:
    groups = [
        GROUPS.get(each, each)
        for parameter in analysis.parameters
        if parameter.name == "by"
        for each in parameter.choices
    ]
    listed = find(analysis.of).schema() if analysis.of else {}
    return pl.Schema({**listed, **analysis.schema(*groups)})


def _command(analysis: Analysis, typed: str) -> Callable[..., None]:
    run = _of_events(analysis) if analysis.family == "events" else _of_trajectories(analysis)
    return tabled(lambda: _columns_of(analysis))(with_help(run, analysis, typed))


def _made(analysis: Analysis, name: str, group: str) -> Any:
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(_command(analysis, f"{group} {name}"))
    made = typer.main.get_command(single)
    made.short_help = analysis.sentence
    return made


class _Analyses(TyperGroup):
    group: str
    families: tuple[Any, ...]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and (analysis := self._found(cmd_name)):
            self.commands[cmd_name] = _made(analysis, cmd_name, self.group)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        named = [each.command for each in self._declared]
        return list(dict.fromkeys([*named, *super().list_commands(ctx)]))

    def _found(self, typed: str) -> Analysis | None:
        """Return the analysis of a subcommand. Its name alone often says which module to import."""
        named = [f"{of}.{typed.replace('-', '_')}" for of in self.families]
        for result in (*named, f"{typed}.summary"):
            if result in computed_in() and find(result).command == typed:
                return find(result)
        return next((each for each in self._declared if each.command == typed), None)

    @property
    def _declared(self) -> list[Analysis]:
        found = [each for of in self.families for each in analyses(of) if each.command]
        return sorted(found, key=lambda each: each.name != "summary")


class _Stats(_Analyses):
    group, families = "stats", ("spread", "funding", "price")

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*super().list_commands(ctx), "events"]))

    def _found(self, typed: str) -> Analysis | None:
        return find("events.summary") if typed == "events" else super()._found(typed)


class _Events(_Analyses):
    group, families = "events", ("events",)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _BY_HAND and cmd_name not in self.commands:
            from toolkit.cli.events import by_hand  # noqa: PLC0415 - others need none of it

            self.commands.update(typer.main.get_group(by_hand).commands)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*super().list_commands(ctx), *_BY_HAND]))


stats = typer.Typer(cls=_Stats, no_args_is_help=True, rich_markup_mode=None)
events = typer.Typer(cls=_Events, no_args_is_help=True, rich_markup_mode=None)


@stats.callback()
def _of_stats() -> None:
    """Print statistics of the data in the store."""


@events.callback()
def _of_logs() -> None:
    """Print how long events last, how often they open, how large they are, and what followed."""
