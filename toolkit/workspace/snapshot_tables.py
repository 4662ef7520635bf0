"""Snapshots as tables: open spreads and funding rates in force, as stored.

Malformed items are left out: see `toolkit.wire.rows.snapshot_rows.snapshot_items`.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from toolkit.market import swapped
from toolkit.statistics.funding.dispersion import highest_leg, lowest_leg
from toolkit.statistics.funding.rates_in_force import with_apr
from toolkit.store.reading.lookup import held_key
from toolkit.wire.rows.snapshot_rows import ITEM_FIELDS, snapshot_items

_TYPES: dict[type, type[pl.DataType]] = {str: pl.String, float: pl.Float64, int: pl.Int64}


def open_spreads(document: str) -> pl.DataFrame:
    """Read the spreads of a ``dashboards/spread`` answer, the widest first.

    Columns: symbol, buy_exchange, buy_market, sell_exchange, sell_market, spread_pct (percent,
    100 (sell / buy - 1)), opened_at (s UTC, null where no event opened it), buy and sell (legs),
    trajectory (key).

    >>> document = '''{"items": [{"symbol": "BTC_USD", "buy_exchange": "X", "buy_market": "spot",
    ...     "sell_exchange": "Y", "sell_market": "dex", "spread_pct": 2, "opened_at": null}]}'''
    >>> open_spreads(document).select("trajectory", "spread_pct", "opened_at").row(0)
    ('BTC_USD:X.spot:Y.dex', 2.0, None)
    """
    rows = _items("spread", document).with_columns(
        buy=pl.format("{}.{}", "buy_exchange", "buy_market"),
        sell=pl.format("{}.{}", "sell_exchange", "sell_market"),
    )
    rows = rows.with_columns(trajectory=pl.format("{}:{}:{}", "symbol", "buy", "sell"))
    return rows.drop_nulls(["trajectory", "spread_pct"]).sort(
        "spread_pct", "trajectory", descending=[True, False]
    )


def funding_rates(document: str) -> pl.DataFrame:
    """Read the rates of a ``dashboards/funding-overview`` answer, the highest per year first.

    Columns: symbol, exchange, market, rate (fraction per interval, positive: longs pay shorts),
    interval_hours, next_funding_time (s UTC), leg, rate_pct_8h (percent per 8 h) and apr_pct
    (percent, a year of 8760 h, simple). Items without rate or interval are left out.

    >>> document = '''{"items": [{"symbol": "BTC_USD", "exchange": "X", "market": "futures",
    ...     "rate": 0.125, "interval_hours": 4, "next_funding_time": 0}]}'''
    >>> funding_rates(document).select("leg", "rate_pct_8h", "apr_pct").row(0)
    ('X.futures', 25.0, 27375.0)
    """
    rows = _items("funding", document).filter(pl.col("interval_hours") > 0).drop_nulls(["rate"])
    rows = rows.with_columns(leg=pl.format("{}.{}", "exchange", "market"))
    return (
        with_apr(rows)
        .rename({"funding_apr_pct": "apr_pct"})
        .sort("apr_pct", "symbol", "leg", descending=[True, False, False])
    )


def widest_differentials(rates: pl.DataFrame) -> pl.DataFrame:
    """Find each symbol's lowest and highest rate on two legs or more, the widest apart first.

    Columns: symbol, buy (the leg of the lowest rate), sell (of the highest), differential_pct_8h
    (percent per 8 h, sell - buy) and differential_apr_pct (percent a year), legs (count),
    trajectory (key). See `toolkit.statistics.funding.dispersion` for ties.

    >>> rates = pl.DataFrame({"symbol": ["A_B", "A_B"], "leg": ["X.futures", "Y.futures"],
    ...                       "rate_pct_8h": [0.5, 0.25], "apr_pct": [30.0, 10.0]})
    >>> widest_differentials(rates).row(0)
    ('A_B', 'Y.futures', 'X.futures', 0.25, 20.0, 2,
     'funding/A_B:Y.futures:X.futures')
    """
    leg, apr = pl.col("leg"), pl.col("apr_pct")
    found = (
        rates.group_by("symbol", maintain_order=True)
        .agg(
            lowest_leg(leg, apr).alias("buy"),
            highest_leg(leg, apr).alias("sell"),
            (pl.col("rate_pct_8h").max() - pl.col("rate_pct_8h").min()).alias(
                "differential_pct_8h"
            ),
            (apr.max() - apr.min()).alias("differential_apr_pct"),
            pl.len().cast(pl.Int64).alias("legs"),
        )
        .filter(pl.col("legs") > 1)
    )
    trajectory = pl.format("funding/{}:{}:{}", "symbol", "buy", "sell").alias("trajectory")
    return found.with_columns(trajectory).sort(
        "differential_apr_pct", "symbol", descending=[True, False]
    )


def _items(kind: str, document: str) -> pl.DataFrame:
    items = snapshot_items(kind, document).understood
    columns = {}
    for name, wanted in ITEM_FIELDS[kind].items():
        values = [item.get(name) for item in items]
        converted = [value if value is None else wanted(value) for value in values]
        columns[name] = pl.Series(name, converted, dtype=_TYPES[wanted])
    return pl.DataFrame(columns)


_KEPT = "snapshot-spread/"


def held_stream(key: str, held: Collection[str]) -> tuple[str, bool] | None:
    """Return the stored stream of a pair, and whether it has the other orientation.

    A loaded one comes before one from snapshots. None if neither is stored.

    >>> held_stream("A_B:X.spot:Y.spot", {"A_B:Y.spot:X.spot"})
    ('A_B:Y.spot:X.spot', True)
    """
    for prefix in ("", _KEPT):
        if (found := held_key(f"{prefix}{key}", held)) is not None:
            return found, found != f"{prefix}{key}"
    return None


def shown_as_held(rows: pl.DataFrame, held: Collection[str], *values: str) -> pl.DataFrame:
    """Turn the rows of pairs that are stored in the other orientation only. See `held_stream`.

    ``values`` are the columns (bps of the log spread) whose sign changes. ``rows`` has trajectory,
    buy and sell (String) and gets ``stream``, null if the pair is not stored.

    >>> rows = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"], "buy": ["X.spot"],
    ...                      "sell": ["Y.spot"], "bps": [30.0]})
    >>> shown_as_held(rows, {"A_B:Y.spot:X.spot"}, "bps").row(0)
    ('A_B:Y.spot:X.spot', 'Y.spot', 'X.spot', -30.0, 'A_B:Y.spot:X.spot')
    """
    asked = rows["trajectory"]
    found = [held_stream(key, held) for key in asked]
    turned = pl.Series([bool(each and each[1]) for each in found], dtype=pl.Boolean)
    keys = [swapped(key) if turns else key for key, turns in zip(asked, turned, strict=True)]
    other = pl.lit(turned)
    return rows.with_columns(
        pl.Series("trajectory", keys, pl.String),
        pl.when(other).then("sell").otherwise("buy").alias("buy"),
        pl.when(other).then("buy").otherwise("sell").alias("sell"),
        *(pl.when(other).then(-pl.col(name)).otherwise(name).alias(name) for name in values),
        pl.Series("stream", [each and each[0] for each in found], pl.String),
    )


def each_pair_once(rows: pl.DataFrame, ts: str) -> pl.DataFrame:
    """Keep one row per two legs, in either orientation: that of the newest ``ts`` (column, s UTC).

    For equal ``ts`` the first stays. Rows are sorted newest first.

    >>> rows = pl.DataFrame({"symbol": ["A_B", "A_B"], "buy": ["X.spot", "Y.dex"],
    ...     "sell": ["Y.dex", "X.spot"], "t_last": [60, 120]})
    >>> each_pair_once(rows, "t_last").rows()
    [('A_B', 'Y.dex', 'X.spot', 120)]
    """
    first, second = pl.min_horizontal("buy", "sell"), pl.max_horizontal("buy", "sell")
    newest = rows.sort(ts, descending=True, nulls_last=True, maintain_order=True)
    return newest.filter(pl.struct("symbol", first, second.alias("_second")).is_first_distinct())
