"""Survival of events by group, with the log's edges and gaps, and the log-rank test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from toolkit.analyses import analysis
from toolkit.columns import schema_of
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, first_reason
from toolkit.statistics.events.clusters import (
    AUTO,
    LIVES_IN,
    NONE,
    Clusters,
    checked_cluster_kind,
    chosen_clusters,
    clusters_of_lives,
    effective_freedom,
)
from toolkit.statistics.events.exposure import BY_ALL, Watched
from toolkit.statistics.numeric.arrays import Floats, Integers, product
from toolkit.statistics.numeric.life_curve import (
    MIN_ENDED,
    TWO_SIDED_95,
    life_curve,
    life_interval,
    life_until,
    some_rows,
    times_of_groups,
)
from toolkit.statistics.numeric.tails import gamma_tails, two_sided_95_between

_AGES = 4_096
_SCHEMA = {
    "_number": pl.UInt32,
    "cluster": pl.String,
    "n_clusters": pl.Int64,
    "few_clusters": pl.Boolean,
}


def with_clusters(
    curve: pl.DataFrame, lives: pl.DataFrame, asked: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace the errors of a curve by those of clustered lives, and return each group's clusters.

    A life adds its martingale, weighted by one over the survivors, to the logarithm of the share at
    an age. The variance is the jackknife's over clusters. ``log_error`` is scaled so that 1.96 of
    it are Student's quantile, with `effective_freedom`. In groups of which fewer than 10 ended,
    lives are taken as independent. The second frame has one row per group.

    Source: Williams, R. L. (1995), Lifetime Data Analysis 1. Lin, D. Y. and Wei, L. J. (1989),
    Journal of the American Statistical Association 84.
    """
    watched = lives.filter(
        pl.col("duration_s").is_not_null()
        & ((pl.col("entry_s") <= 0) | (pl.col("entry_s") < pl.col("duration_s")))
    ).sort("_number", "duration_s", "t_open", "entry_s", "observed")
    errors = curve["log_error"].to_numpy().copy()
    numbers, own = curve["_number"].to_numpy(), watched["_number"].to_numpy()
    rows = []
    for number in lives["_number"].unique().sort():
        part = watched[slice(*np.searchsorted(own, [number, number + 1]).tolist())]
        place = slice(*np.searchsorted(numbers, [number, number + 1]).tolist())
        clusters, found = _clustered(curve[place], part, asked)
        errors[place] = found
        rows.append((number, clusters.kind, clusters.count, clusters.few))
    groups = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return curve.with_columns(pl.Series("log_error", errors)), groups


def _clustered(curve: pl.DataFrame, lives: pl.DataFrame, asked: str) -> tuple[Clusters, Floats]:
    errors = curve["log_error"].to_numpy()
    ended = curve["ended"].to_numpy()
    apart = Clusters(NONE, np.arange(lives.height), lives.height, few=False)
    if ended.sum() < MIN_ENDED or asked == NONE:
        return apart, errors
    at = np.flatnonzero(ended > 0)
    ages, watched = curve["duration_s"].to_numpy()[at], curve["at_risk"].to_numpy()[at]
    hazard, left = ended[at] / watched, watched - ended[at]
    weight = np.divide(1.0, left, out=np.zeros(left.size), where=left > 0)
    half = np.flatnonzero(curve["share"].to_numpy()[at] <= 0.5)
    until = int(half[0]) if half.size else ages.size - 1
    influence = _influence(lives, ages[: until + 1], hazard, weight)
    clusters = chosen_clusters(asked, clusters_of_lives(lives, asked), influence[:, None])
    if clusters.kind == NONE or clusters.few:
        return clusters, errors
    of, count = clusters.joined
    squares = np.zeros(ages.size)
    total, first = np.zeros(count), 0
    # as if the curve were that of the others, one cluster left out at a time
    others = 1 - np.bincount(of)[:, None] / of.size
    for at_risk, ends in risk_tables(lives, of, count, ages):
        some = slice(first, first + ends.shape[1])
        added = np.cumsum((ends - at_risk * hazard[some]) * weight[some], axis=1) + total[:, None]
        squares[some] = np.square(added / others).sum(axis=0) * (count - 1) / count
        total, first = added[:, -1], some.stop
    reach = two_sided_95_between(np.array([effective_freedom(of)]))[0] / TWO_SIDED_95
    place = np.searchsorted(ages, curve["duration_s"].to_numpy(), side="right")
    return clusters, np.concatenate([[0.0], np.sqrt(squares) * reach])[place]


