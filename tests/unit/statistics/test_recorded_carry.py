"""The price leg of carry on recorded markets, against sums in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from toolkit.statistics import funding

from .test_carry import HOUR, of_legs


def recorded(real_data: Path, buy: str, sell: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The funding and the 8 h closes of two perpetuals, of a year and a half."""
    rows = {
        name: pl.read_parquet(real_data / f"{name}.parquet").with_columns(
            pl.col("symbol", "exchange", "dataset").cast(pl.String), pl.col("ts").cast(pl.Int64)
        )
        for name in ("funding", "prices")
    }
    rows = {name: each.filter(dataset="aha_hh", symbol="BTC_USDT") for name, each in rows.items()}
    perps = rows["prices"].filter(pl.col("market").cast(pl.String) == "futures")
    bars = [perps.filter(exchange=each).select("ts", "close").unique("ts") for each in (buy, sell)]
    prices = bars[0].join(bars[1], on="ts", suffix="_sell").sort("ts")
    key = f"BTC_USDT:{buy}.futures:{sell}.futures"
    return of_legs(rows["funding"], buy, sell), prices.select(
        pl.lit(key).alias("trajectory"),
        "ts",
        buy_price=pl.col("close").cast(pl.Float64),
        sell_price=pl.col("close_sell").cast(pl.Float64),
    )


def test_prices_double_the_range_of_a_day_of_real_carry_and_turn_its_sign(real_data: Path) -> None:
    """Against sums in numpy: BYBIT and OKX perpetuals of BTC, 8 h bars known at their end."""
    frame, prices = recorded(real_data, "BYBIT", "OKX")
    asked = {"horizons": ["1d"], "every": "8h"}
    (row,) = funding.holdings(frame, prices=prices, **asked).to_dicts()
    ts = frame["ts"].to_numpy()
    received = np.cumsum(1e4 * (frame["sell_rate"] - frame["buy_rate"]).to_numpy())
    last = np.searchsorted(prices["ts"].to_numpy() + 8 * HOUR, ts, side="right") - 1
    level = 1e4 * np.log(prices["sell_price"].to_numpy() / prices["buy_price"].to_numpy())
    level = np.where(last >= 0, level[np.maximum(last, 0)], np.nan)
    paid = received[3:] - received[:-3]
    kept = paid - (level[3:] - level[:-3])
    known = ~np.isnan(kept)
    # one entry more, 8 h before the first settlement, of which no price is known
    before = np.append(received[2], paid)
    for name, values in (("funding", before), ("gross", kept[known])):
        found = [row[f"{name}_q05_bps"], row[f"{name}_q95_bps"]]
        assert found == pytest.approx(np.quantile(values, [0.05, 0.95]), abs=1e-9)
        assert row[f"{name}_mean_bps"] == pytest.approx(values.mean(), abs=1e-9)
    assert [row["funding_q05_bps"], row["funding_q95_bps"]] == pytest.approx([-3.4, 2.9], abs=0.05)
    assert [row["gross_q05_bps"], row["gross_q95_bps"]] == pytest.approx([-5.8, 5.4], abs=0.05)
    differs = np.mean(np.sign(paid[known]) != np.sign(kept[known]))
    assert 0.27 <= differs <= 0.30
