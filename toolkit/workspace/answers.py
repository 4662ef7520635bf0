"""Answers of analyses of stored series, with heading, notes and table for every interface."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import polars as pl

from toolkit.analyses import Analysis, analysis_of, declared_for, find
from toolkit.cards import counted
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Family, SnapshotTrajectory, Stream, When, parse_length
from toolkit.reasons import Reason
from toolkit.show.result import Result
from toolkit.show.sheet import Name, Sheet
from toolkit.statistics.core.contract import beside
from toolkit.statistics.fees.fee_table import NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY
from toolkit.statistics.quality.plausibility import notes_of
from toolkit.tables import ROWS
from toolkit.workspace.selection import Function, Passes, Selection

_MOST_NAMED = 5
_NOTHING = ("", "0", "0.0")
OF_SETTLEMENTS = "for settlements, not for rates in force"
"""What rates in force do not have."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The parameters of net figures."""

    fees: FeeModel
    notional: float = NOTIONAL
    style: Style = "taker"

    def check(self) -> Self:
        """Raise `InputError` for an invalid style or notional."""
        check_asked(self.fees, self.notional, self.style)
        return self

    @property
    def heading(self) -> str:
        """The costs in words."""
        return f"net of {self.fees.label}, style {self.style}, notional {self.notional:,.0f}"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a statistic that is net of fees."""
        return {"fees": self.fees, "notional": self.notional, "style": self.style}

    def notes(self, found: pl.DataFrame) -> list[str]:
        """Return the notes on net figures: their fee table, and fees missing from it."""
        if "cost_lacks" not in found.columns:
            return [self.heading]
        lacks = Counter(
            lack for words in found["cost_lacks"].drop_nulls() for lack in words.split(", ")
        )
        most = lacks.most_common(_MOST_NAMED)
        named = [f"{lack} ({counted(number, 'row')})" for lack, number in most]
        named += [f"{len(lacks) - _MOST_NAMED} more"] if len(lacks) > _MOST_NAMED else []
        return [self.heading, *([f"the fee table lacks {', '.join(named)}"] if named else [])]


def no_rows(family: str) -> pl.DataFrame:
    """Return an empty frame of a family, for a statistic to check its parameters."""
    values = dict.fromkeys((column.name for column in ROWS[family].values), pl.Float64)
    return pl.DataFrame(schema={"trajectory": pl.String, "ts": pl.Int64, **values})


NO_COSTS = Costs(FeeModel("", ()))
"""Costs for the columns of net figures only."""


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """Rows of an analysis with its parameters. ``present``: the keys with rows in the window."""

    analysis: Analysis
    asked: Selection
    rows: pl.DataFrame
    present: Sequence[str]
    costs: Costs | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, analysis: Analysis, asked: Selection, costs: Costs | None = None, **options: Any
    ) -> Self:
        """Compute an analysis over a selection in one pass, with any net figures.

        Raises `InputError` for rates in force if it needs settlements.
        """
        if asked.polls is not None and analysis.family == "funding":
            analysis, options = _of_rates(analysis, asked, options), {}
        net = find(analysis.net) if analysis.net and costs else None
        own = dict(options)
        if costs is not None and "fees" in analysis.takes:
            own |= costs.arguments
        across = analysis.across_with(options)
        measures = [across or asked.analysis(analysis.function, **own)]
        added = costs.arguments if costs else {}
        of_rows = net is not None and not net.of_figures
        if net is not None and of_rows:
            measures.append(asked.analysis(net.function, **added))
        found, *nets, there = asked.in_one_pass(*measures, asked.present)
        if across is not None:
            if "rates" in analysis.takes and "rates" not in own:
                own["rates"] = rates_in_force(asked, own.get("max_age", "1h"))
            start, end = asked.window
            found = analysis.function(across(found), start=start, end=end, **own)
        found = asked.by_polls(found)
        if net is not None:
            of_net = asked.by_polls(nets[0]) if of_rows else None
            found = net.function(found, **added) if of_net is None else beside(found, of_net, "net")
        return cls(analysis, asked, found, there["trajectory"].to_list(), costs, options)

    @property
    def heading(self) -> str:
        """The title, with the window and the costs."""
        words = f"{self.analysis.title_for(self.options)} over {self.asked.stretch}"
        if "fees" in self.analysis.takes:
            words += f", {self.costs.heading if self.costs else 'before fees'}"
        polls = self.asked.polls
        if polls is not None:
            answered = counted(polls.answered, "poll")
            words += f", kept from snapshots: {answered} answered, {polls.missed:,} missed"
        return words

    @property
    def notes(self) -> list[str]:
        """Caveats for a reader, a line each."""
        found, asked = self.rows, self.asked
        notes = [] if asked.pairs is None else list(asked.pairs.notes)
        notes += [*notes_of(found), *_uncovered(found)]
        if self.analysis.family == "funding":
            lacking = asked.prices.lacking(found, asked.window)
            notes += [f"{words}; funding alone needs none" for words in lacking]
        if self.analysis.across_with(self.options):
            lacks = "there is nothing to compare in this window, a longer one may have something"
            notes += [lacks] if found.is_empty() else []
        elif "trajectory" in found.columns:
            none_of = len(set(self.present) - set(found["trajectory"]))
            of = f"{none_of:,} of {len(self.present):,} series"
            notes += [f"nothing is found in {of}"] if none_of else []
        if self.costs and "fees" in self.analysis.takes:
            notes += self.costs.notes(found)[1:]  # the heading has the first
        elif self.costs and self.analysis.net:
            notes += self.costs.notes(found)
        return notes

    @property
    def sheet(self) -> Sheet:
        """The answer as a table."""
        names = [name for name in self.rows.columns if self._is_shown(name)]
        figures: list[str] = [*self.analysis.figures_in(names)] if "trajectory" in names else []
        columns: list[Name] = [*self.analysis.columns_in(names)]
        if self.asked.polls is not None:
            after = figures.index("coverage") + 1 if "coverage" in figures else 0
            figures.insert(after, "not_tracked")
            columns.append("not_tracked")
        return Sheet(
            self.heading,
            self.asked.store.source.label,
            self.rows,
            columns,
            order=self.analysis.order,
            figures=figures,
            notes=self.notes,
        )

    def _is_shown(self, name: str) -> bool:
        if name == "implausible":
            return bool(notes_of(self.rows))
        if name in self.analysis.unusual:
            nothing = pl.col(name).is_null() | pl.col(name).cast(pl.String).is_in(_NOTHING)
            return bool(self.rows.select(~nothing.all()).item())
        of_costs = name.removeprefix(FUNDING_ONLY).startswith(("net_", "cost_", "breakeven_"))
        return not of_costs or self.costs is not None or "fees" not in self.analysis.takes


def _of_rates(analysis: Analysis, asked: Selection, options: Mapping[str, Any]) -> Analysis:
    """Return the analysis of rates in force. Raises `InputError` for settlement options."""
    found = declared_for("rates", analysis.name)
    if found is None:
        named = ", ".join(each.key for each in asked.held)
        raise InputError("trajectories", named, "pairs, which settle: a rate in force pays nothing")
    for name, value in options.items():
        parameter = analysis.parameter(name)
        if value != parameter.default:
            raise InputError(name, value, OF_SETTLEMENTS)
    return found


def rates_in_force(asked: Selection, max_age: str | int) -> pl.DataFrame | None:
    """Return the rates in force of the legs of snapshot pairs, None without any."""
    store, as_of = asked.store, asked.passes.as_of
    known = store.catalogue(as_of=as_of).filter(pl.col("rows") > 0, kind="snapshot-funding")
    legs = {f"{each.symbol}:{leg}" for each in asked.held for leg in each.legs}
    kept = {key for key in known["stream"] if key.rpartition("/")[2] in legs}
    if not kept:
        return None
    start, end = asked.window
    read = Interval(start - parse_length(max_age, parameter="max_age"), end)
    groups = store.groups({SnapshotTrajectory.parse(key) for key in kept}, read, as_of=as_of)
    return pl.concat(groups)


def _uncovered(found: pl.DataFrame) -> list[str]:
    if not {"funding_reason", "coverage"} <= set(found.columns):
        return []
    few = {"funding_reason": Reason.LOW_COVERAGE.value}
    low = found.filter(pl.col("coverage") > 0, **few)["coverage"]
    if low.is_empty():
        return []
    share = math.floor(min(low.to_list()) * 100) / 100
    more = f"gives the funding of {low.len()} more"
    return [f"a longer window, or a least coverage of {share:g}, {more}"]


_MEASURED = (*map(str, Family), "snapshot-spread", "snapshot-funding")


def measured(
    function: Function,
    passes: Callable[[], Passes],
    window: tuple[When | None, When | None],
    family: str,
    streams: Iterable[Stream | str] | Stream | str | None,
    **parameters: Any,
) -> pl.DataFrame:
    """Return a statistic of a family's stored series. See `Workspace.measure`.

    ``passes`` is called once the family is checked.
    """
    if family not in _MEASURED:
        raise InputError("family", family, _MEASURED)
    of = Family(family.removeprefix("snapshot-"))
    named = [f"{family}/*"] if of != family else None
    if streams is not None:
        several = [streams] if isinstance(streams, Stream | str) else streams
        named = [str(each) for each in several]
        if of != family:
            named = [f"{family}/{key.removeprefix(f'{family}/')}" for key in named]
    asked = Selection.of(passes(), of, named, *window)
    for words in asked.turned:
        warnings.warn(words, stacklevel=3)
    declared = analysis_of(function)
    if declared is None:
        return asked.measured(function, **parameters)[0]
    answer = SeriesAnswer.of(declared, asked, **parameters)
    return Result.of(answer.rows, answer.analysis.columns_in(answer.rows.columns))
