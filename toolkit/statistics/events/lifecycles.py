"""Lifecycles of events: the documents of event logs paired from opening to close."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.statistics.core.categories import batches_with_categories, in_order
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_column,
    checked_frame,
    checked_types,
    whole_number,
)
from toolkit.statistics.core.observations import observed
from toolkit.statistics.core.windows import LOOK_BACK_S, documents_extent, window_of
from toolkit.statistics.events.documents import event_role, identified
from toolkit.statistics.events.pairing import COUNTS, UNKNOWN, paired, whole_events

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

    The columns are those of `lifecycles`, with ``event`` of `identified` as the key and the size as
    the ``peak``, and five more: ``symbol`` and ``legs`` (String, nullable), ``event_id`` (String,
    of the first document), ``size`` (Float64, of the opening document, null if not seen) and
    ``since`` (Int64, s, Unix UTC: ``t_open``, else the first document). Sorted by ``since``, newest
    first. `with_groups` adds columns for comparisons.

    Raises
    ------
    InputError
        As `lifecycles`.

    Examples
    --------
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
    known_until)``, where known_until is the earlier of ``end`` and ``now`` - ``delay_s``. An event
    that opened before the window has its true duration if the frame has its opening: read it over
    `documents_window`. The kinds:

    ==============  ==============================================================================
    kind            meaning
    ==============  ==============================================================================
    closed          opened, then closed: its duration was observed
    open            opened and not closed: it lasted at least until known_until
    reopened        opened, then opened again: the close was lost, it lasted at most until then, and
                    is censored there
    orphan_close    closed without an opening: it opened before the documents, its age is not known
    orphan_update   updated without an opening, and no close either
    unknown         documents of no known word alone
    ==============  ==============================================================================

    Rows with a duration, which excludes orphans, are those of a survival curve. Sorted by family,
    key and time:

    {columns}

    Raises
    ------
    InputError
        A column is missing or of another type. A family, event_type, ts or key is null. The window
        is empty. ``key`` is not a column.

    Examples
    --------
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
    """Pair documents as `lifecycles` does, each log to its ``known_until``, and sort the result.

    The columns ``shown`` are those of the first document, and ``since`` is its time.
    """
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
