"""How a price moved, against numpy and a walk of known volatility."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.prices import summary


def frame(values: list[float | None] | np.ndarray, ts: np.ndarray | None = None) -> pl.DataFrame:
    at = np.arange(len(values)) * 60 if ts is None else ts
    return pl.DataFrame(
        {"trajectory": ["a"] * len(values), "ts": at, "price": list(values)},
        schema={"trajectory": pl.String, "ts": pl.Int64, "price": pl.Float64},
    )


def one(rows: pl.DataFrame, *window: int) -> dict[str, object]:
    return summary(rows, *window).row(0, named=True)


def test_a_price_is_summed_up_as_by_numpy() -> None:
    rng = np.random.default_rng(3)
    values = 100 * np.exp(np.cumsum(rng.normal(0, 1e-3, 500)))
    kept = np.sort(rng.choice(500, 400, replace=False))
    row = one(frame(values[kept], kept * 60), 0, 30_000)
    returns = np.diff(np.log(values[kept]))[np.diff(kept) == 1]
    year = 365 * 86_400 / 60
    assert (row["price_first"], row["price_last"]) == (values[kept][0], values[kept][-1])
    assert (row["price_low"], row["price_high"]) == (values[kept].min(), values[kept].max())
    assert row["change_pct"] == pytest.approx(100 * (values[kept][-1] / values[kept][0] - 1))
    assert row["n_returns"] == returns.size
    expected = 100 * np.sqrt(np.mean(returns**2) * year)
    assert row["realized_volatility_pct"] == pytest.approx(expected, rel=1e-12)


def test_the_volatility_of_a_walk_is_its_own_whatever_the_gaps() -> None:
    rng = np.random.default_rng(7)
    yearly = 0.6
    sd = yearly / np.sqrt(365 * 86_400 / 60)
    values = 100 * np.exp(np.cumsum(rng.normal(0, sd, 20_000)))
    kept = np.flatnonzero(rng.random(20_000) > 0.3)
    row = one(frame(values[kept], kept * 60))
    assert row["realized_volatility_pct"] == pytest.approx(100 * yearly, rel=0.03)


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        ([None, None], ("empty", "empty")),
        ([0.0, -1.0], ("empty", "empty")),
        ([100.0, None], (None, "too_few")),
        ([100.0, 101.0], (None, None)),
    ],
)
def test_what_cannot_be_known_is_null_for_a_reason(
    values: list[float | None], reasons: tuple[str | None, str | None]
) -> None:
    row = one(frame(values), 0, 120)
    assert (row["price_reason"], row["volatility_reason"]) == reasons
    assert (row["price_first"] is None) == (reasons[0] is not None)
    assert (row["realized_volatility_pct"] is None) == (reasons[1] is not None)


def test_a_frame_without_prices_is_refused() -> None:
    with pytest.raises(InputError, match="no price"):
        summary(pl.DataFrame({"trajectory": ["a"], "ts": [0]}))
