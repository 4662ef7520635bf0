"""How long events last, how often they come, what comes with them, and how true their log is.

`lifecycles` and `event_lifecycles` pair the documents of event logs. `magnitudes` says how large
events are, `survival` how long they last and `hazard_ratios` what makes them last. `detections`
says when they became known, and `study`, `placebo` and `follow_through` what prices, spreads and
rates did then. `positions` and `payoff` say what spread events would have paid. `cooccurrence` says
which events come together. `audit` holds a log to the trajectories, and `channels` the ways by
which it came to each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.statistics.contract import (
    Frame,
    Question,
    checked_column,
    checked_frame,
    checked_types,
    collected,
    whole_number,
)
from toolkit.statistics.event_audit import audit, audited, smallest_size_bps
from toolkit.statistics.event_channels import channels
from toolkit.statistics.event_cooccurrence import cooccurrence
from toolkit.statistics.event_detections import detections, with_direction
from toolkit.statistics.event_documents import event_role, identified
from toolkit.statistics.event_groups import with_groups
from toolkit.statistics.event_hazards import hazard_ratios
from toolkit.statistics.event_magnitudes import magnitudes
from toolkit.statistics.event_pairing import ROW, UNKNOWN, paired
from toolkit.statistics.event_payoff import payoff
from toolkit.statistics.event_placebo import placebo
from toolkit.statistics.event_positions import positions
from toolkit.statistics.event_rates import league, rates
from toolkit.statistics.event_study import study
from toolkit.statistics.event_survival import log_rank, survival, survival_curve
from toolkit.statistics.event_timing import clustering, rates_by_hour
from toolkit.statistics.follow_through import follow_through
from toolkit.statistics.kernel import observed
from toolkit.statistics.rate_changes import rate_changes
from toolkit.statistics.windows import documents_extent, window_of

__all__ = [
    "LOOK_BACK_S",
    "STILL_OPEN",
    "audit",
    "audited",
    "channels",
    "clustering",
    "cooccurrence",
    "detections",
    "documents_window",
    "event_lifecycles",
    "follow_through",
    "hazard_ratios",
    "league",
    "lifecycles",
    "log_rank",
    "magnitudes",
    "payoff",
    "placebo",
    "positions",
    "rate_changes",
    "rates",
    "rates_by_hour",
    "smallest_size_bps",
    "study",
    "survival",
    "survival_curve",
    "with_direction",
    "with_groups",
]


def __dir__() -> list[str]:
    return __all__


LOOK_BACK_S = 7 * 86_400
"""How long before a window documents are used, so that an earlier opening is seen (s).

