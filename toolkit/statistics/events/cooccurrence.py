"""Cooccurrence of events: pairs of openings near in time, compared with shifts of one log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.errors import InputError
from toolkit.intervals import Interval, intersection, total_s
from toolkit.reasons import Reason
from toolkit.statistics.core.conditions import Schema
from toolkit.statistics.core.contract import (
    Frame,
    checked_names,
    collected,
    first_reason,
    whole_number,
)
from toolkit.statistics.events.exposure import BY_OPENING, GROUP_COLUMNS, Watched
from toolkit.statistics.numeric.arrays import Integers
from toolkit.statistics.numeric.life_curve import numbered
from toolkit.statistics.numeric.season_shifts import SeasonShifts
from toolkit.statistics.numeric.tails import false_discoveries

MIN_EVENTS = 10
"""The fewest events on either side with a comparison."""
MIN_SHIFTS = 19
"""The fewest shifts for which a p-value can be 0.05."""
MOST_PAIRS = 100_000
"""The most pairs of groups that are compared at once."""

_MOST_AT_ONCE = 64
_CELLS = 1_000_000
_SEASONS_S = (86_400, 3_600)
_BEYOND_BAND = 0.025
_COUNTED = ("group", "other_group", "n", "n_other", "held_s", "season_s", "n_shifts")
_COMPARED = ("pairs_expected", "null_band_lower", "null_band_upper", "p_value")
_FIGURES: Schema = {"pairs": pl.Int64(), **dict.fromkeys(_COMPARED, pl.Float64())}
_ROWS: Schema = {
    **dict.fromkeys(_COUNTED, pl.Int64()),
    **_FIGURES,
    **{f"after_{name}": kind for name, kind in _FIGURES.items()},
}


@analysis(
    "events.cooccurrence",
    (
        *(f"other_{name}" for name in ("family", *GROUP_COLUMNS[:-1])),
        *("ratio", "q_value", "pairs", "pairs_expected", "null_band_upper", "after_ratio"),
        *("after_q_value", "n", "n_other", "coverage"),
    ),
    key=(
        *("family", *GROUP_COLUMNS[:-1]),
        *(f"other_{name}" for name in ("family", *GROUP_COLUMNS[:-1])),
    ),
    title=lambda within_s, **_: f"Which events come together within {duration(within_s)},",
    about="""
        Two openings are a pair if they are at most --within apart. The expected number
        comes from shifting one log by whole days, within the time that both logs cover, so
        each keeps its hours and its bursts. At a q of 0.05 one in twenty of the rows up to
        here is there by chance. Rows with the smallest q come first, and each pair comes in
        both orders.""",
    command="together",
    example="--same symbol --within 10m",
    chart="cooccurrence_chart",
    also=tuple(f"other_{name}" for name in GROUP_COLUMNS[:-1]),
    by=replace(BY_OPENING, help="Compare each of these with each other."),
    same=Parameter(
        "Count only pairs of one symbol, or of the same legs.", choices=BY_OPENING.choices
    ),
    within_s=Parameter("How far apart openings may be.", "s", option="--within"),
    season_s=Parameter("The length of the shift. Default: a day, or an hour.", "s", advanced=True),
)
def cooccurrence(
    lives: Frame,
    by: Sequence[str] = (),
    *,
    same: Sequence[str] = (),
    held: pl.DataFrame | None = None,
    within_s: int = 300,
    season_s: int | None = None,
) -> pl.DataFrame:
    """Measure which events open near others in time, more often than their own hours explain.

    ``lives``, ``by`` and ``held`` are those of `survival`. Each group is compared with each other.
    Two openings at most ``within_s`` (s) apart are a pair, and one is after the other if it is at
    least 1 s later. With ``same``, only events equal in these columns are paired, and a null there
    leaves an event out: ``same=["symbol"]`` asks which families come together on one symbol.

    Only time covered by both logs counts. The expected number is the mean over all shifts of one
    log by whole seasons within that time, wrapped around its end: a shifted log keeps its bursts
    and its hours of the day, and has no event in a gap. ``season_s`` (s) is by default a day with
    20 covered days or more, else an hour, when hours busy in both logs raise the ratio. A week
    (604,800) keeps the hours of the week and needs 20 weeks. Days busy in both logs raise the
    ratio, as does time in which neither could have an event, such as before a listing: exclude it.

    The p-value is (1 + shifts with as many pairs or more) / (1 + n_shifts). The q-value is that of
    Benjamini and Hochberg: with many groups it needs a long window. The band has 95 % of the ratios
    of the shifts, or all of fewer than 39.

    Two rows per pair of groups, one in each order, sorted. With ``same`` they need a value in
    common:

    {columns}

    Raises `InputError`: As `survival`. ``same`` is not a column. ``within_s`` is not a whole number
    from 1. ``season_s`` is less than ``within_s``. There are more than 100,000 pairs of groups.

    Source: Phipson, B. and Smyth, G. K. (2010), Statistical Applications in Genetics and Molecular
    Biology 9. Benjamini, Y. and Hochberg, Y. (1995), Journal of the Royal Statistical Society B 57.

    A splash on each of 30 days, at an hour of its own, and a spread a minute after it.

    >>> opened = [86_400 * day + day * day % 24 * 3_600 for day in range(30)]
    >>> lives = pl.DataFrame({"family": ["splash"] * 30 + ["spread"] * 30,
    ...     "t_open": opened + [each + 60 for each in opened], "duration_s": [30.0] * 60,
    ...     "entry_s": [0.0] * 60, "observed": [1] * 60, "kind": ["closed"] * 60,
    ...     "known_until": [2_592_000] * 60, "window_start": [0] * 60,
    ...     "window_end": [2_592_000] * 60})
    >>> row = cooccurrence(lives).row(0, named=True)
    >>> row["pairs"], round(row["pairs_expected"], 2), row["after_pairs"], row["p_value"]
    (30, 5.45, 30, 0.03333333333333333)
    """
    within_s = whole_number("within_s", within_s, 1, "seconds, at least 1")
    if season_s is not None:
        season_s = whole_number("season_s", season_s, within_s, "seconds, at least within_s")
    elif within_s > _SEASONS_S[0]:
        raise InputError("within_s", within_s, f"at most {_SEASONS_S[0]}, or as long a season_s")
    logs = _Openings.of(Watched.of(lives, by, held), lives, same)
    asked = {**{f"same_{name}": 1 for name in logs.same}, "within_s": within_s}
    question = logs.watched.question("events.cooccurrence/1", **asked, season_s=season_s)
    rows = pl.concat([pl.DataFrame(schema=_ROWS), *logs.compared(within_s, season_s)])
    return logs.named(_judged(rows, logs.watched.window)).with_columns(question.columns)


@dataclass(frozen=True, slots=True)
class _Openings:
    """Openings by group, and by the part of the log in which events can be paired.

    ``groups`` has one row per group, ``members`` the groups with an event in each part, and
    ``times`` (s) are sorted by ``code``: part, then group.
    """

    watched: Watched
    same: list[str]
    groups: pl.DataFrame
    members: pl.DataFrame
    times: Integers
    code: Integers

    @classmethod
    def of(cls, watched: Watched, lives: Frame, same: Sequence[str]) -> _Openings:
        """Give groups and parts numbers. Raises `InputError` as `cooccurrence`."""
        same = checked_names("same", same, lives.collect_schema())
        groups = watched.groups.select(watched.names)
        keyed = watched.lives.select("t_open", pl.col("_number").cast(pl.Int64).alias("group"))
        watched = watched.without_lives()
        part = pl.lit(0, pl.Int64)
        if same:
            shared = collected(lives.lazy().select(same))
            known = shared.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
            part = pl.lit(numbered(shared, same)[1].cast(pl.Int64).set(~known, None))
        keyed = keyed.with_columns(part.alias("part")).drop_nulls("part")
        members = keyed.select("part", "group").unique()
        sizes = members.group_by("part").len()["len"].cast(pl.Int64)
        if (pairs := (sizes * (sizes - 1) // 2).sum()) > MOST_PAIRS:
            raise InputError("by", f"{pairs:,} pairs of groups", f"at most {MOST_PAIRS:,}")
        code = pl.col("part") * groups.height + pl.col("group")
        opened = keyed.drop_nulls("t_open").select("t_open", code.alias("code")).sort("code")
        times, codes = (opened[each].to_numpy() for each in ("t_open", "code"))
        return cls(watched, same, groups, members, times, codes)

    def compared(self, within_s: int, season_s: int | None) -> Iterator[pl.DataFrame]:
        """Yield the rows of each group with later groups, family by family."""
        held: dict[str, list[tuple[int, int]]] = {name: [] for name in self.groups["family"]}
        for family, start, end in self.watched.inside().iter_rows():
            held[family].append((start, end))
        family_of = self.groups["family"].to_numpy()
        for first, other in itertools.combinations_with_replacement(sorted(held), 2):
            both = intersection(held[first], held[other])
            shifts = _shifts(both, within_s, season_s)
            logs = self.during(both)
            n = np.bincount(logs.code % family_of.size, minlength=family_of.size)
            theirs = np.flatnonzero(family_of == other)
            known = {
                "held_s": total_s(both),
                "season_s": shifts.season_s,
                "n_shifts": shifts.shifts - 1,
            }
            shared = [pl.lit(each, pl.Int64).alias(name) for name, each in known.items()]
            ones = np.flatnonzero(family_of == first)
            for pairs, counts in logs.pair_counts(ones, theirs, shifts, within_s):
                found = _both_orders(pairs, n, counts)
                yield found.with_columns(shared).select(*_ROWS)

    def during(self, held: list[Interval]) -> _Openings:
        """Return the openings in covered seconds."""
        edges = np.array(held, np.int64).ravel()
        inside = np.searchsorted(edges, self.times, "right") % 2 == 1
        return replace(self, times=self.times[inside], code=self.code[inside])

    def pair_counts(
        self, ones: Integers, among: Integers, shifts: SeasonShifts, within_s: int
    ) -> Iterator[tuple[Integers, Integers]]:
        """Yield pairs of groups that share a part, the lower one first, and their pairs of events.

        Pairs of groups have two rows: one of ``ones`` and one ``among`` the others. Events are
        counted as in `SeasonShifts.pair_counts`, over all parts.
        """
        most = max(1, min(_MOST_AT_ONCE, int((_CELLS / shifts.shifts) ** 0.5)))
        for some in _cut(ones, most):
            mine = self.members.filter(pl.col("group").is_in(some.tolist()))
            both = mine.join(self.members, on="part", suffix="_other")
            both = both.filter(pl.col("group") < pl.col("group_other"))
            both = both.select("group", "group_other").unique().sort("group", "group_other")
            pairs = both.to_numpy().T
            parts = mine["part"].unique().sort().to_numpy()
            theirs = np.intersect1d(pairs[1], among)
            within = [some] if np.isin(some, theirs).any() else []
            for others in [*within, *_cut(np.setdiff1d(theirs, some), most)]:
                table = self._table(parts, some, others, shifts, within_s)
                found = pairs[:, np.isin(pairs[1], others)]
                row, column = np.searchsorted(some, found[0]), np.searchsorted(others, found[1])
                yield found, table[:, row, column]

    def _table(
        self, parts: Integers, ones: Integers, others: Integers, shifts: SeasonShifts, within_s: int
    ) -> Integers:
        shape = ones.size, others.size
        found = np.zeros((3, *shape, shifts.shifts), np.int64)
        for part in parts.tolist():
            moved = self._log(part, ones)
            near = moved if others is ones else self._log(part, others)
            if moved[0].size and near[0].size:
                found += shifts.pair_counts(moved, near, shape, within_s)
        return found

    def _log(self, part: int, groups: Integers) -> tuple[Integers, Integers]:
        codes = part * self.groups.height + groups
        low, high = np.searchsorted(self.code, [codes[0], codes[-1] + 1])
        place = np.searchsorted(codes, self.code[low:high])
        own = codes[place] == self.code[low:high]
        return self.times[low:high][own], place[own]

    def named(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace the numbers of groups by their columns."""
        rows = rows.sort("group", "other_group")
        first, other = (self.groups[rows[name]] for name in ("group", "other_group"))
        others = other.rename({name: f"other_{name}" for name in other.columns})
        return pl.concat([first, others, rows.drop("group", "other_group")], how="horizontal")


