"""Exposure of events, the time for which the coverage of their log shows each, and their groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from polars import selectors

from toolkit.analyses.parameters import GROUPS, Parameter
from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Stream, Trajectory
from toolkit.statistics.core.categories import with_categories
from toolkit.statistics.core.contract import Frame, Question, checked_names, checked_types
from toolkit.statistics.numeric.life_curve import numbered, some_rows

BEFORE_S = 3_600
"""How long before an event a loss may be to count as near (s)."""

_LOST = {"symbol": pl.String(), "lost_legs": pl.List(pl.String), "of_funding": pl.Boolean()}


def with_losses(lives: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """Add to rows of `event_lifecycles` why rows of their legs near them are lost at the source.

    ``near_lost`` (String) is the cause of the first row of ``gaps`` (of `toolkit.store.Store.gaps`)
    with status lost that touches an event or the `BEFORE_S` before it. Null without one, also if
    nothing of these legs was loaded. Gaps of funding count for funding events, those of prices and
    spreads for others, and those of a pair if the event has both legs.
    """
    lost = gaps.filter(status="lost").select("stream", "start_ts", "end_ts", "cause")
    of = [
        (str(s.symbol), [*map(str, s.legs)], s.family is Family.FUNDING)
        if isinstance(s, Trajectory)
        else (None, None, None)  # a log has no legs
        for s in map(Stream.parse, lost["stream"])
    ]
    told = lost.hstack(pl.DataFrame(of, _LOST, orient="row"))
    numbered = lives.with_row_index("life")
    near = numbered.join(told, on="symbol").filter(
        pl.col("lost_legs").list.set_difference(pl.col("legs").str.split(" → ")).list.len() == 0,
        pl.col("of_funding") == (pl.col("family") == Family.FUNDING.value),
        pl.col("start_ts") <= pl.coalesce("t_close", "known_until"),
        pl.col("end_ts") >= pl.col("since") - BEFORE_S,
    )
    first = near.sort("start_ts", "cause").group_by("life").agg(near_lost=pl.col("cause").first())
    return numbered.join(first, on="life", how="left", maintain_order="left").drop("life")


_LIVES = {
    **dict.fromkeys(("family", "kind"), "String"),
    **dict.fromkeys(("t_open", "observed", "known_until", "window_start", "window_end"), "Int64"),
    **dict.fromkeys(("duration_s", "entry_s"), "Float64"),
}
_TIMES = [name for name, kind in _LIVES.items() if kind != "String"]
_OPTIONAL = ("_symbol", "_trajectory", "lifecycle_reason")
_HELD = {"family": "String", "start_ts": "Int64", "end_ts": "Int64"}


@dataclass(frozen=True, slots=True)
class Watched:
    """Lifecycles of one window, and the stretches of time in which their logs are covered.

    ``groups`` has the columns ``names``, the family first, and ``_number`` (UInt32) of each group,
    sorted. ``lives`` has ``_number`` in their place, and if known ``_symbol`` and ``_trajectory``
    (Int64). ``stretches`` have ``family``, ``start_ts`` and ``end_ts`` (s), sorted and disjoint.
    """

    lives: pl.DataFrame
    groups: pl.DataFrame
    stretches: pl.DataFrame
    window: Interval

    @classmethod
    def of(cls, lives: Frame, by: Sequence[str], held: pl.DataFrame | None) -> Watched:
        """Check lifecycles and the coverage of their logs, by default all until it is known.

        Raises `InputError` for a missing column or lifecycles of several windows.
        """
        checked_types(lives, _LIVES, parameter="lives")
        schema = lives.collect_schema()
        names = list(dict.fromkeys(["family", *checked_names("by", by, schema)]))
        apart = [name for name in ("symbol", "legs") if name in schema]
        reason = [name for name in ("lifecycle_reason",) if name in schema]
        needed = dict.fromkeys([*_LIVES, *names, *apart, *reason])
        rows = with_categories(lives.lazy().select(list(needed)))
        groups, numbers = numbered(rows, names)
        groups = groups.cast({name: schema[name] for name in names}).rename({"_group": "_number"})
        rows = rows.select(*_TIMES, "kind", *reason, numbers.alias("_number"), **_codes(apart))
        edges = rows.select("window_start", "window_end")
        least, most = edges.min().row(0), edges.max().row(0)
        if least != most:
            raise InputError("lives", f"{edges.n_unique()} windows", "lifecycles of one window")
        window = Interval(*least) if rows.height else Interval(0, 1)
        known_until = rows.group_by("_number").agg(pl.col("known_until").max())
        known = groups.join(known_until, on="_number").group_by("family")
        known_of_family = known.agg(pl.col("known_until").max()).sort("family")
        stretches = known_of_family.select(
            "family", pl.lit(-(2**40), pl.Int64).alias("start_ts"), end_ts="known_until"
        )
        if held is not None:
            stretches = _merged(checked_held(held).join(known_of_family, on="family"))
        lives = rows.drop("known_until", "window_start", "window_end")
        return cls(lives, groups, stretches, window)

    @property
    def names(self) -> list[str]:
        """The columns of the groups."""
        return self.groups.columns[1:]

    def during(self, window: Interval) -> Watched:
        """Return the same lifecycles and stretches in a part of the window."""
        return replace(self, window=window)

    def without_lives(self) -> Watched:
        """Return the same without lifecycles, to free memory."""
        return replace(self, lives=self.lives.clear())

    def inside(self) -> pl.DataFrame:
        """Return the stretches within the window."""
        start, end = self.window
        return self.stretches.with_columns(
            pl.col("start_ts").clip(lower_bound=start), pl.col("end_ts").clip(upper_bound=end)
        ).filter(pl.col("start_ts") < pl.col("end_ts"))

    def held_s(self) -> pl.DataFrame:
        """Return one row per family: ``held_s`` and ``coverage``."""
        held_s = (pl.col("end_ts") - pl.col("start_ts")).sum()
        held = self.inside().group_by("family").agg(held_s=held_s)
        share = pl.col("held_s") / pl.lit(self.window.length_s, pl.Int64)
        return (
            self.groups.select(pl.col("family").unique().sort())
            .join(held, on="family", how="left", maintain_order="left")
            .with_columns(pl.col("held_s").fill_null(0))
            .with_columns(share.alias("coverage"))
        )

    def openings(self) -> pl.DataFrame:
        """Return ``_number``, ``t_open`` and ``stretch`` of covered openings, sorted by time."""
        inside = self.inside()
        opened = pl.col("t_open").is_between(*self.window, closed="left")
        found = [
            self._placed(part.filter(opened), inside)
            .filter(pl.col("t_open") < pl.col("until"))
            .drop("until")
            for part in some_rows(self.lives.select("_number", "t_open"))
        ]
        return pl.concat(found).sort("t_open")

    def cut(self) -> pl.DataFrame:
        """Return the lifecycles, each until the next gap of its log, and whether it is ``cut``."""
        opened, duration_s = pl.col("t_open").is_not_null(), pl.col("duration_s")
        seen_s = (pl.col("until") - pl.col("t_open")).fill_null(0).clip(lower_bound=0)
        watched_s = pl.when(pl.col("seen_s") > 0).then(pl.col("seen_s").cast(pl.Float64))
        found = [
            self._placed(part, self.stretches)
            .with_columns(seen_s.alias("seen_s"))
            .with_columns(cut=opened & duration_s.is_not_null() & (pl.col("seen_s") < duration_s))
            .select(
                *("_number", "kind", "t_open", "entry_s", "cut"),
                selectors.by_name(*_OPTIONAL, require_all=False),
                pl.when("cut").then(watched_s).otherwise(duration_s).alias("duration_s"),
                pl.when("cut").then(0).otherwise("observed").alias("observed"),
            )
            for part in some_rows(self.lives)
        ]
        return pl.concat(found)

    def _placed(self, lives: pl.DataFrame, stretches: pl.DataFrame) -> pl.DataFrame:
        """Add the ``stretch`` that began last before each opening, and its end ``until`` (s)."""
        times = lives["t_open"].fill_null(-(2**62)).to_numpy()
        groups = lives["_number"].to_numpy()
        found = np.full(times.size, -1, np.int32)
        rows = stretches.select("family", "start_ts").with_row_index("stretch")
        of_family = pl.col("_number").min().alias("first"), pl.col("_number").max().alias("last")
        ranges = self.groups.group_by("family").agg(of_family)
        for family, first, last in ranges.iter_rows():
            starts = rows.filter(family=family)
            if starts.height:
                own = (groups >= first) & (groups <= last)
                place = np.searchsorted(starts["start_ts"].to_numpy(), times[own], side="right") - 1
                found[own] = np.where(place >= 0, place + starts["stretch"][0], -1)
        stretch = pl.Series("stretch", found, pl.Int32)
        stretch = stretch.set(stretch < 0, None)
        return lives.with_columns(stretch, stretches["end_ts"].gather(stretch).alias("until"))

    def question(self, method: str, **options: str | float | None) -> Question:
        """Return the question, for the last columns of a result."""
        by = tuple(("by", name) for name in self.names)
        return Question(method, *self.window, options=(*by, *options.items()))


def checked_held(held: pl.DataFrame) -> pl.DataFrame:
    """Return the coverage of logs, or raise `InputError` for a missing or mistyped column."""
    checked_types(held, _HELD, parameter="held")
    return held


def _codes(apart: Sequence[str]) -> dict[str, pl.Expr]:
    # ranks, not the codes of words, which follow the order of the rows
    codes = {name: pl.col(name).rank("dense").cast(pl.Int64).fill_null(-1) for name in apart}
    found = {"_symbol": codes["symbol"]} if "symbol" in codes else {}
    if codes:
        found["_trajectory"] = codes.get("symbol", pl.lit(0)) * 2**32 + codes.get("legs", 0)
    return found


def _merged(stretches: pl.DataFrame) -> pl.DataFrame:
    """Join stretches that overlap or touch, and end them where knowledge of their log ends."""
    start, end = pl.col("start_ts"), pl.col("end_ts")
    before = end.cum_max().shift(1).over("family")
    return (
        stretches.select("family", "start_ts", end_ts=pl.min_horizontal("end_ts", "known_until"))
        .filter(start < end)
        .sort("family", "start_ts", "end_ts")
        .with_columns((start > before).fill_null(value=True).cum_sum().over("family").alias("part"))
        .group_by("family", "part", maintain_order=True)
        .agg(start.min(), end.max())
        .drop("part")
    )


GROUP_COLUMNS = tuple(GROUPS.values())

BY_ALL = Parameter("One row per group, by any of these.", choices=tuple(GROUPS))

BY_OPENING = Parameter("One row per group, by any of these.", choices=tuple(GROUPS)[:-1])
"""The same without the hour, for rates."""

_GROUPED = {"t_open": "Int64", "legs": "String", "size": "Float64"}
_BANDS = pl.Series(
    [0.0, *(float(f"{step}e{power}") for power in range(-4, 6) for step in (1, 2, 5))]
)
"""Lower ends of the bands of sizes, as decimals so that 0.2 is in the band from 0.2."""


@described("events.with_groups")
def with_groups(lives: pl.DataFrame) -> pl.DataFrame:
    """Add to rows of `event_lifecycles` the columns by which events are compared.

    Rows keep their order. The columns are:

    {columns}

    >>> lives = pl.DataFrame({"t_open": [90_000], "legs": ["Y.spot → X.futures"], "size": [2.9]})
    >>> with_groups(lives).select("hour", "exchange", "size_from").row(0)
    (1, 'X + Y', 2.0)
    """
    checked_types(lives, _GROUPED, parameter="lives")
    exchange = pl.element().str.replace(r"\.[^.]*$", "")
    size = lives["size"].abs()
    band = _BANDS.gather(_BANDS.search_sorted(size.fill_null(0.0), side="right") - 1)
    return lives.with_columns(
        (pl.col("t_open") // 3_600 % 24).alias("hour"),
        pl.col("legs")
        .str.split(" → ")
        .list.eval(exchange.unique().sort())
        .list.join(" + ")
        .alias("exchange"),
        pl.when(size.is_not_null()).then(band).alias("size_from"),
    )


def group_columns(groups: str | Iterable[str]) -> list[str]:
    """Return the columns of groups: for the size at the opening its band."""
    named = [groups] if isinstance(groups, str) else groups
    return [GROUPS.get(each, each) for each in named]