def _influence(lives: pl.DataFrame, ages: Floats, hazard: Floats, weight: Floats) -> Floats:
    """Return the contribution of each life to the logarithm of the share at the last age."""
    durations, entries = lives["duration_s"].to_numpy(), lives["entry_s"].to_numpy()
    expected = np.concatenate([[0.0], np.cumsum((hazard * weight)[: ages.size])])
    over = np.searchsorted(ages, durations, side="right")
    begun = np.where(entries > 0, np.searchsorted(ages, entries, side="right"), 0)
    ended = (lives["observed"].to_numpy() == 1) & (durations <= ages[-1])
    own = np.where(ended, weight[np.maximum(over - 1, 0)], 0.0)
    found: Floats = own - (expected[over] - expected[np.minimum(begun, over)])
    return found


def risk_tables(
    lives: pl.DataFrame, group: Integers, count: int, ages: Floats
) -> Iterator[tuple[Integers, Integers]]:
    """Yield, for some ``ages`` at a time, how many of each group are watched, and how many end."""
    durations, entries = lives["duration_s"].to_numpy(), lives["entry_s"].to_numpy()
    ended = lives["observed"].to_numpy() == 1
    over = np.searchsorted(ages, durations, side="right")
    late = np.flatnonzero(entries > 0)
    late = late[np.argsort(entries[late], kind="stable")]
    begun = np.searchsorted(ages, entries[late], side="right")
    # one that opened in the window is watched from the beginning, also of a life of 0 s
    watched = np.bincount(group[entries <= 0], minlength=count)
    marks = (begun, group[late]), (over, group), (over[ended] - 1, group[ended])
    for low in range(0, ages.size, _AGES):
        size = min(_AGES, ages.size - low)
        entering, leaving, ends = (_table(at, of, low, size, count) for at, of in marks)
        at_risk = watched[:, None] + np.cumsum(entering - leaving, axis=1)
        watched = at_risk[:, -1]
        yield at_risk, ends


def _table(at: Integers, group: Integers, low: int, size: int, count: int) -> Integers:
    """Count the marks of each group at some ages, from those sorted by the age's number."""
    part = slice(*np.searchsorted(at, [low, low + size]))
    cells = np.bincount(group[part] * size + at[part] - low, minlength=count * size)
    return cells.reshape(count, size)


MOST_GROUPS = 100
"""The most groups of a family in one log-rank test."""

_SHARES = {"median_life": 0.5, "life_q25": 0.75, "life_q75": 0.25, "life_q90": 0.1}
_WANTED = [
    expression.alias(f"{name}{part}_s")
    for name, share in _SHARES.items()
    for part, expression in zip(
        ("", "_lower", "_upper"), (life_until(share), *life_interval(share)), strict=True
    )
]
_BOUNDS = [f"{name}_{end}_s" for name in _SHARES for end in ("lower", "upper")]
_KINDS = ("closed", "open", "reopened", "orphans")


