"""When events became known, and in which trajectory to look for what followed."""

from __future__ import annotations

import polars as pl

from toolkit.columns import described
from toolkit.market import EventFamily, EventRole
from toolkit.statistics.event_documents import identified


@described("events.detections")
def detections(events: pl.DataFrame, *, placed: bool = True) -> pl.DataFrame:
    """List the events that were seen to open: when, in which trajectory, which way, how large.

    ``events`` are rows of `toolkit.store.Store.events` of any families, in any order. `study`,
    `placebo` and `follow_through` take the result. An event whose opening is not among the
    documents is left out: when it became known is not known. One that opens again is there again.
    One row per opening, sorted by time:

    {columns}

    Raises
    ------
    InputError
        A column is missing or of another type.

    Examples
    --------
    >>> events = pl.DataFrame({"family": ["splash"], "event_id": ["s1"], "symbol": ["A_USDT"],
    ...     "event_type": ["splash.dump"], "lifecycle": [None], "ts": [60], "buy_exchange": ["X"],
    ...     "buy_market": ["spot"], "sell_exchange": [None], "sell_market": [None]})
    >>> detections(events).select("trajectory", "ts", "direction").row(0)
    ('A_USDT:X.spot', 60, -1.0)
    """
    known = events if "event" in events.columns else identified(events)
    dump = pl.col("event_type").str.split(".").list.last() == "dump"
    found = (
        known.filter(pl.col("role") == EventRole.OPENS.value)
        .select(
            trajectory_of(),
            "ts",
            pl.when(dump).then(-1.0).otherwise(1.0).alias("direction"),
            "size",
            "family",
            "symbol",
            "event",
        )
        .unique(maintain_order=True)
        .sort("ts", "trajectory", "event")
    )
    return found.drop_nulls("trajectory") if placed else found


def with_direction(lives: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Add to lifecycles which way each event went: -1 of a dump, 1 of any other (Float64).

    ``lives`` are rows of `event_lifecycles`, and ``events`` the documents that they were paired
    from. Null where the opening of a splash is not among these. Rows keep their order.

    >>> events = pl.DataFrame({"family": ["splash"], "event_id": ["s1"], "symbol": ["A_USDT"],
    ...     "event_type": ["splash.dump"], "lifecycle": [None], "ts": [60], "buy_exchange": ["X"],
    ...     "buy_market": ["spot"], "sell_exchange": [None], "sell_market": [None]})
    >>> lives = pl.DataFrame({"family": ["splash"], "event": ["s1"], "t_open": [60]})
    >>> with_direction(lives, events)["direction"].to_list()
    [-1.0]
    """
    key = ["family", "event", "t_open"]
    known = detections(events).select("family", "event", "direction", t_open="ts")
    splash = pl.col("family") == EventFamily.SPLASH.value
    return lives.join(
        known.unique(key, keep="first", maintain_order=True),
        on=key,
        how="left",
        maintain_order="left",
    ).with_columns(pl.when(splash).then("direction").otherwise(1.0).alias("direction"))


def trajectory_of() -> pl.Expr:
    """Build the key of the trajectory of an event, from its family, symbol and legs.

    >>> event = {"family": ["funding"], "symbol": ["A_B"], "legs": ["X.spot → Y.futures"]}
    >>> pl.DataFrame(event).select(trajectory_of()).item()
    'funding/A_B:X.spot:Y.futures'
    """
    family, legs = pl.col("family"), pl.col("legs")
    prefix = pl.when(family == EventFamily.FUNDING.value).then(pl.lit("funding/"))
    key = (
        prefix.otherwise(pl.lit("")),
        "symbol",
        pl.lit(":"),
        legs.str.replace(" → ", ":", literal=True),
    )
    has_two = family.is_in([EventFamily.FUNDING.value, EventFamily.SPREAD.value])
    fits = legs.str.contains(" → ", literal=True) == has_two
    return pl.when(fits).then(pl.concat_str(*key)).alias("trajectory")
