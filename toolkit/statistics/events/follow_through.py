"""Follow-through of prices after events: how far they go on, and how much they retrace."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import schema_of
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, checked_column, checked_names
from toolkit.statistics.core.windows import documents_extent
from toolkit.statistics.events.changes import Around, PathChanges, checked_horizons, in_bps
from toolkit.statistics.events.clusters import (
    checked_cluster_kind,
    cluster_band,
    cluster_share_interval,
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
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers

_FIGURES = schema_of("events.follow_through")
_STEM = re.compile("^(return|highest|lowest|went_on|retraced)_(?!reason)")
_FROM_DETECTION = {
    name: _STEM.sub(r"\1_from_detection_", name).replace("run_up_", "run_up_to_detection_")
    for name in _FIGURES
}
_FIRST = (
    *("return_median_log_bps", "return_median_lower_log_bps", "return_median_upper_log_bps"),
    *("went_on_share", "retraced_median", "run_up_median_log_bps", "highest_median_log_bps"),
    "lowest_median_log_bps",
)
SHOWN = (
    *(name for each in _FIRST for name in dict.fromkeys((each, _FROM_DETECTION[each]))),
    *("n", "n_events", "n_overlapping", "cluster", "n_clusters"),
)
"""The columns shown first, for either start of paths."""


@analysis(
    "events.follow_through",
    SHOWN,
    key=("symbol", "trajectory", "direction", "horizon_s"),
    title="How far {of} continued after {families} events",
    about="""
        A return is that of the price after a pump, and its opposite after a dump. With --on
        it is that price around all events of its symbol.

        Before: rail sync LTC_USDT:AURORA.spot""",
    example="splash --on LTC_USDT:AURORA.spot",
    also=SHOWN,
    by=Parameter(
        "One row per group of events, by any of these.",
        choices=("direction", "symbol", "trajectory"),
    ),
    cluster=EVENTS_IN,
)
def follow_through(
    events: Frame,
    values: Frame,
    *,
    horizons_s: Sequence[int] = (300, 1_800, 7_200),
    by: Sequence[str] = (),
    column: str = "price",
    before_s: int = 3_600,
    cluster: str = "path",
    from_detection: bool = False,
    step_s: int | None = None,
    known_after_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure returns after pumps and dumps, and the share of the move that was retraced.

    ``events`` and ``values`` are those of `study`. Returns are 1e4 ln(P(t) / P(start)) times the
    ``direction`` (1 pump, -1 dump), from the first price known after the event: positive where it
    moved on in the event's direction. An event that follows another of its trajectory by less than
    the longest horizon is left out. To group by size use the magnitude at detection.

    With ``from_detection`` paths start at the price known at the event, so the move that triggered
    it is included, and columns are named return_from_detection_median_log_bps and so on.

    The move is from ``before_s`` before the start to the furthest price since. The share retraced
    is (furthest - now) / (furthest - before), null if the furthest is not beyond the beginning.
    Band and interval allow for dependence within a ``cluster``, as in `study`. One row per group of
    the events' columns ``by`` and horizon, sorted:

    {columns}

    ``window_start``, ``window_end`` (of the events given), ``method`` and ``params_hash`` are last.

    Raises `InputError`: As `study`. ``by`` is not a column of the events.

    Source: Clopper, C. J. and Pearson, E. S. (1934), Biometrika 26.

    A pump from 100 to 110, first seen at 105, that gives back half within five minutes.

    >>> prices = [100.0] * 10 + [105.0, 110.0] + [105.0] * 10
    >>> ts = [60 * k for k in range(22)]
    >>> bars = pl.DataFrame({"trajectory": ["a"] * 22, "ts": ts, "price": prices})
    >>> pump = pl.DataFrame({"trajectory": ["a"], "ts": [630], "direction": [1]})
    >>> found = follow_through(pump, bars, horizons_s=[60, 300], before_s=300)
    >>> found.select("horizon_s", pl.col("return_median_log_bps").round(1)).rows()
    [(60, 465.2), (300, 0.0)]
    >>> found["retraced_median"].round(2).to_list()
    [0.0, 0.49]
    """
    horizons = checked_horizons(horizons_s)
    checked_column(values, column)
    known = KnownValues.of(values, column, step_s, known_after_s, max_stale_s)
    given = checked_events(events)
    by = checked_names("by", by, given.columns)
    options = (
        ("horizons_s", str(horizons)),
        ("by", str(by)),
        ("known_after_s", known_after_s),
        ("from_detection", from_detection),
        ("cluster", checked_cluster_kind(cluster, CLUSTERS)),
        ("before_s", before_s),
    )
    window = documents_extent(given)
    question = Question("events.follow_through/2", *window, column, step_s, max_stale_s, options)
    kept = without_overlaps(given, horizons[-1])
    around = Around(before_s, horizons[-1], from_detection=from_detection)
    measured = _measured(kept, known, around, horizons)
    keys = given.select(by).unique().sort(by).rows() if by else [()]
    clusters = clusters_of(kept, cluster, before_s + horizons[-1])
    rows = []
    for key in keys:
        own = dict(zip(by, key, strict=True))
        count, mine = _of_group(given, own).sum(), _of_group(kept, own)
        counts = {"n_events": int(count), "n_overlapping": int(count - mine.sum())}
        for horizon, figures in measured.items():
            of_group = _figures(figures[:, mine], clusters[mine])
            rows.append(own | {"horizon_s": horizon, "cluster": cluster} | of_group | counts)
    schema = {name: given.schema[name] for name in by} | _FIGURES
    found = pl.DataFrame(rows, schema=schema).with_columns(*question.columns)
    return found.rename(_FROM_DETECTION) if from_detection else found


