"""Builders of small frames, and a process whose parameters are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import pytest

START = 1_700_000_040  # a whole minute


@pytest.fixture
def series() -> Callable[..., pl.DataFrame]:
    """A frame of one trajectory: values a step apart, or at the times given."""

    def build(
        values: Sequence[float | None] | np.ndarray,
        *,
        ts: Sequence[int] | np.ndarray | None = None,
        trajectory: str = "a",
        step_s: int = 60,
    ) -> pl.DataFrame:
        values = list(values)
        times = np.arange(len(values)) * step_s + START if ts is None else ts
        return pl.DataFrame(
            {"trajectory": [trajectory] * len(values), "ts": times, "spread_log_bps": values},
            schema={"trajectory": pl.String, "ts": pl.Int64, "spread_log_bps": pl.Float64},
        )

    return build


@pytest.fixture
def start() -> int:
    """The time of the first row that `series` builds."""
    return START


@pytest.fixture
def autoregressive() -> Callable[..., np.ndarray]:
    """Stationary AR(1) paths, one a row: x_t = phi x_(t-1) + a standard normal."""

    def build(phi: float, length: int, seed: int, paths: int = 1) -> np.ndarray:
        shocks = np.random.default_rng(seed).standard_normal((paths, length))
        out = np.empty_like(shocks)
        out[:, 0] = shocks[:, 0] / np.sqrt(1 - phi**2)
        for at in range(1, length):
            out[:, at] = phi * out[:, at - 1] + shocks[:, at]
        return out

    return build
