"""Answers of analyses of event logs, like `toolkit.workspace.answers` for series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import polars as pl

from toolkit.analyses import Analysis, find
from toolkit.cards import counted, duration
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory, format_ts, swapped
from toolkit.series.logs import summed_up, with_places
from toolkit.show.sheet import Sheet
from toolkit.show.values import share_text
from toolkit.statistics import events as event_statistics
from toolkit.statistics.core.definition import with_spread
from toolkit.statistics.events.changes import STUDIED, name_of_change
from toolkit.statistics.events.documents import trajectory_of
from toolkit.statistics.events.exposure import group_columns
from toolkit.statistics.events.survival import MOST_GROUPS
from toolkit.statistics.passes import in_one_pass
from toolkit.store import held_key, sync_advice
from toolkit.workspace.answers import Costs, SeriesAnswer, no_rows
from toolkit.workspace.events.event_selection import OF_FAMILY, EventSelection
from toolkit.workspace.selection import OfLegs, Passes, Selection

_MINUTE_S = 60
_LOADED_BY = {
    Family.SPREAD: "--all-spreads",
    Family.FUNDING: "--all-funding",
    Family.PRICE: "--all-prices",
}


def taken_positions(asked: EventSelection, options: Mapping[str, Any]) -> pl.DataFrame:
    """Compute the positions of spread events, also without a stored trajectory.

    ``options`` are those of `toolkit.statistics.events.positions`. Raises `EmptyWindowError` if no
    event opened, or none in a stored trajectory.
    """
    store, window = asked.store, asked.window
    lives = asked.events.lives.filter(family=EventFamily.SPREAD.value)
    events = lives.with_columns(trajectory_of())
    opened = events.filter(pl.col("t_open").is_between(*window, closed="left"))
    nothing = with_spread(no_rows(Family.SPREAD.value))
    # checks the options before rows are read
    event_statistics.positions(events.head(0), nothing, step_s=_MINUTE_S, **options)
    keys = opened["trajectory"].drop_nulls().value_counts(sort=True)["trajectory"].to_list()
    if not keys:
        raise EmptyWindowError(f"{store.name} holds no spread event that opened in {window}")
    known = store.catalogue().filter(pl.col("rows") > 0, kind=Family.SPREAD.value)
    streams = set(known["stream"])
    found = {key: at for key in keys if (at := held_key(key, streams))}
    if not found:
        raise EmptyWindowError(
            f"{store.name} holds none of the {len(keys):,} trajectories in which events opened; "
            + sync_advice(store, keys[0], does="loads the first")
        )
    pairs: dict[OfLegs, OfLegs] = {
        Trajectory.parse(key): Trajectory.parse(at) for key, at in found.items()
    }
    start, end = window
    spreads = Selection.over(
        Passes.of(store), Family.SPREAD.value, pairs, known, start=start, end=end
    )
    step_s = max(spreads.steps.values(), default=_MINUTE_S)
    given = {**options, "held": asked.events.held, "step_s": spreads.steps}

    def measure(rows: pl.DataFrame) -> pl.DataFrame:
        mine = events.filter(pl.col("trajectory").is_in(rows["trajectory"].unique().implode()))
        return event_statistics.positions(mine, rows, **given)

    read = Interval(start - step_s, end + options.get("exit_delay_s", 0) + 5 * step_s)
    [rows] = in_one_pass(spreads.groups(read), measure)
    others = events.filter(~pl.col("trajectory").is_in(rows["trajectory"].unique().implode()))
    return pl.concat([rows, event_statistics.positions(others, nothing, **given)])


def audited_events(asked: EventSelection, options: Mapping[str, Any]) -> pl.DataFrame:
    """Audit a log by all stored trajectories of its kind, some at a time.

    ``options`` are those of `toolkit.statistics.events.audited`. Pairs with events in both
    orientations are audited in both. Raises `EmptyWindowError` if no such trajectory is stored.
    """
    store, window, kind = asked.store, asked.window, OF_FAMILY[asked.family]
    known = store.catalogue().filter(pl.col("rows") > 0, kind=kind.value)["stream"]
    if known.is_empty():
        advice = sync_advice(store, _LOADED_BY[kind], does="loads some")
        raise EmptyWindowError(f"{store.name} holds no {kind} yet; {advice}")
    held = {key: Trajectory.parse(key) for key in known}
    documents = asked.events.documents
    detected: set[str] = set()
    if kind is not Family.PRICE:
        inside = pl.col("ts").is_between(*window, closed="left")
        detected = set(event_statistics.detections(documents).filter(inside)["trajectory"])
    if any(swapped(key) in detected or swapped(key) in held for key in detected):
        held |= {swapped(key): each for key, each in held.items() if swapped(key) not in held}
    pairs: dict[OfLegs, OfLegs] = {Trajectory.parse(key): of for key, of in held.items()}
    series = Selection(Passes.of(store), kind.value, pairs, window)
    lives = event_statistics.with_direction(asked.events.lives, documents)
    left, trajectory = lives.with_columns(trajectory_of()), pl.col("trajectory")
    not_held = trajectory.is_null() | ~trajectory.is_in(list(held))

    def audited(rows: pl.DataFrame) -> pl.DataFrame:
        nonlocal left
        mine = trajectory.is_in(rows["trajectory"].unique().implode()) | not_held
        taken, left = left.filter(mine), left.filter(~mine)
        return event_statistics.audited(
            taken.drop("trajectory"),
            rows,
            *window,
            family=asked.family,
            held=asked.events.held,
            **options,
        )

    (found,) = in_one_pass(series.groups(window), audited)
    return with_places(found.sort("trajectory", maintain_order=True))


def smallest_size_bps(asked: EventSelection) -> float:
    """Return the smallest size of an event. Raises `EmptyWindowError` without any."""
    lives = event_statistics.with_direction(asked.events.lives, asked.events.documents)
    if lives.is_empty():
        raise EmptyWindowError(
            f"{asked.store.name} holds nothing of events/{asked.family} in {asked.window}"
        )
    return event_statistics.smallest_size_bps(lives, asked.window, asked.family)


_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """Rows of an analysis of event logs with its parameters.

    ``options`` are those given or chosen, ``before`` the rows before summing up.
    """

    analysis: Analysis
    asked: EventSelection
    rows: pl.DataFrame
    costs: Costs | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    before: pl.DataFrame | None = None

    @classmethod
    def of(
        cls, analysis: Analysis, asked: EventSelection, costs: Costs | None = None, **options: Any
    ) -> Self:
        """Compute an analysis of event logs. Raises `EmptyWindowError` without an event."""
        if analysis.of == "events.positions":
            before = taken_positions(asked, _options_of(analysis, options, costs))
            found = summed_up(analysis, before, options)
            known = pl.col("n_no_rows") < pl.col("n_events")  # groups with stored rows
            return cls(analysis, asked, found.filter(known), costs, options, before)
        if analysis.of == "events.audited":
            if options.get("enter_bps") is None:
                options["enter_bps"] = smallest_size_bps(asked)
            before = audited_events(asked, _options_of(analysis, options, None))
            found = summed_up(analysis, judged(before), options)
            return cls(analysis, asked, found, costs, options, before)
        found = asked.answer(analysis, **options)
        if analysis.name == "cooccurrence":  # the surest first
            found = found.sort(
                "p_value", "ratio", descending=[False, True], nulls_last=True, maintain_order=True
            )
        return cls(analysis, asked, found, costs, options)

    @property
    def present(self) -> Sequence[str]:
        """The families."""
        return [each.value for each in self.asked.families]

    @property
    def heading(self) -> str:
        """The title, with the window and the costs."""
        on, families = self.asked.on, self.asked.families
        words = {
            "family": self.asked.family.value,
            "families": " and ".join(families),
            "of": "their own trajectories" if on is None else on.key,
        }
        heading = f"{self.analysis.title_for({**self.options, **words})} over {self.asked.window}"
        if "fees" in self.analysis.takes:
            heading += f", {self.costs.heading if self.costs else 'before fees'}"
        return heading

    @property
    def notes(self) -> list[str]:
        """Caveats for a reader, a line each."""
        write = _NOTES.get(self.analysis.name)
        notes = [] if write is None else write(self)
        one_log = {"values", "rows"} & self.analysis.takes
        if one_log and (share := self.asked.share) is not None:
            notes.append(f"the log is held in {share_text(share)} of the window")
        return notes

    @property
    def sheet(self) -> Sheet:
        """The answer as a table, without net figures if it has no costs."""
        net = () if self.costs else ("net_", "cost_")
        shown = [name for name in self.rows.columns if not name.startswith(net)]
        return Sheet(
            self.heading,
            self.asked.store.source.label,
            self.rows,
            self.analysis.columns_in(shown),
            order=self.analysis.order,
            window=self.asked.window,
            notes=self.notes,
            result=self.analysis.result,
            path="offset_s" in self.rows.columns,
        )

    @property
    def listed(self) -> Sheet:
        """The rows before summing up as a table, of an audit those on one side only."""
        assert self.before is not None
        first, rows, cells = find(self.analysis.of), self.before, dict[str, Any]()
        if self.analysis.name == "audit":
            rows, cells = judged(rows).filter(pl.col("found_in") != "both"), _CELLS
        columns = first.columns_in(rows.columns)
        return replace(self.sheet, rows=rows, columns=columns, cells=cells, result=first.result)


def answer_of(
    analysis: Analysis,
    asked: Selection | EventSelection,
    costs: Costs | None = None,
    **options: Any,
) -> SeriesAnswer | EventAnswer:
    """Compute an analysis of series or event logs."""
    if isinstance(asked, EventSelection):
        return EventAnswer.of(analysis, asked, costs, **options)
    return SeriesAnswer.of(analysis, asked, costs, **options)


def judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of an audit of stored trajectories."""
    return rows.filter(pl.col("audit_reason").ne_missing("no_rows"))


