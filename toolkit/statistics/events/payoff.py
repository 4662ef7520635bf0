"""Payoff of taking events: the distribution over all of them, by the delay of entry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Question, checked_types, first_reason
from toolkit.statistics.events.cluster_bootstrap import FEWEST_VALUES, cluster_band
from toolkit.statistics.events.paths import EVENTS_IN, checked_cluster, clusters_of
from toolkit.statistics.events.positions import FEE_TABLE
from toolkit.statistics.fees.net_edge import MULTIPLES
from toolkit.statistics.funding.carry_figures import ENDS, FORMS, QUANTILES

LEFT_OUT = {
    "n_opened_before": ("opened_before",),
    "n_close_lost": ("close_lost", "made_id"),
    "n_no_rows": ("no_rows",),
    "n_unpriced": ("no_entry", "no_exit"),
    "n_open": ("open",),
    "n_log_gap": ("log_gap",),
    "n_closed_before": ("closed_before",),
    "n_returned_before": ("returned_before",),
}
"""Counts of events without a position, by the reasons of `positions`."""

_ENDED = {"n_closed": "close", "n_returned": "return", "n_limited": "limit"}
_OVER = ("n_closed_before", "n_returned_before")
_SIDES = ("gross", "net")
_CONTRACT = ("window_start", "window_end", "params_hash")
_READ = {
    **dict.fromkeys(("trajectory", "ended_by", "position_reason"), "String"),
    **dict.fromkeys(("fee_model", "params_hash"), "String"),
    **dict.fromkeys(("t_open", "delay_s", "exit_ts", "held_s"), "Int64"),
    **dict.fromkeys(("window_start", "window_end"), "Int64"),
    **dict.fromkeys(("entry_spread_log_bps", "gross_bps", "cost_bps", "net_bps"), "Float64"),
}
_BANDS = {"cluster": pl.String, "n_clusters": pl.Int64} | {
    f"{side}_{end}_bps": pl.Float64 for side in _SIDES for end in ENDS
}
_COLUMNS = (
    *(
        "n_events",
        "n",
        *LEFT_OUT,
        *("cluster", "n_clusters", "coverage", "taken_share", "events_reason"),
    ),
    *(*_ENDED, "entry_median_log_bps", "held_median_s", "held_q95_s"),
    *(f"gross_{form}_bps" for form in FORMS),
    *("gross_per_event_bps", "gross_positive_share", "gross_reason"),
    *(f"gross_{end}_bps" for end in ENDS),
    *("gross_band_reason", "net_n", "cost_mean_bps"),
    *(f"net_{form}_bps" for form in FORMS),
    "net_per_event_bps",
    *(f"net_mean{at}_bps" for at in MULTIPLES if at),
    *(f"net_positive_share{at}" for at in MULTIPLES),
    "net_reason",
    *(f"net_{end}_bps" for end in ENDS),
    "net_band_reason",
)


def _title(
    limit_s: int | None, exit_bps: float | None, exit_delay_s: int, **_others: object
) -> str:
    ends = ["held to the close"]
    if exit_bps is not None:
        ends.append(f"a spread of {exit_bps:g} bps")
    if limit_s is not None:
        ends.append(f"{duration(limit_s)} at most")
    late = f", left {duration(exit_delay_s)} late" if exit_delay_s else ""
    return f"What spread events would have paid, {' or '.join(ends)}{late},"


@analysis(
    "events.payoff",
    (
        *("n", "n_closed_before", "net_median_bps", "net_mean_bps", "net_mean_lower_bps"),
        *("net_mean_upper_bps", "net_positive_share", "net_per_event_bps", "gross_median_bps"),
        *("gross_q05_bps", "gross_q95_bps", "gross_mean_bps", "gross_mean_lower_bps"),
        *("gross_mean_upper_bps", "gross_per_event_bps", "gross_positive_share", "held_median_s"),
        *("n_open", "n_close_lost", "n_opened_before", "n_returned_before", "n_unpriced"),
        *("n_log_gap", "n_no_rows", "n_closed", "n_returned", "n_limited", "coverage", "cluster"),
        "n_clusters",
    ),
    key=("symbol", "legs", "delay_s"),
    title=_title,
    about="""
        Positive: the spread fell from the entry to the exit, so that long the buy leg and short the
        sell leg earned it. Entry is at the first price known after the delay, exit at the first
        after the end. An event that is over by then is not taken, so that late entries are of long
        events. The mean "of all" counts such an event as 0. The range of the mean holds it at 95 %.
        When the service shows an opening depends on the plan: that is part of a delay.

        Before: rail fees --example > fees.toml""",
    example="--delay 1m --limit 2h --fees fees.toml",
    chart="payoff_chart",
    of="events.positions",
    by=Parameter("Rows for each of these: symbol or legs.", choices=("symbol", "legs")),
    cluster=EVENTS_IN,
)
def payoff(rows: pl.DataFrame, *, by: Sequence[str] = (), cluster: str = "path") -> pl.DataFrame:
    """Sum up what taking events would have paid, by delay.

    ``rows`` are those of `toolkit.statistics.events.positions`, with columns of one's own for
    groups. ``by`` are columns of groups, such as trajectory or symbol. A size that was known only
    after the entry is not a fair group.

    An event without a position is in one of the counts ``n_opened_before`` to
    ``n_returned_before``. One over before the entry pays nothing, so late entries are those of long
    events: ``gross_per_event_bps`` shows the decay with the delay. Open events have lasted longest,
    so with many of them the figures are of shorter ones: a ``limit_s`` includes older ones.

    Bands draw clusters, as events of one ``cluster`` may depend on each other: events that opened
    within a time as long as 95 % of positions last (path), on one UTC day (day), of one trajectory,
    or of one trajectory_day. One row per group and delay, sorted:

    {columns}

    ``style``, ``notional``, ``fee_model``, ``fee_model_hash``, ``window_start``, ``window_end``,
    ``method`` and ``params_hash`` are last. No rows give no rows.

    Raises
    ------
    InputError
        A column is missing or of another type. The rows are of several calls of `positions`.

    References
    ----------
    Field, C. A. and Welsh, A. H. (2007), Bootstrapping clustered data, Journal of the Royal
    Statistical Society B 69.

    Examples
    --------
    >>> from toolkit.statistics.events import positions
    >>> spreads = pl.DataFrame({"trajectory": "A_B:X.spot:Y.spot", "ts": [0, 60, 120, 180],
    ...     "spread_log_bps": [90.0, 80.0, 50.0, 20.0]})
    >>> lives = pl.DataFrame({"family": ["spread"], "event": ["s1"], "symbol": ["A_B"],
    ...     "legs": ["X.spot → Y.spot"], "kind": ["closed"], "t_open": [50], "t_close": [190],
    ...     "duration_s": [140.0], "entry_s": [0.0], "observed": [1], "known_until": [300],
    ...     "window_start": [0], "window_end": [300]})
    >>> found = payoff(positions(lives, spreads, delays_s=[0, 60, 300]))
    >>> found.select("delay_s", "n", "n_closed_before", "gross_median_bps").rows()
    [(0, 1, 0, 70.0), (60, 1, 0, 60.0), (300, 0, 1, None)]
    """
    checked_types(rows, _READ, parameter="rows")
    checked_cluster(cluster)
    by = [by] if isinstance(by, str) else list(by)
    for name in by:
        if name not in rows.columns:
            raise InputError("by", name, rows.columns)
    asked = rows.select(_CONTRACT).unique()
    if asked.height > 1:
        raise InputError("rows", f"{asked.height} questions", "rows of one call of positions")
    keys = list(dict.fromkeys([*by, "delay_s"]))
    ordered = rows.sort(*keys, "t_open", "trajectory", "exit_ts")
    groups = ordered.group_by(keys, maintain_order=True)
    bands = [_bands(part, cluster) for _, part in groups]
    found = pl.concat(
        [groups.agg(_sums()), pl.DataFrame(bands, schema=_BANDS, orient="row")], how="horizontal"
    )
    start, end, of = asked.row(0) if asked.height else (0, 1, None)
    options = (("by", str(by)), ("cluster", cluster), ("positions", of))
    question = Question("events.payoff/2", start, end, options=options)
    return found.with_columns(_shares()).select(
        *keys,
        *_COLUMNS,
        *(pl.lit(rows[name].first(), kind).alias(name) for name, kind in FEE_TABLE.items()),
        *question.columns,
    )


def _sums() -> list[pl.Expr]:
    gross, net, cost = pl.col("gross_bps"), pl.col("net_bps"), pl.col("cost_bps")
    held, reason = pl.col("held_s"), pl.col("position_reason")
    counts = {name: reason.is_in(why).sum() for name, why in LEFT_OUT.items()}
    counts |= {name: (pl.col("ended_by") == way).sum() for name, way in _ENDED.items()}
    counts |= {"n_events": pl.len(), "n": gross.count(), "net_n": net.count()}
    taken = gross.is_not_null()
    figures = {
        "entry_median_log_bps": pl.col("entry_spread_log_bps").filter(taken).median(),
        "held_median_s": held.median(),
        "held_q95_s": held.quantile(0.95, "linear"),
        "gross_positive_share": (gross > 0).mean(),
        "cost_mean_bps": cost.mean(),
    }
    for side, values in (("gross", gross), ("net", net)):
        figures[f"{side}_mean_bps"] = values.mean()
        for name, share in QUANTILES.items():
            figures[f"{side}_{name}_bps"] = values.quantile(share, "linear")
    for at, multiple in MULTIPLES.items():
        left = gross - multiple * cost
        figures[f"net_mean{at}_bps"] = left.mean()
        figures[f"net_positive_share{at}"] = (left > 0).mean()
    return [
        *(count.cast(pl.Int64).alias(name) for name, count in counts.items()),
        *(figure.alias(name) for name, figure in figures.items()),
        pl.col("fee_model").is_not_null().any().alias("costed"),
    ]


def _shares() -> list[pl.Expr]:
    n, judged = pl.col("n"), pl.sum_horizontal("n", *_OVER)
    share = pl.when(judged > 0).then(n / judged)
    nothing = pl.when(n == 0).then(pl.when(judged > 0).then(0.0))
    empty, unknown = {Reason.EMPTY: n == 0}, {Reason.UNKNOWN_FEE: pl.col("net_n") == 0}
    no_band = {side: pl.col(f"{side}_mean_lower_bps").is_null() for side in _SIDES}
    few = {
        side: {Reason.TOO_FEW: none & (pl.col(count) < FEWEST_VALUES), Reason.FEW_CLUSTERS: none}
        for (side, none), count in zip(no_band.items(), ("n", "net_n"), strict=True)
    }
    return [
        (judged / pl.col("n_events")).alias("coverage"),
        share.alias("taken_share"),
        first_reason({Reason.EMPTY: judged == 0}).alias("events_reason"),
        nothing.otherwise(pl.col("gross_mean_bps") * share).alias("gross_per_event_bps"),
        first_reason(empty).alias("gross_reason"),
        first_reason({**empty, **few["gross"]}).alias("gross_band_reason"),
        pl.when((n > 0) | pl.col("costed"))
        .then(nothing.otherwise(pl.col("net_mean_bps") * share))
        .alias("net_per_event_bps"),
        first_reason({**empty, **unknown}).alias("net_reason"),
        first_reason({**empty, **unknown, **few["net"]}).alias("net_band_reason"),
    ]


def _bands(part: pl.DataFrame, cluster: str) -> dict[str, float | int | str]:
    gross, net = (part[f"{side}_bps"].to_numpy() for side in _SIDES)
    taken = np.isfinite(gross)
    if not taken.any():
        return {"cluster": cluster, "n_clusters": 0}
    lasted = (part["exit_ts"] - part["t_open"]).to_numpy()[taken]
    longest = int(np.quantile(lasted, 0.95, method="higher"))
    opened = part.select("trajectory", ts="t_open").filter(taken)
    clusters = clusters_of(opened, cluster, longest)
    found: dict[str, float | int | str] = {"cluster": cluster}
    found["n_clusters"] = np.unique(clusters).size
    for side, values in zip(_SIDES, (gross, net), strict=True):
        known = np.isfinite(values[taken])
        band = cluster_band(clusters[known], values[taken][known])
        if band is not None:
            ends = (f"{side}_{end}_bps" for end in ENDS)
            found |= dict(zip(ends, (*band.mean, *band.median), strict=True))
    return found
