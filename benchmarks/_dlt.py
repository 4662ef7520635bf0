"""dlt's ways to load the same: its REST source, and a resource of polars frames written by hand.

Run by `benchmarks.loader` in an environment of its own, which `make bench` installs. Both write
Parquet files for DuckDB, dlt's fastest setting.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import dlt
import polars as pl
from _market import EVENTS, HISTORY, KEY, START, prices, weeks
from _memory import peak_mb
from dlt.sources.helpers import requests
from dlt.sources.rest_api import rest_api_source

HEADERS = {"apikey": KEY}
ROWS = {"ts": pl.Int64, "price": pl.Float64, "mark_price": pl.Float64, "volume": pl.Float64}


def rest_prices(base_url: str, legs: int, limit: int, end: int) -> Any:
    """Return dlt's REST source over the legs, paged by ``next_end_time``."""
    paginator = {"type": "cursor", "cursor_path": "next_end_time", "cursor_param": "end_time"}
    return _rest(
        base_url,
        {
            f"leg{leg}": {
                "path": HISTORY,
                "params": prices(leg, limit, end),
                "data_selector": "items",
                "paginator": paginator,
            }
            for leg in range(legs)
        },
        "prices",
    )


def rest_events(base_url: str, end: int) -> Any:
    """Return dlt's REST source over the event log's windows, paged by cursor."""
    paginator = {"type": "cursor", "cursor_path": "next_cursor", "cursor_param": "cursor"}
    return _rest(
        base_url,
        {
            f"week{number}": {
                "path": EVENTS,
                "params": params,
                "data_selector": "items",
                "paginator": paginator,
            }
            for number, params in enumerate(weeks(end))
        },
        "events",
    )


def _rest(base_url: str, endpoints: dict[str, Any], table: str) -> Any:
    resources = [
        {"name": name, "table_name": table, "endpoint": endpoint, "write_disposition": "append"}
        for name, endpoint in endpoints.items()
    ]
    client = {"base_url": base_url, "headers": HEADERS}
    return rest_api_source({"client": client, "resources": resources}, parallelized=True)


def by_hand(base_url: str, legs: int, limit: int, end: int) -> Any:
    """Return one resource per leg that yields each page as an Arrow table, read by polars."""
    session = requests.Session()

    def pages(leg: int) -> Iterator[Any]:
        before: int | None = end
        while before is not None:
            query = prices(leg, limit, before)
            body = session.get(base_url + HISTORY, params=query, headers=HEADERS).content
            start, stop = body.index(b'"items":') + 8, body.rindex(b',"next_end_time"')
            before = json.loads(b"{" + body[stop + 1 :]).get("next_end_time")
            if stop - start > 2:
                frame = pl.read_json(io.BytesIO(body[start:stop]), schema=ROWS)
                yield frame.with_columns(leg=pl.lit(leg)).to_arrow()

    @dlt.source(parallelized=True)
    def legs_source() -> Any:
        for leg in range(legs):
            yield dlt.resource(pages(leg), name=f"leg{leg}", table_name="prices")

    return legs_source()


def main() -> None:
    """Load, count, and print wall seconds, CPU seconds, peak MB, and the number of rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=["rest", "resource", "events"])
    parser.add_argument("base_url")
    parser.add_argument("legs", type=int)
    parser.add_argument("limit", type=int)
    parser.add_argument("days", type=int)
    asked = parser.parse_args()
    end = START + asked.days * 86_400
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        source = {
            "rest": lambda: rest_prices(asked.base_url, asked.legs, asked.limit, end),
            "resource": lambda: by_hand(asked.base_url, asked.legs, asked.limit, end),
            "events": lambda: rest_events(asked.base_url, end),
        }[asked.way]()
        pipeline = dlt.pipeline(
            "bench",
            pipelines_dir=f"{folder}/pipelines",
            destination=dlt.destinations.duckdb(f"{folder}/dlt.duckdb"),
            dataset_name="bench",
        )
        pipeline.run(source, loader_file_format="parquet")
        table = "events" if asked.way == "events" else "prices"
        with pipeline.sql_client() as client:
            counted = client.execute_sql(f"SELECT count(*) FROM {table}")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found = {"wall_s": wall, "cpu_s": cpu, "peak_mb": peak_mb(), "rows": counted[0][0]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