The longest event of the local service lasts five days: a funding event expires after three, and
a leg counts as lost after two more.
"""

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


def documents_window(window: Interval) -> Interval:
    """Return the window of documents to read, so that events of ``window`` have their opening.

    >>> documents_window(Interval(604_800, 691_200))
    Interval(start=0, end=691200)
    """
    return Interval(window.start - LOOK_BACK_S, window.end)


def event_lifecycles(
    events: pl.DataFrame, start: int, end: int, *, logs: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Pair the documents of event logs: one row per lifecycle that touches the window.

    Everything that counts, lists or draws events calls this function. ``events`` are rows of
    `toolkit.store.Store.events` of any families, read over `documents_window`, in any order, with
    or without the columns of `toolkit.statistics.event_documents.identified`. Documents of no known
    role are left out.

    ``logs`` has one row per event log, as `toolkit.store.event_logs` gives them: ``family`` and
    ``known_until`` (s, Unix UTC). Nothing is known of a log from then on. Events of a family
    without a row, or with a null, are left out. By default all is known until ``end``.

    The columns are those of `lifecycles` with ``event`` of `identified` as their key and with the
    size as their ``peak``, and five more: ``symbol`` and ``legs`` (String, nullable), ``event_id``
    (String, of the event's first document), ``size`` (Float64, of the opening document, null where
    that was not seen) and ``since`` (Int64, s, Unix UTC: ``t_open``, or the event's first document
    where the opening was not seen). Rows are sorted by ``since``, newest first. `with_groups` adds
    columns by which they are compared.

    Raises
    ------
    InputError
        As `lifecycles`.

    Examples
    --------
    >>> events = pl.DataFrame({"family": ["spread"] * 2, "event_id": ["sha256:1", "sha256:2"],
    ...     "event_type": ["spread.opened", "spread.closed"], "lifecycle": ["open", "closed"],
    ...     "ts": [10, 40], "ts_ms": [10_000, 40_000], "arrival": [0, 1], "symbol": ["A_B"] * 2,
    ...     "buy_exchange": ["X"] * 2, "buy_market": ["spot"] * 2, "sell_exchange": ["Y"] * 2,
    ...     "sell_market": ["spot"] * 2, "magnitude_pct": [1.0, 2.0]})
    >>> found = event_lifecycles(events, 20, 60)
    >>> found.select("kind", "t_open", "duration_s", "peak", "symbol", "legs").row(0)
    ('closed', 10, 30.0, 2.0, 'A_B', 'X.spot → Y.spot')
    """
    checked_frame(events, "events")
    start, end = Interval.checked(start, end)
    known = events if "event" in events.columns else identified(events)
    documents = known.lazy().with_row_index(ROW).drop_nulls("role")
    parts: list[tuple[pl.LazyFrame, int | None]] = [(documents, None)]
    if logs is not None:
        parts = [(documents.clear(), None)]  # so that there is a row type without any log
        parts += [
            (documents.filter(family=family), known_until)
            for family, known_until in logs.select("family", "known_until").iter_rows()
            if known_until is not None and known_until > start
        ]
    found = pl.concat(
        _lifecycles(
            part, pl.col("role"), Interval(start, end), ("event",), "size", now=now, delay_s=0
        )
        for part, now in parts
    )
    rows = found.drop_in_place(ROW)
    shown = [known[name].gather(rows) for name in ("symbol", "legs", "event_id", "size", "ts")]
    opened = pl.col("t_open").is_not_null()
    return (
        found.hstack(shown)
        .rename({"ts": "since"})
        .with_columns(pl.when(opened).then("size"))
        .sort("since", "family", "event", descending=[True, False, False], maintain_order=True)
    )


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

    The frame has one row per document: ``family``, ``event_type``, ``lifecycle`` (String, may be
    null), ``ts`` (Int64, Unix seconds UTC), ``ts_ms`` (Int64, null where the document has none),
    ``arrival`` (integer: the order in which documents of one time happened), the columns of ``key``
    (String or integer) and, where given, ``magnitude`` (Float64). Rows may come in any order.

    Documents of one family and key are paired in the order of (``ts_ms``, ``arrival``). Where
    documents carry an id that stays the same through an event, the id is the key. Elsewhere it is
    the symbol and the legs. An event type that ends in ``opened``, ``pump`` or ``dump`` opens, one
    in ``updated`` updates, one in ``closed`` or ``faded`` closes. Of another type, a ``lifecycle``
    of open updates and one of closed closes. A document of no known word changes nothing but
    ``n_unknown`` and ``unknown_types``. A document equal to an earlier one in all but
    ``arrival`` is a duplicate and changes nothing but ``n_duplicates``.

    Lifecycles that touch the window are given: those not over before ``start``. Documents of
    ``[start - LOOK_BACK_S, known_until)`` are used, where known_until is the earlier of ``end`` and
    ``now`` - ``delay_s``. So an event that opened before the window and closed in it has its true
    duration, if the frame has its opening: read it over `documents_window`. The kinds:

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

    The rows with a duration are those of a survival curve. Orphans are not among
    them. Rows are sorted by family, key and time.

    ==================  =======  =====  ==========================================================
    column              type     unit   meaning
    ==================  =======  =====  ==========================================================
    family              String   none   as given
    event_id            given    none   the key, as given, as many columns as asked
    t_open              Int64    s      when it opened, Unix UTC
    t_close             Int64    s      when it closed, Unix UTC
    duration_s          Float64  s      from opening to close, or to where it is censored
    entry_s             Float64  s      how old it was when the window began, 0 where it opened
                                        later: a longer life was more likely to be seen, and
                                        survival curves watch it from that age on
    observed            Int64    count  1 where duration_s ends in a close, 0 where it is censored
    kind                String   none   closed, open, reopened, orphan_close, orphan_update
    lifecycle_reason    String   none   why one of the above is null: censored, truncated,
                                        clock_skew (the close came after the opening and is
                                        stamped up to 60 s before it: there is no duration)
    zero_duration       Boolean  none   opened and over at one time: duration_s is half of what the
                                        times resolve (1 ms, 1 s without ts_ms)
    n                   Int64    count  documents, without duplicates
    n_updates           Int64    count  documents that neither open nor close
    n_duplicates        Int64    count  documents that were dropped
    n_ts_differs        Int64    count  documents with a ts_ms over 1 s from their ts, which is
                                        then not used
    n_unknown           Int64    count  documents of no known word
    unknown_types       String   none   their event types, "" where there is none
    peak                Float64  given  the magnitude furthest from 0, with its sign
    peak_reason         String   none   empty (no magnitude asked for, or none a number)
    known_until         Int64    s      where open ones are censored, Unix UTC
    window_start        Int64    s      as asked, Unix UTC
    window_end          Int64    s      as asked, Unix UTC, itself outside
    method              String   none   what computed the row, with its version
    params_hash         String   none   the same where the same was asked of any window
    ==================  =======  =====  ==========================================================

    Raises
    ------
    InputError
        A column is missing or of another type. A family, event_type, ts or key is null. The
        window is empty. ``key`` names no column.

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "family": ["spread"] * 4,
    ...         "event_id": ["a", "a", "b", "c"],
    ...         "event_type": ["spread.opened", "spread.closed", "spread.opened", "spread.closed"],
    ...         "lifecycle": ["open", "closed", "open", "closed"],
    ...         "ts": [10, 40, 50, 60],
    ...         "ts_ms": [10_000, 40_500, 50_000, 60_000],
    ...         "arrival": [0, 1, 2, 3],
    ...     }
    ... )
    >>> found = lifecycles(frame, 0, 100, now=130, delay_s=60)
    >>> found.select("event_id", "duration_s", "observed", "kind").rows()
    [('a', 30.5, 1, 'closed'), ('b', 20.0, 0, 'open'), ('c', None, 0, 'orphan_close')]
    """
    checked_frame(frame)
    window = window_of(frame, start, end, documents_extent)
    documents = frame.lazy().with_row_index(ROW)
    role = event_role().fill_null(UNKNOWN)
    found = _lifecycles(documents, role, window, key, magnitude, now=now, delay_s=delay_s)
    return found.drop(ROW).sort("family", *key, maintain_order=True)


def _lifecycles(
    frame: pl.LazyFrame,
    role: pl.Expr,
    window: Interval,
    key: Sequence[str],
    magnitude: str | None,
    *,
    now: int | None,
    delay_s: int,
) -> pl.DataFrame:
    """Pair documents as `lifecycles` does, with the `ROW` of each lifecycle's first document."""
    start, end = window
    known_until = _known_until(end, now, delay_s)
    Interval.checked(start, known_until)
    names = [name for name in key if name != "family"]
    question = Question(
        "events.lifecycles/3", start, end, magnitude, options=tuple(("key", name) for name in names)
    )
    seen = Interval(start - LOOK_BACK_S, known_until)
    documents = _documents(frame, role, names, magnitude, seen)
    found = paired(documents, ["family", *names], Interval(start, known_until))
    return found.with_columns(
        pl.col(pl.Categorical).cast(pl.String),
        pl.lit(known_until, pl.Int64).alias("known_until"),
        *question.columns,
    )


