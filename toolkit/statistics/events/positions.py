"""Positions in spread events: entry, exit and result, and the payoff over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.columns import schema_of
from toolkit.errors import InputError
from toolkit.market import EventFamily, Step
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_names,
    checked_types,
    first_reason,
    real_number,
    whole_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.events.clusters import FEWEST_VALUES, checked_cluster_kind, cluster_band
from toolkit.statistics.events.documents import trajectory_of
from toolkit.statistics.events.exposure import Watched
from toolkit.statistics.events.paths import CLUSTERS, EVENTS_IN, KnownValues, clusters_of
from toolkit.statistics.fees.fee_table import (
    NOTIONAL,
    FeeModel,
    Style,
    check_asked,
    check_held_style,
)
from toolkit.statistics.fees.net_edge import MULTIPLES, costed, costs_over_time, named_by
from toolkit.statistics.funding.carry_figures import ENDS, QUANTILES
from toolkit.statistics.numeric.arrays import Floats, Integers

DELAYS_S = (0, 60, 300, 900)
"""The default delays after detection (s)."""

_COLUMN = "spread_log_bps"
_NEVER = 2**60
_ENDS = ("close", "return", "limit")
_AFTER_ENTRY = ("returned_before", "open", "log_gap", "no_exit")
_FEE_TABLE = schema_of(also=("style", "notional", "fee_model", "fee_model_hash"))
_LIVES = {"event": "String", "symbol": "String", "legs": "String", "t_close": "Int64"}
_POSITIONS = dict([*schema_of("events.positions").items()][:16])  # without costs


@analysis(
    "events.positions",
    ("t_open", "delay_s", "gross_bps", "net_bps", "held_s", "ended_by", "position_reason"),
    key=("trajectory",),
    command="",
    delays_s=Parameter(
        "How long after its detection an event is entered: 0, 30s, 5m.", "s", option="--delay"
    ),
    limit_s=Parameter("The longest time in a position. Default: no limit.", "s", option="--limit"),
    exit_bps=Parameter("Also exit once the log spread is at most this.", "bps"),
    exit_delay_s=Parameter("How long after its end the exit is.", "s", option="--exit-delay"),
)
def positions(
    lives: pl.DataFrame,
    spreads: Frame,
    *,
    delays_s: Sequence[int] = DELAYS_S,
    limit_s: int | None = None,
    exit_bps: float | None = None,
    exit_delay_s: int = 0,
    held: pl.DataFrame | None = None,
    fees: FeeModel | None = None,
    notional: float = NOTIONAL,
    style: Style = "taker",
    step_s: Step = None,
    known_after_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute what each spread event would have paid, taken so long after it was detected.

    ``lives`` are rows of `event_lifecycles`, of which spreads with two legs are used. ``spreads``
    has ``trajectory``, ``ts`` and the prices of both legs, or ``spread_log_bps``, and should reach
    past the window, to the exits. `toolkit.statistics.events.payoff` sums up the rows.

    The position is long the buy leg and short the sell leg, from the first spread known later than
    ``delay_s`` after the opening until the earliest of:

    - close: the event closed, and ``exit_delay_s`` has passed. A service may also close events for
      their age, without a fall of the spread.
    - return: a spread known after the entry was at most ``exit_bps`` (None: no such exit), and
      ``exit_delay_s`` has passed. In a gap no return is seen.
    - limit: ``limit_s`` since the entry (None: no limit).

    The exit is at the first spread known then or later, after a close strictly later. Rows are
    known ``known_after_s`` after their ``ts`` (default: one step, at a bar's end), and used if
    known at most ``max_stale_s`` (default: three steps) after they are wanted. An event already
    over by then is not taken.

    Gross is the log spread at the entry less that at the exit, positive if it fell. Net is gross
    less `FeeModel.round_trip_bps` at the entry.

    ``held`` is the coverage of the log, as in `survival`: in a gap a close would not have been
    seen. One row per event and delay, sorted by trajectory, opening and delay:

    {columns}

    Raises `InputError`: Lifecycles are of several windows. A number is out of range, or a delay is
    there twice. ``style`` opens no position. No step is known.

    A spread of 80 bps is seen a minute after the event, and 20 bps after its close.

    >>> spreads = pl.DataFrame({"trajectory": "A_B:X.spot:Y.spot", "ts": [0, 60, 120, 180],
    ...     "spread_log_bps": [90.0, 80.0, 50.0, 20.0]})
    >>> lives = pl.DataFrame({"family": ["spread"], "event": ["s1"], "symbol": ["A_B"],
    ...     "legs": ["X.spot → Y.spot"], "kind": ["closed"], "t_open": [50], "t_close": [190],
    ...     "duration_s": [140.0], "entry_s": [0.0], "observed": [1], "known_until": [300],
    ...     "window_start": [0], "window_end": [300]})
    >>> found = positions(lives, spreads, delays_s=[60, 300])
    >>> found.select("delay_s", "gross_bps", "held_s", "ended_by", "position_reason").rows()
    [(60, 60.0, 120, 'close', None), (300, None, None, None, 'closed_before')]
    """
    delays = _delays(delays_s)
    limit = None if limit_s is None else whole_number("limit_s", limit_s, 1)
    level = None if exit_bps is None else real_number("exit_bps", exit_bps, "basis points")
    late_s = whole_number("exit_delay_s", exit_delay_s, 0)
    real_number("notional", notional, "an amount above 0 in the quote currency", above=0)
    if fees is not None:
        check_asked(fees, notional, style)
    check_held_style(style)
    checked_types(lives, _LIVES, parameter="lives")
    watched = Watched.of(lives, (), held)
    spreads = holding(spreads, _COLUMN)
    known = KnownValues.of(spreads, _COLUMN, step_s, known_after_s, max_stale_s)
    options = {"delays_s": str(delays), "limit_s": limit, "exit_bps": level, "late_s": late_s}
    costs = {"fees": fees.hash if fees else None, "notional": float(notional), "style": style}
    asked = (*options.items(), *costs.items(), ("known_after_s", known_after_s))
    window = watched.window
    question = Question("events.positions/2", *window, _COLUMN, step_s, max_stale_s, asked)
    events = _events(lives, watched)
    by = _Exit(limit, level, late_s)
    found = [_taken(events, known, each, by) for each in delays]
    rows = pl.concat(found).sort("trajectory", "t_open", "event", "delay_s")
    return _with_costs(rows, fees, notional, style).with_columns(*question.columns)


