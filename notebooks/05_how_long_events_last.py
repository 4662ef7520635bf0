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
# # How long do events last, and how often do they open?
#
# You learn how long spreads, pumps and funding dislocations last, where and at which hours they
# open, and whether last week differed from the one before. Without an address the first load starts
# a local service with a **SIMULATED** market: no event below ever happened.
#
# Times are UTC, windows are `[start, end)`. Intervals are 95 % confidence intervals.

# %%
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables
from toolkit.charts import event_hours_chart, league_chart, survival_chart

readable_tables()
events = tk.statistics.events

rail = tk.open("events.duckdb")
loaded = rail.sync("events/*", "28d")
logs = {family: rail.events(family) for family in ("spread", "splash", "funding")}
spread = logs["spread"]
spread

# %% [markdown]
# ## Is the log complete?
#
# A gap of the log is not a quiet time: rates are per time of log coverage, and an event is observed
# only up to the next gap.

# %%
pl.concat(log.coverage() for log in logs.values())

# %% [markdown]
# ## Survival
#
# `half_min` is the median lifetime. Events that are still open are censored, and events that opened
# before the window are observed from its start (Kaplan and Meier). Leaving either out would bias
# lifetimes.

# %%
lives = pl.concat(log.survival() for log in logs.values())
lives.select(
    "family",
    "n",
    "closed",
    "open",
    opened_before="orphans",
    half_min=pl.col("median_life_s") / 60,
    lower_min=pl.col("median_life_lower_s") / 60,
    upper_min=pl.col("median_life_upper_s") / 60,
    nine_tenths_min=pl.col("life_q90_s") / 60,
)

# %% [markdown]
# Do spreads with a leg on a DEX last as long as others? Below the lines is the number of events
# still observed at each age. With few left, a line means little.

# %%
dex = pl.col("legs").str.count_matches(".dex", literal=True)
words = {0: "no DEX", 1: "one leg on a DEX", 2: "both on a DEX"}
by_dex = spread.lifecycles().with_columns(legs_on_dex=dex.replace_strict(words))
curve = events.survival_curve(by_dex, ["legs_on_dex"], held=spread.held)
survival_chart(
    curve.filter(pl.col("life_s") <= 3_600),
    source=spread.source,
    subject="spread events, up to an age of 1 h",
)

# %%
tested = events.log_rank(by_dex, ["legs_on_dex"], held=spread.held).row(0, named=True)
print(
    f"If all lived equally long, chi-square were about {tested['freedom']}. It is "
    f"{tested['chi_square']:,.0f}: p = {tested['p_value']:.1g} (log-rank test, "
    f"n = {tested['n']:,}, lives taken to be apart from each other)."
)

# %% [markdown]
# ## Rates
#
# Rates are per hour and per day of log coverage. `fano` is 1 if events open independently, and
# larger if they come in bursts. The interval allows for bursts.

# %%
pl.concat(log.rates() for log in logs.values()).select(
    "family",
    "n",
    "rate_per_h",
    "rate_per_day",
    "rate_lower_per_day",
    "rate_upper_per_day",
    "fano",
    coverage_pct=100 * pl.col("coverage"),
)

# %% [markdown]
# Do events open independently? Here `fano` is that of 5-minute buckets. It is much larger than
# `fano_apart`, which has the same hours of the week without bursts: events come in bursts of about
# `burst_s`, and others triggered a share of `triggered_share`.

# %%
bursts = pl.concat(events.clustering(log.lifecycles(), held=log.held) for log in logs.values())
bursts.select(
    "family",
    "n",
    "fano",
    "fano_apart",
    "triggered_share",
    "burst_s",
    "triggered_reason",
)

# %% [markdown]
# ## Where
#
# Among many pairs with few events, chance alone puts some first. A diamond is the rate after
# shrinkage, and pairs are ranked by it.

# %%
league_chart(spread.league(["symbol", "legs"]), source=spread.source, limit=12)

# %% [markdown]
# ## When
#
# Each hour of the week has its mean over the weeks. One hour in twenty differs from the overall
# mean by chance alone.

# %%
hours = events.rates_by_hour(spread.lifecycles(), held=spread.held)
event_hours_chart(hours, source=spread.source, subject="spread events")

# %%
hours.select(
    hours=pl.col("differs").count(),
    differ=pl.col("differs").sum(),
    by_chance=0.05 * pl.col("differs").count(),
)

# %% [markdown]
# ## Against the week before
#
# `q_value` is the expected share of false discoveries among the symbols with at least this evidence
# of a change. It allows for bursts.

# %%
changes = pl.concat(
    events.rate_changes(log.lifecycles(), ["symbol"], held=log.held) for log in logs.values()
)
changes.sort("q_value", nulls_last=True).head(8).select(
    *("family", "symbol", "n", "n_before", "ratio", "ratio_lower", "ratio_upper"),
    q_value=pl.col("q_value").round_sig_figs(1).cast(pl.String),
)

# %% [markdown]
# ## A finding
#
# Which symbol's spread events changed most clearly?

# %%
row = changes.filter(family="spread").sort("q_value", nulls_last=True).row(0, named=True)
print(
    f"Spread events of {row['symbol']} opened {row['ratio']:.2f} times as often as in the week\n"
    f"before ({row['ratio_lower']:.2f} to {row['ratio_upper']:.2f}, n = {row['n']} after "
    f"{row['n_before']}, coverage {100 * row['coverage']:.2f} %).\n"
    f"Two weeks to the end of {spread.window} of {spread.source.label} (times are UTC)"
)

# %%
rail.close()