@analysis(
    "events.survival",
    """
        median_life_s median_life_lower_s median_life_upper_s n closed open reopened orphans
        coverage life_q25_s life_q75_s life_q90_s n_lives cut cluster n_clusters""",
    title="How long events last,",
    about="""
        An event that is still open lived at least so far (Kaplan-Meier). One that opened
        before the window is watched from the window on. A gap of the log hides what became
        of an event. The intervals allow for similar lives within a cluster. The log-rank
        test compares groups. --by size groups by the size at the opening, in bands from 1,
        2, 5, 10 and so on: the largest size grows with the length of life.""",
    example="spread --by symbol",
    chart="survival_chart",
    by=BY_ALL,
    cluster=LIVES_IN,
    report=2,
)
def survival(
    lives: Frame, by: Sequence[str] = (), *, held: pl.DataFrame | None = None, cluster: str = AUTO
) -> pl.DataFrame:
    """Compute how long events last, with those whose end was not seen, by Kaplan and Meier.

    ``lives`` are rows of `lifecycles` or `event_lifecycles` over one window, with any columns to
    group ``by``. Each family is a group. Events count from their opening:

    - Right-censored: still open, or the close was lost.
    - Delayed entry: one that opened before the window is watched from its age at the window's
      start, else long lives would be too many.
    - One whose opening was not seen has no age. It is counted and not used.

    ``held`` is the coverage of the logs: ``family`` (String), ``start_ts`` and ``end_ts`` (Int64,
    s, half-open), in any order. A gap would hide a close, so an event is watched until the first
    gap, and not at all if it opened in one or before the first stretch. By default all is covered
    until ``known_until``.

    Bounds are at 95 % and allow for dependence within a ``cluster``: lives that opened within a
    time as long as 95 % of lives last (path), on one UTC day (day), of one symbol, trajectory, or
    trajectory_day. none takes lives as independent. auto takes the kind but the last that widens
    the bounds most (`toolkit.statistics.events.clusters.chosen_clusters`). One row per family and
    group that has an event, sorted:

    {columns}

    Raises `InputError`: The lifecycles are of several windows. A column of ``by`` is not there.
    ``cluster`` is not a kind of these, or needs a symbol or legs that are not there.

    Source: Kaplan, E. L. and Meier, P. (1958), Journal of the American Statistical Association 53.
    Brookmeyer, R. and Crowley, J. (1982), Biometrics 38. Delayed entry: Klein, J. P. and
    Moeschberger, M. L. (2003), Survival Analysis, section 4.6.

    >>> from toolkit.statistics.events import lifecycles
    >>> log = pl.DataFrame({"family": ["spread"] * 5, "event_id": ["a", "a", "b", "b", "c"],
    ...     "event_type": ["spread.opened", "spread.closed"] * 2 + ["spread.opened"],
    ...     "lifecycle": ["open", "closed"] * 2 + ["open"], "ts": [10, 70, 120, 140, 150],
    ...     "ts_ms": [10_000, 70_000, 120_000, 140_000, 150_000], "arrival": range(5)})
    >>> lives = lifecycles(log, 50, 200)
    >>> survival(lives).select("n", "closed", "open", "entered_late", "median_life_s").row(0)
    (3, 2, 1, 1, 20.0)
    """
    checked_cluster_kind(cluster)
    watched = Watched.of(lives, by, held)
    cut = watched.cut()
    curve, clusters = with_clusters(life_curve(cut, ["_number"]), cut, cluster)
    late = (pl.col("entry_s") > 0) & (pl.col("entry_s") < pl.col("duration_s"))
    kinds = {kind: pl.col("kind") == kind for kind in _KINDS[:-1]}
    kinds["orphans"] = pl.col("kind").is_in(["orphan_close", "orphan_update"])
    counts = cut.group_by("_number").agg(
        pl.len().cast(pl.Int64).alias("n"),
        *(each.sum().cast(pl.Int64).alias(kind) for kind, each in kinds.items()),
        pl.col("cut").sum().cast(pl.Int64),
        late.sum().cast(pl.Int64).alias("entered_late"),
    )
    times = times_of_groups(cut, ["_number"], _WANTED, _BOUNDS, curve)
    contract = ["n", *_KINDS, "cut", "entered_late", "coverage", "cluster", "n_clusters"]
    return (
        watched.groups.join(times, on="_number", maintain_order="left")
        .join(counts, on="_number", maintain_order="left")
        .join(clusters, on="_number", how="left", maintain_order="left")
        .join(watched.held_s(), on="family", how="left", maintain_order="left")
        .with_columns(each for name in _BOUNDS for each in _without_few(name))
        .select(*watched.names, *contract, *times.columns[1:])
        .with_columns(watched.question("events.survival/2", cluster=cluster).columns)
    )


