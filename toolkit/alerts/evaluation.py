"""Opening and clearing of alerts: pure functions of frames.

Marks are rows (rule, subject, ts, value) at which an alert would open (``opens``) or be over
(``clears``); `transitions` selects those at which it does. Between a rule's two levels neither is
so: a value that hovers at a level is one alert.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from toolkit.alerts.rules import AlertKind, AlertRule
from toolkit.market import TYPE_ROLES, EventRole, Family
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.fees.net_edge import costs_over_time, gross_bps
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.tables import AlertChange

MARKS = pl.Schema(
    {
        "subject": pl.String,
        "stream": pl.String,
        "about": pl.String,
        "ts": pl.Int64,
        "value": pl.Float64,
        "opens": pl.Boolean,
        "clears": pl.Boolean,
    }
)
"""The columns of marks. ``subject`` is the stream's key, or the id of an event of it.

``about`` names what it is of for a reader: the stream's key, or symbol and legs of the event.
"""

_LEGS = [
    pl.concat_str(f"{leg}_exchange", f"{leg}_market", separator=".") for leg in ("buy", "sell")
]
_CLOSING = [word for word, role in TYPE_ROLES.items() if role is EventRole.CLOSES]


def level_values(rows: pl.DataFrame, rule: AlertRule, fees: FeeModel | None) -> pl.DataFrame:
    """Return a rule's values to compare with its level: `spread_values` or `funding_values`.

    ``rows`` are as `toolkit.statistics.families` prepares them.
    """
    if rule.kind is AlertKind.FUNDING:
        return funding_values(rows)
    return spread_values(rows, rule, fees)


def spread_values(rows: pl.DataFrame, rule: AlertRule, fees: FeeModel | None) -> pl.DataFrame:
    """Return the spread of each row (bps), whichever leg is dearer: stream, ts, value.

    Reads trajectory, ts, spread_log_bps and spread_bps. Gross it is the size of ``spread_log_bps``,
    net it is `toolkit.statistics.fees.net_edge.gross_bps` less the round-trip cost at the row's
    time, null if the fee table lacks it.

    >>> rows = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"], "ts": [0],
    ...     "spread_log_bps": [-99.5]})
    >>> rule = AlertRule.of({"name": "a", "kind": "spread", "above_bps": 50})
    >>> spread_values(rows, rule, None)["value"].to_list()
    [99.5]
    """
    if not rule.net or fees is None:
        value = pl.col("spread_log_bps").abs() if not rule.net else pl.lit(None, pl.Float64)
        return rows.select(stream="trajectory", ts="ts", value=value)
    keys = rows["trajectory"].unique(maintain_order=True)
    costs = costs_over_time(keys, fees, rule.notional, rule.style)
    return (
        rows.sort("ts")
        .join_asof(costs, on="ts", by="trajectory", check_sortedness=False)
        .select(
            stream="trajectory",
            ts="ts",
            value=gross_bps(pl.col("spread_bps"), rule.style) - pl.col("cost_bps"),
        )
    )


def funding_values(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the size of the differential in force (percent per year): stream, ts, value.

    Reads trajectory, ts, the rates and intervals of both legs and ``differential_pct_8h``, the
    service's own figure. If that is null, the last rate of each leg gives it; a leg without an
    interval (spot) pays none. For one leg in snapshots it is the size of its rate
    (``funding_apr_pct``).
    """
    if "funding_apr_pct" in rows.columns:
        return rows.select(stream="trajectory", ts="ts", value=pl.col("funding_apr_pct").abs())
    hourly = [
        pl.when(pl.col(f"{leg}_interval_hours").is_not_null())
        .then((pl.col(f"{leg}_rate") / pl.col(f"{leg}_interval_hours")).forward_fill())
        .otherwise(0.0)
        .over("trajectory", order_by="ts")
        for leg in ("sell", "buy")
    ]
    own = (hourly[0] - hourly[1]) * 100 * HOURS_A_YEAR
    sent = pl.col("differential_pct_8h") * (HOURS_A_YEAR / 8)
    return rows.select(stream="trajectory", ts="ts", value=pl.coalesce(sent, own).abs())


def longest_s(kind: str, step_s: float | None) -> float:
    """Return how far apart successive rows of a kind of stream may be (s).

    It is 1.5 steps; an unknown step is a minute, of funding eight hours.
    """
    return 1.5 * (step_s or (8 * 3_600 if kind == Family.FUNDING else 60))


