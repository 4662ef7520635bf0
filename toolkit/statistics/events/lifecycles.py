"""Lifecycles of events: the documents of event logs paired from opening to close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import EventRole, When
from toolkit.reasons import Reason
from toolkit.statistics.core.categories import batches_with_categories, in_order
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_column,
    checked_frame,
    checked_types,
    collected,
    first_reason,
    whole_number,
)
from toolkit.statistics.core.observations import observed
from toolkit.statistics.core.windows import LOOK_BACK_S, documents_extent, window_of
from toolkit.statistics.events.documents import event_role, identified, made_id

UNKNOWN = "unknown"
"""The role of a document without a known word, and the kind of a lifecycle of such alone."""
COUNTS = ("n", "n_updates", "n_duplicates", "n_ts_differs", "n_unknown")
_PARTS = 16

SKEW_S = 60
"""How far a close may be stamped before the opening that arrived before it (s)."""


def whole_events(
    batches: Iterable[pl.DataFrame], key: str, most: int = 100_000
) -> Iterator[pl.DataFrame]:
    """Distribute documents over parts of about ``most`` rows, each ``key`` in one and in order."""
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
    """Join a close to the opening right after it that arrived first: closed and ``skewed``."""
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


STILL_OPEN = ("open", "orphan_update")
"""The kinds of lifecycles without a close."""

_TYPES = {
    "family": "String",
    "event_type": "String",
    "lifecycle": "String",
    "ts": "Int64",
    "ts_ms": "Int64",
    "arrival": "integer",
}


def event_lifecycles(
    events: Frame, start: int, end: int, *, logs: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Pair the documents of event logs: one row per lifecycle that touches the window.

    ``events`` are rows of `toolkit.store.Store.events` of any families, read over
    `documents_window`, in any order, with or without the columns of
    `toolkit.statistics.events.documents.identified`. Documents without a known role are left out.

    ``logs`` has one row per event log, as from `toolkit.store.event_logs`: ``family`` and
    ``known_until`` (s, Unix UTC), from when on nothing is known of it. Families without a row, or
    with a null, are left out. By default all is known until ``end``.

    The columns are those of `lifecycles`, with ``event`` of `identified` as the key, and five more:
    ``symbol`` and ``legs`` (String, nullable), ``event_id`` (String, of the first document),
    ``size`` (Float64, of the opening document, null if not seen) and ``since`` (Int64, s, Unix UTC:
    ``t_open``, else the first document). Sorted by ``since``, newest first. `with_groups` adds
    columns for comparisons. Raises as `lifecycles`.

    >>> events = pl.DataFrame({"family": "spread", "event_id": ["s1", "s1"],
    ...     "event_type": ["spread.opened", "spread.closed"], "lifecycle": ["open", "closed"],
    ...     "ts": [10, 40], "ts_ms": [10_000, 40_000], "arrival": [0, 1], "symbol": "A_B",
    ...     "buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y", "sell_market": "spot",
    ...     "magnitude_pct": [1.0, 2.0]})
    >>> found = event_lifecycles(events, 20, 60)
    >>> found.select("kind", "t_open", "duration_s", "peak", "symbol", "legs").row(0)
    ('closed', 10, 30.0, 2.0, 'A_B', 'X.spot → Y.spot')
    """
    checked_frame(events, "events")
    window = Interval.checked(start, end)
    documents, known_until = events.lazy(), pl.lit(window.end, pl.Int64)
    if "event" not in events.collect_schema():
        documents = identified(documents)
    if logs is not None:
        logs = logs.filter(pl.col("known_until") > window.start)
        ends = dict(logs.select("family", "known_until").iter_rows())
        documents = documents.filter(pl.col("family").is_in(list(ends)))
        family = pl.col("family").cast(pl.String)
        known_until = family.replace_strict(ends, default=window.end, return_dtype=pl.Int64)
        known_until = known_until.clip(upper_bound=window.end)
    found = _lifecycles(
        documents,
        window,
        ("event",),
        "size",
        role=event_role(),
        known_until=known_until,
        shown=("symbol", "legs", "event_id", "size"),
        descending={"since": True, "family": False, "event": False},
    )
    return found.with_columns(pl.when(pl.col("t_open").is_not_null()).then("size"))