def _delays(given: Sequence[int]) -> list[int]:
    if isinstance(given, str | int) or not given or len(set(given)) < len(given):
        raise InputError("delays_s", given, "numbers of seconds such as [0, 60], each of them once")
    return sorted(whole_number("delays_s", each, 0) for each in given)


def _events(lives: pl.DataFrame, watched: Watched) -> pl.DataFrame:
    """Return the spread events with two legs, why some are left out, and when they are over."""
    seen_s = pl.col("duration_s").fill_null(0).floor().cast(pl.Int64)
    never_seen = pl.col("t_open").is_null() | (pl.col("t_open") < watched.window.start)
    closed = pl.col("t_close").is_not_null()
    made = pl.lit(value=False)
    if "lifecycle_reason" in lives.columns:
        made = pl.col("lifecycle_reason") == Reason.MADE_ID
    return (
        lives.with_columns(watched.cut().select("duration_s", "cut"))
        .filter(family=EventFamily.SPREAD.value)
        .with_columns(trajectory_of())
        .drop_nulls("trajectory")
        .select(
            *list(_POSITIONS)[:7],
            pl.coalesce("t_close", pl.col("t_open") + seen_s).fill_null(0).alias("over_ts"),
            closed.alias("closed"),
            pl.when("cut").then(pl.lit("log_gap")).otherwise(pl.lit("open")).alias("still"),
            pl.when(never_seen)
            .then(pl.lit("opened_before"))
            .when(kind="reopened")
            .then(pl.lit("close_lost"))
            .when(made)
            .then(pl.lit(Reason.MADE_ID.value))
            .alias("left_out"),
        )
    )


@dataclass(frozen=True, slots=True)
class _Exit:
    limit_s: int | None
    level: float | None
    late_s: int


def _taken(events: pl.DataFrame, known: KnownValues, delay_s: int, by: _Exit) -> pl.DataFrame:
    numbers = known.numbered(events["trajectory"])
    closed = events["closed"].to_numpy()
    asked = events["t_open"].fill_null(0).to_numpy() + delay_s
    over = events["over_ts"].to_numpy() + by.late_s
    entry = known.first_after(numbers, asked)
    entered = np.where(entry < 0, asked, _at(known.known_ts, entry))
    limit = np.full(asked.shape, _NEVER) if by.limit_s is None else entered + by.limit_s
    back, returned = np.full(asked.shape, _NEVER), np.zeros(asked.shape, dtype=bool)
    if by.level is not None:
        low = known.next_at_most(numbers, entry, by.level)
        back = np.where(low < 0, _NEVER, _at(known.known_ts, low) + by.late_s)
        returned = _at(known.values, entry) <= by.level
    first = np.minimum(back, limit)
    by_close = closed & (over <= first)
    leave = np.where(by_close, known.first_after(numbers, over), known.following(numbers, first))
    reasons = {
        "no_rows": numbers < 0,
        "closed_before": closed & (over <= entered),
        "no_entry": entry < 0,
        "returned_before": returned,
        "still_open": ~closed & (over < first),
        "no_exit": leave < 0,
    }
    place = np.where(by_close, 0, np.where(back <= limit, 1, 2))
    return events.with_columns(
        pl.lit(delay_s, pl.Int64).alias("delay_s"),
        pl.Series("entry_ts", entered),
        pl.Series("entry_spread_log_bps", _at(known.values, entry)),
        pl.Series("exit_ts", _at(known.known_ts, leave)),
        pl.Series("exit_spread_log_bps", _at(known.values, leave)),
        pl.Series("ended_by", np.array(_ENDS)[place], dtype=pl.String),
        *(pl.Series(name, found) for name, found in reasons.items()),
    ).select(_row(list(reasons)))


