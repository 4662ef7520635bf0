"""Pairs of any two prices that a store holds: a link asks for one by its key, as `rail stats`."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from toolkit.dashboard.reading import Held
from toolkit.errors import InputError
from toolkit.market import Pair


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