def _options_of(
    analysis: Analysis, options: Mapping[str, Any], costs: Costs | None
) -> dict[str, Any]:
    own = {"by", "cluster"} & analysis.takes
    first = {name: each for name, each in options.items() if name not in own}
    return first | (costs.arguments if costs else {})


def _of_groups(answer: EventAnswer) -> list[str]:
    groups = group_columns(answer.options.get("by") or [])
    if not groups:
        return []
    lives = answer.asked.events.lives
    parts = lives.select("family", *groups).unique().group_by("family").len()
    few = parts.filter(pl.col("len").is_between(2, MOST_GROUPS))["family"]
    tested = lives.filter(pl.col("family").is_in(few.implode()))
    found = event_statistics.log_rank(tested, groups, held=answer.asked.events.held)
    return [
        f"{row['family']}: log-rank test of {counted(row['n_groups'], 'group')}, "
        f"p = {row['p_value']:.3g} if all live equally long"
        for row in found.drop_nulls("p_value").iter_rows(named=True)
    ]


def _of_unknown_types(answer: EventAnswer) -> list[str]:
    return [
        f"{row['family']}: {counted(row['n_unknown'], 'document')} of unknown type "
        f"({row['unknown_types']}), kept and not counted above"
        for row in answer.rows.filter(pl.col("n_unknown") > 0).iter_rows(named=True)
    ]