def _without_few(name: str) -> list[pl.Expr]:
    """Build a bound and its reason, null with too few clusters."""
    reason, few = pl.col(f"{name.removesuffix('_s')}_reason"), pl.col("few_clusters")
    known = reason.is_in([Reason.EMPTY.value, Reason.TOO_FEW.value, Reason.MADE_ID.value])
    return [
        pl.when(~few).then(name).alias(name),
        pl.when(few & ~known.fill_null(value=False))
        .then(pl.lit(Reason.FEW_CLUSTERS.value))
        .otherwise(reason)
        .alias(reason.meta.output_name()),
    ]


@analysis(
    "events.survival_curve",
    """
        life_s survival survival_lower survival_upper n ended censored entering""",
    title="How many events live on, by their age,",
    about="""
        One row per age at which an event ends, is last seen or comes under watch.""",
    example="spread --by symbol",
    chart="survival_chart",
    by=BY_ALL,
    cluster=LIVES_IN,
)
def survival_curve(
    lives: Frame, by: Sequence[str] = (), *, held: pl.DataFrame | None = None, cluster: str = AUTO
) -> pl.DataFrame:
    """Compute the share of events that survive to each age, with its 95 % band and those watched.

    Parameters and what counts are those of `survival`. The band is per age, on the scale of
    log(-log), by Greenwood's variance or that of clusters. One row per family, group and age at
    which an event ends, is seen last or comes under watch, sorted:

    {columns}

    Raises `InputError`: As `survival`.

    Source: Kalbfleisch, J. D. and Prentice, R. L. (2002), The Statistical Analysis of Failure Time
    Data, section 1.4.

    >>> lives = pl.DataFrame({"family": "spread", "t_open": [0, 10, 20], "duration_s": [30.0, 60.0,
    ...     80.0], "entry_s": 0.0, "observed": [1, 1, 0], "kind": ["closed", "closed", "open"],
    ...     "known_until": [100] * 3, "window_start": [0] * 3, "window_end": [100] * 3})
    >>> survival_curve(lives).select("life_s", "n", "survival").rows()
    [(30.0, 3, 0.6666666666666667), (60.0, 2, 0.33333333333333337), (80.0, 1, 0.33333333333333337)]
    """
    checked_cluster_kind(cluster)
    watched = Watched.of(lives, by, held)
    cut = watched.cut()
    curve, clusters = with_clusters(life_curve(cut, ["_number"]), cut, cluster)
    watched = watched.without_lives()
    del cut
    share, fall = pl.col("share"), -pl.col("share").log()
    known = ~pl.col("broken")
    several = known & (share > 0) & (share < 1)
    banded = several & ~pl.col("few_clusters")
    reach = TWO_SIDED_95 * pl.col("log_error") / fall
    bounds = {
        name: pl.when(banded).then((-(fall.log() + sign * reach).exp()).exp()).alias(name)
        for name, sign in (("survival_lower", 1), ("survival_upper", -1))
    }
    figures = [
        *watched.names,
        pl.col("duration_s").alias("life_s"),
        pl.col("at_risk").alias("n"),
        "ended",
        (pl.col("leaving") - pl.col("ended")).alias("censored"),
        "entering",
        pl.when(known).then(share).alias("survival"),
        first_reason({Reason.TOO_FEW: ~known}).alias("survival_reason"),
        *bounds.values(),
        first_reason({Reason.TOO_FEW: ~several, Reason.FEW_CLUSTERS: ~banded}).alias("band_reason"),
        *("cluster", "n_clusters", "coverage"),
        *watched.question("events.survival_curve/2", cluster=cluster).columns,
    ]
    groups = watched.groups.join(watched.held_s(), on="family", how="left", maintain_order="left")
    groups = groups.join(clusters, on="_number", how="left", maintain_order="left")
    return pl.concat(
        groups.join(part, on="_number", maintain_order="left_right").select(figures)
        for part in some_rows(curve)
    )