def level_marks(
    values: pl.DataFrame, rule: AlertRule, longest: Mapping[str, float]
) -> pl.DataFrame:
    """Return the marks of values (stream, ts, value) against the levels of a rule.

    An alert opens at a row if every row of the last ``rule.for_s`` seconds or more is above the
    level. That time restarts where two rows are over ``longest`` of their stream apart (s, see
    `longest_s`), and at a null or non-finite value, which makes no mark. It is over at a row at or
    below ``rule.clear``. Rows may come in any order.

    >>> rule = AlertRule.of({"name": "a", "kind": "spread", "above_bps": 50, "for": "2m"})
    >>> values = pl.DataFrame({"stream": ["s"] * 5, "ts": [0, 60, 120, 180, 240],
    ...     "value": [60.0, 60.0, 60.0, 45.0, 40.0]})
    >>> level_marks(values, rule, {"s": 90}).select("ts", "opens", "clears").rows()
    [(120, True, False), (240, False, True)]
    """
    if values.is_empty():
        return MARKS.to_frame()
    value = pl.when(pl.col("value").is_finite()).then("value")
    allowed_s = pl.col("stream").replace_strict(
        dict(longest), default=None, return_dtype=pl.Float64
    )
    above = (pl.col("value") > rule.level).fill_null(value=False)
    broken = (pl.col("ts") - pl.col("ts").shift(1).over("stream") > allowed_s).fill_null(value=True)
    run = (broken | ~pl.col("above")).cast(pl.Int64).cum_sum().over("stream")
    began = pl.col("ts").filter("above").min().over("stream", "run")
    opens = pl.col("above") & (pl.col("ts") - pl.col("began") >= rule.for_s)
    return (
        values.sort("stream", "ts")
        .with_columns(value.alias("value"))
        .with_columns(above.alias("above"))
        .with_columns(run.alias("run"))
        .with_columns(began.alias("began"))
        .with_columns(
            opens.fill_null(value=False).alias("opens"),
            (pl.col("value") <= rule.clear).fill_null(value=False).alias("clears"),
            pl.col("stream").alias("subject"),
            pl.col("stream").alias("about"),
        )
        .filter(pl.col("opens") | pl.col("clears"))
        .select(MARKS.names())
    )


def event_marks(documents: pl.DataFrame, rule: AlertRule) -> pl.DataFrame:
    """Return the marks of event documents: an alert is open from a size on until the event closes.

    Reads the columns of `toolkit.tables.EVENT`. The size is the larger of ``magnitude_pct`` and
    ``peak_pct`` (percent), for funding of ``differential_pct_8h`` (percent per 8 hours). A document
    that closes its event opens nothing.
    """
    closes = (pl.col("lifecycle") == "closed").fill_null(value=False) | pl.col(
        "event_type"
    ).str.split(".").list.last().is_in(_CLOSING).fill_null(value=False)
    size = pl.max_horizontal("magnitude_pct", "peak_pct", pl.col("differential_pct_8h").abs())
    wanted = pl.col("symbol").is_in(rule.symbols) if rule.symbols else pl.lit(value=True)
    return (
        documents.filter(wanted)
        .select(
            subject="event_id",
            stream="events/" + pl.col("family"),
            about=pl.concat_str("symbol", *_LEGS, "event_type", separator=" ", ignore_nulls=True),
            ts="ts",
            value=size,
            opens=~closes & (size >= rule.level).fill_null(value=False),
            clears=closes,
        )
        .filter(pl.col("opens") | pl.col("clears"))
        .sort("subject", "ts", "clears")
    )


def threshold_marks(values: Mapping[str, float | None], rule: AlertRule, now: int) -> pl.DataFrame:
    """Return the marks of values that are polled: ages, or seconds until a loss.

    ``values`` are those at ``now`` (s) by stream. An age opens above its rule's level, a loss at it
    or below. Otherwise, and without a value, it is over.

    >>> rule = AlertRule.of({"name": "a", "kind": "stale", "older_than": "10m"})
    >>> threshold_marks({"s": 900.0, "t": 600.0}, rule, 5).select("subject", "opens").rows()
    [('s', True), ('t', False)]
    """
    loss = rule.kind is AlertKind.LOSS
    rows = [
        (key, key, key, now, value, opens, not opens)
        for key, value in values.items()
        for opens in [value is not None and (value <= rule.level if loss else value > rule.level)]
    ]
    return pl.DataFrame(rows, schema=MARKS, orient="row")


def transitions(marks: pl.DataFrame, opened: frozenset[str] | set[str]) -> pl.DataFrame:
    """Return the marks that change something, with ``change``: opened or cleared.

    Marks of one subject are taken by ts, at equal times the opening first. ``opened`` are the
    subjects with an open alert.

    >>> marks = pl.DataFrame({"subject": ["s"] * 3, "stream": ["s"] * 3, "about": ["s"] * 3,
    ...     "ts": [0, 60, 120], "value": [9.0, 9.0, 1.0],
    ...     "opens": [True, True, False], "clears": [False, False, True]})
    >>> transitions(marks, set()).select("ts", "change").rows()
    [(0, 'opened'), (120, 'cleared')]
    >>> transitions(marks, {"s"}).select("ts", "change").rows()
    [(120, 'cleared')]
    """
    before = pl.col("subject").is_in(list(opened))
    return (
        marks.sort("subject", "ts", "clears", maintain_order=True)
        .with_columns(was=pl.col("opens").shift(1).over("subject"))
        .with_columns(was=pl.coalesce("was", before))
        .filter(pl.col("opens") != pl.col("was"))
        .with_columns(
            change=pl.when("opens")
            .then(pl.lit(AlertChange.OPENED.value))
            .otherwise(pl.lit(AlertChange.CLEARED.value))
        )
        .select("subject", "stream", "about", "ts", "value", "change")
        .sort("ts", "subject", maintain_order=True)
    )
