"""Event documents: their role, and the event each belongs to."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from toolkit.columns import described
from toolkit.market import LIFECYCLE_ROLES, TYPE_ROLES, EventFamily, EventRole
from toolkit.statistics.core.contract import checked_frame, checked_types


@described("events.detections")
def detections(events: pl.DataFrame, *, placed: bool = True) -> pl.DataFrame:
    """List the openings of events: when, in which trajectory, in which direction, how large.

    ``events`` are rows of `toolkit.store.Store.events` of any families, in any order. Events
    without an opening document are left out, and one that opens again has a row each time. `study`,
    `placebo` and `follow_through` take the result. Sorted by time:

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
            *("size", "family", "symbol", "event"),
        )
        .unique(maintain_order=True)
        .sort("ts", "trajectory", "event")
    )
    return found.drop_nulls("trajectory") if placed else found


def with_direction(lives: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Add the direction of each event to lifecycles: -1 for a dump, else 1 (Float64).

    ``lives`` are rows of `event_lifecycles`, and ``events`` the documents they were paired from.
    Null for a splash whose opening is not among these. Rows keep their order.

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
    """Build the key of an event's trajectory from its family, symbol and legs.

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


Rows = TypeVar("Rows", pl.DataFrame, pl.LazyFrame)

_LEG_COLUMNS = ("buy_exchange", "buy_market", "sell_exchange", "sell_market")
_SIZES = ("peak_pct", "magnitude_pct", "differential_pct_8h")


def opens() -> pl.Expr:
    """Build the expression that is true if a document's event type opens an event.

    >>> types = ["spread.opened", "splash.pump", "splash.faded", None]
    >>> pl.DataFrame({"event_type": types}).select(opens())["opens"].to_list()
    [True, True, False, False]
    """
    return (_role_of_type() == EventRole.OPENS).fill_null(value=False).alias("opens")


def identified(events: Rows) -> Rows:
    """Add to event documents the event each belongs to, its legs, its size and its role.

    ``events`` are rows of `toolkit.store.Store.events`, of any families, and keep their order.
    Columns of sizes may be missing. Four columns are added:

    - ``event`` (String): shared by all documents of one event of a family: ``event_id`` if the
      service sent one. An id that begins with ``sha256:`` was made for one document, so symbol and
      legs replace it. A pump and a dump of one leg that overlap are then one event that opened
      twice: which close belongs to which is a guess, and lifetimes are null.
    - ``legs`` (String): the legs in words, null if the document has none.
    - ``size`` (Float64): the largest spread so far, else the magnitude (both percent), else the
      differential (percent per 8 h), else null.
    - ``role`` (String): a `toolkit.market.EventRole`, null without an event type, or if neither it
      nor the lifecycle is known.

    Raises
    ------
    InputError
        A column is missing or of another type.

    Examples
    --------
    >>> events = pl.DataFrame({"event_id": ["s1", "sha256:ab"], "symbol": "A_B",
    ...     "event_type": ["spread.opened", "splash.gone"], "lifecycle": ["open", "closed"],
    ...     "buy_exchange": "X", "buy_market": "spot", "sell_exchange": ["Y", None],
    ...     "sell_market": ["spot", None], "peak_pct": [None, 2.0], "magnitude_pct": [1.0, 1.0]})
    >>> identified(events).select("event", "legs", "size", "role").rows()
    [('s1', 'X.spot → Y.spot', 1.0, 'opens'), ('A_B X.spot', 'X.spot', 2.0, 'closes')]
    """
    words = ("event_id", "event_type", "lifecycle", "symbol", *_LEG_COLUMNS)
    checked_frame(events, "events")
    # A column without any value may come without a type.
    frame = events.with_columns(pl.col(pl.Null).cast(pl.String))
    checked_types(frame, dict.fromkeys(words, "String"))
    sides = [
        pl.when(pl.col(f"{side}_exchange").is_not_null()).then(
            pl.concat_str(f"{side}_exchange", f"{side}_market", separator=".", ignore_nulls=True)
        )
        for side in ("buy", "sell")
    ]
    legs = pl.concat_str(*sides, separator=" → ", ignore_nulls=True)
    place = pl.concat_str("symbol", "legs", separator=" ", ignore_nulls=True)
    hashed = made_id()
    sizes = [pl.col(name).cast(pl.Float64) for name in _SIZES if name in frame.collect_schema()]
    return frame.with_columns(event="event_id", legs=legs).with_columns(
        pl.when(hashed).then(place).otherwise("event").alias("event"),
        pl.when(pl.col("legs") != "").then("legs").alias("legs"),
        pl.coalesce(*sizes, pl.lit(None, pl.Float64)).alias("size"),
        event_role().cast(pl.String),
    )


def made_id() -> pl.Expr:
    """Build the expression that is true if an ``event_id`` was made because none was sent."""
    return pl.col("event_id").cast(pl.String).str.starts_with("sha256:").fill_null(value=False)


def event_role() -> pl.Expr:
    """Build a document's role, a category, null if its words are not known."""
    lifecycle = pl.col("lifecycle").cast(pl.Categorical)
    of_lifecycle = (
        pl.when(lifecycle == word).then(_category(role)) for word, role in LIFECYCLE_ROLES.items()
    )
    known = pl.col("event_type").is_not_null()
    return pl.when(known).then(pl.coalesce(_role_of_type(), *of_lifecycle)).alias("role")


def _role_of_type() -> pl.Expr:
    """Build the role of the last word of an event type, once per category."""
    kind = pl.col("event_type").cast(pl.Categorical)
    return pl.coalesce(
        pl.when((kind == word) | kind.cat.ends_with(f".{word}")).then(_category(role))
        for word, role in TYPE_ROLES.items()
    )


def _category(role: EventRole) -> pl.Expr:
    return pl.lit(role.value, pl.Categorical)
