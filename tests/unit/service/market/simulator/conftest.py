"""Spreads out of the simulator, with what was planted in them left out or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from toolkit.market import Trajectory
from toolkit.service.market.simulator import Simulated
from toolkit.service.market.simulator.processes import DAY_S, MINUTE_S

from ...truth import Truth

FIRST_DAY = 20_777  # 2026-11-20


@pytest.fixture
def first_day() -> int:
    """The day that the tests' windows begin with."""
    return FIRST_DAY


@pytest.fixture
def undisturbed() -> Callable[[int, str, int], pl.DataFrame]:
    """A spread by minutes: ``trajectory``, ``ts``, ``spread_log_bps``, without what was planted."""

    def build(seed: int, key: str, days: int) -> pl.DataFrame:
        simulator, truth, asked = Simulated(seed), Truth(seed), Trajectory.parse(key)
        symbol = str(asked.symbol)
        times, values = [], []
        for day in range(FIRST_DAY, FIRST_DAY + days):
            buy, sell = (simulator.day(symbol, leg, day) for leg in asked.legs)
            ts, of_buy, of_sell = np.intersect1d(buy.ts, sell.ts, return_indices=True)
            times.append(ts)
            values.append(1e4 * np.log(sell.price[of_sell] / buy.price[of_buy]))
        ts, spread = np.concatenate(times), np.concatenate(values)
        kept = np.full(len(ts), fill_value=True)
        window = (FIRST_DAY * DAY_S, (FIRST_DAY + days) * DAY_S)
        for planted in (truth.episodes, truth.leg_shocks):
            for pulse in planted(symbol, asked.buy, asked.sell, *window):
                kept &= (ts + MINUTE_S <= pulse.start) | (ts + MINUTE_S >= pulse.end)
        return pl.DataFrame({"ts": ts[kept], "spread_log_bps": spread[kept]}).select(
            pl.lit(f"{seed}:{key}").alias("trajectory"), "ts", "spread_log_bps"
        )

    return build
