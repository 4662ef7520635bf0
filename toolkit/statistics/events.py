"""How long detected events lasted: the documents of an event log, paired into lifecycles."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.statistics.contract import Frame, Question, Reason, checked_types, first_reason
from toolkit.statistics.kernel import observed

__all__ = ["lifecycles"]

_TYPES = {
    "family": "String",
    "event_type": "String",
    "lifecycle": "String",
    "ts": "Int64",
    "ts_ms": "Int64",
    "arrival": "integer",
}
_ROLES = {
    "opened": "open",
    "pump": "open",
    "dump": "open",
    "updated": "update",
    "closed": "close",
    "faded": "close",
}
_STATES = {"open": "update", "closed": "close"}


def lifecycles(
    frame: Frame,
    start: int,
    end: int,
    *,
    key: Sequence[str] = ("event_id",),
    magnitude: str | None = None,
    now: int | None = None,
    delay_s: int = 0,
) -> pl.DataFrame:
    """One row per lifecycle of an event: from its opening to its close, or to where sight is lost.

    The frame has one row per document: ``family``, ``event_type``, ``lifecycle`` (String, may be
    null), ``ts`` (Int64, Unix seconds UTC), ``ts_ms`` (Int64, null where the document has none),
    ``arrival`` (integer: the order in which documents of one time happened), the columns of ``key``
    (String or integer) and, where given, ``magnitude`` (Float64). Rows may come in any order.

    Documents of one family and key are one story, told in the order of (``ts_ms``, ``arrival``).
    Where documents carry an id that stays through an event's life, that is the key; elsewhere the
    symbol and legs are. An event type that ends in ``opened``, ``pump`` or ``dump`` opens, one in
    ``updated`` updates, one in ``closed`` or ``faded`` closes; of another type, a ``lifecycle`` of
    open updates and one of closed closes. A document equal to an earlier one in all but ``arrival``
    is a duplicate and changes nothing but ``n_duplicates``.

    Documents of ``[start, known_until)`` are used, where known_until is the earlier of ``end`` and
    ``now`` - ``delay_s``: later ones are known or not by how they went on. The kinds:

    ==============  ==============================================================================
    kind            says
    ==============  ==============================================================================
    closed          opened, then closed: its duration was observed
    open            opened and not closed: it lasted at least until known_until
    reopened        opened, then opened again: the close was lost; it lasted at most until then, and
                    is censored there
    orphan_close    closed without an opening: it opened before the window, its age is not known
    orphan_update   updated without an opening, and no close either
    ==============  ==============================================================================

    The rows whose duration is not null are what a survival curve is made of: orphans are not among
    them. Rows are sorted by family, key and time.

    ==================  =======  =====  ==========================================================
    column              type     unit   says
    ==================  =======  =====  ==========================================================
    family              String   none   as given
    event_id            given    none   the key, as given; as many columns as asked
    t_open              Int64    s      when it opened, Unix UTC
    t_close             Int64    s      when it closed, Unix UTC
    duration_s          Float64  s      from opening to close, or to where it is censored
    observed            Int64    count  1 where duration_s ends in a close, 0 where it is censored
    kind                String   none   closed, open, reopened, orphan_close, orphan_update
    lifecycle_reason    String   none   why one of the above is null: censored, truncated
    zero_duration       Boolean  none   opened and over at one time: duration_s is half of what the
                                        times resolve (1 ms; 1 s without ts_ms)
    n                   Int64    count  documents, without duplicates
    n_updates           Int64    count  documents that neither open nor close
    n_duplicates        Int64    count  documents that were dropped
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
        A column is missing or of another type; a family, event_type, ts or key is null; a document
        neither opens, updates nor closes; the window is empty; ``key`` names no column.

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
    known_until = _known_until(end, now, delay_s)
    Interval.checked(start, known_until)
    names = [name for name in key if name != "family"]
    question = Question(
        "events.lifecycles/1", start, end, magnitude, options=tuple(("key", name) for name in names)
    )
    documents = _documents(frame, names, magnitude, (start, known_until))
    found = _paired(documents, ["family", *names], known_until)
    return found.with_columns(
        pl.lit(known_until, pl.Int64).alias("known_until"),
        pl.lit(start, pl.Int64).alias("window_start"),
        pl.lit(end, pl.Int64).alias("window_end"),
        pl.lit(question.method).alias("method"),
        pl.lit(question.params_hash).alias("params_hash"),
    )


def _known_until(end: int, now: int | None, delay_s: int) -> int:
    for name, value in {"delay_s": delay_s, **({} if now is None else {"now": now})}.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InputError(name, value, "a whole number of seconds, at least 0")
    return end if now is None else min(end, now - delay_s)


