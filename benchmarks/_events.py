"""A million events for the benchmark of statistics, what prices did about them, and the analyses.

Documents open and close events in bursts: four in five are of spreads, one close in fifty is lost.
The lifecycles and detections are those that the toolkit makes of the documents.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks._walks import START

EVENTS_END = START + 28 * 86_400
SYMBOLS = [f"ASSET{number:04}_USDT" for number in range(50)]
LEGS = [
    ("X.spot", "Y.spot"),
    ("X.spot", "Y.futures"),
    ("Y.spot", "Z.futures"),
    ("Y.futures", "Z.futures"),
    ("X.spot",),
]
PRICE_STEP_S = 300

Integers = npt.NDArray[np.int64]


def documents(count: int) -> pl.DataFrame:
    """Opening and close of each event. Each symbol has a life of its own."""
    rng = np.random.default_rng(20261123)
    symbol, legs = rng.integers(0, len(SYMBOLS), count), rng.integers(0, len(LEGS), count)
    bursts = rng.uniform(0, 1000 * (EVENTS_END - START), count // 10 + 1)
    opened_ms = 1000 * START + bursts[rng.integers(0, bursts.size, count)]
    opened_ms += 1000 * rng.exponential(120, count)
    lasted_ms = 1000 * rng.exponential(rng.uniform(60, 600, len(SYMBOLS))[symbol])
    splash = (legs == len(LEGS) - 1).astype(int)
    opening = pl.DataFrame(
        {
            "family": _words(["spread", "splash"], splash),
            "event_id": pl.Series(np.arange(count)).cast(pl.String).str.zfill(9),
            "event_type": _words(["spread.opened", "splash.pump"], splash),
            "lifecycle": _words(["open"], np.zeros(count, int)),
            "ts_ms": opened_ms.astype(np.int64),
            "symbol": _words(SYMBOLS, symbol),
            **_sides(legs),
            "magnitude_pct": 0.2 + rng.exponential(0.2, count),
        }
    )
    ends = {"spread.opened": "spread.closed", "splash.pump": "splash.faded"}
    closing = opening.with_columns(
        pl.col("event_type").replace(ends),
        lifecycle=pl.lit("closed"),
        ts_ms=pl.Series((opened_ms + lasted_ms).astype(np.int64)),
    ).filter(pl.Series(rng.random(count) >= 0.02))
    return (
        pl.concat([opening, closing])
        .with_columns(ts=pl.col("ts_ms") // 1000)
        .filter(pl.col("ts") < EVENTS_END)
        .sort("ts_ms", maintain_order=True)
        .with_columns(arrival=pl.int_range(pl.len()))
    )


def _words(words: list[str | None] | list[str], at: Integers) -> pl.Series:
    return pl.Series(words, dtype=pl.String).gather(at)


def _sides(legs: Integers) -> dict[str, pl.Series]:
    found = {}
    for place, side in enumerate(("buy", "sell")):
        for part, name in enumerate(("exchange", "market")):
            words = [each[place].split(".")[part] if place < len(each) else None for each in LEGS]
            found[f"{side}_{name}"] = _words(words, legs)
    return found


def bars() -> pl.DataFrame:
    """Price and spread of each trajectory that has events, every five minutes."""
    rng = np.random.default_rng(20261124)
    names = [":".join([symbol, *legs]) for symbol in SYMBOLS for legs in LEGS]
    shape = (len(names), (EVENTS_END - START) // PRICE_STEP_S)
    spread = 8 * rng.standard_normal(shape)
    for at in range(1, shape[1]):
        spread[:, at] += 0.9 * spread[:, at - 1]
    price = 100 * np.exp(np.cumsum(1e-3 * rng.standard_normal(shape), axis=1))
    return pl.DataFrame(
        {
            "trajectory": _words(sorted(names), np.repeat(np.arange(shape[0]), shape[1])),
            "ts": np.tile(START + PRICE_STEP_S * np.arange(shape[1]), shape[0]),
            "price": price.ravel(),
            "spread_bps": spread.ravel(),
        }
    )


def fill_logs(folder: Path, count: int) -> None:
    """Commit the documents of so many events, the one log after the other."""
    from toolkit.intervals import Interval  # noqa: PLC0415 - a peer imports only its own
    from toolkit.market import EventFamily, EventLog  # noqa: PLC0415 - as above
    from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter  # noqa: PLC0415 - as above
    from toolkit.wire.event_log import document_frame  # noqa: PLC0415 - as above

    columns = document_frame([]).schema
    log = documents(count).with_columns(document=pl.lit("{}"))
    absent = [pl.lit(None, kind).alias(n) for n, kind in columns.items() if n not in log.columns]
    log = log.with_columns(absent).select(pl.col(n).cast(kind) for n, kind in columns.items())
    writer = StoreWriter(Store(folder / "rail.duckdb"))
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1", EVENTS_END, None, "0"))
    for family in EventFamily:
        batch, whole = Batch(), Interval(START, EVENTS_END)
        edge = Edge(EVENTS_END, step_s=0, asked_at=int(time.time()))
        batch.add_documents(EventLog(family), log.filter(family=family.value), whole, edge)
        writer.commit(load_id, batch)
    writer.finish_load(load_id, [])


def make_event_files(folder: Path, count: int) -> None:
    """Documents, the lifecycles and detections made of them, and the bars."""
    from toolkit.statistics import events  # noqa: PLC0415 - a peer imports only its own

    log = documents(count)
    lives = events.event_lifecycles(log, START, EVENTS_END)
    tables = {"documents": log, "lives": lives, "detections": events.detections(log)}
    for name, frame in (tables | {"bars": bars()}).items():
        frame.write_parquet(folder / f"{name}.parquet")


def of_lives(
    name: str, *by: str, **options: int | str
) -> Callable[[Path, int], list[pl.DataFrame]]:
    """An analysis of lifecycles, of which it reads the columns that it needs."""

    def measure(folder: Path, _end: int) -> list[pl.DataFrame]:
        from toolkit.statistics import events  # noqa: PLC0415 - a peer imports only its own

        statistic = getattr(events, name)
        return [statistic(pl.scan_parquet(folder / "lives.parquet"), by, **options)]

    return measure


def of_prices(name: str, **options: int | str) -> Callable[[Path, int], list[pl.DataFrame]]:
    """An analysis of what a price did about detections."""

    def measure(folder: Path, _end: int) -> list[pl.DataFrame]:
        from toolkit.statistics import events  # noqa: PLC0415 - a peer imports only its own

        detected = pl.scan_parquet(folder / "detections.parquet")
        detected = detected.select("trajectory", "ts", "direction")
        statistic = getattr(events, name)
        return [statistic(detected, pl.scan_parquet(folder / "bars.parquet"), **options)]

    return measure


def pairing(folder: Path, _end: int) -> list[pl.DataFrame]:
    from toolkit.statistics import events  # noqa: PLC0415 - a peer imports only its own

    log = pl.scan_parquet(folder / "documents.parquet")
    return [events.event_lifecycles(log, START, EVENTS_END)]


def audit(folder: Path, _end: int) -> list[pl.DataFrame]:
    from toolkit.statistics import events  # noqa: PLC0415 - a peer imports only its own

    lives = pl.scan_parquet(folder / "lives.parquet")
    spreads = pl.scan_parquet(folder / "bars.parquet").select("trajectory", "ts", "spread_bps")
    return [events.audit(events.audited(lives, spreads, START, EVENTS_END, enter_bps=20))]


def channels(folder: Path, _end: int) -> list[pl.DataFrame]:
    """The archive beside a socket that is sooner and loses one in a hundred."""
    from toolkit.statistics import events  # noqa: PLC0415 - a peer imports only its own

    key = "family", "event_id", "event_type", "ts_ms"
    log = pl.scan_parquet(folder / "documents.parquet").filter(event_type="spread.opened")
    asked = log.select(*key, arrived_ms=pl.col("ts_ms") + 60_000)
    heard = log.filter(pl.col("arrival") % 100 > 0).select(*key, arrived_ms=pl.col("ts_ms") + 200)
    return [events.channels({"archive": asked, "socket": heard})]


def intervals(folder: Path, _end: int) -> list[pl.DataFrame]:
    """The exact intervals of a million counts."""
    from toolkit.statistics.numeric.tails import (  # noqa: PLC0415 - as above
        poisson_interval,
        share_interval,
    )

    lives = pl.scan_parquet(folder / "lives.parquet").select("t_open", "known_until").collect()
    count = (lives["t_open"] % 1000).to_numpy().astype(float)
    names = ("rate_lower", "rate_upper", "share_lower", "share_upper")
    ends = (*poisson_interval(count), *share_interval(count, np.full(count.size, 1000.0)))
    return [pl.DataFrame(dict(zip(names, ends, strict=True)))]


def scan_events(folder: Path, _end: int) -> list[pl.DataFrame]:
    """One scan of all columns of the lifecycles."""
    rows = pl.scan_parquet(folder / "lives.parquet")
    words = pl.col(pl.String).str.len_bytes().sum()
    return [rows.select(words, pl.exclude(pl.String).sum()).collect()]


EVENT_WAYS: dict[str, Callable[[Path, int], list[pl.DataFrame]]] = {
    "survival": of_lives("survival", "symbol"),
    "curve": of_lives("survival_curve", "symbol"),
    "log_rank": of_lives("log_rank", "symbol"),
    "rates": of_lives("rates", "symbol", "legs"),
    "league": of_lives("league", "symbol", "legs"),
    "changes": of_lives("rate_changes", "symbol", "legs"),
    "rates_by_hour": of_lives("rates_by_hour", "symbol"),
    "clustering": of_lives("clustering", "symbol"),
    "magnitudes": of_lives("magnitudes", "symbol"),
    "together": of_lives("cooccurrence"),
    "together_on_symbol": of_lives("cooccurrence", "symbol", same="symbol"),
    "together_by_symbol": of_lives("cooccurrence", "symbol"),
    "study": of_prices("study"),
    "controls": of_prices("study", less="controls"),
    "placebo": of_prices("placebo"),
    "follow_through": of_prices("follow_through"),
    "audit": audit,
    "channels": channels,
    "pairing": pairing,
    "intervals": intervals,
}
"""The analyses of events. Each reads Parquet files of lifecycles, or detections and bars."""
