"""Pairing of event documents, in the order they happened, into lifecycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from toolkit.market import EventRole
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import collected, first_reason
from toolkit.statistics.events.documents import made_id

UNKNOWN = "unknown"
"""The role of a document without a known word, and the kind of a lifecycle of such alone."""
COUNTS = ("n", "n_updates", "n_duplicates", "n_ts_differs", "n_unknown")
_PARTS = 16

SKEW_S = 60
"""How far a close may be stamped before the opening that arrived before it (s)."""


def whole_events(
    batches: Iterable[pl.DataFrame], key: str, most: int = 100_000
) -> Iterator[pl.DataFrame]:
    """Distribute batches of documents over parts of about ``most`` rows that split no event.

    ``key`` is a column that documents of one event share. They keep their order.

    >>> batches = pl.DataFrame({"event": ["a", "b"]}), pl.DataFrame({"event": ["a"]})
    >>> [sorted(part["event"]) for part in whole_events(batches, "event")]
    [['a', 'a', 'b']]
    """
    dealt: list[list[pl.DataFrame]] = [[] for _ in range(_PARTS)]
    for batch in batches:
        others = batch.drop(key).select(pl.col(pl.String))
        same = [each.name for each in others if each.equals(batch[key])]
        columns = [pl.col(key if name in same else name).alias(name) for name in batch.columns]
        number_of = pl.col(key).hash() % _PARTS
        for (number,), rows in batch.drop(same).group_by(number_of, maintain_order=True):
            dealt[number].append(rows.select(columns))
    part = [batch.clear()]
    while dealt:
        part += dealt.pop()
        if part and (not dealt or sum(map(len, part)) >= most):
            whole, part = pl.concat(part, rechunk=True), []
            yield whole
            del whole


def paired(
    documents: pl.DataFrame, names: list[str], start: int, shown: Sequence[str] = ()
) -> pl.DataFrame:
    """Return the lifecycles not over before ``start``, in no order, with their words as categories.

    A document that opens, and one after a close, begin a lifecycle. The columns ``shown`` and the
    time ``since`` (s) are those of its first document. `COUNTS` have 32 bits, and ``observed`` is
    Boolean. There is no duration if the ``event_id``, in ``names`` or ``shown``, was made.
    """
    made = made_id() if "event_id" in (*names, *shown) else pl.lit(value=False)
    found = _unskewed(_grouped(_once_each(documents, names), names, shown))
    continues = (pl.col("key") == pl.col("key").shift(-1)).fill_null(value=False)
    opened, closed = pl.col("opened"), pl.col("closed")
    kind = (
        pl.when(opened & closed)
        .then(pl.lit("closed"))
        .when(opened & continues)
        .then(pl.lit("reopened"))
        .when(opened)
        .then(pl.lit("open"))
        .when(closed)
        .then(pl.lit("orphan_close"))
        .when("unknown")
        .then(pl.lit("unknown"))
        .otherwise(pl.lit("orphan_update"))
    )
    until_ms = (
        pl.when("skewed")
        .then("first_ms")
        .when(closed)
        .then("last_ms")
        .when(continues)
        .then(pl.col("first_ms").shift(-1))
    )
    known = collected(
        found.with_columns(
            kind.alias("kind"),
            until_ms.otherwise(1000 * pl.col("known_until")).alias("until_ms"),
            pl.col("coarse_first").shift(-1).alias("coarse_next"),
        ).filter(pl.col("until_ms") >= 1000 * start)
    )
    # a column, as polars divides one by a single number through its rounded reciprocal
    second = pl.Series("second_ms", [1000] * known.height, dtype=pl.Int64)
    words = pl.col("kind", "lifecycle_reason", "unknown_types", "peak_reason")
    return (
        known.with_columns(second)
        .select(*_lifecycle_columns(names, start, made), *shown, since="first_ts")
        .with_columns(words.cast(pl.Categorical))
    )


def _once_each(documents: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Sort documents by their ``key``, a number, and time, each once, with its ``copies``."""
    differs = ((pl.col("ts_ms") - 1000 * pl.col("ts")).abs() > 1000).fill_null(value=False)
    rows = documents.with_row_index("key").with_columns(
        pl.col("key").first().over(names), pl.when(~differs).then("ts_ms"), ts_differs=differs
    )
    rows = rows.with_columns(at_ms=pl.coalesce("ts_ms", 1000 * pl.col("ts"))).sort(
        "key", "at_ms", "arrival", "event_type", "value", maintain_order=True
    )
    repeats = (pl.col(name) == pl.col(name).shift(1) for name in ("key", "at_ms"))
    same = pl.all_horizontal(repeats).fill_null(value=False)
    tied = same | same.shift(-1, fill_value=False)
    near = rows.with_row_index("number").filter(tied)
    alike = (*names, "event_type", "lifecycle", "role", "ts", "ts_ms", "ts_differs", "value")
    first = near.group_by(alike).agg(pl.col("number").min(), copies=pl.len().cast(pl.Int64) - 1)
    copies = rows.select(copies=-tied.cast(pl.Int64)).to_series()
    return rows.with_columns(copies.scatter(first["number"], first["copies"])).filter(
        pl.col("copies") >= 0
    )