def _cut(groups: Integers, most: int) -> list[Integers]:
    return np.array_split(groups, -(-groups.size // most)) if groups.size else []


def _shifts(held: list[Interval], within_s: int, season_s: int | None) -> SeasonShifts:
    """Choose the season: a day if that leaves enough shifts, else an hour."""
    wanted = [each for each in _SEASONS_S if each >= within_s] if season_s is None else [season_s]
    found = [SeasonShifts.of(held, each) for each in wanted]
    return next((each for each in found if each.shifts > MIN_SHIFTS), found[0])


def _both_orders(pairs: Integers, n: Integers, counts: Integers) -> pl.DataFrame:
    before, _, after = counts
    either = _figures(counts.sum(axis=0))
    orders = []
    for (first, other), later in ((pairs, after), (pairs[::-1], before)):
        columns = {"group": first, "other_group": other, "n": n[first], "n_other": n[other]}
        following = {f"after_{name}": each for name, each in _figures(later).items()}
        orders.append(pl.DataFrame({**columns, **either, **following}))
    return pl.concat(orders)


def _figures(counts: Integers) -> dict[str, npt.NDArray[Any]]:
    pairs, drawn = counts[:, 0], np.sort(counts[:, 1:], axis=1)
    shifts = drawn.shape[1]
    if not shifts:
        return {"pairs": pairs} | dict.fromkeys(_COMPARED, np.full(pairs.size, np.nan))
    beyond = max(1, int(_BEYOND_BAND * (1 + shifts)))
    expected = drawn.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        band = [drawn[:, place] / expected for place in (beyond - 1, -beyond)]
    p_value = (1 + (drawn >= pairs[:, None]).sum(axis=1)) / (1 + shifts)
    return {"pairs": pairs, **dict(zip(_COMPARED, (expected, *band, p_value), strict=True))}


def _judged(rows: pl.DataFrame, window: Interval) -> pl.DataFrame:
    reason = first_reason(
        {
            Reason.EMPTY: pl.col("held_s") == 0,
            Reason.TOO_SHORT: pl.col("n_shifts") < MIN_SHIFTS,
            Reason.TOO_FEW: pl.min_horizontal("n", "n_other") < MIN_EVENTS,
        }
    )
    figures = [each for name in ("", "after_") for each in _judged_figures(name, reason)]
    return rows.select(
        *_COUNTED[:5],
        (pl.col("held_s") / pl.lit(window.length_s, pl.Int64)).alias("coverage"),
        *_COUNTED[5:],
        *figures,
    )


def _judged_figures(name: str, reason: pl.Expr) -> Iterator[pl.Expr]:
    expected, lower, upper, p_value = (pl.col(f"{name}{each}") for each in _COMPARED)
    never = {Reason.TOO_FEW: expected == 0}
    of_ratio = pl.coalesce(reason, first_reason(never))
    known = reason.is_null()
    yield pl.col(f"{name}pairs")
    yield pl.when(known).then(expected)
    ratio = (pl.col(f"{name}pairs") / expected).alias(f"{name}ratio")
    for figure in (ratio, lower, upper):
        yield pl.when(of_ratio.is_null()).then(figure)
    yield of_ratio.alias(f"{name}ratio_reason")
    sure = pl.when(known).then(p_value)
    yield sure.alias(f"{name}p_value")
    yield false_discoveries(sure).alias(f"{name}q_value")
    yield reason.alias(f"{name}p_value_reason")
