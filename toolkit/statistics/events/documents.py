"""Event documents: their role, the event each belongs to, and the channels by which they came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import polars as pl

from toolkit.analyses import analysis
from toolkit.columns import described, schema_of
from toolkit.errors import InputError
from toolkit.intervals import Interval, clip, intersection, total_s, union
from toolkit.market import LIFECYCLE_ROLES, TYPE_ROLES, EventFamily, EventRole, When
from toolkit.reasons import Reason
from toolkit.statistics.core.categories import with_categories
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_frame,
    checked_types,
    collected,
    first_reason,
)
from toolkit.statistics.core.windows import documents_extent, window_of
from toolkit.statistics.numeric.arrays import Integers
from toolkit.statistics.numeric.tails import share_columns


@described("events.detections")
def detections(events: pl.DataFrame, *, placed: bool = True) -> pl.DataFrame:
    """List the openings of events: when, in which trajectory, in which direction, how large.

    ``events`` are rows of `toolkit.store.Store.events` of any families, in any order. Events
    without an opening document are left out, and one that opens again has a row each time. Sorted
    by time:

    {columns}

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
    """Build the key of an event's trajectory from its family, symbol and legs."""
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
    """Build whether a document's event type opens an event."""
    return (_role_of_type() == EventRole.OPENS).fill_null(value=False).alias("opens")


