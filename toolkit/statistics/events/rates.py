"""Rates of events with exact intervals, and league tables with shrinkage."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, checked_types, first_reason, whole_number
from toolkit.statistics.events.clusters import (
    AUTO,
    NONE,
    OPENINGS_IN,
    RATE_CLUSTERS,
    checked_cluster_kind,
    dispersions,
    divisor_of,
)
from toolkit.statistics.events.documents import identified
from toolkit.statistics.events.exposure import BY_OPENING, Watched
from toolkit.statistics.events.lifecycles import event_lifecycles
from toolkit.statistics.events.survival import survival
from toolkit.statistics.numeric.arrays import Flags, Floats
from toolkit.statistics.numeric.tails import (
    beta_tails,
    false_discoveries,
    gamma_quantile,
    poisson_interval,
    share_interval,
)

_COUNTED = (
    *("family", "n", "closed", "open", "reopened", "orphans", "cut", "coverage"),
    *("n_lives", "n_ended", "median_life_s", "median_life_reason"),
)


@analysis(
    "events.summary",
    ("n", "closed", "open", "reopened", "orphans", "median_life_s", "cut"),
    title="Events",
    about="""
        The median life treats an event that is still open as having lived so far
        (Kaplan-Meier). It is missing if fewer than half were seen to end. `rail events
        rates` has how often they open, `rail events survival` their lives by group.""",
    report=1,
)
def summary(
    frame: pl.DataFrame,
    start: int,
    end: int,
    *,
    logs: pl.DataFrame | None = None,
    held: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Count the events that touch a window, by family and kind, with their median life.

    ``frame`` has the documents and ``logs`` until when they are known, as in
    `toolkit.statistics.events.event_lifecycles`. ``held`` and what counts as a life are those of
    `toolkit.statistics.events.survival`. One row per family, sorted:

    {columns}

    Raises `InputError`: As `toolkit.statistics.events.event_lifecycles`.

    >>> legs = ("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")
    >>> log = pl.DataFrame({"family": ["spread"] * 3, "event_id": ["a", "a", "b"],
    ...     "lifecycle": None, "arrival": 0,
    ...     "event_type": ["spread.opened", "spread.closed", "spread.opened"], "ts": [10, 40, 20],
    ...     "ts_ms": [10_000, 40_000, 20_000], **dict.fromkeys(legs, "X")},
    ...     schema_overrides={"lifecycle": pl.String, "arrival": pl.Int64})
    >>> row = summary(log, 0, 100).row(0, named=True)
    >>> row["n"], row["closed"], row["open"], row["median_life_s"]
    (2, 1, 1, 30.0)
    """
    known = frame if "event" in frame.columns else identified(frame)
    found = survival(event_lifecycles(known, start, end, logs=logs), held=held)
    inside = pl.col("ts").is_between(start, end, closed="left")
    unknown = (
        known.filter(pl.col("role").is_null() & inside)
        .group_by("family")
        .agg(
            n_unknown=pl.len(),
            unknown_types=pl.col("event_type").fill_null("none").unique().sort().str.join(", "),
        )
    )
    return (
        found.select(_COUNTED)
        .join(unknown, on="family", how="full", coalesce=True)
        .with_columns(pl.col("n_unknown").fill_null(0))
        .sort("family")
    )


MIN_GROUPS = 10
"""The fewest groups of a family whose rates are shrunk."""

RATES = (
    *("rate_per_day", "rate_lower_per_day", "rate_upper_per_day", "n", "coverage"),
    *("between_median_s", "rate_per_h", "n_not_held", "fano", "cluster", "n_clusters"),
)

_UNITS = {"per_h": 3_600, "per_day": 86_400}
_QUANTILES = {"between_q25_s": 0.25, "between_median_s": 0.5, "between_q75_s": 0.75}
_ENDS = ("rate", "rate_lower", "rate_upper")
_SPREAD = ("fano", "freedom", "long_bursts")
_INNER = ("freedom", "long_bursts", "pooled")
_SHRUNK = tuple(f"rate_shrunk{end}_per_day" for end in ("", "_lower", "_upper"))