@described("events.lifecycles")
def lifecycles(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    key: Sequence[str] = ("event_id",),
    magnitude: str | None = None,
    now: int | None = None,
    delay_s: int = 0,
) -> pl.DataFrame:
    """Pair documents into lifecycles: from the opening to the close, or to the last that is known.

    The frame has one row per document, in any order: ``family``, ``event_type``, ``lifecycle``
    (String, may be null), ``ts`` (Int64, Unix seconds UTC), ``ts_ms`` (Int64, may be null),
    ``arrival`` (integer: the order of documents of one time), the columns of ``key`` (String or
    integer) and, if given, ``magnitude`` (Float64).

    Documents of one family and key are paired in the order of (``ts_ms``, ``arrival``). The key is
    an id that stays the same through an event, else the symbol and the legs. An event type that
    ends in ``opened``, ``pump`` or ``dump`` opens, one in ``updated`` updates, one in ``closed`` or
    ``faded`` closes. For other types, a ``lifecycle`` of open updates and one of closed closes.
    Documents without a known word change only ``n_unknown`` and ``unknown_types``, and duplicates
    (equal in all but ``arrival``) only ``n_duplicates``.

    Returned are lifecycles not over before ``start``, from documents in ``[start - LOOK_BACK_S,
    known_until)``, where known_until is the earlier of ``end`` and ``now`` - ``delay_s``. Read the
    frame over `documents_window`, so that it has openings before the window. The kinds:

    - closed: opened, then closed.
    - open: opened and not closed. It lasted at least until known_until.
    - reopened: opened, then opened again. The close was lost: it is censored at the second opening.
    - orphan_close: closed without an opening: it opened before the documents, its age is not known.
    - orphan_update: updated without an opening, and no close either.
    - unknown: documents of no known word alone.

    Orphans have no duration. Sorted by family, key and time:

    {columns}

    Raises `InputError`: A family, event_type, ts or key is null. The window is empty. ``key`` is
    not a column.

    >>> frame = pl.DataFrame({"family": "spread", "event_id": ["a", "a", "b", "c"],
    ...     "event_type": ["spread.opened", "spread.closed", "spread.opened", "spread.closed"],
    ...     "lifecycle": ["open", "closed", "open", "closed"], "ts": [10, 40, 50, 60],
    ...     "ts_ms": [10_000, 40_500, 50_000, 60_000], "arrival": [0, 1, 2, 3]})
    >>> found = lifecycles(frame, 0, 100, now=130, delay_s=60)
    >>> found.select("event_id", "duration_s", "observed", "kind").rows()
    [('a', 30.5, 1, 'closed'), ('b', 20.0, 0, 'open'), ('c', None, 0, 'orphan_close')]
    """
    checked_frame(frame)
    start, end = window_of(frame, start, end, documents_extent)
    for name, value in {"delay_s": delay_s, **({} if now is None else {"now": now})}.items():
        whole_number(name, value, 0, "seconds, at least 0")
    known_until = end if now is None else min(end, now - delay_s)
    Interval.checked(start, known_until)
    found = _lifecycles(
        frame.lazy(),
        Interval(start, end),
        key,
        magnitude,
        role=event_role().fill_null(pl.lit(UNKNOWN, pl.Categorical)),
        known_until=pl.lit(known_until, pl.Int64),
        descending=dict.fromkeys(["family", *key], False),
    )
    return found.drop("since")


def _lifecycles(
    frame: pl.LazyFrame,
    window: Interval,
    key: Sequence[str],
    magnitude: str | None,
    *,
    role: pl.Expr,
    known_until: pl.Expr,
    descending: Mapping[str, bool],
    shown: Sequence[str] = (),
) -> pl.DataFrame:
    """Pair documents as `lifecycles` does, each log to its ``known_until``, and sort the result."""
    names = [name for name in key if name != "family"]
    question = Question(
        "events.lifecycles/4", *window, magnitude, options=tuple(("key", name) for name in names)
    )
    ts = pl.col("ts")
    seen = (ts >= window.start - LOOK_BACK_S) & (ts < pl.col("known_until"))
    documents = _documents(frame, names, magnitude, shown)
    parts = whole_events(documents, names[0])
    value = observed(magnitude) if magnitude else pl.lit(None, pl.Float64)
    roles = (part.with_columns(role=role).drop_nulls("role") for part in parts)
    whole = (_without_nulls(part, names) for part in roles)
    known = (part.with_columns(known_until=known_until, value=value).filter(seen) for part in whole)
    found = pl.concat(paired(part, ["family", *names], window.start, shown) for part in known)
    found = in_order(found, descending, as_words=True)
    found = found.with_columns(pl.col("observed", *COUNTS).cast(pl.Int64))
    last = found.columns.index("known_until") + 1
    return found.select(*found.columns[:last], *question.columns, *found.columns[last:])


def _documents(
    frame: pl.LazyFrame, names: list[str], magnitude: str | None, shown: Sequence[str]
) -> Iterator[pl.DataFrame]:
    if not names:
        raise InputError("key", names, "the columns that tell events apart, e.g. event_id")
    for name in names:
        if name not in (known := frame.collect_schema().names()):
            raise InputError("key", name, known)
    if magnitude:
        checked_column(frame, magnitude)
    keys = dict.fromkeys(names, "String or integer")
    checked_types(frame, _TYPES | keys | ({magnitude: "Float64"} if magnitude else {}))
    sizes = [magnitude] if magnitude else []
    needed = frame.select(*dict.fromkeys([*_TYPES, *names, *shown, *sizes]))
    return batches_with_categories(needed, but=[*names, "event_id"])


def _without_nulls(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    for name in dict.fromkeys(["family", "event_type", "ts", "arrival", *names]):
        if rows[name].null_count():
            raise InputError("frame", f"a null {name}", "documents that have one")
    return rows