def _of_shifts(answer: EventAnswer) -> list[str]:
    if answer.rows.is_empty():
        loads = sync_advice(answer.asked.store, "events/*", does="loads the others")
        return [f"the events held are of one log, with nothing to come together with; {loads}"]
    tested = answer.rows.drop_nulls("p_value")
    notes = []
    if tested.filter(pl.col("season_s") < _DAY_S).height:
        hours = "few days are held, so logs are shifted by whole hours"
        notes.append(f"{hours}: hours of the day that are busy in both count as coming together")
    least = tested.select((pl.len() / 2 / (1 + pl.col("n_shifts"))).max()).item()
    if tested.height and least > 0.05:
        pairs = counted(tested.height // 2, "pair")
        notes.append(
            f"of {pairs} and so few shifts a single one that comes together has a q of "
            f"{min(least, 1):.2g} at best: a longer window can show more"
        )
    return notes


_MEASURED = {
    Family.PRICE: ("price", "change of the price in bps, in the direction of the event"),
    Family.SPREAD: ("spread", "change of the log spread in bps"),
    Family.FUNDING: ("differential", "change of the differential in percent per 8 h"),
}


def _of_paths(answer: EventAnswer) -> list[str]:
    if answer.rows.is_empty():
        return []
    row, since = answer.rows.row(0, named=True), bool(answer.options.get("from_detection"))
    figure = {
        family: name_of_change(column, "mean", from_detection=since)
        for family, column in STUDIED.items()
    }
    family = next((each for each, name in figure.items() if name in row), Family.PRICE)
    name, measured = _MEASURED[family]
    if since:
        known = "price known at" if family is Family.PRICE else "median before"
        measured += f", from the {known} each event: the move that made it counts as what followed"
    else:
        measured += f", from the first {name} known after each event"
        if row.get("wait_median_s") is not None:
            measured += f", {duration(row['wait_median_s'])} later in the median"
    left_out = [f"{row['n_overlapping']:,} that follow another too soon"]
    if "n_unknown" in row:
        left_out.append(f"{row['n_unknown']:,} of which nothing is known then")
    counts = f"{counted(row['n_events'], 'event')}; left out: {', '.join(left_out)}"
    return [measured, counts]


def _of_positions(answer: EventAnswer) -> list[str]:
    rows, costs, notes = answer.before, answer.costs, list[str]()
    assert rows is not None
    if costs is not None:
        without = rows.filter(pl.col("gross_bps").is_not_null(), pl.col("net_bps").is_null())
        last = without.group_by("trajectory", maintain_order=True).agg(pl.col("entry_ts").max())
        fees, style = costs.fees, costs.style
        words = [", ".join(fees.lacking(key, style, at=at)) for key, at in last.iter_rows()]
        lacks = pl.DataFrame({"cost_lacks": words}, schema={"cost_lacks": pl.String})
        notes += costs.notes(lacks)
    one_delay = rows.filter(pl.col("delay_s") == pl.col("delay_s").min())
    without = one_delay.filter(position_reason="no_rows")
    if without.height:
        keys = without["trajectory"].value_counts(sort=True)["trajectory"]
        unheld = counted(keys.len(), "trajectory", "trajectories")
        these = f"{without.height:,} of {counted(one_delay.height, 'event')} are of {unheld}"
        advice = sync_advice(answer.asked.store, keys[0], does="loads the first")
        notes.append(f"{these} without rows; {advice}")
    return notes


_SIDES = {"log": "event", "rows": "episode"}
_WHY = {
    "no_rows": "of trajectories that are not held, not counted above",
    "gap": "while no such size is known",
    "below": "with less than that all the time",
    "missed": "missed by the log",
    "began_before": "whose beginning was not seen",
    "log_ended": "after the log was known last",
    "log_gap": "in a gap of the log",
    "still_open": "while an event from before may be open",
}
_WHY_SPLASH = {
    "no_rows": "of prices that are not held, or in steps longer than the move, not counted above",
    "gap": "while no move of the price is known",
}
_EARLY = "a delay below 0: events open within a bar, which is known at its end"


def _size_text(row: Mapping[str, Any]) -> str:
    size = row["event_peak_pct"] if row["episode_peak_pct"] is None else row["episode_peak_pct"]
    return "–" if size is None else f"{size:.2f}"


_CELLS: dict[str, Any] = {
    "t_open": lambda row: format_ts(
        row["episode_start"] if row["t_open"] is None else row["t_open"]
    ),
    "event_peak_pct": _size_text,
    "audit_reason": lambda row: f"{_SIDES[row['found_in']]} {_WHY[row['audit_reason']]}",
}


def _of_audit(answer: EventAnswer) -> list[str]:
    rows, store = answer.before, answer.asked.store
    assert rows is not None
    why = _WHY | (_WHY_SPLASH if answer.asked.family == "splash" else {})
    alone = rows.filter(pl.col("found_in") != "both").group_by("found_in", "audit_reason").len()
    notes = [
        f"{counted(number, _SIDES[found_in])} {why[reason]}"
        for found_in, reason, number in alone.sort("found_in", "len", descending=True).iter_rows()
    ]
    held = store.catalogue().filter(pl.col("rows") > 0)["stream"].implode()
    name = pl.col("trajectory").str.replace(":(pump|dump)$", "")
    lacking = rows.filter(audit_reason="no_rows").group_by(name).len()
    lacking = lacking.filter(~pl.col("trajectory").is_in(held))
    keys = lacking.sort("len", "trajectory", descending=[True, False])["trajectory"]
    if keys.len():
        these = counted(keys.len(), "trajectory", "trajectories")
        does = f"loads the first of {these} that are not held"
        notes.append(sync_advice(store, keys[0], does=does))
    early = (answer.rows["delay_median_s"] < 0).any()
    return [*notes, *([_EARLY] if early else [])]


_NOTES: dict[str, Callable[[EventAnswer], list[str]]] = {
    "summary": _of_unknown_types,
    "survival": _of_groups,
    "cooccurrence": _of_shifts,
    "study": _of_paths,
    "placebo": _of_paths,
    "follow_through": _of_paths,
    "payoff": _of_positions,
    "audit": _of_audit,
}
"""The notes below the rows of an analysis, by its name."""