def _at(values: Integers | Floats, places: Integers) -> Any:
    return values[places] * (places >= 0) if values.size else np.zeros(places.shape, values.dtype)


def _row(reasons: list[str]) -> list[pl.Expr]:
    words = {name: pl.lit(name) for name in reasons} | {"still_open": pl.col("still")}
    reason = pl.coalesce("left_out", *(pl.when(name).then(word) for name, word in words.items()))
    entered = reason.is_null() | reason.is_in(_AFTER_ENTRY)
    kept = pl.col("entry_spread_log_bps") - pl.col("exit_spread_log_bps")
    columns = {name: pl.col(name) for name in list(_POSITIONS)[:8]}
    columns |= {
        name: pl.when(entered if name.startswith("entry") else reason.is_null()).then(name)
        for name in [*list(_POSITIONS)[8:12], "ended_by"]
    }
    columns["held_s"] = pl.when(reason.is_null()).then(pl.col("exit_ts") - pl.col("entry_ts"))
    columns |= {"gross_bps": pl.when(reason.is_null()).then(kept), "position_reason": reason}
    return [columns[name].cast(kind).alias(name) for name, kind in _POSITIONS.items()]


def _with_costs(
    rows: pl.DataFrame, fees: FeeModel | None, notional: float, style: Style
) -> pl.DataFrame:
    gross, cost = pl.col("gross_bps"), pl.col("cost_bps")
    named = [pl.lit(None, kind).alias(name) for name, kind in _FEE_TABLE.items()]
    found = rows.with_columns(cost_bps=pl.lit(None, pl.Float64))
    if fees is not None:
        named = named_by(fees, notional, style)
        keys = rows.drop_nulls("gross_bps")["trajectory"].unique(maintain_order=True)
        entered = rows.with_columns(ts=pl.col("entry_ts").fill_null(0))
        found = costed(entered, costs_over_time(keys, fees, notional, style)).drop("ts")
        found = found.with_columns(pl.when(gross.is_not_null()).then(cost).alias("cost_bps"))
    unknown = first_reason({Reason.UNKNOWN_FEE: cost.is_null()})
    return found.with_columns(
        (gross - cost).alias("net_bps"),
        pl.coalesce("position_reason", unknown).alias("net_reason"),
        *named,
    )


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
    """
        n n_closed_before net_median_bps net_mean_bps net_mean_lower_bps net_mean_upper_bps
        net_positive_share net_per_event_bps gross_median_bps gross_q05_bps gross_q95_bps
        gross_mean_bps gross_mean_lower_bps gross_mean_upper_bps gross_per_event_bps
        gross_positive_share held_median_s n_open n_close_lost n_opened_before n_returned_before
        n_unpriced n_log_gap n_no_rows n_closed n_returned n_limited coverage cluster n_clusters""",
    key=("symbol", "legs", "delay_s"),
    title=_title,
    about="""
        Positive: the spread fell from the entry to the exit, so that long the buy leg and
        short the sell leg earned it. Entry is at the first price known after the delay,
        exit at the first after the end. An event that is over by then is not taken, so late
        entries are those of long events. The mean "of all" counts such an event as 0. The
        range of the mean is its 95 % interval. When the service shows an opening depends on
        the plan, which is part of a delay.

        Before: rail fees --example > fees.toml""",
    example="--delay 1m --limit 2h --fees fees.toml",
    chart="payoff_chart",
    of="events.positions",
    by=Parameter("Rows per symbol or legs.", choices=("symbol", "legs")),
    cluster=EVENTS_IN,
)
def payoff(rows: pl.DataFrame, *, by: Sequence[str] = (), cluster: str = "path") -> pl.DataFrame:
    """Sum up what taking events would have paid, by delay.

    ``rows`` are those of `toolkit.statistics.events.positions`, with any columns to group ``by``,
    such as trajectory or symbol. A size that was known only after the entry is not a fair group.

    An event without a position is in one of the counts ``n_opened_before`` to
    ``n_returned_before``. One over before the entry pays nothing, so late entries are those of long
    events: ``gross_per_event_bps`` shows the decay with the delay. With many open events the
    figures are of shorter ones: a ``limit_s`` includes older ones.

    Bands draw clusters of events that may depend on each other: those that opened within a time as
    long as 95 % of positions last (path), on one UTC day (day), of one trajectory, or of one
    trajectory_day. One row per group and delay, sorted:

    {columns}

    ``style``, ``notional``, ``fee_model``, ``fee_model_hash``, ``window_start``, ``window_end``,
    ``method`` and ``params_hash`` are last. No rows give no rows.

    Raises `InputError`: The rows are of several calls of `positions`.

    Source: Field, C. A. and Welsh, A. H. (2007), Journal of the Royal Statistical Society B 69.

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
    checked_cluster_kind(cluster, CLUSTERS)
    by = checked_names("by", by, rows.columns)
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
    named = (pl.lit(rows[name].first(), kind).alias(name) for name, kind in _FEE_TABLE.items())
    columns = schema_of("events.payoff").names()
    return found.with_columns(*_shares(), *named, *question.columns).select(*keys, *columns[1:])


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
