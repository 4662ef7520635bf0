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
# # How fast does a spread return, and can its half-life be trusted?
#
# You learn the level of spreads, how unusual the newest value is, in what time half of a deviation
# is gone, and three ways to doubt that number. Without an address the first load starts a local
# service with a **SIMULATED** market: no price below was ever paid.
#
# Times are UTC, windows are `[start, end)`. A spread is 10⁴ ln(sell / buy), in bps. Intervals are
# 95 % confidence intervals.

# %%
from datetime import timedelta

import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables
from toolkit.service.market.simulator.catalogue import MARKETS

readable_tables()
rail = tk.open("spreads.duckdb", window="7d")
rail.sync("BTC_USDT:AURORA.spot:*")
sell_leg = pl.col("trajectory").str.strip_prefix("BTC_USDT:AURORA.spot:").alias("sell_leg")

# %% [markdown]
# ## Levels, and the widest spread now
#
# One pass covers all stored spreads, the widest first. `z` is the distance of the newest value from
# its own mean in standard deviations, `percentile` the share of the week in which the spread was
# lower.

# %%
spreads = rail.screen()
spreads.select(
    sell_leg,
    mean_bps="spread_mean_log_bps",
    std_bps="spread_std_log_bps",
    q05_bps="spread_q05_log_bps",
    q95_bps="spread_q95_log_bps",
    last_bps="spread_last_log_bps",
    z="last_z",
    percentile="last_percentile",
)

# %% [markdown]
# ## Half-lives
#
# The half-life comes from the autocorrelation. Beside it is the usual one, from an AR(1) fitted by
# least squares, which noise in the quotes alone makes too short. If both differ by more than
# chance, `noise_share` is the share of the variance that is gone a minute later. The interval
# assumes one speed beneath noise; if the data reject that, it is null with a reason.

# %%
spreads.sort("half_life_s").select(
    sell_leg,
    half_life_min=pl.col("half_life_s") / 60,
    lower_min=pl.col("half_life_lower_s") / 60,
    upper_min=pl.col("half_life_upper_s") / 60,
    reason="half_life_upper_reason",
    ar1_min=pl.col("half_life_ar1_s") / 60,
    differ="half_lives_differ",
    noise_share="noise_share",
)

# %% [markdown]
# ## Is it the same on each day?
#
# Here is the spread with the narrowest interval, one day at a time. A reliable half-life is inside
# nearly all of the intervals.

# %%
width = pl.col("half_life_upper_s") / pl.col("half_life_lower_s")
surest = spreads.sort(width, nulls_last=True).row(0, named=True)
spread = rail.spread(surest["trajectory"])
days = pl.concat(
    rail.spread(spread.stream, day, day + timedelta(days=1)).half_life()
    for day in spread.df["time"].dt.date().unique().sort()
)
inside = pl.lit(surest["half_life_s"]).is_between("half_life_lower_s", "half_life_upper_s")
days.select(
    pl.from_epoch("window_start").dt.date().alias("day"),
    "n",
    half_life_min=pl.col("half_life_s") / 60,
    lower_min=pl.col("half_life_lower_s") / 60,
    upper_min=pl.col("half_life_upper_s") / 60,
    holds_that_of_the_week=inside,
)

# %% [markdown]
# ## Is it correct?
#
# Only a simulated market has a known half-life. There each leg leaves the reference, AURORA.spot,
# and returns at a speed that was drawn beforehand, on top of a slow component that lasts for days,
# as on real legs. If the test detects that component there is no interval (`several_speeds` above).
# If it does not, more than one interval in twenty misses the planted half-life.

# %%
planted = {
    str(each.leg): each.deviation.half_life_s for each in MARKETS["BTC_USDT"] if each.deviation
}
true_s = sell_leg.replace_strict(planted)
checked = spreads.filter(pl.col("half_life_upper_s").is_not_null()).select(
    sell_leg,
    planted_min=true_s / 60,
    lower_min=pl.col("half_life_lower_s") / 60,
    upper_min=pl.col("half_life_upper_s") / 60,
    holds=true_s.is_between("half_life_lower_s", "half_life_upper_s"),
    repeated_share="repeated_sell_share",
)
checked.sort("holds", "planted_min")

# %% [markdown]
# ## A finding
#
# The chart shows the spread with the narrowest interval over its last day, with dashed lines at its
# 5 % and 95 % quantiles, and its distribution.

# %%
last_day = rail.spread(spread.stream, "1d")
ends = [round(surest[f"spread_q{q}_log_bps"], 1) for q in ("05", "95")]
last_day.plot(thresholds_bps=ends, legs="none", distribution=True)

# %%
half, low, high = (surest[f"half_life{end}_s"] / 60 for end in ("", "_lower", "_upper"))
print(
    f"Half of a deviation of {spread.stream} is gone after {half:.1f} min "
    f"({low:.1f} to {high:.1f}),\nwhich {days.filter(inside).height} of {days.height} days bear "
    f"out. Of {checked.height} spreads {checked['holds'].sum()} have an interval that holds the "
    f"planted half-life.\n{spread.footnote}"
)

# %%
rail.close()
