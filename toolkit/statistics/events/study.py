"""Event studies: the path of a price, spread or rate around events, with bands and placebos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_column,
    first_reason,
    whole_number,
)
from toolkit.statistics.core.windows import documents_extent
from toolkit.statistics.events.changes import (
    COMPARISONS,
    STUDIED,
    AbnormalChanges,
    Around,
    PathChanges,
    checked_horizons,
    is_price,
    name_of_change,
    studied_column,
    usual_s,
)
from toolkit.statistics.events.clusters import (
    FEWEST_VALUES,
    checked_cluster_kind,
    cluster_band,
    no_band_reason,
)
from toolkit.statistics.events.paths import (
    CLUSTERS,
    EVENTS_IN,
    KnownValues,
    checked_events,
    clusters_of,
    without_overlaps,
)
from toolkit.statistics.funding.carry_figures import ENDS
from toolkit.statistics.numeric.arrays import Floats, Integers

_OFFSETS_A_SIDE = 60
_LESS = tuple(each for each in COMPARISONS if each != "against")
"""The comparisons without another trajectory."""
_FIGURES = (
    *("mean", "mean_lower", "mean_upper", "median", "median_lower", "median_upper"),
    *("q25", "q75"),
)
PATHS = tuple(
    name_of_change(column, figure, from_detection=way)
    for figure in _FIGURES
    for column in STUDIED.values()
    for way in (False, True)
)
"""The columns of paths, of which a study has those of one value."""


@analysis(
    "events.study",
    (*PATHS, "n", "cluster", "n_clusters"),
    key=("offset_s",),
    title="What {of} did around {families} events",
    about="""
        For splashes it is the price of the leg in the direction of the event, in bps, for
        spread events the log spread, for funding events the differential (percent per 8 h).
        Paths start at the first value known after the event, so they exclude the move that
        triggered it. With --from-detection they start at the price known at the event,
        which is that of the bar before, other values at their median before it. An event
        that follows another too soon is left out. With --less controls it is the path
        beyond that at times without an event.

        Before: rail sync events/spread""",
    example="spread --after 2h",
    chart="event_study_chart",
    also=PATHS,
    every_s=Parameter("The time between two rows of a path.", "s", option="--every"),
    less=Parameter("What to subtract from each path. past: its trend before.", choices=_LESS),
    cluster=EVENTS_IN,
)
def study(
    events: Frame,
    values: Frame,
    *,
    column: str | None = None,
    before_s: int | None = None,
    after_s: int | None = None,
    every_s: int | None = None,
    less: str = "none",
    quiet_s: int = 0,
    cluster: str = "path",
    from_detection: bool = False,
    step_s: int | None = None,
    known_after_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute the mean and median path of a column around events, with 95 % bands.

    ``events`` has one row per event: ``trajectory`` (that of the values), ``ts`` (Int64, Unix
    seconds UTC: when it became known) and optionally ``direction`` (1 or -1, a factor of the path).
    ``values`` has ``trajectory``, ``ts`` and ``column`` (Float64, by default the one present of
    ``price``, ``spread_log_bps`` and ``differential_pct_8h``). Both in any order. ``before_s`` and
    ``after_s`` are an hour by default, for differentials a day.

    A value is known ``known_after_s`` after its ``ts`` (default: one step, a bar's end) and used
    for ``max_stale_s`` from then on (default: three steps). A path is 0 at the first value known
    after the event, not in its very second, and offsets count from then, without the move that
    triggered the event. The path of a price (a column named price or that ends in _price) is 1e4
    ln(P(t) / P(start)), in bps, of another column its difference from the start. Left out are
    events without a first value within ``max_stale_s``, and those that follow another of their
    trajectory by less than ``after_s``.

    With ``from_detection`` paths start at the event and include that move: a price at the one known
    then, another column at its median over the time before the event, without the last ``quiet_s``.
    Columns are named return_from_detection_mean_log_bps, and for a spread
    spread_change_from_before_mean_log_bps.

    ``less`` takes from the path:

    - none: nothing.
    - past: the trend of the time before the event, without its last ``quiet_s``, carried on.
    - against: the path of the trajectory in the events' column ``against``, such as another venue.
    - controls: the mean path of five times of the same trajectory and time of day, up to 28 days
      away and ``before_s`` + ``after_s`` from any of its events, with the volatility of
      ``before_s`` nearest to the event's.

    Bands draw clusters of events that may depend on each other: those of all trajectories in a time
    as long as a path (path) or on a UTC day (day), of one trajectory, or of one trajectory_day.
    They are valid per offset, not for a whole path. One row per offset, sorted, every ``every_s``
    (default: the 60th part of the longer side, in steps), named with the unit of ``column``, here a
    price:

    {columns}

    ``window_start``, ``window_end`` (of the events given), ``method`` and ``params_hash`` are last.

    Raises `InputError`: A number is out of range. There is no event.

    Source: MacKinlay, A. C. (1997), Journal of Economic Literature 35.

    >>> ts = [60 * k for k in range(10)]
    >>> bars = pl.DataFrame({"trajectory": ["a"] * 10, "ts": ts, "price": [1.0] * 5 + [1.01] * 5})
    >>> events = pl.DataFrame({"trajectory": ["a"], "ts": [300]})
    >>> found = study(events, bars, before_s=120, after_s=120, every_s=60)
    >>> found.select("offset_s", pl.col("return_mean_log_bps").round(1)).rows()
    [(-120, -99.5), (-60, -99.5), (0, 0.0), (60, 0.0), (120, 0.0)]

    From the price at detection the move of its bar is a return:

    >>> found = study(events, bars, before_s=60, after_s=60, every_s=60, from_detection=True)
    >>> found["return_from_detection_mean_log_bps"].round(1).to_list()
    [0.0, 0.0, 99.5]
    """
    column = studied_column(values, column)
    before_s, after_s = (usual_s(column) if each is None else each for each in (before_s, after_s))
    around = Around(before_s, after_s, quiet_s, less, from_detection)
    checked_cluster_kind(cluster, CLUSTERS)
    checked_column(values, column)
    known = KnownValues.of(values, column, step_s, known_after_s, max_stale_s)
    every = _every(around, known.step_s) if every_s is None else whole_number("every_s", every_s, 1)
    given = checked_events(events)
    options = around.options(known_after_s=known_after_s, every_s=every, cluster=cluster)
    window = documents_extent(given)
    question = Question("events.study/2", *window, column, step_s, max_stale_s, options)
    kept = without_overlaps(given, after_s)
    given = given.select("trajectory", "ts")
    changes = AbnormalChanges.of(known, kept, given, around, is_price=is_price(column))
    clusters = clusters_of(kept, cluster, before_s + after_s)
    rows = [
        _figures(changes.at(offset), clusters) | {"offset_s": offset}
        for offset in range(-(before_s // every) * every, after_s + 1, every)
    ]
    used = int(changes.known.sum())
    waited = (changes.changes.starts - changes.changes.times)[changes.known]
    counts = {
        "n_events": given.height,
        "n_overlapping": given.height - kept.height,
        "n_unknown": kept.height - used,
    }
    held = {"step_s": known.step_s, "max_stale_s": known.max_stale_s}
    return pl.DataFrame(rows, schema=_SCHEMA).select(
        "offset_s",
        "n",
        *(pl.lit(value, pl.Int64).alias(name) for name, value in counts.items()),
        pl.lit(float(np.median(waited)) if used else None, pl.Float64).alias("wait_median_s"),
        pl.lit(cluster).alias("cluster"),
        "n_clusters",
        (pl.col("n") / pl.lit(used or None, pl.Int64)).alias("coverage"),
        *(pl.lit(value, pl.Int64).alias(name) for name, value in held.items()),
        *(
            pl.col(name)
            if name.endswith("_reason")
            else pl.col(name).alias(name_of_change(column, name, from_detection=from_detection))
            for name in list(_SCHEMA)[3:]
        ),
        *question.columns,
    )


def _every(around: Around, step_s: int) -> int:
    longer = max(around.before_s, around.after_s)
    return max(1, -(-longer // (_OFFSETS_A_SIDE * step_s))) * step_s


_SCHEMA = {
    **dict.fromkeys(("offset_s", "n", "n_clusters"), pl.Int64),
    **dict.fromkeys(("mean", "median", "q25", "q75"), pl.Float64),
    "path_reason": pl.String,
    **dict.fromkeys(ENDS, pl.Float64),
    "band_reason": pl.String,
}


def _figures(path: Floats, clusters: Integers) -> dict[str, float | int | str | None]:
    there = np.isfinite(path)
    path, clusters = path[there], clusters[there]
    found: dict[str, float | int | str | None] = dict.fromkeys(_SCHEMA)
    found |= {"n": path.size, "n_clusters": int((np.bincount(clusters) > 0).sum())}
    if not path.size:
        return found | {"path_reason": Reason.EMPTY, "band_reason": Reason.EMPTY}
    low, middle, high = np.quantile(path, [0.25, 0.5, 0.75])
    found |= {"mean": path.mean(), "median": middle, "q25": low, "q75": high}
    band = cluster_band(clusters, path)
    if band is None:
        return found | {"band_reason": no_band_reason(path.size)}
    return found | dict(zip(ENDS, (*band.mean, *band.median), strict=True))


_SEED = 20_261_123
_MOVED_LESS = ("none", "past")
CHANGES = tuple(
    name_of_change(column, "mean", from_detection=way)
    for column in STUDIED.values()
    for way in (False, True)
)
"""The columns of mean changes, of which a placebo has one."""
_TOGETHER = 10_000  # events, so that what is made on the way stays in the processor's cache


@analysis(
    "events.placebo",
    (*CHANGES, "placebo_mean", "placebo_std", "p_value", "n", "n_events", "n_overlapping", "runs"),
    key=("horizon_s",),
    title="What {of} did after {families} events and at other times",
    about="""
        Each run moves all events by one random time, so their distances stay.

        Before: rail sync events/spread""",
    example="spread",
    also=CHANGES,
    less=Parameter(
        "What to subtract from each change. past: its trend before.", choices=_MOVED_LESS
    ),
    runs=Parameter("How often to move the events."),
)
def placebo(
    events: Frame,
    values: Frame,
    *,
    horizons_s: Sequence[int] = (300, 1_800, 7_200),
    column: str | None = None,
    before_s: int | None = None,
    less: str = "none",
    quiet_s: int = 0,
    runs: int = 999,
    from_detection: bool = False,
    step_s: int | None = None,
    known_after_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Test whether the mean change after events is one that other times would have as well.

    Each run moves all events by one random time, wrapped around the end of the values, which keeps
    their distances and coincidences. The p-value is (1 + runs with a mean at least as far from 0) /
    (1 + runs). Effects of the time of day count as change, as runs move it. The seed is fixed.

    ``events``, ``values`` and the options are those of `study`, where changes start too. An event
    that follows another of its trajectory by less than the longest horizon is left out. One row per
    horizon, sorted, named with the unit of ``column``, here a price:

    {columns}

    ``window_start``, ``window_end`` (of the events given), ``method`` and ``params_hash`` are last.

    Raises `InputError`: As `study`, and for less="controls", a comparison of its own.

    >>> prices = [1.0 + 0.01 * (k % 20 < 10) for k in range(1_000)]
    >>> ts = [60 * k for k in range(1_000)]
    >>> bars = pl.DataFrame({"trajectory": ["a"] * 1_000, "ts": ts, "price": prices})
    >>> events = pl.DataFrame({"trajectory": ["a"] * 49, "ts": [1_200 * k for k in range(1, 50)]})
    >>> found = placebo(events, bars, horizons_s=[120], before_s=60, runs=99)
    >>> found.select("n", pl.col("return_mean_log_bps").round(1), "p_value").row(0)
    (49, 0.0, 1.0)
    >>> found = placebo(
    ...     events, bars, horizons_s=[120], before_s=60, runs=99, from_detection=True
    ... )
    >>> found.select("n", pl.col("return_from_detection_mean_log_bps").round(1), "p_value").row(0)
    (49, 99.5, 0.12)
    """
    horizons = checked_horizons(horizons_s)
    whole_number("runs", runs, 19)
    if less == "controls":
        raise InputError("less", less, [each for each in COMPARISONS if each != "controls"])
    column = studied_column(values, column)
    before_s = usual_s(column) if before_s is None else before_s
    around = Around(before_s, horizons[-1], quiet_s, less, from_detection)
    checked_column(values, column)
    known = KnownValues.of(values, column, step_s, known_after_s, max_stale_s)
    given = checked_events(events)
    options = around.options(known_after_s=known_after_s, horizons_s=str(horizons), runs=runs)
    window = documents_extent(given)
    question = Question("events.placebo/2", *window, column, step_s, max_stale_s, options)
    # those of one trajectory together, as neighbours are looked up faster
    kept = without_overlaps(given, horizons[-1]).sort("trajectory", "ts")
    count = given.height
    del given  # of a million events it takes 32 MB, and the runs need the table of changes
    changes = AbnormalChanges.of(known, kept, kept, around, is_price=is_price(column))
    found, counts = _means(_sums(_paths(changes, horizons)))
    drawn, _ = _means(_moved(changes, horizons, runs))
    rows = [
        {
            "horizon_s": horizon,
            "n": int(counts[at]),
            "mean": found[at],
            **_test(found[at], drawn[:, at], int(counts[at])),
        }
        for at, horizon in enumerate(horizons)
    ]
    empty = first_reason({Reason.EMPTY: pl.col("n") == 0})
    return (
        pl.DataFrame(rows, schema=_PLACEBO)
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .select(
            "horizon_s",
            "n",
            pl.lit(count, pl.Int64).alias("n_events"),
            pl.lit(count - kept.height, pl.Int64).alias("n_overlapping"),
            pl.col("mean").alias(name_of_change(column, "mean", from_detection=from_detection)),
            empty.alias("path_reason"),
            *list(_PLACEBO)[3:],
            *question.columns,
        )
    )


_PLACEBO = {
    **dict.fromkeys(("horizon_s", "n"), pl.Int64),
    **dict.fromkeys(("mean", "placebo_mean", "placebo_std", "p_value"), pl.Float64),
    "runs": pl.Int64,
    "p_value_reason": pl.String,
}


def _means(sums: Floats) -> tuple[Floats, Floats]:
    total, count = sums
    with np.errstate(invalid="ignore"):
        return total / count, count


def _paths(changes: AbnormalChanges | PathChanges, horizons: Sequence[int]) -> Floats:
    return np.stack([changes.at(horizon) for horizon in horizons])


def _sums(paths: Floats) -> Floats:
    unknown = np.flatnonzero(~np.isfinite(paths))
    np.put(paths, unknown, 0.0)
    horizons, events = paths.shape
    count = events - np.bincount(unknown // max(1, events), minlength=horizons)
    return np.stack([paths.sum(axis=1), count])


def _moved(changes: AbnormalChanges, horizons: Sequence[int], runs: int) -> Floats:
    of, known = changes.changes, changes.changes.known
    sums = np.zeros((2, runs, len(horizons)))
    if not known.known_ts.size:
        return sums
    first, last = int(known.known_ts.min()), int(known.known_ts.max())
    length = last - first + known.step_s
    shifts = np.random.default_rng(_SEED).integers(0, length, runs)
    by_step = _ChangesByStep.of(of, horizons, first, length, runs)
    for low in range(0, of.times.size, _TOGETHER):
        rows = slice(low, low + _TOGETHER)
        part = replace(changes, events=changes.events[rows])
        if by_step is None:
            begin = of.times[rows] - first
            moves = (
                replace(of, numbers=of.numbers[rows], times=first + (begin + shift) % length)
                for shift in shifts.tolist()
            )
            found: Iterable[Floats] = (
                _paths(replace(part, changes=moved), horizons) for moved in moves
            )
        else:
            direction = part.events["direction"].to_numpy()
            found = by_step.moved(rows, shifts)
            if (direction < 0).any():
                found = (paths * direction for paths in found)
        for run, paths in enumerate(found):
            sums[:, run] += _sums(paths)
    return sums


@dataclass(frozen=True, slots=True)
class _ChangesByStep:
    """The changes from each step of the values on, looked up for many times of the events.

    Between two steps nothing becomes known: changes are those of a second after a step, except at a
    few steps themselves.
    """

    every_s: int
    steps: int
    """The number of steps of a trajectory, which wrap."""
    first: Integers
    """The first step of each event's trajectory."""
    begin: Integers
    """The time from the first step to each event (s)."""
    changes: Floats
    """The changes from just after each step, one row per horizon."""
    edges: Integers
    """The steps at which they differ, and one after all of them."""
    at_edges: Floats

    @classmethod
    def of(
        cls, changes: PathChanges, horizons: Sequence[int], first_ts: int, length_s: int, runs: int
    ) -> _ChangesByStep | None:
        """Compute the changes from all steps, or return None if that is more work."""
        grid, known = changes.known.grid, changes.known
        if grid is None or changes.around.less == "against":
            return None
        names, row = np.unique(changes.numbers, return_inverse=True)
        count = -(-length_s // grid.every_s)
        looked_up = (*changes.offsets, *horizons, known.max_stale_s, length_s)
        more_work = 2 * names.size * count > changes.times.size * runs
        if more_work or any(each % grid.every_s for each in looked_up):
            return None
        times = first_ts + grid.every_s * np.arange(count)
        found = np.empty((len(horizons), names.size * count))
        edges, at_edges = [], []
        for number, name in enumerate(names):
            one = replace(changes, numbers=np.full(count, name), times=times)
            at_step = _paths(one, horizons)
            after = _paths(replace(one, times=times + min(1, grid.every_s - 1)), horizons)
            found[:, number * count : (number + 1) * count] = after
            differs = (at_step != after) & ~(np.isnan(at_step) & np.isnan(after))
            some = np.flatnonzero(differs.any(axis=0))
            edges.append(some + number * count)
            at_edges.append(at_step[:, some])
        beyond = np.array([found.shape[1]])
        edge = np.concatenate([*edges, beyond])
        begin = (changes.times - first_ts) % length_s
        at_edge = np.concatenate(at_edges, axis=1)
        return cls(grid.every_s, count, row * count, begin, found, edge, at_edge)

    def moved(self, rows: slice, shifts: Integers) -> Iterator[Floats]:
        """Yield the changes of some events after each shift (s), one row per horizon."""
        step, rest = np.divmod(self.begin[rows], self.every_s)
        step += self.first[rows]
        last = self.first[rows] + self.steps
        by_rest = np.argsort(rest, kind="stable")
        ordered = rest[by_rest]
        for steps, more in zip(*np.divmod(shifts, self.every_s), strict=True):
            place = step + steps
            place += rest >= self.every_s - more
            np.subtract(place, self.steps, out=place, where=place >= last)
            found = self.changes.take(place, axis=1)
            low, high = np.searchsorted(ordered, -more % self.every_s + np.arange(2))
            right_at = by_rest[low:high]
            edge = np.searchsorted(self.edges, place[right_at])
            there = self.edges[edge] == place[right_at]
            if there.any():
                found[:, right_at[there]] = self.at_edges[:, edge[there]]
            yield found


def _test(mean: float, drawn: Floats, count: int) -> dict[str, float | int | str | None]:
    drawn = drawn[np.isfinite(drawn)]
    found: dict[str, float | int | str | None] = {"runs": drawn.size}
    if count < FEWEST_VALUES or not drawn.size:
        return found | {"p_value_reason": Reason.TOO_FEW if count else Reason.EMPTY}
    further = int((np.abs(drawn) >= abs(mean) * (1 - 1e-12)).sum())
    return found | {
        "placebo_mean": drawn.mean(),
        "placebo_std": drawn.std(),
        "p_value": (1 + further) / (1 + drawn.size),
    }