@analysis(
    "events.log_rank",
    ("p_value", "chi_square", "freedom", "n_groups", "n", "n_ended", "coverage"),
    title="Whether groups of events live equally long,",
    example="spread --by symbol",
    by=BY_ALL,
)
def log_rank(
    lives: Frame, by: Sequence[str] = ("legs",), *, held: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Test whether the groups of a family live equally long, by the log-rank test.

    Parameters and what counts are those of `survival`. At each age at which events end, the ends of
    a group are compared with its share of those watched. Groups without a watched event are left
    out. Events are taken as independent: if many end together, p-values are too small. One row per
    family:

    {columns}

    Raises `InputError`: As `survival`. ``by`` is empty or not a column. A family has more than 100
    groups.

    Source: Mantel, N. (1966), Cancer Chemotherapy Reports 50.

    >>> lives = pl.DataFrame({"family": ["spread"] * 20, "t_open": [0] * 20,
    ...     "duration_s": [10.0 + k for k in range(10)] + [50.0 + k for k in range(10)],
    ...     "entry_s": [0.0] * 20, "observed": [1] * 20, "kind": ["closed"] * 20,
    ...     "known_until": [100] * 20, "window_start": [0] * 20, "window_end": [100] * 20,
    ...     "symbol": ["A_B"] * 10 + ["C_D"] * 10})
    >>> row = log_rank(lives, ["symbol"]).row(0, named=True)
    >>> round(row["chi_square"], 2), row["freedom"], row["p_value"] < 1e-4
    (21.84, 1, True)
    """
    watched = Watched.of(lives, by, held)
    if watched.names == ["family"]:
        raise InputError("by", by, "the columns that tell groups apart, e.g. symbol")
    lives = watched.cut().select("_number", "duration_s", "entry_s", "observed")
    lives = lives.filter(pl.col("duration_s") > pl.col("entry_s")).sort("duration_s")
    found = [
        {"family": family}
        | _compared(lives.filter(pl.col("_number").is_in(groups["_number"].to_list())))
        for (family,), groups in watched.groups.partition_by("family", as_dict=True).items()
    ]
    rows = pl.DataFrame(found, schema=schema_of("events.log_rank"))
    return (
        rows.drop("coverage")
        .join(watched.held_s(), on="family", how="left", maintain_order="left")
        .select(rows.columns)
        .with_columns(watched.question("events.log_rank/1").columns)
    )


def _compared(lives: pl.DataFrame) -> dict[str, object]:
    there = np.bincount(lives["_number"].to_numpy()) > 0
    count = int(there.sum())
    if count > MOST_GROUPS:
        raise InputError("by", f"{count} groups", f"at most {MOST_GROUPS} groups of a family")
    ended = int(lives["observed"].sum())
    found: dict[str, object] = {"n": lives.height, "n_ended": ended, "n_groups": count}
    found |= dict.fromkeys(("chi_square", "freedom", "p_value"))
    if count < 2 or ended < MIN_ENDED:
        return found | {"log_rank_reason": Reason.TOO_FEW.value}
    group = (np.cumsum(there) - 1)[lives["_number"].to_numpy()]
    excess, variance = _excess(lives, group, count)
    freedom = int(np.linalg.matrix_rank(variance, hermitian=True))
    if freedom == 0:
        return found | {"log_rank_reason": Reason.DEGENERATE.value}
    chi_square = float(excess @ np.linalg.pinv(variance, hermitian=True) @ excess)
    above = gamma_tails(np.array([freedom / 2]), np.array([chi_square / 2]))[1]
    return found | {"chi_square": chi_square, "freedom": freedom, "p_value": float(above[0])}


def _excess(lives: pl.DataFrame, group: Integers, count: int) -> tuple[Floats, Floats]:
    ages = lives.filter(observed=1)["duration_s"].unique().sort().to_numpy()
    excess, variance = np.zeros(count), np.zeros((count, count))
    for at_risk, ends in risk_tables(lives, group, count, ages):
        all_watched, all_ended = at_risk.sum(axis=0), ends.sum(axis=0)
        share = at_risk / all_watched
        excess += (ends - share * all_ended).sum(axis=1)
        weight = all_ended * (all_watched - all_ended) / np.maximum(all_watched - 1, 1)
        spread = share * np.sqrt(weight)
        variance += np.diag(share @ weight) - product(spread, spread.T)
    return excess, variance
