"""What the benchmark of statistics measures: spreads and funding that walk at random."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

START, STEP_S, HOUR_S = 1_700_000_040, 60, 3_600
TOGETHER = 50


def key(number: int, kind: str = "") -> str:
    market = "futures" if kind else "spot"
    return f"{kind}ASSET{number:04}_USDT:ONE.{market}:TWO.{market}"


def spread_rows(numbers: range, minutes: int) -> pl.DataFrame:
    """AR(1) spreads of known kind, one minute in twenty missing."""
    rng = np.random.default_rng([20261120, numbers.start])
    shape = (len(numbers), minutes)
    phi, noise = rng.uniform(0.9, 0.999, len(numbers)), rng.standard_normal(shape)
    spread = np.zeros(shape)
    for at in range(1, minutes):
        spread[:, at] = phi * spread[:, at - 1] + noise[:, at]
    buy = 100 * np.exp(np.cumsum(1e-4 * rng.standard_normal(shape), axis=1))
    return pl.DataFrame(
        {
            "trajectory": np.repeat([key(number) for number in numbers], minutes),
            "ts": np.tile(START + STEP_S * np.arange(minutes), len(numbers)),
            "buy_price": buy.ravel(),
            "sell_price": (buy * np.exp(spread / 1e4)).ravel(),
        }
    ).filter(pl.Series(rng.random(spread.size) >= 0.05))


def funding_rows(numbers: range, hours: int) -> pl.DataFrame:
    """Settlements of 1 h on one leg and of 8 h on the other."""
    rng = np.random.default_rng([20261121, numbers.start])
    rates = rng.standard_normal((2, len(numbers) * hours)) / 1e4
    frame = pl.DataFrame(
        {
            "trajectory": np.repeat([key(n, "funding/") for n in numbers], hours),
            "ts": np.tile(HOUR_S * (START // HOUR_S + np.arange(hours)), len(numbers)),
            "buy_rate": rates[0],
            "sell_rate": rates[1],
        }
    )
    settles = pl.col("ts") % (8 * HOUR_S) == 0
    return frame.with_columns(
        pl.when(settles).then("sell_rate").alias("sell_rate"),
        buy_interval_hours=pl.lit(1.0),
        sell_interval_hours=pl.lit(8.0),
    )


def make_files(folder: Path, trajectories: int, minutes: int, *, store: bool) -> int:
    """The spreads and funding of as many rows: as a store with the spreads as one Parquet file,
    or both as Parquet files."""
    blocks = [
        range(at, min(at + TOGETHER, trajectories)) for at in range(0, trajectories, TOGETHER)
    ]
    frame = pl.concat([spread_rows(block, minutes) for block in blocks])
    frame.write_parquet(folder / "spread.parquet", row_group_size=250_000)
    if store:
        fill_store(folder, (spread_rows(block, minutes) for block in blocks))
        fill_store(folder, (funding_rows(block, minutes) for block in blocks))
    else:
        funding = pl.concat([funding_rows(block, minutes) for block in blocks])
        funding.write_parquet(folder / "funding.parquet", row_group_size=250_000)
    return frame.height


def fill_store(folder: Path, frames: Iterable[pl.DataFrame], now: int | None = None) -> None:
    """Commit each frame as a load of pages does. ``now`` is the service's clock, else 2033."""
    from toolkit.market import Source, Trajectory  # noqa: PLC0415 - a peer imports only its own
    from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter  # noqa: PLC0415 - as above
    from toolkit.tables import SERIES  # noqa: PLC0415 - as above

    writer = StoreWriter(Store(folder / "rail.duckdb"))
    writer.bind(Source("simulated", "walks"))
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1", 0, None, "0"))
    edge = Edge(2_000_000_000, step_s=STEP_S)
    if now is not None:
        edge = Edge(now, step_s=STEP_S, asked_at=int(time.time()))
    for frame in frames:
        batch = Batch()
        for (name,), rows in frame.partition_by("trajectory", as_dict=True).items():
            trajectory = Trajectory.parse(name)
            types = SERIES[trajectory.family].schema
            values = [column.name for column in SERIES[trajectory.family].values]
            absent = [pl.lit(None, types[v]).alias(v) for v in values if v not in rows.columns]
            page = rows.with_columns(absent).select("ts", *values)
            window = (page["ts"][0], page["ts"][-1] + 1)
            batch.add(trajectory, page, window, edge)
        writer.commit(load_id, batch)
