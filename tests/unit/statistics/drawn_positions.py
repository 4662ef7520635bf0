"""Positions of events at random, as `toolkit.statistics.events.positions` gives them."""

from __future__ import annotations

import numpy as np
import polars as pl

from toolkit.statistics.events.positions import LEFT_OUT

REASONS = [reason for reasons in LEFT_OUT.values() for reason in reasons]


def drawn(count: int = 600, seed: int = 11, *, priced: float = 0.8) -> pl.DataFrame:
    """Positions after two delays, some without a gross or a cost."""
    rng = np.random.default_rng(seed)
    taken = rng.random(count) < 0.7
    gross = np.where(taken, rng.normal(20, 30, count), np.nan)
    cost = np.where(taken & (rng.random(count) < priced), rng.choice([10.0, 25.0], count), np.nan)
    opened = rng.integers(0, 10**6, count)
    held = rng.integers(60, 4_000, count)
    frame = pl.DataFrame(
        {
            "trajectory": rng.choice(["a", "b", "c"], count),
            "symbol": rng.choice(["A_B", "C_B"], count),
            "t_open": opened,
            "delay_s": rng.choice([0, 300], count),
            "entry_spread_log_bps": rng.normal(60, 10, count),
            "exit_ts": opened + 60 + held,
            "held_s": held,
            "ended_by": rng.choice(["close", "return", "limit"], count),
            "gross_bps": gross,
            "position_reason": pl.Series(rng.choice(REASONS, count)).set(pl.Series(taken), None),
            "cost_bps": cost,
            "net_bps": gross - cost,
            "style": "taker",
            "notional": 1e4,
            "fee_model": "mine",
            "fee_model_hash": "ab",
            "window_start": 0,
            "window_end": 10**6,
            "params_hash": "cd",
        },
        schema_overrides=dict.fromkeys(("delay_s", "window_start", "window_end"), pl.Int64),
    )
    gone = pl.col("position_reason").is_not_null()
    return frame.with_columns(
        pl.col("gross_bps", "cost_bps", "net_bps").fill_nan(None),
        *(pl.when(~gone).then(name).alias(name) for name in ("exit_ts", "held_s", "ended_by")),
    )
