"""A market that is dense with events, and what a service's own archive holds of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from tests.adversary import ArchiveSettings, FaultyArchive
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.service import Clock, Replay
from toolkit.service.events.lives import DetectorSettings, Rule

START = 1_767_225_600
DENSE = ArchiveSettings(
    DetectorSettings(
        spread=Rule(0.5, 0.3, step=0.2, every_s=0, max_age_s=60, lost_after_s=60),
        splash=Rule(1.8, 0.6, step=None, every_s=0, max_age_s=60, lost_after_s=60),
        splash_window_s=30,
    )
)
"""What counts as an event here: almost every move."""

LEGS = ("ALPHA", "BETA")


def write_market(folder: Path, *, symbols: int, seconds: int, seed: int = 1) -> Path:
    """Bars of one second of so many symbols on two legs, in a file of their own."""
    draw = np.random.default_rng(seed)
    ts = START + np.arange(seconds)
    frames = [
        pl.DataFrame(
            {"ts": ts, "price": 100.0 * np.exp(draw.normal(0, 4e-3, seconds).round(6))}
        ).select(
            "ts",
            pl.lit(f"C{number}_USDT").alias("symbol"),
            pl.lit(leg).alias("exchange"),
            pl.lit("spot").alias("market"),
            pl.lit(1, pl.Int32).alias("interval_s"),
            "price",
            pl.lit("dense").alias("dataset"),
        )
        for number in range(symbols)
        for leg in LEGS
    ]
    folder.mkdir(exist_ok=True)
    pl.concat(frames).write_parquet(folder / "prices.parquet")
    return folder


class Truth:
    """Every document of a stretch, by family, as the service itself would show them."""

    def __init__(self, source: Replay) -> None:
        self.source = source
        self._archive = FaultyArchive(source, DENSE)

    def documents(self, family: EventFamily, start: int, end: int) -> list[bytes]:
        """In order of their bytes."""
        return sorted(body for _, body in self._archive.documents(family, start, end))


def held_documents(frame: pl.DataFrame) -> list[bytes]:
    """The bytes of documents as a store gives them, in order."""
    return sorted(text.encode() for text in frame["document"])


@dataclass(frozen=True)
class HeldClock(Clock):
    """Stands at ``start`` until it is let go, then runs ``speed`` times as fast as time."""

    start: int = START
    speed: float = 1.0
    let_go_at: list[float] = field(default_factory=list)

    def let_go(self) -> None:
        self.let_go_at.append(time.monotonic())

    def now(self) -> int:
        if not self.let_go_at:
            return self.start
        return int(self.start + (time.monotonic() - self.let_go_at[0]) * self.speed)


def warm(client: Client) -> None:
    """Let the service find the events of the market's day before the clock runs."""
    for family in (EventFamily.SPREAD, EventFamily.SPLASH):
        list(client.event_pages(family, Interval(START, START + 2)))
