"""The page's tables: gaps and raw rows with times in the chosen clock, and rows as a file."""

from __future__ import annotations

import io

import polars as pl

from toolkit.charts.time_axis import clock_text
from toolkit.columns import column
from toolkit.dashboard.formatting import heading
from toolkit.market import Source
from toolkit.show.csv_rows import csv_rows
from toolkit.show.values import value_text
from toolkit.tables import LedgerState


def gap_table(coverage: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """List the stretches that are not held, longest first: from, to, length and state.

    >>> ledger = pl.DataFrame({"start_ts": [0, 600], "end_ts": [600, 720],
    ...                        "state": ["held", "missing"]})
    >>> gap_table(ledger, "UTC").rows()
    [('1970-01-01 00:10', '1970-01-01 00:12', '2 min', 'missing')]
    """
    gaps = coverage.filter(pl.col("state") != LedgerState.HELD).sort(
        pl.col("end_ts") - pl.col("start_ts"), descending=True, maintain_order=True
    )
    lengths = (gaps["end_ts"] - gaps["start_ts"]).to_list()
    return pl.DataFrame(
        {
            heading("start_ts", timezone): clock_text(gaps["start_ts"], timezone),
            heading("end_ts", timezone): clock_text(gaps["end_ts"], timezone),
            heading("length"): [value_text(length, column("length")) for length in lengths],
            heading("state"): gaps["state"],
        }
    )


def row_table(rows: pl.DataFrame, timezone: str, limit: int) -> pl.DataFrame:
    """Build the table of the newest rows, newest first, with their time in the zone's clock.

    >>> rows = pl.DataFrame({"trajectory": ["a", "a"], "ts": [0, 60], "price": [1.0, 2.0]})
    >>> row_table(rows, "UTC", 1).rows()
    [('1970-01-01 00:01', 2.0)]
    """
    newest = rows.tail(limit).reverse()
    clock = pl.Series(heading("time", timezone), clock_text(newest["ts"], timezone))
    own = newest.drop("trajectory", "ts")
    return own.rename({name: heading(name) for name in own.columns}).insert_column(0, clock)


def rows_csv(rows: pl.DataFrame, source: Source) -> bytes:
    """Write all rows as CSV, each with its source, and where it has ``ts`` that time in UTC.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.

    >>> rows = pl.DataFrame({"trajectory": ["a"], "ts": [60], "price": [1.0]})
    >>> print(rows_csv(rows, Source("simulated", "seed-7-1a2b")).decode())
    trajectory,ts,price,time_utc,source
    a,60,1.0,1970-01-01T00:01:00Z,"SIMULATED market, seed-7-1a2b"
    <BLANKLINE>
    """
    return csv_rows(_timed(rows, source))


def rows_parquet(rows: pl.DataFrame, source: Source) -> bytes:
    """Write all rows as Parquet, each with its source, and where it has ``ts`` its time in UTC.

    >>> rows = pl.DataFrame({"trajectory": ["a"], "ts": [60], "price": [1.0]})
    >>> file = rows_parquet(rows, Source("simulated", "seed-7-1a2b"))
    >>> pl.read_parquet(file)["source"].to_list()
    ['SIMULATED market, seed-7-1a2b']
    """
    file = io.BytesIO()
    _timed(rows, source).write_parquet(file)
    return file.getvalue()


def _timed(rows: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Add the source to each row, and where it has ``ts`` that time in UTC."""
    clock = pl.from_epoch("ts", time_unit="s").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    times = [clock.alias("time_utc")] if "ts" in rows.columns else []
    return rows.with_columns(*times, source=pl.lit(source.label))
