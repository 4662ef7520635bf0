"""A list of events of one's own as a log, to be studied like the service's."""

from __future__ import annotations

import hashlib

import polars as pl

from toolkit.cards import counted
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import TYPE_ROLES, EventFamily, EventLog, Leg, Symbol
from toolkit.series.base import Origin
from toolkit.series.logs import EventSeries
from toolkit.tables import BROUGHT, EVENT

OURS = ("symbol", "kind", "size", "exchange", "market")
"""What a list of events has beside ``ts``: the last three may be absent."""


def event_series(log: EventLog, rows: pl.DataFrame, origin: Origin) -> EventSeries:
    """Return the log of a list of events: ``ts`` in microseconds, and those of `OURS` that it has.

    Each row opens an event of its own, but for a kind that closes one (closed, faded). A kind of
    another name than pump and dump is one that opens, in the direction of a pump. The log is held
    from the first row to the last.
    """
    if log.family is not EventFamily.SPLASH:
        allowed = "events/splash: rows of one's own are of one leg or none"
        raise InputError("stream", log.key, allowed)
    words = ["symbol", "kind", *(name for name in ("exchange", "market") if name in rows.columns)]
    rows = rows.with_columns(pl.col(words).cast(pl.String).str.strip_chars())
    for name in words:
        if missing := rows[name].null_count():
            raise InputError("columns", f"{counted(missing, 'null')} of {name}", "one in each row")
    for symbol in rows["symbol"].unique().sort():
        Symbol.parse(symbol)
    if ("exchange" in words) != ("market" in words):
        raise InputError("columns", ", ".join(words), "exchange and market (spot, ...), or neither")
    if "market" in words:
        for each in rows.select("exchange", "market").unique().sort("exchange").iter_rows():
            Leg.parse(".".join(each))
    documents = _documents(log, rows)
    first, last = (int(each) for each in (documents["ts"][0], documents["ts"][-1]))
    window = Interval(first, last + 1)
    family = {"family": [log.family.value]}
    return EventSeries(
        log,
        window,
        origin,
        documents,
        logs=pl.DataFrame(family | {"known_until": [window.end]}),
        held=pl.DataFrame(family | {"start_ts": [first], "end_ts": [window.end]}),
    )


def _documents(log: EventLog, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows as documents, which a store has of a log."""
    given = [name for name in OURS if name in rows.columns]
    written = rows.select(
        pl.struct((pl.col("ts") // 1_000).alias("ts_ms"), *given).struct.json_encode()
    ).to_series()
    ids = [f"own:{hashlib.sha256(text.encode()).hexdigest()[:24]}" for text in written]
    kind = pl.col("kind").str.to_lowercase()
    known = kind.is_in(list(TYPE_ROLES))
    ending = pl.when(known).then(kind).otherwise(pl.concat_str("kind", pl.lit(".opened")))
    values: dict[str, pl.Expr] = {
        "family": pl.lit(log.family.value),
        "event_id": pl.lit(pl.Series(ids)),
        "event_type": pl.concat_str(pl.lit(f"{log.family}."), ending),
        "ts_ms": pl.col("ts") // 1_000,
        "ts": pl.col("ts") // 10**6,
        "symbol": pl.col("symbol"),
        "document": pl.lit(written),
    }
    optional = {"buy_exchange": "exchange", "buy_market": "market", "magnitude_pct": "size"}
    values |= {ours: pl.col(name) for ours, name in optional.items() if name in given}
    schema = {n: kind for n, kind in EVENT.schema.items() if n not in ("revision", *BROUGHT)}
    found = rows.select(
        values.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in schema.items()
    )
    found = found.sort("ts_ms", "event_id").with_row_index("arrival")
    return found.with_columns(pl.col("arrival").cast(pl.Int64))
