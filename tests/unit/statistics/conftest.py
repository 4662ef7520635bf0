"""Builders of small frames, and a process whose parameters are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

START = 1_700_000_040  # a whole minute
MIDNIGHT = 1_700_006_400  # where funding's hours are counted from, UTC
FUNDING = {
    "trajectory": pl.String,
    "ts": pl.Int64,
    "buy_rate": pl.Float64,
    "sell_rate": pl.Float64,
    "buy_interval_hours": pl.Int64,
    "sell_interval_hours": pl.Int64,
}
Leg = Sequence[tuple[float, float, int | None]]  # hours after MIDNIGHT, rate, declared interval


def only(result: pl.DataFrame) -> dict:
    assert result.height == 1
    return result.row(0, named=True)


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
    """AR(1) paths, one a row, stationary below 1: x_t = phi x_(t-1) + a standard normal."""

    def build(phi: float, length: int, seed: int, paths: int = 1) -> np.ndarray:
        shocks = np.random.default_rng(seed).standard_normal((paths, length))
        out = np.empty_like(shocks)
        out[:, 0] = shocks[:, 0] / np.sqrt(1 - phi**2) if abs(phi) < 1 else shocks[:, 0]
        for at in range(1, length):
            out[:, at] = phi * out[:, at - 1] + shocks[:, at]
        return out

    return build


def _joined(buy: Leg | None, sell: Leg | None, trajectory: str = "a") -> pl.DataFrame:
    """The rows as the wire sends them: one per time at which either settles; None is a spot leg."""
    legs = [{MIDNIGHT + round(3600 * at): row for at, *row in leg or []} for leg in (buy, sell)]
    rows = []
    for ts in sorted({*legs[0], *legs[1]}):
        (buy_rate, buy_hours), (sell_rate, sell_hours) = (
            (0.0, None) if given is None else leg.get(ts, (None, _hours_in_force(given)))
            for given, leg in zip((buy, sell), legs, strict=True)
        )
        rows.append((trajectory, ts, buy_rate, sell_rate, buy_hours, sell_hours))
    return pl.DataFrame(rows, schema=FUNDING, orient="row")


def _hours_in_force(leg: Leg) -> int | None:
    return leg[0][2] if leg else None


def _every(hours: int, rates: Sequence[float], *, first: float = 0, told: bool = True) -> Leg:
    return [(first + k * hours, rate, hours if told else None) for k, rate in enumerate(rates)]


def _read_off(leg: Leg) -> list[float | None]:
    """The interval of each settlement, by a loop over the rule."""
    shown: list[float | None] = [None]
    for (before, _, earlier), (at, _, declared) in pairwise(leg):
        grid = [hours for hours in (declared, earlier, 1, 2, 4, 8, 24) if hours is not None]
        shown.append(next((h for h in grid if abs(at - before - h) <= h / 10), None))
    read: list[float | None] = []
    last = None
    for k, (_, _, declared) in enumerate(leg):
        around = [*shown[max(k - 1, 0) : k], *shown[k + 1 : k + 2]]
        told = (declared, leg[k - 1][2] if k else None)
        hours = shown[k]
        lasts = hours in around and (declared is None or (hours or 0) <= declared)
        if hours is not None and (hours in told or lasts):
            last = hours
            read.append(last)
        else:
            read.append(declared or last)
    return read


def _some_leg(rng: np.random.Generator) -> Leg:
    """Settlements of 1, 4 or 8 h, of which about a sixth are missing, declared or not."""
    hours = int(rng.choice([1, 4, 8]))
    rates = rng.normal(0, 1e-4, 160 // hours).tolist()
    leg = _every(hours, rates, told=bool(rng.random() < 0.6))
    return [row for row in leg if rng.random() > 1 / 6] or leg[:1]


@pytest.fixture
def joined() -> Callable[..., pl.DataFrame]:
    """See `_joined`."""
    return _joined


@pytest.fixture
def every() -> Callable[..., Leg]:
    """See `_every`."""
    return _every


@pytest.fixture
def read_off() -> Callable[..., list[float | None]]:
    """See `_read_off`."""
    return _read_off


@pytest.fixture
def some_leg() -> Callable[..., Leg]:
    """See `_some_leg`."""
    return _some_leg
