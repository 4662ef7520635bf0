# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How wide did bitcoin go between exchanges when USDC lost its peg in March 2023?
#
# These are minutes of **real** trades: BTC_USD on COINBASE and KRAKEN, and the stablecoins used as
# dollars, 1 to 21 March 2023. The data may not be redistributed, so `prices.parquet` is not part of
# the toolkit: `RAIL_REAL_DATA` names its folder. Without it the cells below do nothing, and the
# last one says so.
#
# Times are UTC, windows are `[start, end)`. A spread is 10⁴ ln(sell / buy), in bps: positive when a
# position long the buy leg and short the sell leg earns it.

# %%
import os
from pathlib import Path

import polars as pl
from IPython.display import display

import toolkit as tk
from toolkit.cards import readable_tables
from toolkit.statistics.fees import Fee, FeeModel

readable_tables(decimals=1)
file = Path(os.environ.get("RAIL_REAL_DATA", "../../shared/data")) / "prices.parquet"
here = file.is_file()

# %% [markdown]
# Each symbol on each exchange becomes a series of prices, and any two of them a spread.

# %%
if here:
    bars = pl.read_parquet(file).filter(dataset="iaqf_dhruvk1432")
    prices = {}
    for (symbol, exchange), rows in bars.group_by("symbol", "exchange"):
        key = f"{symbol}:{exchange}.spot"
        prices[key] = tk.series.own_series(rows, key, name="minutes of March 2023")
    spread = tk.series.pair_series(prices["BTC_USD:COINBASE.spot"], prices["BTC_USD:KRAKEN.spot"])
    display(spread)

# %% [markdown]
# ## How wide, and when
#
# On 10 March the bank with part of USDC's reserves was closed. Dashed lines mark 40 bps on either
# side.

# %%
if here:
    display(spread.plot(thresholds_bps=[-40, 40]))

# %% [markdown]
# ## For how long
#
# The table lists each episode in which the spread was 40 bps or more from zero.

# %%
if here:
    wide = spread.episodes(40, absolute=True)
    display(
        wide.select(
            pl.from_epoch("start_ts").dt.strftime("%d %B %H:%M").alias("from"),
            minutes=pl.col("duration_s") // 60,
            peak_bps="peak_bps",
            dearer=pl.col("side").replace({"negative": "COINBASE", "positive": "KRAKEN"}),
        )
    )

# %% [markdown]
# ## What was left after fees
#
# A position is opened and closed on both exchanges: four fills, here of 10 bps each. `min` is the
# number of minutes in which the spread exceeded that, `left_bps` the average remainder. The last
# two columns are the same at half the fee.

# %%
if here:
    table = [Fee(name, None, 0, taker_bps=10, slippage_bps=0) for name in ("COINBASE", "KRAKEN")]
    net = spread.net_summary(FeeModel("10 bps a fill", tuple(table)))
    minutes = pl.col("n") * pl.col("step_s") / 60
    display(
        net.select(
            "n",
            "cost_bps",
            min=minutes * pl.col("net_share"),
            left_bps="net_mean_bps",
            half_min=minutes * pl.col("net_share_at_half_cost"),
            half_left_bps="net_mean_at_half_cost_bps",
        )
    )

# %% [markdown]
# ## Was a bitcoin for USDC cheaper?
#
# On one exchange, KRAKEN, a bitcoin is bought for dollars and sold for a stablecoin, whose own
# price in dollars is the third leg that converts both to one currency. A row needs all three prices
# of a minute: `coverage_pct` is the share of minutes in which all three traded.

# %%
if here:
    against = {
        coin: tk.series.pair_series(
            *(prices[f"{key}:KRAKEN.spot"] for key in ("BTC_USD", f"BTC_{coin}", f"{coin}_USD"))
        )
        for coin in ("USDC", "USDT")
    }
    low = {coin: prices[f"{coin}_USD:KRAKEN.spot"].df["price"].min() for coin in against}
    display(
        pl.concat(pair.summary() for pair in against.values()).select(
            pl.Series("sold_for", list(against)),
            "n",
            coverage_pct=100 * pl.col("coverage"),
            median_bps="spread_median_log_bps",
            q01_bps="spread_q01_log_bps",
            q99_bps="spread_q99_log_bps",
            lowest_usd=pl.Series([f"{price:.3f}" for price in low.values()]),
        )
    )

# %%
if here:
    display(against["USDC"].plot(thresholds_bps=[-40, 40]))

# %% [markdown]
# ## A finding

# %%
if here:
    peak = wide.sort(pl.col("peak_bps").abs()).row(-1, named=True)
    usdc = against["USDC"].df.sort(pl.col("spread_log_bps").abs(), nulls_last=False)
    far = usdc.row(-1, named=True)
    half = spread.summary().row(0, named=True)
    why = tk.statistics.Reason(half["half_life_upper_reason"]).words
    print(
        f"BTC_USD was up to {abs(peak['peak_bps']):.0f} bps apart between COINBASE and KRAKEN, on "
        f"{tk.format_ts(peak['peak_ts'])},\nand {wide['duration_s'].sum() // 60} minutes 40 bps "
        f"apart or more. After four fills of 10 bps a mean of {net['net_mean_bps'].item():.1f} bps "
        f"was left then.\n"
        f"Its half-life, {half['half_life_s'] / 60:.0f} min, has no interval: {why}.\n"
        f"Its autocorrelation halves after {half['acf_half_lag_s'] / 3600:.1f} h.\n"
        f"For USDC on KRAKEN it was up to {abs(far['spread_log_bps']):.0f} bps from its price in "
        f"dollars, on {far['time']:%Y-%m-%d %H:%M} UTC.\n{spread.footnote}"
    )
else:
    print(f"Skipped: there is no {file}. RAIL_REAL_DATA names the folder that has it.")