def identified(events: Rows) -> Rows:
    """Add to event documents the event each belongs to, its legs, its size and its role.

    ``events`` are rows of `toolkit.store.Store.events`, of any families, and keep their order.
    Columns of sizes may be missing. Four columns are added:

    - ``event`` (String): shared by all documents of one event of a family: ``event_id``, or symbol
      and legs if it begins with ``sha256:``, as made for one document. As a pump and a dump of one
      leg that overlap are then one event, its lifetimes are null.
    - ``legs`` (String): the legs in words, null if the document has none.
    - ``size`` (Float64): the largest spread so far, else the magnitude (both percent), else the
      differential (percent per 8 h), else null.
    - ``role`` (String): a `toolkit.market.EventRole`, null if neither event type nor lifecycle is
      known.
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
    """Build whether an ``event_id`` was made because none was sent."""
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
    kind = pl.col("event_type").cast(pl.Categorical)
    return pl.coalesce(
        pl.when((kind == word) | kind.cat.ends_with(f".{word}")).then(_category(role))
        for word, role in TYPE_ROLES.items()
    )


def _category(role: EventRole) -> pl.Expr:
    return pl.lit(role.value, pl.Categorical)


_KEY = ("event_id", "event_type", "ts_ms")
_ARRIVALS = {
    **dict.fromkeys(("family", "event_id", "event_type"), "String"),
    **dict.fromkeys(("ts_ms", "arrived_ms"), "Int64"),
}
_HELD = {"channel": "String", "family": "String", "start_ts": "Int64", "end_ts": "Int64"}
_LATENCY = {"q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
_LEAD = {"q05": 0.05, "median": 0.5, "q95": 0.95}


@analysis(
    "events.channels",
    """
        n n_doubled n_lost lost_share lost_share_lower lost_share_upper latency_median_s
        latency_q95_s n_first n_compared lead_median_s n_early coverage""",
    key=("family", "channel", "other"),
    title="When events came by {channels}",
    about="""
        A store records the channels by which each event document came, so fill it by
        several: by `rail sync` or `rail follow`, which also ask the archive, and by `rail
        webhook`. A document counts if both channels were open: the archive while its log is
        covered, others from the first document of a run to its last. Latencies are by this
        machine's clock. A sync fetches a log only when you call it.""",
)
def channels(
    arrivals: Frame | Mapping[str, Frame],
    start: When | None = None,
    end: When | None = None,
    *,
    held: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Compare channels: which documents each lost, how many it doubled, how late, which is first.

    ``arrivals`` has one row per delivery: ``channel``, ``family``, ``event_id``, ``event_type``
    (String, may be null), ``ts_ms`` (Int64, when it happened, Unix UTC) and ``arrived_ms`` (Int64,
    Unix UTC, null if not known). Or it maps channel names to such rows. A column ``n_deliveries``
    (Int64) counts the deliveries of a row, null if not counted. Rows equal in family, event_id,
    event_type and ts_ms are one document, whose first delivery is its arrival.

    For one store: ``channels(store.arrivals("spread", window))``, with
    `toolkit.store.Store.arrivals`. A socket's message has its time of arrival, other documents that
    of their commit. Latencies have the error of the local clock. Differences of two channels on one
    machine do not.

    ``held`` has the stretches in which channels were open: ``channel``, ``family`` (String),
    ``start_ts`` and ``end_ts`` (Int64, s, half-open). A channel without a row is taken as open from
    its first to its last document of the family. A document counts only if both channels were open
    when it happened. One row per family and ordered pair of channels, sorted:

    {columns}

    Raises `InputError`: Fewer than two channels. A family, an event_id or a ts_ms is null. There is
    neither a window nor a document.

    >>> ids = {"family": ["spread"] * 3, "event_id": ["a", "b", "c"], "event_type": ["o"] * 3,
    ...     "ts_ms": [1_000, 2_000, 3_000]}
    >>> archive = pl.DataFrame(ids | {"arrived_ms": [9_000, 9_000, 9_000]})
    >>> hook = pl.DataFrame(ids | {"arrived_ms": [1_200, 2_300, 3_200]})[[0, 0, 2]]
    >>> found = channels({"rest": archive, "webhook": hook})
    >>> found.select("channel", "n", "n_lost", "n_doubled", "latency_median_s", "n_first").rows()
    [('rest', 3, 0, 0, 7.0, 0), ('webhook', 2, 1, 1, 0.2, 2)]
    """
    if not isinstance(arrivals, Mapping):
        checked_types(arrivals, {"channel": "String"}, parameter="arrivals")
        parts = collected(arrivals).partition_by("channel", as_dict=True)
        arrivals = {str(name): part for (name,), part in sorted(parts.items())}
    documents = _documents(arrivals)
    edges = [part["ts"] for parts in documents.values() for part in parts.values()]
    times = [edge for ts in edges for edge in (ts.min(), ts.max())]
    known = pl.DataFrame({"ts": times}, schema={"ts": pl.Int64})
    window = window_of(known, start, end, documents_extent)
    if held is not None:
        checked_types(held, _HELD, parameter="held")
    rows = [
        row
        for family, parts in documents.items()
        for row in _pairs(family, parts, _open(family, parts, held), list(arrivals), window)
    ]
    found = pl.DataFrame(rows, schema=schema_of("events.channels"))
    return found.sort("family", "channel", "other").with_columns(
        *share_columns("n_lost", "n_other", "lost_share"),
        *Question("events.channels/1", *window).columns,
        doubled_reason=first_reason({Reason.NOT_NOTED: pl.col("n_doubled").is_null()}),
        latency_reason=first_reason({Reason.EMPTY: pl.col("n_timed") == 0}),
        lead_reason=first_reason({Reason.EMPTY: pl.col("n_compared") == 0}),
        coverage=pl.col("held_s") / pl.lit(window.length_s, pl.Int64),
    )


def _documents(arrivals: Mapping[str, Frame]) -> dict[str, dict[str, pl.DataFrame]]:
    if len(arrivals) < 2:
        raise InputError("arrivals", ", ".join(arrivals) or None, "two channels or more")
    found: dict[str, dict[str, pl.DataFrame]] = {}
    for name, frame in arrivals.items():
        checked_types(frame, _ARRIVALS, parameter=f"arrivals of {name}")
        counted = "n_deliveries" in frame.collect_schema()
        times = pl.col("n_deliveries").cast(pl.Int64) if counted else pl.lit(1, pl.Int64)
        came = frame.lazy().select(*_ARRIVALS, times.alias("n_deliveries"))
        rows = with_categories(came, but=["event_id"])
        for column in ("family", "event_id", "ts_ms"):
            if rows[column].null_count():
                raise InputError(f"arrivals of {name}", f"a null {column}", "rows that have one")
        parts = rows.partition_by("family", as_dict=True, include_key=False)
        del rows
        for (family,), part in parts.items():
            once = _once_each(part).with_columns(ts=pl.col("ts_ms") // 1_000)
            found.setdefault(str(family), {})[name] = once
    return found


def _once_each(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per document of a channel: first arrival and number of deliveries."""
    # by number, as to group all documents takes more memory: what comes once may be among these
    number = rows.select(_KEY).hash_rows()
    ordered = number.sort()
    repeated = number.is_in(ordered.filter(ordered == ordered.shift(1)))
    uncounted = pl.col("n_deliveries").is_null().any()
    first = (
        rows.filter(repeated)
        .group_by(_KEY)
        .agg(
            pl.col("arrived_ms").min(),
            pl.when(~uncounted).then(pl.col("n_deliveries").sum()).alias("n_deliveries"),
        )
    )
    return pl.concat([rows.filter(~repeated), first.select(rows.columns)])


def _open(
    family: str, documents: Mapping[str, pl.DataFrame], held: pl.DataFrame | None
) -> dict[str, list[Interval]]:
    edges = (pl.col("ts").min(), (pl.col("ts").max() + 1).alias("end_ts"))
    found = {name: [Interval(*part.select(edges).row(0))] for name, part in documents.items()}
    if held is None:
        return found
    known = held.filter(family=family).select("channel", "start_ts", "end_ts")
    for (name,), part in known.partition_by("channel", as_dict=True, include_key=False).items():
        found[str(name)] = union(part.iter_rows())
    return found


def _pairs(
    family: str,
    documents: Mapping[str, pl.DataFrame],
    opened: Mapping[str, list[Interval]],
    names: list[str],
    window: Interval,
) -> Iterator[dict[str, Any]]:
    none = next(iter(documents.values())).clear()
    for pair in combinations(names, 2):
        both = clip(intersection(*(opened.get(name, []) for name in pair)), window)
        seen = [documents.get(name, none) for name in pair]
        seen = [part.filter(_inside(part["ts"].to_numpy(), both)) for part in seen]
        own, others = (part.lazy().select(*_KEY, "arrived_ms") for part in seen)
        matched = own.join(others, on=_KEY, nulls_equal=True, suffix="_other")
        later_ms = pl.col("arrived_ms_other") - pl.col("arrived_ms")
        later = matched.select(later_ms).collect().to_series()
        lead_ms = later.drop_nulls()
        shared = {"family": family, "n_both": later.len(), "held_s": total_s(both)}
        for (channel, other), parts, sooner in (
            (pair, seen, lead_ms),
            (pair[::-1], seen[::-1], -lead_ms),
        ):
            yield (
                {**shared, "channel": channel, "other": other, "n_other": parts[1].height}
                | {"n_lost": parts[1].height - later.len()}
                | _arrived(parts[0])
                | {"n_compared": sooner.len(), "n_first": int((sooner > 0).sum())}
                | _quantiles_s(_LEAD, "lead", sooner)
            )


def _arrived(documents: pl.DataFrame) -> dict[str, Any]:
    uncounted = documents["n_deliveries"].null_count() > 0
    latency_ms = (documents["arrived_ms"] - documents["ts_ms"]).drop_nulls()
    return (
        {"n": documents.height}
        | {"n_doubled": None if uncounted else documents["n_deliveries"].sum() - documents.height}
        | {"n_timed": latency_ms.len(), "n_early": int((latency_ms < 0).sum())}
        | _quantiles_s(_LATENCY, "latency", latency_ms)
    )


def _quantiles_s(levels: Mapping[str, float], name: str, waits_ms: pl.Series) -> dict[str, Any]:
    found = {level: waits_ms.quantile(share, "linear") for level, share in levels.items()}
    return {f"{name}_{level}_s": None if ms is None else ms / 1_000 for level, ms in found.items()}


def _inside(times: Integers, stretches: list[Interval]) -> pl.Series:
    edges = np.array([edge for stretch in stretches for edge in stretch], dtype=np.int64)
    return pl.Series(np.searchsorted(edges, times, side="right") % 2 == 1)