def _of_group(events: pl.DataFrame, own: dict[str, object]) -> Flags:
    found = np.ones(events.height, dtype=bool)
    for name, value in own.items():
        same = events.select(pl.col(name).eq_missing(pl.lit(value)))
        found &= same.to_series().to_numpy()
    return found


def _measured(
    events: pl.DataFrame, known: KnownValues, around: Around, horizons: Sequence[int]
) -> dict[int, Floats]:
    numbers, times = known.numbered(events["trajectory"]), events["ts"].to_numpy()
    changes = PathChanges(in_bps(known), numbers, times, around, is_price=True)
    way = events["direction"].to_numpy()
    before = way * changes.at(-around.before_s)
    highest, lowest = way * changes.at(0), way * changes.at(0)
    found = {}
    at = 0
    for horizon in horizons:
        for offset in (*range(at + known.step_s, horizon, known.step_s), horizon):
            path = way * changes.at(offset)
            highest, lowest = np.fmax(highest, path), np.fmin(lowest, path)
        at = horizon
        move = highest - before
        with np.errstate(divide="ignore", invalid="ignore"):
            retraced = np.where(move > 0, (highest - path) / move, np.nan)
        found[horizon] = np.stack([-before, path, highest, lowest, retraced])
    return found


def _figures(measured: Floats, clusters: Integers) -> dict[str, float | int | str | None]:
    there = np.isfinite(measured[1])
    measured, clusters = measured[:, there], clusters[there]
    run_up, path, highest, lowest, retraced = measured
    found: dict[str, float | int | str | None] = {"n": path.size, "n_retraced": 0}
    found |= {"n_clusters": np.unique(clusters).size}
    if not path.size:
        reasons = ("path_reason", "band_reason", "retraced_reason")
        return found | dict.fromkeys(reasons, Reason.EMPTY)
    went_on = int((path > 0).sum())
    found |= {
        "run_up_median_log_bps": _median(run_up),
        **_quartiles(path, "return_{}_log_bps"),
        "highest_median_log_bps": np.median(highest),
        "lowest_median_log_bps": np.median(lowest),
        "went_on_share": went_on / path.size,
    }
    band = cluster_band(clusters, path)
    if band is None:
        found |= {"band_reason": no_band_reason(path.size)}
    else:
        low, high = cluster_share_interval(clusters, path > 0)
        found |= {
            "return_median_lower_log_bps": band.median[0],
            "return_median_upper_log_bps": band.median[1],
            "went_on_lower": low,
            "went_on_upper": high,
        }
    retraced = retraced[np.isfinite(retraced)]
    if not retraced.size:
        return found | {"retraced_reason": Reason.EMPTY}
    return found | {"n_retraced": retraced.size, **_quartiles(retraced, "retraced_{}")}


def _median(values: Floats) -> float | None:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if values.size else None


def _quartiles(values: Floats, name: str) -> dict[str, float]:
    found = np.quantile(values, [0.25, 0.5, 0.75])
    return {
        name.format(part): float(value)
        for part, value in zip(("q25", "median", "q75"), found, strict=True)
    }
