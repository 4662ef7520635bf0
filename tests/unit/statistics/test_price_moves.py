"""Moves of prices within a time, against each row by itself."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.events.audit import price_moves


def test_a_move_is_from_the_lowest_or_the_highest_price_of_the_time_before() -> None:
    rng = np.random.default_rng(5)
    names = ["A_B:X.spot", "A_B:Y.spot"]
    ts = {name: np.sort(rng.choice(400, 60, replace=False)) for name in names}
    price = {name: 100 * np.exp(0.01 * rng.standard_normal(60).cumsum()) for name in names}
    price[names[0]][[7, 8, 30]] = [-1, 0, np.nan]
    frame = pl.concat(
        pl.DataFrame({"trajectory": name, "ts": ts[name], "price": price[name]}) for name in names
    )
    found = price_moves(frame.sample(fraction=1.0, shuffle=True, seed=2).lazy(), 20)
    assert found["trajectory"].unique(maintain_order=True).to_list() == [
        f"{name}:{kind}" for name in names for kind in ("dump", "pump")
    ]
    for name in names:
        known = price[name] > 0
        for kind, sign in (("pump", 1), ("dump", -1)):
            rows = found.filter(trajectory=f"{name}:{kind}")
            assert rows["ts"].to_list() == ts[name].tolist()
            for at, move in zip(ts[name], rows["move_bps"], strict=True):
                near = price[name][known & (ts[name] >= at - 20) & (ts[name] <= at)]
                own = price[name][ts[name] == at][0]
                if not own > 0 or near.size < 2:
                    assert move is None
                else:
                    start = near.min() if sign > 0 else near.max()
                    assert move == pytest.approx(1e4 * sign * (own / start - 1), abs=1e-9)


def test_prices_further_apart_than_the_time_have_no_move() -> None:
    frame = pl.DataFrame({"trajectory": "a", "ts": [0, 301, 602], "price": [1.0, 2.0, 3.0]})
    assert price_moves(frame, 300)["move_bps"].null_count() == 6
    assert price_moves(frame, 301)["move_bps"].null_count() == 2
    assert price_moves(frame.clear(), 300).is_empty()
    with pytest.raises(InputError, match="move_s: 0 is not allowed"):
        price_moves(frame, 0)
