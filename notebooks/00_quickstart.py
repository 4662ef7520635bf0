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
# # Quickstart
#
# Which spread of bitcoin moves most, what does funding pay, and how long do events last? Without an
# address the first load starts a local service with an endless **SIMULATED** market: no number
# below was ever traded.
#
# Times are UTC, windows are `[start, end)`, and column names include their unit. A spread is 10⁴
# ln(sell / buy), in bps: positive when a position long the buy leg and short the sell leg earns it.

# %%
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables

readable_tables()
rail = tk.open("quickstart.duckdb", window="7d")
rail.sync(["BTC_USDT:AURORA.spot:*.futures", "funding/BTC_USDT:AURORA.futures:*", "events/spread"])
rail

# %% [markdown]
# A symbol trades on legs, written `EXCHANGE.market`. Two legs make a spread, buy first; two futures
# legs make a funding pair. `*` matches whatever the service lists. Run again, the cell fetches only
# what is new. Every call below covers the window given here, the last seven days.
#
# ## Spreads
#
# The half-life is the time in which half of a deviation is gone, with its 95 % interval. If it is
# null, `half_life_reason` says why.

# %%
spreads = rail.screen(sort="-spread_std_log_bps")
spreads.select(
    pl.col("trajectory").str.strip_prefix("BTC_USDT:AURORA.spot:").alias("sell_leg"),
    "n",
    coverage_pct=100 * pl.col("coverage"),
    mean_log_bps="spread_mean_log_bps",
    std_log_bps="spread_std_log_bps",
    half_life_min=pl.col("half_life_s") / 60,
    lower_min=pl.col("half_life_lower_s") / 60,
    upper_min=pl.col("half_life_upper_s") / 60,
)

# %% [markdown]
# ## Funding
#
# This is what a position in two futures legs received at settlements, in bps of one leg's notional,
# and the mean difference of the two rates as a simple annual rate.

# %%
rail.screen(family="funding").select(
    pl.col("trajectory").str.strip_prefix("funding/BTC_USDT:").alias("legs"),
    "n",
    "funding_bps",
    "funding_apr_pct",
    coverage_pct=100 * pl.col("coverage"),
)

# %% [markdown]
# ## Events
#
# The service detects spreads far from zero. The table shows how many there were and how long they
# lasted. Events that are still open count as censored.

# %%
rail.events("spread").survival().select(
    "n",
    "closed",
    "open",
    opened_before="orphans",
    half_over_min=pl.col("median_life_s") / 60,
    nine_tenths_over_min=pl.col("life_q90_s") / 60,
)

# %% [markdown]
# ## A finding
#
# The spread that varied most, with both prices above and dashed lines at 10 bps on either side.

# %%
widest = rail.spread(spreads["trajectory"][0])
widest.plot(thresholds_bps=[-10, 10])

# %%
beyond = widest.time_above(10, absolute=True)["time_abs_above_share"].item()
print(
    f"{widest.stream} was 10 bps or more from zero for {beyond:.1%} of the time.\n{widest.footnote}"
)

# %% [markdown]
# ## Next
#
# `widest.df` and `.pandas()` return the rows, `widest.gaps()` the gaps with their causes, and
# `rail.sql(...)` queries the store. Set `RAIL_BASE_URL` and `RAIL_API_KEY` before Jupyter starts to
# run the same cells against your own service. Use another file name then, since a store belongs to
# one source.
