"""Event studies: the path of a price, spread, rate or volume around events, with bands."""

from __future__ import annotations

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, checked_column, whole_number
from toolkit.statistics.core.windows import documents_extent
from toolkit.statistics.events.changes import (
    COMPARISONS,
    STUDIED,
    AbnormalChanges,
    Around,
    is_price,
    name_of_change,
    studied_column,
    usual_s,
)
from toolkit.statistics.events.cluster_bootstrap import cluster_band, no_band_reason
from toolkit.statistics.events.paths import (
    EVENTS_IN,
    Floats,
    Integers,
    KnownValues,
    checked_cluster,
    checked_events,
    clusters_of,
    without_overlaps,
)

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
        Of a splash it is the price of its leg in the direction of the event, in bps. Of spread
        events it is the log spread, of funding events the differential (percent per 8 h). Paths
        start at the first value known after the event, so that the move that made it is not part of
        what followed. With --from-detection they start at the price known at the event, which is of
        the bar before, others at their median before it. An event that follows another too soon is
        left out. With --less controls it is the path beyond that of times without an event.

        Before: rail sync events/spread""",
    example="spread --after 2h",
    chart="event_study_chart",
    also=PATHS,
    every_s=Parameter("How far apart the rows of a path are.", "s", option="--every"),
    less=Parameter("What is taken from each path. past: its trend before.", choices=_LESS),
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
    after the event, not in its very second, and offsets count from then: the move that triggered
    the event is not in what followed. The path of a price (a column named price or that ends in
    _price) is 1e4 ln(P(t) / P(start)), in bps, of another column its difference from the start.
    Left out are events without a first value within ``max_stale_s``, and those that follow another
    of their trajectory by less than ``after_s``.

    With ``from_detection`` paths start at the event, so what follows includes that move: a price at
    the one known then, another column at its median over the time before the event, without the
    last ``quiet_s``. Columns are named return_from_detection_mean_log_bps, and for a spread
    spread_change_from_before_mean_log_bps.

    ``less`` takes from the path:

    ========  ====================================================================================
    less      meaning
    ========  ====================================================================================
    none      nothing
    past      the trend of the time before the event, without its last ``quiet_s``, carried on
    against   the path of the trajectory in the events' column ``against``, such as another venue
    controls  the mean path of five times of the same trajectory and time of day, up to 28 days away
              and ``before_s`` + ``after_s`` from any of its events, with the volatility of
              ``before_s`` nearest to the event's
    ========  ====================================================================================

    Bands draw clusters, as events of one ``cluster`` may depend on each other: those of all
    trajectories in a time as long as a path (path) or on a UTC day (day), of one trajectory, or of
    one trajectory_day. They hold per offset, not for a whole path. One row per offset, sorted,
    every ``every_s`` (default: the 60th part of the longer side, in steps), named with the unit of
    ``column``, here a price:

    {columns}

    ``window_start``, ``window_end`` (of the events given), ``method`` and ``params_hash`` are last.

    Raises
    ------
    InputError
        A column is missing or of another type. A number is out of range. There is no event.

    References
    ----------
    MacKinlay, A. C. (1997), Event studies in economics and finance, Journal of Economic Literature
    35.

    Examples
    --------
    >>> ts = [60 * k for k in range(10)]
    >>> bars = pl.DataFrame({"trajectory": ["a"] * 10, "ts": ts, "price": [1.0] * 5 + [1.01] * 5})
    >>> events = pl.DataFrame({"trajectory": ["a"], "ts": [300]})
    >>> found = study(events, bars, before_s=120, after_s=120, every_s=60)
    >>> found.select("offset_s", pl.col("return_mean_log_bps").round(1)).rows()
    [(-120, -99.5), (-60, -99.5), (0, 0.0), (60, 0.0), (120, 0.0)]

    The price of the bar in which the event was detected is the first to be had, and stays. From the
    price at detection its move is a return:

    >>> found = study(events, bars, before_s=60, after_s=60, every_s=60, from_detection=True)
    >>> found["return_from_detection_mean_log_bps"].round(1).to_list()
    [0.0, 0.0, 99.5]
    """
    column = studied_column(values, column)
    before_s, after_s = (usual_s(column) if each is None else each for each in (before_s, after_s))
    around = Around(before_s, after_s, quiet_s, less, from_detection)
    checked_cluster(cluster)
    checked_column(values, column)
    known = KnownValues.of(
        values, column, step_s=step_s, known_after_s=known_after_s, max_stale_s=max_stale_s
    )
    every = _every(around, known.step_s) if every_s is None else whole_number("every_s", every_s, 1)
    given = checked_events(events)
    options = around.options(known_after_s=known_after_s, every_s=every, cluster=cluster)
    question = Question(
        "events.study/2", *documents_extent(given), column, step_s, max_stale_s, options
    )
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
    **dict.fromkeys(("mean_lower", "mean_upper", "median_lower", "median_upper"), pl.Float64),
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
    return found | {
        "mean_lower": band.mean[0],
        "mean_upper": band.mean[1],
        "median_lower": band.median[0],
        "median_upper": band.median[1],
    }
