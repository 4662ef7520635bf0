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
# Which spread of bitcoin moves most, what does funding pay, and how long do events last? Nothing is
# needed beforehand: without an address the first load starts a local service on an endless
# **SIMULATED** market. No number below was ever traded.
#
# Times are UTC, windows are `[start, end)`, a unit is part of each column's name. A spread is
# 10⁴ ln(sell / buy), in bps: positive where long the buy leg and short the sell leg earns it.

# %%
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables

readable_tables()
rail = tk.open("quickstart.duckdb", window="7d")
rail.sync(["BTC_USDT:AURORA.spot:*.futures", "funding/BTC_USDT:AURORA.futures:*", "events/spread"])
rail

# %% [markdown]
# A symbol trades on legs `EXCHANGE.market`. Two legs make a spread, buy first, two futures legs
# funding. A `*` stands for whatever the service lists there. Run again, the cell asks only for what
# is missing since. Every call below is about the window that was given, the last seven days.
#
# ## Spreads
#
# Half-life: the time in which half of a deviation is gone, with its 95 % interval. A null has its
# reason in a column of its own, such as `half_life_reason`.

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
# What a position in two futures legs received at the settlements, in bps of one leg's notional, and
# the mean difference of the two rates as a simple rate per year.

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
# The service detects spreads that are far from zero. How many there were of any symbol, and how
# long they lasted. An event that is still open counts as alive so far.

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
# The spread that varied most: both prices above, the spread below, dashed 10 bps either way.

# %%
widest = rail.spread(spreads["trajectory"][0])
widest.plot(thresholds_bps=[-10, 10])

# %%
beyond = widest.time_above(10, absolute=True)["time_abs_above_share"].item()
print(
    f"{widest.stream} was 10 bps or more from zero for {beyond:.1%} of the time.\n{widest.footnote}"
)

# %% [markdown]
# ## Go on
#
# `widest.df` has the rows, also `.pandas()`, `widest.gaps()` what is not there and why, and
# `rail.sql(...)` asks the store in SQL. `RAIL_BASE_URL` and `RAIL_API_KEY`, set before Jupyter
# starts, lead the same cells to your own service. Take another file name then: a store has one
# source and refuses a second one.
