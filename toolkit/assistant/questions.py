"""Questions of tools to a workspace, by the methods that Python has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import polars as pl

from toolkit.analyses import Analysis
from toolkit.assistant.answers import ToolAnswer
from toolkit.cards import counted, duration
from toolkit.errors import InputError, nearest
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.series import EventSeries, FundingSeries, Series, SpreadSeries
from toolkit.series.held_prices import HeldPrices
from toolkit.series.logs import HeldEvents
from toolkit.statistics.events.changes import STUDIED
from toolkit.statistics.fees.fee_table import FeeModel, Style
from toolkit.statistics.quality.plausibility import notes_of
from toolkit.workspace import Workspace
from toolkit.workspace.answers import SeriesAnswer
from toolkit.workspace.events.event_answers import EventAnswer
from toolkit.workspace.events.event_selection import EventSelection

SQL_S = 10.0
"""The time that a query may take (s)."""

PARTS = 40
"""Parts of a window that a chart has values for."""

_FIGURE_POINTS = 400
_LISTED = ("stream", "kind", "state", "rows", "answered_share", "first_ts", "last_ts", "behind_s")
_MISSING = ("holes", "longest_hole_s", "open_gaps", "unrepairable_gaps")
_BOUNDS = ("[start, end)", "(start, end]")
_FUNDING_ONLY = "funding only: what prices brought is left out"
_NO_FEES = (
    "no fee table is set, so figures are gross; `rail fees --example` prints one, and "
    "`rail mcp --fees FILE` takes it"
)


def search_streams(rail: Workspace, *, text: str = "", kind: str | None = None) -> ToolAnswer:
    """List the streams in the store whose keys have all words of a text."""
    listed = rail.status()
    if kind is not None:
        listed = listed.filter(kind=kind)
    key = pl.col("stream").str.to_uppercase()
    found = listed.filter(
        pl.lit(True), *(key.str.contains(word, literal=True) for word in text.upper().split())
    )
    notes = ["answered_share is the coverage of each stream: the part that the service answered"]
    if listed.is_empty():
        notes = ["the store holds no such stream at all"]
    elif found.is_empty():
        near = nearest(text, listed["stream"], 5)
        notes = [f"no key has all of these words; nearest: {', '.join(near) or 'none'}"]
    shown = found.select(*_LISTED, *_MISSING)
    return _of_many(rail, shown, notes=notes, n=found.height)


def screen(
    rail: Workspace,
    *,
    family: str = "spread",
    where: str | None = None,
    sort: str | None = None,
    symbol: str | None = None,
    style: Style = "taker",
    funding_only: bool = False,
    start: str | None = None,
    end: str | None = None,
) -> ToolAnswer:
    """Rank all spreads or funding pairs in the store."""
    found = rail.screen(
        start,
        end,
        family=family,
        where=where,
        sort=sort,
        symbols=symbol,
        style=style,
        funding_only=funding_only,
    )
    if found.is_empty():
        return _of_many(rail, found, notes=["no pair meets the condition"], n=0)
    window = Interval(found["window_start"][0], found["window_end"][0])
    notes = ["n and coverage are those of each row"]
    notes += HeldPrices(rail.store).lacking(found, window)
    notes += [_FUNDING_ONLY] if funding_only else []
    return _of_many(rail, found, notes=notes, window=window, costs=True)


def coverage(
    rail: Workspace, *, stream: str, start: str | None = None, end: str | None = None
) -> ToolAnswer:
    """List the missing stretches of a stream, the longest first, and why they are missing."""
    series = rail.series(stream, start, end)
    found = series.gaps().sort("length_s", "start", descending=[True, False])
    sums = found.group_by("state").agg(pl.len(), pl.col("length_s").sum()).sort("state")
    notes = [
        f"{state}: {counted(count, 'stretch', 'stretches')}, {duration(length_s)} in all"
        for state, count, length_s in sums.iter_rows()
    ]
    if "missing" in found["state"] and not rail.store.published:
        notes.append(f"`{rail.store.command('sync', series.stream.key)}` loads what is missing")
    return _of_series(series, found, notes=notes or ["no second of the window is missing"])


def chart(
    rail: Workspace,
    *,
    stream: str,
    figure: bool = False,
    start: str | None = None,
    end: str | None = None,
) -> ToolAnswer:
    """Return first, lowest, highest and last value of a series, or a count, per part of time."""
    series = rail.series(stream, start, end)
    name = STUDIED.get(cast("Any", series.stream.kind))
    if name is None and not isinstance(series, EventSeries):
        raise InputError("stream", stream, "a price, a spread, a funding pair or an event log")
    part_s, begins = -(-series.window.length_s // PARTS), series.window.start
    past = isinstance(series, FundingSeries)  # a settlement at a part's end belongs to that part
    part = (begins + (pl.col("ts") - begins - int(past)) // part_s * part_s).alias("part_ts")
    figures = {"n": pl.len()}
    if name is not None:
        value = pl.col(name).drop_nulls()
        figures = {
            "n": value.count(),
            f"first_{name}": value.first(),
            f"lowest_{name}": value.min(),
        }
        figures |= {f"highest_{name}": value.max(), f"last_{name}": value.last()}
    found = series.df.sort("ts").group_by(part, maintain_order=True).agg(**figures)
    notes = [
        f"each row is the {duration(part_s)} from part_ts on; one without rows is absent",
        f"`{rail.store.command('open', series.stream.key)}` opens the whole chart",
    ]
    points = {} if isinstance(series, EventSeries) else {"points": _FIGURE_POINTS}
    drawn = cast("Any", series).plot(**points).to_json() if figure else None
    return _of_series(series, found, notes=notes, figure=drawn)


def sql(rail: Workspace, *, query: str, limit: int = 20) -> ToolAnswer:
    """Run one SELECT over the views."""
    found = rail.sql(query, at_most=limit + 1, within_s=SQL_S)
    notes = ["SQL states no coverage and no intervals: coverage and summary do"]
    cut = found.head(limit)
    return _of_many(rail, cut, notes=notes, n=cut.height, more=found.height > limit)


def of_series(
    rail: Workspace,
    series: Series,
    found: pl.DataFrame,
    analysis: Analysis | None,
    options: Mapping[str, Any],
) -> ToolAnswer:
    """Return what a method of a series found as the answer of its analysis."""
    costs = isinstance(series, SpreadSeries | FundingSeries)
    if analysis is not None:
        costs = analysis.costs
    notes = [*notes_of(found), *HeldPrices(rail.store).lacking(found, series.window)]
    if isinstance(series, EventSeries) and analysis is not None:
        notes += _notes_of_events(rail, series, found, analysis, options)
    made = _of_series(series, found, costs=costs, notes=notes)
    return made if analysis is None else _declared(made, analysis)


def _notes_of_events(
    rail: Workspace,
    series: EventSeries,
    found: pl.DataFrame,
    analysis: Analysis,
    options: Mapping[str, Any],
) -> list[str]:
    if analysis.of or rail.known_at is not None:  # these are of what is held now
        return []
    log, on = series.stream.family, options.get("on")
    events = HeldEvents(series.window, series.rows, series.logs, series.held, log)
    other = None if on is None else Trajectory.parse(on)
    asked = EventSelection(rail.store, (log,), events, other)
    return EventAnswer(analysis, asked, found, options=options).notes


def of_selection(rail: Workspace, answer: SeriesAnswer) -> ToolAnswer:
    """Make an answer of what an analysis found of many series."""
    asked, analysis = answer.asked, answer.analysis
    costs = analysis.costs
    notes = [*asked.turned, *answer.notes]
    made = _of_many(rail, answer.sheet.ordered(), notes=notes, window=asked.window, costs=costs)
    bounds = _BOUNDS[asked.kind == Family.FUNDING]
    return replace(_declared(made, analysis), bounds=bounds)


def _declared(made: ToolAnswer, analysis: Analysis) -> ToolAnswer:
    first = analysis.answer_in(made.rows.columns)
    return replace(made, first=tuple(first), key=analysis.key, curve=analysis.is_curve)


def _of_series(
    series: Series, found: pl.DataFrame, *, notes: Sequence[str], **more: Any
) -> ToolAnswer:
    held = cast("Any", series).coverage() if hasattr(series, "coverage") else pl.DataFrame()
    return _answer(
        found,
        series.source,
        series.origin.fees,
        notes=[*notes, *series.origin.notes],
        stream=series.stream.key,
        window=series.window,
        bounds=_BOUNDS[isinstance(series, FundingSeries)],
        n=_of_one("n", found, held),
        coverage=_of_one("coverage", found, held),
        **more,
    )


def _of_one(column: str, *frames: pl.DataFrame) -> Any:
    return next(
        (frame[column][0] for frame in frames if frame.height == 1 and column in frame.columns),
        None,
    )


def _of_many(rail: Workspace, found: pl.DataFrame, *, notes: list[str], **more: Any) -> ToolAnswer:
    return _answer(found, rail.store.source, rail.fees, notes=notes, **more)


def _answer(
    found: pl.DataFrame,
    source: Source,
    fees: FeeModel | None,
    *,
    notes: Sequence[str],
    costs: bool = False,
    **more: Any,
) -> ToolAnswer:
    label = fees.label if fees and costs else None
    notes = (*notes, *([_NO_FEES] if costs and fees is None else []))
    simulated = source.kind == "simulated"
    return ToolAnswer(found, source.label, simulated, fees=label, notes=notes, **more)
