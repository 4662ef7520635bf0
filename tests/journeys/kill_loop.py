"""What the kill loops share: a market to load, loads that are ended, and how often."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from toolkit.store import Store
from toolkit.tables import SERIES

from .conftest import RAIL

KILLS = int(os.environ.get("RAIL_KILLS", "2"))
"""How often a load is killed; `make kill-loop` sets 50."""


@dataclass(frozen=True)
class Loads:
    """One `rail` command, run again and again into a store to be named.

    What a run printed lies beside its store, in ``.out`` and ``.err``.
    """

    arguments: Sequence[str]
    settings: Mapping[str, str]

    def start(self, store: Path) -> subprocess.Popen[bytes]:
        with store.with_suffix(".out").open("w") as out, store.with_suffix(".err").open("w") as err:
            return subprocess.Popen(
                [RAIL, *self.arguments, "--store", store],
                stdout=out,
                stderr=err,
                env=os.environ | self.settings,
            )

    def finish(self, store: Path) -> float:
        """Load undisturbed; gives the seconds it took."""
        began = time.monotonic()
        assert self.start(store).wait(900) == 0, store.with_suffix(".err").read_text()
        return time.monotonic() - began

    def kill(self, store: Path, after_s: float) -> bool:
        """Load and kill -9 the load after so long; whether it was still at work."""
        process = self.start(store)
        time.sleep(after_s)
        process.kill()
        return process.wait() != 0


def check_same(wanted: Mapping[str, pl.DataFrame], found: Mapping[str, pl.DataFrame]) -> None:
    """All frames of the one are those of the other, row by row."""
    assert found.keys() == wanted.keys()
    for name, frame in wanted.items():
        assert found[name].equals(frame), name


def write_market(folder: Path, start: int, days: int, decimals: Sequence[int]) -> Path:
    """Write days of minutes of one symbol, a leg per item: its prices have so many decimals."""
    random_walk = np.random.default_rng(1)
    ts = start + 60 * np.arange(days * 1440)
    legs = [
        pl.DataFrame(
            {
                "ts": ts,
                "price": np.exp(random_walk.normal(0, 1e-4, len(ts)).cumsum()).round(kept),
                "exchange": f"LEG{number}",
            }
        )
        for number, kept in enumerate(decimals)
    ]
    names = {"symbol": "AAA_USDT", "market": "spot", "dataset": "kill"}
    pl.concat(legs).with_columns(
        *(pl.lit(value).alias(name) for name, value in names.items()), interval_s=pl.lit(60)
    ).write_parquet(folder / "prices.parquet")
    return folder


def content(store: Store) -> dict[str, pl.DataFrame]:
    """Everything a store knows of the market, but not by which load it came to know it."""
    with store.reading() as connection:
        found = {
            table.name: connection.sql(
                f"SELECT * EXCLUDE (load_id, committed_at, stream_id) FROM {table.name} "
                "JOIN stream USING (stream_id) ORDER BY key, ts, revision"
            ).pl()
            for table in SERIES.values()
        }
    ledger = {
        trajectory.key: [tuple(stretch) for stretch in known.answered]
        for trajectory, known in store.ledger().items()
    }
    return found | {"ledger": pl.DataFrame([[str(sorted(ledger.items()))]])}
