"""The function of each command of event logs, made of the declaration of its analysis."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from toolkit.analyses import Analysis
from toolkit.cli.analyses import option_of, read_options
from toolkit.cli.fees import CostOptions
from toolkit.cli.options import StoredWindow, signed
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import show
from toolkit.market import EventFamily
from toolkit.statistics.fees.fee_table import check_held_style
from toolkit.workspace.events.event_answers import EventAnswer
from toolkit.workspace.events.event_selection import EventSelection

OneFamily = Annotated[EventFamily | None, typer.Argument(help="Of this family alone.")]
_On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="KEY",
        help="What this trajectory did around the events of its symbol. Default: what that of each "
        "event did.",
    ),
]
_Listed = Annotated[bool, typer.Option("--list", help="List the rows that are summed up.")]
_BY_NAME = inspect.Parameter.KEYWORD_ONLY


def of_events(analysis: Analysis) -> Callable[..., None]:
    """Make the function of an analysis of event logs."""

    def run(
        window: StoredWindow,
        view: TableOptions,
        family: EventFamily | None = EventFamily.SPREAD,
        on: str | None = None,
        listed: bool = False,
        net_of: CostOptions | None = None,
        **typed: Any,
    ) -> None:
        options = read_options(analysis, typed)
        held = view.opened(window)
        costs = None if net_of is None else net_of.chosen(held)
        if costs is not None:
            check_held_style(costs.style)
        times, names = (window.start, window.end), ("--start", "--end")
        asked = EventSelection.of(held, family, *times, on=on, names=names)
        answer = EventAnswer.of(analysis, asked, costs, **options)
        show(view, answer.listed if listed else answer.sheet)

    own = [option_of(each) for each in analysis.parameters if each.is_asked]
    given = [*_families(analysis), *own]
    groups: dict[str, Any] = {"window": StoredWindow}
    if "events" in analysis.takes:
        given.append(inspect.Parameter("on", _BY_NAME, default=None, annotation=_On))
    if analysis.of:
        given.append(inspect.Parameter("listed", _BY_NAME, default=False, annotation=_Listed))
    if "fees" in analysis.takes:
        groups["net_of"] = CostOptions
    groups["view"] = TableOptions
    given += [inspect.Parameter(n, _BY_NAME, annotation=each) for n, each in groups.items()]
    return signed(run, given)


def _families(analysis: Analysis) -> list[inspect.Parameter]:
    """Return the argument by which an analysis is of one family of events, where it is of any."""
    if "spreads" in analysis.takes:
        return []
    annotation: Any = OneFamily
    default = None
    if {"events", "family"} & analysis.takes:
        annotation = Annotated[EventFamily, typer.Argument(help="The log.")]
        of_prices = any(each.default == "price" for each in analysis.parameters)
        default = EventFamily.SPLASH if of_prices else EventFamily.SPREAD
    return [inspect.Parameter("family", _BY_NAME, default=default, annotation=annotation)]