def _grouped(documents: pl.DataFrame, names: list[str], shown: Sequence[str]) -> pl.DataFrame:
    role, at_ms, words = pl.col("role"), pl.col("at_ms"), pl.col("event_type").cast(pl.String)
    another = pl.col("key") != pl.col("key").shift(1)
    begins = (role == EventRole.OPENS) | (role.shift(1) == EventRole.CLOSES) | another
    begins = begins.fill_null(value=True)
    first = documents.select(begins.arg_true()).to_series()
    last = first.shift(-1, fill_value=documents.height) - 1
    at = first.to_numpy()

    def counted(rows: pl.Expr) -> pl.Series:
        one = documents.select(rows.cast(pl.UInt32)).to_series().to_numpy()
        return pl.Series(np.add.reduceat(one, at, dtype=np.uint32))

    strange = (
        documents.select("event_type", "role", number=begins.cum_sum())
        .filter(role == UNKNOWN)
        .group_by("number")
        .agg(words.unique().sort().str.join(", ").alias("unknown_types"))
    )
    size = documents["value"].abs().fill_null(-1.0).to_numpy()
    largest = np.maximum.reduceat(size, at)
    furthest = np.flatnonzero(size == np.repeat(largest, last - first + 1))
    return (
        documents.select(
            pl.col("key", "known_until", "arrival", *names, *shown).gather(first),
            (role.gather(first) == EventRole.OPENS).alias("opened"),
            (role.gather(last) == EventRole.CLOSES).alias("closed"),
            at_ms.gather(first).alias("first_ms"),
            at_ms.gather(last).alias("last_ms"),
            pl.col("ts").gather(first).alias("first_ts"),
            pl.col("ts").gather(last).alias("last_ts"),
            pl.col("ts_ms").gather(first).is_null().alias("coarse_first"),
            pl.col("ts_ms").gather(last).is_null().alias("coarse_last"),
            (last - first + 1).alias("n"),
            n_updates=counted(role == EventRole.UPDATES),
            n_duplicates=counted(pl.col("copies")),
            n_ts_differs=counted(pl.col("ts_differs")),
            n_unknown=counted(role == UNKNOWN),
            peak=pl.col("value").gather(furthest[np.searchsorted(furthest, at)]),
        )
        .with_row_index("number", 1)
        .with_columns((pl.col("n") == pl.col("n_unknown")).alias("unknown"))
        .join(strange, on="number", how="left", maintain_order="left")
    )


def _unskewed(found: pl.DataFrame) -> pl.LazyFrame:
    """Join a close to the opening right after it that arrived first: its clock runs behind.

    The lifecycle is closed and ``skewed``: it has no duration.
    """
    same = pl.col("key") == pl.col("key").shift(1)
    lone_close = (~pl.col("opened") & pl.col("closed") & (pl.col("n") == 1)).shift(1)
    near = pl.col("first_ms") - pl.col("last_ms").shift(1) <= 1000 * SKEW_S
    later = pl.col("arrival").shift(1) > pl.col("arrival")
    skewed = (same & lone_close & near & later & pl.col("opened") & ~pl.col("closed")).fill_null(
        value=False
    )
    sums = ("n", "n_duplicates", "n_ts_differs")
    joined = pl.col("skewed")
    return (
        found.lazy()
        .with_columns(skewed.alias("skewed"))
        .with_columns(
            joined.shift(-1).fill_null(value=False).alias("taken"),
            (joined | pl.col("closed")).alias("closed"),
            pl.when(joined).then(pl.col("last_ts").shift(1)).otherwise("last_ts").alias("last_ts"),
            *(
                pl.col(name) + pl.when(joined).then(pl.col(name).shift(1)).otherwise(0)
                for name in sums
            ),
        )
        .filter(~pl.col("taken"))
    )


def _lifecycle_columns(names: list[str], start: int, made: pl.Expr) -> list[pl.Expr]:
    kind, opened, closed = pl.col("kind"), pl.col("opened"), pl.col("closed")
    coarse = pl.col("coarse_first") | pl.when(kind == "reopened").then("coarse_next").otherwise(
        "coarse_last"
    )
    known = ~pl.col("skewed") & ~made
    elapsed_ms = pl.when(opened & known).then(pl.col("until_ms") - pl.col("first_ms"))
    half_ms = pl.when(coarse).then(500.0).otherwise(0.5)
    before_ms = (1000 * start - pl.col("first_ms")).clip(lower_bound=0)
    lasted_ms = pl.when(elapsed_ms == 0).then(half_ms).otherwise(elapsed_ms)
    return [
        *map(pl.col, names),
        pl.when(opened).then("first_ts").alias("t_open"),
        pl.when(closed).then("last_ts").alias("t_close"),
        (lasted_ms / pl.col("second_ms")).alias("duration_s"),
        (pl.when(elapsed_ms.is_not_null()).then(before_ms) / pl.col("second_ms")).alias("entry_s"),
        ((kind == "closed") & known).alias("observed"),
        kind,
        first_reason(
            {
                Reason.TRUNCATED: ~opened,
                Reason.MADE_ID: made,
                Reason.CLOCK_SKEW: pl.col("skewed"),
                Reason.CENSORED: ~closed,
            }
        ).alias("lifecycle_reason"),
        (elapsed_ms == 0).fill_null(value=False).alias("zero_duration"),
        pl.col(COUNTS),
        pl.col("unknown_types").fill_null(""),
        pl.col("peak"),
        first_reason({Reason.EMPTY: pl.col("peak").is_null()}).alias("peak_reason"),
        pl.col("known_until"),
    ]