def _documents(
    frame: Frame, names: list[str], magnitude: str | None, window: tuple[int, int]
) -> pl.DataFrame:
    """The documents of the window with their role, once each, in the order they happened."""
    if not names:
        raise InputError("key", names, "the columns that tell events apart, e.g. event_id")
    keys = dict.fromkeys(names, "String or integer")
    checked_types(frame, _TYPES | keys | ({magnitude: "Float64"} if magnitude else {}))
    value = observed(magnitude) if magnitude else pl.lit(None, pl.Float64)
    rows = (
        frame.lazy()
        .select(*_TYPES, *(name for name in names if name not in _TYPES), value.alias("value"))
        .collect(engine="in-memory")
    )
    for name in dict.fromkeys(["family", "event_type", "ts", "arrival", *names]):
        if rows[name].null_count():
            raise InputError("frame", f"a null {name}", "documents that have one")
    rows = rows.filter(pl.col("ts").is_between(*window, closed="left"))
    rows = rows.with_columns(_role())
    if rows["role"].null_count():
        strange = rows.filter(pl.col("role").is_null())["event_type"][0]
        raise InputError("event_type", strange, f"one ending in {', '.join(_ROLES)}")
    identity = [name for name in rows.columns if name != "arrival"]
    return (
        rows.group_by(identity)
        .agg(pl.col("arrival").min(), (pl.len() - 1).cast(pl.Int64).alias("copies"))
        .with_columns(pl.coalesce("ts_ms", 1000 * pl.col("ts")).alias("at_ms"))
        .sort("family", *names, "at_ms", "arrival", "event_type", "value")
    )


def _role() -> pl.Expr:
    last = pl.col("event_type").str.split(".").list.last()
    by_state = pl.col("lifecycle").replace_strict(_STATES, default=None, return_dtype=pl.String)
    by_type = last.replace_strict(_ROLES, default=None, return_dtype=pl.String)
    return pl.coalesce(by_type, by_state).alias("role")


def _paired(documents: pl.DataFrame, story: list[str], known_until: int) -> pl.DataFrame:
    """The lifecycles: a document that opens, and one that follows on a close, begin the next."""
    role, at_ms = pl.col("role"), pl.col("at_ms")
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in story)
    begins = (role == "open") | (role.shift(1) == "close") | ~same
    value = pl.col("value")
    found = (
        documents.lazy()
        .with_columns(begins.fill_null(value=True).cum_sum().alias("number"))
        .group_by("number", maintain_order=True)
        .agg(
            pl.col(story).first(),
            (role.first() == "open").alias("opened"),
            (role.last() == "close").alias("closed"),
            at_ms.first().alias("first_ms"),
            at_ms.last().alias("last_ms"),
            pl.col("ts").first().alias("first_ts"),
            pl.col("ts").last().alias("last_ts"),
            pl.col("ts_ms").first().is_null().alias("coarse_first"),
            pl.col("ts_ms").last().is_null().alias("coarse_last"),
            pl.len().cast(pl.Int64).alias("n"),
            (role == "update").sum().cast(pl.Int64).alias("n_updates"),
            pl.col("copies").sum().alias("n_duplicates"),
            value.get(value.abs().arg_max(), null_on_oob=True).alias("peak"),
        )
    )
    continues = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in story)
    opened, closed = pl.col("opened"), pl.col("closed")
    kind = (
        pl.when(opened & closed)
        .then(pl.lit("closed"))
        .when(opened & continues.fill_null(value=False))
        .then(pl.lit("reopened"))
        .when(opened)
        .then(pl.lit("open"))
        .when(closed)
        .then(pl.lit("orphan_close"))
        .otherwise(pl.lit("orphan_update"))
    )
    lives = found.with_columns(
        kind.alias("kind"),
        pl.col("first_ms").shift(-1).alias("next_ms"),
        pl.col("coarse_first").shift(-1).alias("coarse_next"),
    ).collect(engine="in-memory")
    # a column, as polars divides one by a single number through its rounded reciprocal
    second = pl.Series("second_ms", [1000] * lives.height, dtype=pl.Int64)
    return lives.with_columns(second).select(*_lifecycle_columns(story, known_until))


def _lifecycle_columns(story: list[str], known_until: int) -> list[pl.Expr]:
    kind, opened, closed = pl.col("kind"), pl.col("opened"), pl.col("closed")
    end_ms = (
        pl.when(kind == "closed")
        .then("last_ms")
        .when(kind == "reopened")
        .then("next_ms")
        .when(kind == "open")
        .then(pl.lit(1000 * known_until))
    )
    coarse = pl.col("coarse_first") | pl.when(kind == "reopened").then("coarse_next").otherwise(
        "coarse_last"
    )
    elapsed_ms = end_ms - pl.col("first_ms")
    half_ms = pl.when(coarse).then(500.0).otherwise(0.5)
    lasted_ms = pl.when(elapsed_ms == 0).then(half_ms).otherwise(elapsed_ms)
    return [
        *map(pl.col, story),
        pl.when(opened).then("first_ts").alias("t_open"),
        pl.when(closed).then("last_ts").alias("t_close"),
        (lasted_ms / pl.col("second_ms")).alias("duration_s"),
        (kind == "closed").cast(pl.Int64).alias("observed"),
        kind,
        first_reason({Reason.TRUNCATED: ~opened, Reason.CENSORED: ~closed}).alias(
            "lifecycle_reason"
        ),
        (elapsed_ms == 0).fill_null(value=False).alias("zero_duration"),
        pl.col("n", "n_updates", "n_duplicates", "peak"),
        first_reason({Reason.EMPTY: pl.col("peak").is_null()}).alias("peak_reason"),
    ]
