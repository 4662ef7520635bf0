"""All analyses of a spread on three weeks of real minutes of two venues, and on drawn ones.

The laws are the same for both. Each is held against a figure that is computed another way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from statsmodels.tsa.stattools import adfuller

from toolkit.statistics import spread
from toolkit.statistics.fees import FeeModel

KEY = "BTC_USD:COINBASE.spot:KRAKEN.spot"
WINDOW = (1_677_628_800, 1_679_443_200)
FREE = "\n".join(
    ['name = "free"']
    + [
        f'[[fee]]\nexchange = "{name}"\nvalid_from = 2017-01-01\ntaker_bps = 0\nslippage_bps = 0'
        for name in ("COINBASE", "KRAKEN")
    ]
)


@pytest.fixture
def drawn(autoregressive: Callable[..., np.ndarray]) -> pl.DataFrame:
    """Minutes of a walk and of a second venue around it, one in a hundred missing."""
    rng = np.random.default_rng(4)
    minutes = (WINDOW[1] - WINDOW[0]) // 60
    walk = np.cumsum(5e-4 * rng.standard_normal(minutes))
    gap = 2e-4 * autoregressive(0.9, minutes, seed=8)[0]
    return pl.DataFrame(
        {
            "trajectory": [KEY] * minutes,
            "ts": WINDOW[0] + 60 * np.arange(minutes),
            "buy_price": 20_000 * np.exp(walk),
            "sell_price": 20_000 * np.exp(walk + gap),
        }
    ).filter(pl.Series(rng.random(minutes) >= 0.01))


@pytest.fixture
def recorded(real_data: Path) -> pl.DataFrame:
    """The minutes of BTC_USD at two venues in March 2023, where both have one."""
    prices = pl.scan_parquet(real_data / "prices.parquet").filter(
        pl.col("dataset") == "iaqf_dhruvk1432", pl.col("symbol") == "BTC_USD"
    )
    buy, sell = (
        prices.filter(pl.col("exchange") == exchange).select("ts", pl.col("price").alias(name))
        for exchange, name in (("COINBASE", "buy_price"), ("KRAKEN", "sell_price"))
    )
    both = buy.join(sell, on="ts").sort("ts").collect()
    return both.with_columns(trajectory=pl.lit(KEY))


@pytest.mark.parametrize("source", ["drawn", "recorded"])
def test_the_forms_agree_with_other_ways_and_one_another(
    source: str, request: pytest.FixtureRequest
) -> None:
    rows = spread.with_spread(request.getfixturevalue(source))
    tested = spread.stationarity(rows, *WINDOW, adf_lags=20).row(0, named=True)
    cuts = np.flatnonzero(np.diff(rows["ts"].to_numpy()) != 60) + 1
    longest = max(np.split(rows["spread_log_bps"].to_numpy(), cuts), key=len)
    t = adfuller(longest, maxlag=20, autolag=None, result_object=False)[0]
    assert tested["adf_n"] == len(longest)
    assert tested["adf_t"] == pytest.approx(t, rel=1e-8)
    assert tested["variance_ratio_2"] < 1, "two venues' prices come back to each other"

    hours = spread.hour_of_week(rows, *WINDOW)
    assert hours["hour_n"].sum() == rows.height
    assert set(hours["mean_reason"]) == {"too_few"}, "three weeks have no interval"

    closing = spread.time_to_close(rows, *WINDOW, enter_bps=5, exit_bps=1).row(0, named=True)
    either = {"enter_bps": 5, "absolute": True}
    entered = spread.episodes(rows, *WINDOW, leave_bps=np.nextafter(1, 2), **either)
    assert closing["entries"] == entered.filter(~pl.col("censored_left")).height
    assert closing["closed"] <= closing["entries"]
    assert closing["close_lower_s"] <= closing["close_median_s"] <= closing["close_upper_s"]

    net = spread.net_episodes(rows, *WINDOW, fees=FeeModel.parse(FREE), enter_bps=5)
    plain = spread.episodes(rows, *WINDOW, column="spread_bps", **either)
    assert net["net_episodes"].item() == plain.height
    assert net["net_area_bps_h"].item() == pytest.approx(plain["area_bps_h"].sum())

    legs = spread.lead_lag(rows, *WINDOW).row(0, named=True)
    assert (legs["discovery_reason"], legs["beyond_band"]) == ("step_too_coarse", True)
    assert abs(legs["peak_lag_s"]) <= 60
    own = spread.hayashi_yoshida(rows, *WINDOW, lags_s=[0])["correlation"].item()
    assert own == pytest.approx(legs["correlation_at_0"], abs=0.1)

    tail = spread.tail_index(rows, *WINDOW).row(0, named=True)
    sizes = np.sort(np.abs(rows["spread_log_bps"].to_numpy()))[::-1]
    k = len(sizes) * 5 // 100
    assert tail["tail_5pct_index"] == pytest.approx(k / np.log(sizes[:k] / sizes[k]).sum())
