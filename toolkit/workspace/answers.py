"""The answer to a question about series of a store: its rows, and what every face says of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import polars as pl

from toolkit.analyses import Analysis, find
from toolkit.cards import counted
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.show.sheet import Name, Sheet
from toolkit.statistics.contract import beside
from toolkit.statistics.fee_table import NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.plausibility import notes_of
from toolkit.tables import ROWS
from toolkit.workspace.selection import Selection

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Costs:
    """What net figures are computed by: a fee table, a notional and a style."""

    fees: FeeModel
    notional: float = NOTIONAL
    style: Style = "taker"

    def check(self) -> Self:
        """Raise `InputError` for a style or a notional that is none."""
        check_asked(self.fees, self.notional, self.style)
        return self

    @property
    def heading(self) -> str:
        """The costs in words, for a line above or below figures."""
        return f"net of {self.fees.label}, style {self.style}, notional {self.notional:,.0f}"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a statistic that is net of fees."""
        return {"fees": self.fees, "notional": self.notional, "style": self.style}

    def notes(self, found: pl.DataFrame) -> list[str]:
        """Return the lines below net figures: by which table they are, and what it lacks."""
        if "cost_lacks" not in found.columns:
            return [self.heading]
        lacks = Counter(
            lack for words in found["cost_lacks"].drop_nulls() for lack in words.split(", ")
        )
        named = [
            f"{lack} ({counted(number, 'row')})" for lack, number in lacks.most_common(_MOST_NAMED)
        ]
        named += [f"{len(lacks) - _MOST_NAMED} more"] if len(lacks) > _MOST_NAMED else []
        return [self.heading, *([f"the fee table lacks {', '.join(named)}"] if named else [])]


def no_rows(family: str) -> pl.DataFrame:
    """Return rows of a kind without any, which a statistic takes to check what it is asked."""
    values = dict.fromkeys((column.name for column in ROWS[family].values), pl.Float64)
    return pl.DataFrame(schema={"trajectory": pl.String, "ts": pl.Int64, **values})


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of an analysis, of which series and window they are, and what was asked.

    ``present`` are the keys with a row in the window. ``options`` are those that were given.
    """

    analysis: Analysis
    asked: Selection
    rows: pl.DataFrame
    present: Sequence[str]
    costs: Costs | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        analysis: Analysis,
        asked: Selection,
        costs: Costs | None = None,
        **options: Any,
    ) -> Self:
        """Compute an analysis over a selection, in one pass over the rows.

        With costs the net figures are beside the gross ones, where the analysis has some. Raises
        `InputError` for rates in force where settlements are asked for.
        """
        _check(analysis, asked)
        net = find(analysis.net) if analysis.net and costs else None
        own = dict(options)
        if costs is not None and "fees" in analysis.takes:
            own |= costs.arguments
        across = analysis.across
        measures = [across or asked.analysis(analysis.function, **own)]
        added = costs.arguments if costs else {}
        of_rows = net is not None and "figures" not in net.takes
        if net is not None and of_rows:
            measures.append(asked.analysis(net.function, **added))
        found, *nets, there = asked.in_one_pass(*measures, asked.present)
        if across is not None:
            found = analysis.function(across(found), *asked.window, **own)
        found = asked.by_polls(found)
        if net is not None:
            of_net = asked.by_polls(nets[0]) if of_rows else None
            found = net.function(found, **added) if of_net is None else beside(found, of_net, "net")
        return cls(analysis, asked, found, there["trajectory"].to_list(), costs, options)

    @property
    def heading(self) -> str:
        """What the rows are, of which window."""
        words = f"{self.analysis.title_for(self.options)} over {self.asked.stretch}"
        if self.costs and self.analysis.needs_fees:
            words += f", {self.costs.heading}"
        polls = self.asked.polls
        if polls is not None:
            answered = counted(polls.answered, "poll")
            words += f", kept from snapshots: {answered} answered, {polls.missed:,} missed"
        return words

    @property
    def notes(self) -> list[str]:
        """What a reader has to know of the rows, in lines."""
        found, asked = self.rows, self.asked
        notes = [] if asked.pairs is None else list(asked.pairs.notes)
        notes += [*notes_of(found), *_uncovered(found)]
        if self.analysis.family == "funding":
            lacking = asked.prices.lacking(found, asked.window)
            notes += [f"{words}, --funding-only leaves prices out" for words in lacking]
        if "trajectory" in found.columns:
            none_of = len(set(self.present) - set(found["trajectory"]))
            of = f"{none_of:,} of {len(self.present):,} series"
            notes += [f"nothing is found in {of}"] if none_of else []
        if self.costs and (self.analysis.net or "fees" in self.analysis.takes):
            notes += self.costs.notes(found)
        return notes

    @property
    def sheet(self) -> Sheet:
        """The answer as a table."""
        figures: list[str] = [*self.analysis.figures_in(self.rows.columns)]
        columns: list[Name] = [*self.analysis.columns_in(self.rows.columns)]
        if self.asked.polls is not None:
            after = figures.index("coverage") + 1 if "coverage" in figures else 0
            figures.insert(after, "not_tracked")
            columns.append("not_tracked")
        if not notes_of(self.rows):
            figures = [name for name in figures if name != "implausible"]
        return Sheet(
            self.heading,
            self.asked.store.source.label,
            self.rows,
            columns,
            order=self.analysis.order,
            figures=figures,
            notes=self.notes,
        )


def _check(analysis: Analysis, asked: Selection) -> None:
    """Raise `InputError` for rates in force where settlements are asked for."""
    if asked.polls is not None and analysis.family == "funding":
        named = ", ".join(each.key for each in asked.held)
        raise InputError("trajectories", named, "pairs, which settle: a rate in force pays nothing")


def _uncovered(found: pl.DataFrame) -> list[str]:
    """Say which least coverage would give the funding of all that have some."""
    if "funding_reason" not in found.columns:
        return []
    few = {"funding_reason": Reason.LOW_COVERAGE.value}
    low = found.filter(pl.col("coverage") > 0, **few)["coverage"]
    if low.is_empty():
        return []
    share = math.floor(min(low.to_list()) * 100) / 100
    return [f"a longer window, or --min-coverage {share:g}, gives the funding of {low.len()} more"]