@analysis(
    "events.rates",
    RATES,
    title="How often events open,",
    about="""
        Rates are per day covered by the log: a gap of the log is not quiet time. If
        openings come in bursts, the Fano factor is above 1 and the intervals are wider.
        `rail events league` ranks groups. `rail stats events` has what became of the
        events.""",
    by=BY_OPENING,
    cluster=OPENINGS_IN,
)
def rates(
    lives: Frame, by: Sequence[str] = (), *, held: pl.DataFrame | None = None, cluster: str = AUTO
) -> pl.DataFrame:
    """Compute how often events open, per hour and per day of time covered by their log.

    ``lives``, ``by`` and ``held`` are those of `survival`. Openings in the window count if the log
    was covered then.

    The interval is the exact one of independent events (Poisson), of the count divided by the Fano
    factor: that of counts in 16 stretches (`toolkit.statistics.events.clusters.dispersions`), with
    Student's quantile. ``cluster`` is what may contain bursts: stretch, UTC day, or none. auto
    takes a stretch if the factor is above 1, or, if fewer than 2 events would be left, above that
    of independent events in 19 of 20 windows. In windows shorter than 2 days the factor includes
    the daily season, so the interval is too wide.

    Times between openings are within one covered stretch. One row per family and group that has an
    event, also one from before the window, sorted:

    {columns}

    Raises `InputError`: As `survival`. ``cluster`` is not one of these.

    Source: Garwood, F. (1936), Biometrika 28.

    Five openings in six hours, of which the log is held for four.

    >>> lives = pl.DataFrame({"family": "spread", "t_open": [0, 600, 1200, 16_000, 20_000],
    ...     "duration_s": 30.0, "entry_s": 0.0, "observed": [1] * 5, "kind": "closed",
    ...     "known_until": [21_600] * 5, "window_start": [0] * 5, "window_end": [21_600] * 5})
    >>> held = pl.DataFrame({"family": "spread", "start_ts": [0, 14_400],
    ...     "end_ts": [7_200, 21_600]})
    >>> rates(lives, held=held).select("n", "rate_per_h", "between_median_s").row(0)
    (5, 1.25, 600.0)
    """
    checked_cluster_kind(cluster, RATE_CLUSTERS)
    watched = Watched.of(lives, by, held)
    found = rates_of_groups(watched, watched.groups, cluster).drop(_INNER)
    return found.with_columns(watched.question("events.rates/2", cluster=cluster).columns)


def _counted(watched: Watched, cluster: str) -> pl.DataFrame:
    opened, (start, end) = watched.openings(), watched.window
    between = pl.col("t_open").diff().over("_number", "stretch").cast(pl.Float64)
    found = (
        opened.select("_number", between.alias("between"))
        .group_by("_number")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("between").count().cast(pl.Int64).alias("n_between"),
            *(
                pl.col("between").quantile(share, "linear").alias(name)
                for name, share in _QUANTILES.items()
            ),
        )
    )
    inside = pl.col("t_open").is_between(start, end, closed="left")
    counted = watched.lives.group_by("_number").agg(inside.sum().cast(pl.Int64).alias("opened"))
    return (
        watched.groups.join(counted, on="_number")
        .join(found, on="_number", how="left")
        .join(dispersions(watched, opened, cluster), on="_number", how="left")
        .drop("_number")
    )