def _known_until(end: int, now: int | None, delay_s: int) -> int:
    for name, value in {"delay_s": delay_s, **({} if now is None else {"now": now})}.items():
        whole_number(name, value, 0, "seconds, at least 0")
    return end if now is None else min(end, now - delay_s)


def _documents(
    frame: pl.LazyFrame,
    role: pl.Expr,
    names: list[str],
    magnitude: str | None,
    window: Interval,
) -> pl.DataFrame:
    """Return the documents of the window with their role, once each, in the order they happened."""
    if not names:
        raise InputError("key", names, "the columns that tell events apart, e.g. event_id")
    checked_frame(frame)
    for name in names:
        if name not in (known := frame.collect_schema().names()):
            raise InputError("key", name, known)
    if magnitude:
        checked_column(frame, magnitude)
    keys = dict.fromkeys(names, "String or integer")
    checked_types(frame, _TYPES | keys | ({magnitude: "Float64"} if magnitude else {}))
    value = observed(magnitude) if magnitude else pl.lit(None, pl.Float64)
    differs = ((pl.col("ts_ms") - 1000 * pl.col("ts")).abs() > 1000).fill_null(value=False)
    # as categories words take a quarter of the memory, and are compared as numbers
    words = pl.col(pl.String).cast(pl.Categorical)
    rows = collected(
        frame.select(*dict.fromkeys([*_TYPES, *names, ROW]), value=value, role=role).with_columns(
            words, pl.when(~differs).then("ts_ms"), ts_differs=differs
        )
    )
    for name in dict.fromkeys(["family", "event_type", "ts", "arrival", *names]):
        if rows[name].null_count():
            raise InputError("frame", f"a null {name}", "documents that have one")
    rows = rows.filter(pl.col("ts").is_between(*window, closed="left")).with_columns(
        pl.coalesce("ts_ms", 1000 * pl.col("ts")).alias("at_ms")
    )
    place = [*(pl.col(name).to_physical() for name in ("family", *names)), pl.col("at_ms")]
    order = pl.arg_sort_by(*place, "arrival", "event_type", "value")
    return _once_each(rows[rows.select(order).to_series()], place)


def _once_each(rows: pl.DataFrame, place: list[pl.Expr]) -> pl.DataFrame:
    """Drop documents equal to an earlier one, which is near, and count them in ``copies``."""
    same = pl.all_horizontal(each == each.shift(1) for each in place).fill_null(value=False)
    tied = same | same.shift(-1, fill_value=False)
    near = rows.with_row_index("number").filter(tied)
    alike = pl.exclude("arrival", ROW, "number")
    first = near.group_by(alike).agg(pl.col("number").min(), copies=pl.len().cast(pl.Int64) - 1)
    copies = rows.select(copies=-tied.cast(pl.Int64)).to_series()
    return rows.with_columns(copies.scatter(first["number"], first["copies"])).filter(
        pl.col("copies") >= 0
    )
