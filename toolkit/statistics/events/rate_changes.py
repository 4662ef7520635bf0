"""Changes of event rates from week to week, by a test of two counts that allows for bursts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, first_reason, whole_number
from toolkit.statistics.events.clusters import AUTO, NONE, checked_cluster_kind
from toolkit.statistics.events.exposure import Watched
from toolkit.statistics.events.groups import BY_OPENING
from toolkit.statistics.events.overdispersion import OPENINGS_IN, RATE_CLUSTERS, Flags, divisor_of
from toolkit.statistics.events.rates import rates_of_groups
from toolkit.statistics.numeric.tails import beta_tails, share_interval

Numbers = npt.NDArray[np.float64]

_WEEK_S = 604_800
_COMPARABLE = (
    (pl.col("held_s") > 0) & (pl.col("held_s_before") > 0) & (pl.col("n") + pl.col("n_before") > 0)
)
_FEW = {Reason.FEW_CLUSTERS: pl.col("few")}
_TESTED = _COMPARABLE & ~pl.col("few")
_SPREAD = ("cluster", "n_clusters", "fano", "freedom", "long_bursts")
_NONE_BEFORE = {Reason.TOO_FEW: pl.col("n_before") == 0}
_CHANGES: dict[str, dict[Reason, pl.Expr]] = {
    "ratio": _NONE_BEFORE,
    "ratio_lower": _FEW,
    "ratio_upper": _NONE_BEFORE | _FEW,
}


@analysis(
    "events.rate_changes",
    (
        *("ratio", "ratio_lower", "ratio_upper", "p_value", "q_value", "rate_per_day"),
        *("rate_before_per_day", "n", "n_before", "coverage", "cluster", "n_clusters"),
    ),
    title="How much more often events open than the week before,",
    about="""
        The window has to be twice --length. Of many groups some change by chance: a q of 0.05 is of
        rows of which one in twenty did.""",
    example="--by symbol --length 3d",
    by=BY_OPENING,
    length_s=Parameter(
        "How long the time is that is compared with that before it.", "s", option="--length"
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
    default a week). What counts is as in `rates`. At one rate, openings fall on the weeks in
    proportion to their covered time: the test of that is exact (binomial, twice the smaller tail),
    and the interval of the ratio agrees with it. With bursts, counts are first divided by the Fano
    factor of both weeks with Student's quantile, and ``cluster`` is as in `rates`. The ``q_value``
    allows for many groups. One row per family and group that has an event, sorted:

    {columns}

    Raises
    ------
    InputError
        As `rates`. The window is shorter than twice ``length_s``.

    References
    ----------
    Przyborowski, J. and Wilenski, H. (1940), Homogeneity of results in testing samples from Poisson
    series, Biometrika 31. Benjamini, Y. and Hochberg, Y. (1995), Journal of the Royal Statistical
    Society B 57: the q-value.

    Examples
    --------
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
    names = ["n", "held_s", "rate_per_day", *_SPREAD]
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


def _pooled(rows: pl.DataFrame, late: Numbers, early: Numbers) -> tuple[Numbers, Numbers, Flags]:
    """Return the Fano factor of both weeks, its freedom (NaN without bursts), and long bursts."""
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


def false_discoveries(p_value: pl.Expr, *by: str) -> pl.Expr:
    """Build the q-values of p-values, by Benjamini and Hochberg. A null is not a test.

    ``by`` names columns of families of tests, by default all rows.

    >>> frame = pl.DataFrame({"p": [0.01, None, 0.04, 0.03]})
    >>> frame.select(false_discoveries(pl.col("p")).round(9))["p"].to_list()
    [0.03, None, 0.04, 0.04]
    """
    scaled = p_value * p_value.count() / p_value.rank("max")
    # of the groups that are at least so unsure, the smallest
    order = scaled.sort_by(p_value, descending=True, nulls_last=True).cum_min()
    found = order.gather(p_value.rank("ordinal", descending=True) - 1)
    return found.over(*by) if by else found
