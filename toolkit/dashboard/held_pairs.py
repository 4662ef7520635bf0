"""Pairs of any two prices that a store holds: a link asks for one by its key, as `rail stats`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
from streamlit import cache_data

from toolkit.dashboard.reading import KEEP_S, WAIT_S, Held, StreamVersion
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Pair
from toolkit.statistics.spread import with_spread
from toolkit.store import Store
from toolkit.workspace.pairs import HeldPairs, Joining


def with_pair(held: Held, key: str | None) -> Held:
    """Add the pair that a key names to the streams, where its legs have time in common.

    It has the rows that they have in common, and counts those of both, so that a commit of either
    changes its version. A key of no pair, or of legs that are not held, adds nothing.
    """
    if key is None or not key.startswith("pair/"):
        return held
    try:
        two = Pair.parse(key)
        two.coins()
    except InputError:
        return held
    prices = {leg.key for leg in two.prices}
    legs = held.streams.filter(pl.col("stream").is_in(prices), pl.col("rows") > 0)
    joined = legs.select(
        pl.lit(two.key).alias("stream"),
        pl.lit(two.kind).alias("kind"),
        pl.col("rows", "revisions").sum(),
        pl.col("first_ts").max(),
        pl.col("last_ts").min(),
        pl.col("step_s", "delay_s").max(),
        pl.col("retention_s", "served_at", "asked_at", "answered_until").min(),
    ).select(held.streams.columns)
    if legs.height < len(prices) or joined["first_ts"][0] > joined["last_ts"][0]:
        return held
    return replace(held, streams=pl.concat([held.streams, joined]))


@cache_data(ttl=KEEP_S, max_entries=20, show_spinner="Reading the store")
def read_pair(
    path: Path, key: str, start: int, end: int, *, version: StreamVersion
) -> pl.DataFrame:
    """Read the rows of a pair, none where a leg has none in the window."""
    del version
    store, window = Store(path, wait_s=WAIT_S), Interval(start, end)
    try:
        (rows,) = HeldPairs.of(store, key, Joining()).groups(window)
    except EmptyWindowError:
        none = {"trajectory": pl.String(), "ts": pl.Int64()}
        prices = dict.fromkeys(("buy_price", "sell_price"), pl.Float64())
        return with_spread(pl.DataFrame(schema={**none, **prices}))
    return rows