def rates_of_groups(watched: Watched, groups: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Compute the columns of `rates`, and ``freedom``, ``long_bursts`` and ``pooled``."""
    names, figures = watched.names, _counted(watched, cluster)
    none = {"cluster": NONE, "n_clusters": 0, "fano": 1.0, "long_bursts": False, "pooled": 1.0}
    rows = (
        groups.select(names)
        .sort(names)
        .join(figures, on=names, how="left", nulls_equal=True, maintain_order="left")
        .join(watched.held_s(), on="family", how="left", maintain_order="left")
        .with_columns(pl.col("n", "n_between", "opened", "held_s").fill_null(0))
        .with_columns(n_not_held=pl.col("opened") - pl.col("n"))
        .with_columns(pl.col(name).fill_null(value) for name, value in none.items())
    )
    counts = rows["n"].to_numpy().astype(np.float64)
    given = (rows[name].to_numpy() for name in _SPREAD)
    divisor, few = divisor_of(counts, *given)
    ends = (np.where(few, np.nan, end * divisor) for end in poisson_interval(counts / divisor))
    bounds = zip(_ENDS, (counts, *ends), strict=True)
    some = pl.col("held_s") > 0
    missing = {Reason.EMPTY: ~some, Reason.FEW_CLUSTERS: pl.lit(pl.Series(few))}
    per_unit = [
        pl.when(some).then(pl.col(name) / (pl.col("held_s") / unit_s)).alias(f"{name}_{unit}")
        for unit, unit_s in _UNITS.items()
        for name in _ENDS
    ]
    of_counts = rows.with_columns(pl.Series(name, end).fill_nan(None) for name, end in bounds)
    return of_counts.select(
        *names,
        *("n", "n_not_held", "held_s", "coverage", "cluster", "n_clusters", "fano", *_INNER),
        *per_unit,
        first_reason(missing).alias("rate_reason"),
        "n_between",
        *_QUANTILES,
        first_reason({Reason.TOO_FEW: pl.col("n_between") == 0}).alias("between_reason"),
    )


@analysis(
    "events.league",
    ("rank", *RATES[:3], "rate_shrunk_per_day", "share", *RATES[3:]),
    order="rank",
    title="How often events open, by group,",
    about="""
        Groups with the highest rate come first. Each rate is also shrunk toward the mean of
        its family: among many groups with few events, the first ones are lucky. Rates are
        per day covered by the log.""",
    example="--by symbol --top 20",
    chart="league_chart",
    by=BY_OPENING,
    cluster=OPENINGS_IN,
    report=3,
)
def league(
    lives: Frame,
    by: Sequence[str] = ("legs",),
    *,
    held: pl.DataFrame | None = None,
    all_groups: pl.DataFrame | None = None,
    cluster: str = AUTO,
) -> pl.DataFrame:
    """Rank the groups of each family by how often their events open, with shrunk rates.

    Parameters and columns are those of `rates`, with those below before ``window_start``. Rates are
    shrunk toward the family's mean, the more the fewer events they have (empirical Bayes), since
    small samples would lead. The prior is the likeliest gamma distribution of rates. The bounds
    take it as known and are a little too narrow. With bursts, counts are first divided by the
    family's Fano factor, the mean over its groups by their openings.

    ``all_groups`` has the family and the columns ``by`` of all groups that could have had an event:
    those without one are ranked too, and count for the prior. Sorted by family and rank:

    {columns}

    Raises `InputError`: As `survival`. ``by`` is empty or not a column. ``all_groups`` lacks a
    column, or has one of another type than the lifecycles.

    Source: Robbins, H. (1956), An empirical Bayes approach to statistics. Greenwood, M. and Yule,
    G. U. (1920), Journal of the Royal Statistical Society 83.

    >>> opened = [1_440 * k for k in range(60)]
    >>> names = [f"S{k // 2 % 12}" if k % 2 else "S3" for k in range(60)]
    >>> lives = pl.DataFrame({"family": "spread", "t_open": opened, "symbol": names,
    ...     "duration_s": 30.0, "entry_s": 0.0, "observed": [1] * 60, "kind": "closed",
    ...     "known_until": [86_400] * 60, "window_start": [0] * 60, "window_end": [86_400] * 60})
    >>> first = league(lives, ["symbol"]).row(0, named=True)
    >>> first["symbol"], first["rate_per_day"], round(first["rate_shrunk_per_day"], 1)
    ('S3', 33.0, 27.7)
    """
    checked_cluster_kind(cluster, RATE_CLUSTERS)
    watched = Watched.of(lives, by, held)
    names = watched.names
    if names == ["family"]:
        raise InputError("by", by, "the columns that tell groups apart, e.g. symbol")
    groups = watched.groups.select(names)
    if all_groups is not None:
        checked_types(
            all_groups, {name: str(groups.schema[name]) for name in names}, parameter="all_groups"
        )
        groups = pl.concat([groups, all_groups.select(names)]).unique()
    found = rates_of_groups(watched, groups, cluster)
    parts = [_shrunk(part) for part in found.partition_by("family", maintain_order=True)]
    order = pl.coalesce(_SHRUNK[0], "rate_per_day")
    rank = order.rank("min", descending=True).over("family")
    share = pl.col("n") / pl.col("n").sum().over("family")
    return (
        pl.concat(parts or [_shrunk(found)])
        .with_columns(rank=rank.cast(pl.Int64), share=pl.when(share.is_finite()).then(share))
        .sort("family", "rank", *names[1:], nulls_last=True)
        .select(
            *(name for name in found.columns if name not in _INNER),
            *("rank", "share"),
            first_reason({Reason.EMPTY: pl.col("share").is_null()}).alias("share_reason"),
            *(*_SHRUNK, "shrunk_reason"),
            *watched.question("events.league/2", cluster=cluster).columns,
        )
    )


def _shrunk(found: pl.DataFrame) -> pl.DataFrame:
    counts = found["n"].to_numpy().astype(np.float64)
    total = counts.sum()
    factor = max(1.0, float(counts @ found["pooled"].to_numpy()) / total) if total else 1.0
    counts = counts / factor
    days = float(found["held_s"][0]) / 86_400 / factor if found.height else 0.0
    reason = None
    if days == 0 or counts.sum() == 0:
        reason = Reason.EMPTY
    elif counts.size < MIN_GROUPS:
        reason = Reason.TOO_FEW
    elif counts.var() <= counts.mean():  # the likelihood then rises to the end (Levin, Reeds 1977)
        reason = Reason.DEGENERATE
    if reason is not None:
        none = [pl.lit(None, pl.Float64).alias(name) for name in _SHRUNK]
        return found.with_columns(*none, pl.lit(reason.value).alias("shrunk_reason"))
    shape = _gamma_shape(counts)
    scale = days + shape * days / counts.mean()
    ends = (counts + shape, *(gamma_quantile(counts + shape, at) for at in (0.025, 0.975)))
    return found.with_columns(
        *(pl.Series(name, end / scale) for name, end in zip(_SHRUNK, ends, strict=True)),
        pl.lit(None, pl.String).alias("shrunk_reason"),
    )


def _gamma_shape(counts: Floats) -> float:
    """Find the shape of the gamma distributed means that makes counts most likely."""
    values, times = np.unique(counts, return_counts=True)
    total, mean = float(counts.sum()), float(counts.mean())

    def likelihood(log_shape: float) -> float:
        shape = math.exp(log_shape)
        # what does not depend on the counts is left out
        logs = np.array([math.lgamma(each + shape) for each in values.tolist()])
        rises = float(logs @ times) - counts.size * math.lgamma(shape)
        return (
            rises - total * math.log(shape + mean) - counts.size * shape * math.log1p(mean / shape)
        )

    low, high, golden = math.log(1e-6), math.log(1e7), (math.sqrt(5) - 1) / 2
    for _ in range(100):
        first, second = high - golden * (high - low), low + golden * (high - low)
        if likelihood(first) >= likelihood(second):
            high = second
        else:
            low = first
    return math.exp((low + high) / 2)


_WEEK_S = 604_800
_COMPARABLE = (
    (pl.col("held_s") > 0) & (pl.col("held_s_before") > 0) & (pl.col("n") + pl.col("n_before") > 0)
)
_FEW = {Reason.FEW_CLUSTERS: pl.col("few")}
_TESTED = _COMPARABLE & ~pl.col("few")
_BURSTS = ("cluster", "n_clusters", "fano", "freedom", "long_bursts")
_NONE_BEFORE = {Reason.TOO_FEW: pl.col("n_before") == 0}
_CHANGES: dict[str, dict[Reason, pl.Expr]] = {
    "ratio": _NONE_BEFORE,
    "ratio_lower": _FEW,
    "ratio_upper": _NONE_BEFORE | _FEW,
}


@analysis(
    "events.rate_changes",
    """
        ratio ratio_lower ratio_upper p_value q_value rate_per_day rate_before_per_day n n_before
        coverage cluster n_clusters""",
    title="How much more often events open than the week before,",
    about="""
        The window must be twice --length. Of many groups some change by chance: at a q of
        0.05, one in twenty.""",
    example="--by symbol --length 3d",
    by=BY_OPENING,
    length_s=Parameter(
        "The length of the time that is compared with the one before it.", "s", option="--length"
    ),
    cluster=OPENINGS_IN,
)
def rate_changes(
    lives: Frame,
    by: Sequence[str] = (),
    *,
    held: pl.DataFrame | None = None,
    length_s: int = _WEEK_S,
    cluster: str = AUTO,
) -> pl.DataFrame:
    """Compare how often events open in the last week of the window with the week before.

    ``lives``, ``by`` and ``held`` are those of `survival`, over at least twice ``length_s`` (s, by
    default a week). What counts is as in `rates`. The test of openings in proportion to the covered
    time is exact (binomial, twice the smaller tail), and the interval of the ratio agrees with it.
    With bursts, counts are first divided by the Fano factor of both weeks with Student's quantile,
    and ``cluster`` is as in `rates`. The ``q_value`` allows for many groups. One row per family and
    group that has an event, sorted:

    {columns}

    Raises `InputError`: As `rates`. The window is shorter than twice ``length_s``.

    Source: Przyborowski, J. and Wilenski, H. (1940), Biometrika 31. Benjamini, Y. and Hochberg, Y.
    (1995), Journal of the Royal Statistical Society B 57.

    >>> opened = [9_000, 400_000, *range(610_000, 1_209_600, 75_000)]
    >>> lives = pl.DataFrame({"family": "spread", "t_open": opened, "duration_s": 30.0,
    ...     "entry_s": 0.0, "observed": [1] * 10, "kind": "closed", "known_until": [1_209_600] * 10,
    ...     "window_start": [0] * 10, "window_end": [1_209_600] * 10})
    >>> row = rate_changes(lives).row(0, named=True)
    >>> row["n"], row["n_before"], row["ratio"], round(row["p_value"], 6)
    (8, 2, 4.0, 0.109375)
    """
    checked_cluster_kind(cluster, RATE_CLUSTERS)
    length_s = whole_number("length_s", length_s, 1, "seconds, at least 1")
    watched = Watched.of(lives, by, held)
    end = watched.window.end
    weeks = [Interval(end - 2 * length_s, end - length_s), Interval(end - length_s, end)]
    if watched.groups.height and watched.window.start > weeks[0].start:
        allowed = f"two times {duration(length_s)} at least, which are compared"
        raise InputError("window", str(watched.window), allowed)
    parts = [rates_of_groups(watched.during(week), watched.groups, cluster) for week in weeks]
    names = ["n", "held_s", "rate_per_day", *_BURSTS]
    before = parts[0].select(pl.col(names).name.suffix("_before"))
    rows = pl.concat([parts[1].select(*watched.names, *names), before], how="horizontal")
    both = watched.during(Interval(weeks[0].start, end))
    return (
        _compared(rows)
        .with_columns(
            coverage=(pl.col("held_s") + pl.col("held_s_before")) / (2 * length_s),
            q_value=false_discoveries(pl.when(_TESTED).then("p_value"), "family"),
        )
        .select(
            *watched.names,
            *("n", "n_before", "held_s"),
            pl.col("held_s_before").alias("held_before_s"),
            *("coverage", "cluster", "n_clusters", "fano"),
            "rate_per_day",
            first_reason({Reason.EMPTY: pl.col("held_s") == 0}).alias("rate_per_day_reason"),
            pl.col("rate_per_day_before").alias("rate_before_per_day"),
            first_reason({Reason.EMPTY: pl.col("held_s_before") == 0}).alias("rate_before_reason"),
            *(column for name, cases in _CHANGES.items() for column in _with_reason(name, cases)),
            pl.when(_TESTED).then("p_value").alias("p_value"),
            pl.when(_TESTED).then("q_value").alias("q_value"),
            first_reason({Reason.EMPTY: ~_COMPARABLE, **_FEW}).alias("p_value_reason"),
            *both.question("events.rate_changes/2", length_s=length_s, cluster=cluster).columns,
        )
    )


def _with_reason(name: str, cases: dict[Reason, pl.Expr]) -> list[pl.Expr]:
    reason = first_reason({Reason.EMPTY: ~_COMPARABLE, **cases})
    return [pl.when(reason.is_null()).then(name).alias(name), reason.alias(f"{name}_reason")]


def _compared(rows: pl.DataFrame) -> pl.DataFrame:
    wanted = ("n", "n_before", "held_s", "held_s_before")
    late, early, held, before = (rows[name].to_numpy().astype(np.float64) for name in wanted)
    fano, freedom, long_bursts = _pooled(rows, late, early)
    divisor, few = divisor_of(late + early, fano, freedom, long_bursts)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = held / (held + before)
        times = before / held
        ratio = late / early * times
        late, early = late / divisor, early / divisor
        lower, upper = (each / (1 - each) * times for each in share_interval(late, late + early))
    at_least, at_most = np.ones(late.shape), np.ones(late.shape)
    some, less = (late > 0) & (part > 0), (early > 0) & (part < 1)
    at_least[some] = beta_tails(late[some], early[some] + 1, part[some])[0]
    at_most[less] = beta_tails(late[less] + 1, early[less], part[less])[1]
    p_value = np.minimum(1.0, 2 * np.minimum(at_least, at_most))
    columns = {"ratio": ratio, "ratio_lower": lower, "ratio_upper": upper, "p_value": p_value}
    kept = pl.when(pl.Series(np.isnan(freedom)))
    stretches = pl.col("n_clusters") + pl.col("n_clusters_before")
    named = pl.when(pl.col("cluster") == NONE).then("cluster_before").otherwise("cluster")
    return rows.with_columns(
        *(pl.Series(name, values) for name, values in columns.items()),
        cluster=kept.then(pl.lit(NONE)).otherwise(named),
        n_clusters=kept.then(pl.col("n") + pl.col("n_before")).otherwise(stretches),
        fano=pl.Series(fano),
        few=pl.Series(few),
    )


def _pooled(rows: pl.DataFrame, late: Floats, early: Floats) -> tuple[Floats, Floats, Flags]:
    own = [rows[f"fano{end}"].to_numpy() for end in ("", "_before")]
    total = np.maximum(late + early, 1)
    fano = np.where(late + early > 0, (late * own[0] + early * own[1]) / total, 1.0)
    freedoms = [rows[f"freedom{end}"].to_numpy() for end in ("", "_before")]
    known = [
        ~np.isnan(each) & (count > 0) for each, count in zip(freedoms, (late, early), strict=True)
    ]
    freedom = sum(np.where(some, each, 0.0) for some, each in zip(known, freedoms, strict=True))
    long_bursts = np.zeros(late.shape, dtype=bool)
    for end, some in zip(("", "_before"), known, strict=True):
        long_bursts |= some & rows[f"long_bursts{end}"].to_numpy()
    apart = (fano <= 1) | (freedom == 0)
    return fano, np.where(apart, np.nan, freedom), long_bursts
