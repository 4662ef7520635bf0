"""Rows of one's own kept in a store, which holds nothing else."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path

import polars as pl

from toolkit.market import Family, Source, Stream, Trajectory
from toolkit.series import EventSeries, Series
from toolkit.store import Batch, Edge, Inserted, LoadOrigin, Store, StoreWriter
from toolkit.tables import SERIES


def keep_own(series: Series, path: Path, name: str | None = None) -> Inserted:
    """Keep a series of `toolkit.series.own_series` in a store of one's own data.

    The store is made where there is none, for the source ``name``, by default the file's name. What
    it holds already is kept once, and a value that differs becomes the newest revision. Raises
    `StoreSourceError` where the store holds the data of a service, or of another name.

    >>> import tempfile
    >>> from toolkit.series import own_series
    >>> frame = pl.DataFrame({"ts": [1_700_000_000, 1_700_000_060], "price": [2.0, 3.0]})
    >>> mine = own_series(frame, "BTC_USD:VENDOR.spot")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.duckdb"
    ...     keep_own(mine, path).new, keep_own(mine, path).repeated
    (2, 2)
    """
    stream = Stream.parse(series.stream)
    writer = StoreWriter(Store(path))
    writer.bind(Source("own", name or path.stem))
    now, by = int(time.time()), version("machine-rail-toolkit")
    origin = LoadOrigin(f"file:{series.source.id}", now, None, by)
    load_id = writer.start_load(origin, [stream], series.window)
    batch = Batch()
    add_own(batch, series, now)
    done = writer.commit(load_id, batch)
    writer.finish_load(load_id, [])
    return done


def add_own(batch: Batch, series: Series, read_at: int) -> None:
    """Add a series of `toolkit.series.own_series`, read at a time (s), to what a load commits."""
    window = series.window
    edge = Edge(read_at, step_s=series.origin.step_s, tail_ts=window.end)
    if isinstance(series, EventSeries):
        batch.add_documents(series.stream, series.rows.drop("arrival"), window, edge)
        return
    stream = Trajectory.parse(series.stream)
    table = SERIES[Family(stream.kind)]
    names = [column.name for column in table.values if column.name != "extra"]
    rows = series.rows.select("ts", *names, extra=pl.lit(None, pl.String))
    batch.add(stream, rows, window, edge)
